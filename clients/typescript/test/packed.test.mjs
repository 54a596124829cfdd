/** The package as it is published: its content, both module systems, its types, and no platform but fetch. */

import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import {
  cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, symlinkSync, writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import vm from "node:vm";

import { answer, scripted } from "./server.mjs";

const home = fileURLToPath(new URL("..", import.meta.url));
const tsc = join(home, "node_modules/typescript/bin/tsc");

let folder;
let installed;
before(() => {
  folder = mkdtempSync(join(tmpdir(), "karat-consumer-"));
  const pack = ["pack", "--ignore-scripts", "--json", "--pack-destination", folder];
  const [packed] = JSON.parse(execFileSync("npm", pack, { cwd: home, stdio: ["ignore", "pipe", "ignore"] }));
  execFileSync("tar", ["-xzf", packed.filename], { cwd: folder });
  installed = join(folder, "node_modules/karat-client");
  mkdirSync(join(folder, "node_modules/@types"), { recursive: true });
  cpSync(join(folder, "package"), installed, { recursive: true });
  for (const name of ["@types/node", "undici-types"]) {
    symlinkSync(join(home, "node_modules", name), join(folder, "node_modules", name));
  }
});

const files = (path) => readdirSync(path, { recursive: true, withFileTypes: true })
  .filter((one) => one.isFile()).map((one) => join(one.parentPath ?? one.path, one.name));

describe("the package", () => {
  it("has no dependency at run time, and no address of a registry in its lock file", () => {
    const { dependencies, peerDependencies, license } = JSON.parse(readFileSync(join(installed, "package.json")));
    assert.deepEqual([dependencies, peerDependencies, license], [undefined, undefined, "Apache-2.0"]);
    assert.ok(!readFileSync(join(home, "package-lock.json"), "utf8").includes("resolved"));
  });

  it("has both builds with their types, a README and a licence, and no tests", () => {
    const names = files(installed).map((path) => path.slice(installed.length + 1));
    const builds = ["esm", "cjs"].flatMap((kind) => [`dist/${kind}/index.js`, `dist/${kind}/index.d.ts`]);
    for (const name of ["README.md", "LICENSE", ...builds]) {
      assert.ok(names.includes(name), name);
    }
    assert.ok(!names.some((name) => /test|node_modules/.test(name)), String(names));
  });

  it("imports nothing from node", () => {
    for (const path of files(join(installed, "dist")).filter((one) => one.endsWith(".js"))) {
      const text = readFileSync(path, "utf8");
      const imported = [...text.matchAll(/(?:from |require\(|import\()\s*"([^"]+)"/g)].map((match) => match[1]);
      assert.deepEqual(imported.filter((name) => !name.startsWith("./")), [], path);
      assert.ok(!/\bBuffer\b|\b__dirname\b/.test(text), path);
    }
  });
});

describe("the folder of the package", () => {
  const copy = (name) => {
    const place = join(folder, name);
    mkdirSync(place);
    for (const one of ["package.json", "build.mjs", "tsconfig.json", "src"]) {
      cpSync(join(home, one), join(place, one), { recursive: true });
    }
    mkdirSync(join(place, "app"));
    writeFileSync(join(place, "app/package.json"), '{ "type": "module" }');
    return place;
  };
  const install = (place) => new Promise((resolve) => {
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("npm_")));
    const options = ["install", "--offline", "--no-audit", "--install-links=false", ".."];
    execFile("npm", options, { cwd: join(place, "app"), env }, (error, _, stderr) => resolve([error, stderr]));
  });

  it("is built when it is installed", async () => {
    const place = copy("with tools");
    symlinkSync(join(home, "node_modules"), join(place, "node_modules"));
    const [error, stderr] = await install(place);
    assert.equal(error, null, stderr);
    writeFileSync(join(place, "app/main.js"), 'import { Karat } from "karat-client"; console.log(new Karat().url);');
    const env = { ...process.env, KARAT_URL: "" };
    const said = execFileSync(process.execPath, ["main.js"], { cwd: join(place, "app"), env, encoding: "utf8" });
    assert.equal(said, "http://127.0.0.1:5272\n");
  });

  it("is not installed without the tools to build it, and says how to get them", async () => {
    const place = copy("without tools");
    const [error, stderr] = await install(place);
    assert.notEqual(error, null);
    assert.match(stderr, /karat-client is not built: TypeScript is missing; try npm ci --prefix .*without tools/);
    assert.ok(!stderr.includes("MODULE_NOT_FOUND"), stderr);
  });

  it("needs no tools once it is built", async () => {
    const place = copy("built");
    cpSync(join(home, "dist"), join(place, "dist"), { recursive: true });
    assert.equal((await install(place))[0], null);
    assert.ok(existsSync(join(place, "dist/esm/index.js")));
  });
});

describe("module systems", () => {
  it("ESM and CommonJS export the same names", async () => {
    const esm = await import("karat-client");
    const cjs = createRequire(import.meta.url)("karat-client");
    assert.deepEqual(Object.keys(cjs).sort(), Object.keys(esm).sort());
    assert.notEqual(cjs.Karat, esm.Karat);
  });

  it("CommonJS asks a server", async () => {
    const server = await scripted(answer(200, { names: [{ name: "rr", about: "" }] }));
    try {
      writeFileSync(join(folder, "main.cjs"), `const { Karat } = require("karat-client");
        new Karat({ url: process.argv[2] }).metrics().then(([one]) => console.log(one.name));`);
      const said = await new Promise((resolve) => {
        execFile(process.execPath, ["main.cjs", server.url], { cwd: folder }, (_, stdout) => resolve(stdout));
      });
      assert.equal(said, "rr\n");
    } finally {
      await server.stop();
    }
  });
});

describe("types", { concurrency: true }, () => {
  const node = { module: "NodeNext", lib: ["ES2022"], types: ["node"] };
  const bundler = { module: "ESNext", moduleResolution: "Bundler", lib: ["ES2022", "DOM"], types: [] };
  const modes = [
    ["ESM in Node", "module", node], ["CommonJS in Node", "commonjs", node],
    ["a bundler, for browsers", "module", bundler],
  ];
  const strict = {
    strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, target: "ES2022", noEmit: true,
  };
  for (const [name, type, options] of modes) {
    it(name, async () => {
      const place = join(folder, name);
      mkdirSync(place);
      cpSync(join(home, "test/consumer.ts"), join(place, "consumer.ts"));
      writeFileSync(join(place, "package.json"), JSON.stringify({ type }));
      writeFileSync(join(place, "tsconfig.json"), JSON.stringify({ compilerOptions: { ...strict, ...options } }));
      const said = await new Promise((resolve) => {
        execFile(process.execPath, [tsc, "-p", "."], { cwd: place }, (_, stdout) => resolve(stdout));
      });
      assert.equal(said, "");
    });
  }
});

describe("an edge runtime", () => {
  it("works without process, Buffer or require: only fetch, timers and URLs", async () => {
    const modules = new Map();
    const context = vm.createContext({
      fetch, URL, URLSearchParams, TextDecoder, TextEncoder, AbortController, setTimeout, clearTimeout, crypto,
    });
    const load = (path) => {
      if (!modules.has(path)) {
        const exports = {};
        modules.set(path, exports);
        const text = readFileSync(join(installed, "dist/cjs", path), "utf8");
        const run = vm.runInContext(`(function (exports, require) {${text}\n})`, context);
        run(exports, (name) => load(name.replace("./", "")));
      }
      return modules.get(path);
    };
    const { Evaluator, Karat } = load("index.js");
    const row = { name: "mrr", output: 0.5, reason: "MRR: 0.5", runtime: 0 };
    const rows = { status: true, result: [{ evaluations: [row] }] };
    const server = await scripted(answer(503, {}), answer(200, rows), answer(200, { status: "ok", version: "1" }));
    try {
      const evaluator = new Evaluator({ fiBaseUrl: server.url });
      const result = await evaluator.evaluate("mrr", { hypothesis: "[1]", reference: "[1]" });
      assert.equal(result.eval_results[0].output, 0.5);
      assert.equal((await new Karat({ url: server.url }).health()).version, "1");
    } finally {
      await server.stop();
    }
  });
});
