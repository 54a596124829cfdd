/** The examples of the README and of docs/typescript.md run, and print what the comments say. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, it } from "node:test";
import { fileURLToPath } from "node:url";

import typescript from "typescript";

import { serve } from "./server.mjs";

const home = fileURLToPath(new URL("..", import.meta.url));
const pages = ["README.md", "../../docs/typescript.md"];

let server;
let folder;
before(async () => {
  server = await serve();
  folder = mkdtempSync(join(tmpdir(), "karat-readme-"));
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(home, join(folder, "node_modules/karat-client"));
});
after(() => server.stop());

for (const page of pages) {
  const blocks = [...readFileSync(join(home, page), "utf8").matchAll(/```ts\n(.*?)```/gs)].map((match) => match[1]);
  blocks.forEach((block, number) => {
    it(`${page}, example ${number + 1}`, async () => {
      const program = join(folder, `example-${page.length}-${number}.mjs`);
      const compilerOptions = { target: "ES2022", module: "ESNext" };
      writeFileSync(program, typescript.transpileModule(block, { compilerOptions }).outputText);
      const env = { ...process.env, KARAT_URL: server.url };
      const [said, wrong] = await new Promise((resolve) => {
        execFile(process.execPath, [program], { env }, (_, stdout, stderr) => resolve([stdout, stderr]));
      });
      const promised = [...block.matchAll(/console\.log\(.*\); \/\/ (.+)$/gm)].map((match) => match[1]);
      assert.ok(promised.length > 0);
      assert.equal(said, `${promised.join("\n")}\n`, wrong);
    });
  });
}
