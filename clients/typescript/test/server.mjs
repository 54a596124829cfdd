/** Servers for the tests: a real `karat serve`, and a fake one with scripted answers. */

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const installed = `${root}.venv/bin/python`;
export const python = process.env.KARAT_PYTHON ?? (existsSync(installed) ? installed : "python3");

/** A `karat serve` on a free port, and the way to stop it. */
export async function serve(...options) {
  const env = { ...process.env, PYTHONPATH: [`${root}src`, process.env.PYTHONPATH].filter(Boolean).join(":") };
  const child = spawn(python, ["-m", "karat", "serve", "--port", "0", ...options], { cwd: root, env });
  let said = "";
  child.stderr.on("data", (part) => { said += part; });
  const url = await new Promise((resolve, reject) => {
    child.stdout.once("data", (line) => resolve(String(line).trim()));
    child.once("exit", (code) => reject(new Error(`karat serve ended with ${code}: ${said}`)));
  });
  for (;;) {
    const answer = await fetch(`${url}/readyz`);
    await answer.arrayBuffer();
    if (answer.ok) break;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const stop = () => new Promise((resolve) => {
    child.removeAllListeners("exit");
    child.once("exit", resolve);
    child.kill("SIGTERM");
  });
  return { url, stop };
}

/** The output of a karat command. */
export async function karat(...options) {
  const env = { ...process.env, PYTHONPATH: [`${root}src`, process.env.PYTHONPATH].filter(Boolean).join(":") };
  const child = spawn(python, ["-m", "karat", ...options], { cwd: root, env });
  let printed = "";
  child.stdout.on("data", (part) => { printed += part; });
  await new Promise((resolve) => child.once("close", resolve));
  return printed.trim();
}

/** A server that answers each request by the next of these functions, and remembers the requests. */
export async function scripted(...answers) {
  const requests = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (part) => { body += part; });
    request.on("end", () => {
      requests.push({ method: request.method, url: request.url, headers: request.headers, body, time: Date.now() });
      const answer = answers[Math.min(requests.length, answers.length) - 1];
      answer(response, request);
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const stop = () => new Promise((resolve) => {
    server.closeAllConnections();
    server.close(resolve);
  });
  return { url: `http://127.0.0.1:${server.address().port}`, requests, stop };
}

/** An answer with a status, a body in JSON, and headers. */
export function answer(status, body, headers = {}) {
  return (response) => {
    response.writeHead(status, { "Content-Type": "application/json", ...headers });
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  };
}

/** An answer that breaks the connection. */
export function broken(response) {
  response.socket.destroy();
}

/** No answer at all. */
export function silent() {}
