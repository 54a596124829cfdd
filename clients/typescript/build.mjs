/** Builds dist/: ESM and CommonJS, each with its types. */

import { spawnSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const tsc = fileURLToPath(new URL("node_modules/typescript/bin/tsc", import.meta.url));

function compile(...options) {
  const { status } = spawnSync(process.execPath, [tsc, "-p", here, ...options], { stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}

rmSync(new URL("dist", import.meta.url), { recursive: true, force: true });
compile();
const commonJs = ["--module", "CommonJS", "--moduleResolution", "Node10", "--verbatimModuleSyntax", "false"];
compile(...commonJs, "--outDir", `${here}dist/cjs`);
writeFileSync(new URL("dist/cjs/package.json", import.meta.url), '{ "type": "commonjs" }\n');
