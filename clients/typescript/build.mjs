/** Builds dist/: ESM and CommonJS, each with its types. It runs after `npm ci`, and when the folder is installed or packed. */

import { spawnSync } from "node:child_process";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const tsc = compiler();

function compiler() {
  try {
    return createRequire(import.meta.url).resolve("typescript/bin/tsc");
  } catch {
    const isBuilt = existsSync(new URL("dist/cjs/package.json", import.meta.url));
    if (isBuilt && process.env.npm_lifecycle_event === "prepare") process.exit(0);
    console.error(`karat-client is not built: TypeScript is missing; try npm ci --prefix ${here}`);
    process.exit(1);
  }
}

function compile(...options) {
  const { status } = spawnSync(process.execPath, [tsc, "-p", here, ...options], { stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}

rmSync(new URL("dist", import.meta.url), { recursive: true, force: true });
compile();
const commonJs = ["--module", "CommonJS", "--moduleResolution", "Node10", "--verbatimModuleSyntax", "false"];
compile(...commonJs, "--outDir", `${here}dist/cjs`);
writeFileSync(new URL("dist/cjs/package.json", import.meta.url), '{ "type": "commonjs" }\n');
