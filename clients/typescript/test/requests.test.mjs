/** Retries, timeouts, cancellation, errors and bodies, against a server with scripted answers. */

import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";

import {
  Aborted, BadAnswer, BadRequest, Disconnected, Evaluator, InvalidValue, Karat, KaratError, MissingAuthError, NotFound,
  RateLimited, ServerFailed, TimedOut, TooLarge, Unauthorized, Unavailable,
} from "karat-client";

import { secondsIn } from "../dist/esm/transport.js";
import { toJson } from "../dist/esm/json.js";
import { answer, broken, scripted, silent } from "./server.mjs";

const ROW = { name: "mrr", reason: "MRR: 1.0", runtime: 1, output: 1, output_type: "score", eval_id: "1" };
const GOOD = answer(200, { status: true, result: [{ evaluations: [ROW] }] });
const BUSY = answer(503, { title: "Service Unavailable", status: 503, detail: "too many evaluations are waiting" });
const INPUTS = { hypothesis: '["a"]', reference: '["a"]' };

let server;
afterEach(() => server?.stop());

async function client(answers, options = {}) {
  server = await scripted(...answers);
  return new Evaluator({ fiBaseUrl: server.url, throwOnError: true, ...options });
}

const ask = (evaluator, options) => evaluator.evaluate("mrr", INPUTS, options);

describe("retries", () => {
  const cut = (response) => {
    response.writeHead(200, { "Content-Length": "10" });
    response.write("{", () => response.socket.destroy());
  };
  const passing = [
    ["429", answer(429, {})], ["503", BUSY], ["502", answer(502, "bad gateway")], ["a broken connection", broken],
    ["half an answer", cut],
  ];
  for (const [name, first] of passing) {
    it(`a request is sent again after ${name}, with the same Idempotency-Key`, async () => {
      const evaluator = await client([first, GOOD]);
      assert.equal((await ask(evaluator)).eval_results[0].output, 1);
      const keys = server.requests.map((request) => request.headers["idempotency-key"]);
      assert.equal(keys.length, 2);
      assert.match(keys[0], /^[0-9a-f-]{36}$/);
      assert.equal(keys[0], keys[1]);
    });
  }

  it("two requests have different keys", async () => {
    const evaluator = await client([GOOD]);
    await ask(evaluator);
    await ask(evaluator);
    assert.notEqual(server.requests[0].headers["idempotency-key"], server.requests[1].headers["idempotency-key"]);
  });

  for (const status of [400, 401, 403, 404, 408, 413, 422, 500]) {
    it(`${status} is final`, async () => {
      const evaluator = await client([answer(status, "no"), GOOD]);
      await assert.rejects(ask(evaluator), KaratError);
      assert.equal(server.requests.length, 1);
    });
  }

  it("the pauses grow, and the last error is thrown", async () => {
    const evaluator = await client([BUSY], { retries: 2 });
    await assert.rejects(ask(evaluator), (error) => error instanceof Unavailable && error.status === 503);
    const [first, second, third] = server.requests.map((request) => request.time);
    assert.equal(server.requests.length, 3);
    assert.ok(second - first >= 120, `${second - first} ms`);
    assert.ok(third - second >= 245, `${third - second} ms`);
  });

  it("retries: 0 sends a request once", async () => {
    const evaluator = await client([BUSY, GOOD], { retries: 0 });
    await assert.rejects(ask(evaluator), Unavailable);
    assert.equal(server.requests.length, 1);
  });

  it("Retry-After is honoured", async () => {
    const evaluator = await client([answer(429, {}, { "Retry-After": "1" }), GOOD]);
    await ask(evaluator);
    const [first, second] = server.requests.map((request) => request.time);
    assert.ok(second - first >= 995, `${second - first} ms`);
  });

  it("a Retry-After beyond the timeout is not waited for", async () => {
    const evaluator = await client([answer(429, {}, { "Retry-After": "3600" })], { timeout: 60 });
    const begin = Date.now();
    await assert.rejects(ask(evaluator), (error) => error instanceof RateLimited && error.retryAfter === 3600);
    assert.ok(Date.now() - begin < 30_000);
  });

  it("Retry-After is a number of seconds or a date", () => {
    const now = Date.parse("Wed, 21 Oct 2026 07:28:00 GMT");
    assert.equal(secondsIn("120"), 120);
    assert.equal(secondsIn("Wed, 21 Oct 2026 07:28:30 GMT", now), 30);
    assert.equal(secondsIn("Wed, 21 Oct 2026 07:27:00 GMT", now), 0);
    assert.equal(secondsIn("soon"), undefined);
    assert.equal(secondsIn(null), undefined);
  });
});

describe("time", () => {
  it("a call without an answer ends at its timeout, which is in seconds", async () => {
    const evaluator = await client([silent]);
    const begin = Date.now();
    const late = (error) => error instanceof TimedOut && error.message === "no answer within 1 seconds";
    await assert.rejects(ask(evaluator, { timeout: 1 }), late);
    const passed = Date.now() - begin;
    assert.ok(passed >= 990 && passed < 30_000, `${passed} ms`);
    assert.equal(server.requests.length, 1);
  });

  it("the timeout includes the retries", async () => {
    const evaluator = await client([BUSY], { retries: 1000, timeout: 0.6 });
    const begin = Date.now();
    await assert.rejects(ask(evaluator), KaratError);
    assert.ok(Date.now() - begin < 30_000);
  });

  it("a fetch that does not listen to its signal is given up, too", async () => {
    const evaluator = new Evaluator({ fetch: () => new Promise(() => {}), timeout: 0.1, throwOnError: true });
    await assert.rejects(ask(evaluator), TimedOut);
  });

  it("an answer that begins and does not end is not waited for", async () => {
    const evaluator = await client([(response) => response.writeHead(200, { "Content-Length": "10" }).write("{")]);
    await assert.rejects(ask(evaluator, { timeout: 0.2 }), TimedOut);
  });

  it("a signal cancels a call", async () => {
    const evaluator = await client([silent]);
    const abort = new AbortController();
    setTimeout(() => abort.abort(new Error("enough")), 50);
    await assert.rejects(ask(evaluator, { signal: abort.signal }), (error) => {
      assert.ok(error instanceof Aborted);
      assert.equal(error.name, "AbortError");
      assert.equal(error.cause.message, "enough");
      return true;
    });
  });

  it("a signal cancels the pause before a retry", async () => {
    const evaluator = await client([answer(503, {}, { "Retry-After": "30" })]);
    const begin = Date.now();
    await assert.rejects(ask(evaluator, { signal: AbortSignal.timeout(100) }), Aborted);
    assert.ok(Date.now() - begin < 20_000);
  });

  it("a call with an aborted signal sends nothing", async () => {
    const evaluator = await client([GOOD]);
    await assert.rejects(ask(evaluator, { signal: AbortSignal.abort() }), Aborted);
    assert.equal(server.requests.length, 0);
  });
});

describe("errors", () => {
  const kinds = [
    [400, BadRequest, "bad-request"], [422, BadRequest, "bad-request"], [401, Unauthorized, "unauthorized"],
    [403, Unauthorized, "unauthorized"], [404, NotFound, "not-found"], [408, TimedOut, "timed-out"],
    [413, TooLarge, "too-large"], [429, RateLimited, "rate-limited"], [500, ServerFailed, "server-failed"],
    [503, Unavailable, "unavailable"],
  ];
  for (const [status, type, kind] of kinds) {
    it(`${status} is ${type.name}`, async () => {
      const problem = { title: "T", status, detail: "k must be >= 1", got: "0", hint: "1", instance: "r1" };
      const refuse = answer(status, problem, { "Content-Type": "application/problem+json" });
      const evaluator = await client([refuse], { retries: 0 });
      await assert.rejects(ask(evaluator), (error) => {
        assert.ok(error instanceof type && error instanceof KaratError && error instanceof Error);
        assert.deepEqual([error.kind, error.status, error.hint, error.requestId], [kind, status, "1", "r1"]);
        assert.equal(error.message, "k must be >= 1; got 0; try 1");
        assert.deepEqual(error.problem, problem);
        return true;
      });
    });
  }

  it("a text is the message of its error", async () => {
    const evaluator = await client([answer(400, "k must be an integer", { "Content-Type": "text/plain" })]);
    await assert.rejects(ask(evaluator), { message: "k must be an integer" });
  });

  it("an object without a sentence is shown, never [object Object]", async () => {
    const evaluator = await client([answer(400, { errors: { k: ["wrong"] } })]);
    await assert.rejects(ask(evaluator), { message: '{"errors":{"k":["wrong"]}}' });
  });

  for (const [name, body] of [
    ["NaN in an answer", '{"status":true,"result":[{"evaluations":[{"output":NaN}]}]}'], ["no JSON", "<html>"],
    ["no rows", '{"status":true,"result":[]}'], ["a refusal without rows", '{"status":false,"result":[]}'],
    ["a list", "[]"], ["nothing", ""],
  ]) {
    it(`${name} is an error, not an empty list`, async () => {
      const evaluator = await client([answer(200, body)]);
      await assert.rejects(ask(evaluator), BadAnswer);
    });
  }

  it("a server that is not there", async () => {
    const evaluator = await client([GOOD], { retries: 1 });
    await server.stop();
    const port = new URL(server.url).port;
    const message = `cannot reach the server: connect ECONNREFUSED 127.0.0.1:${port}; try karat serve --port ${port}`;
    await assert.rejects(ask(evaluator), (error) => error instanceof Disconnected && error.message === message);
  });

  for (const [name, url, cause, words] of [
    ["the default address", undefined, { message: "refused", code: "ECONNREFUSED" }, "refused; try karat serve"],
    ["an address without a port", "http://localhost", { message: "", code: "ECONNREFUSED" }, "ECONNREFUSED; try karat serve"],
    ["IPv6", "http://[::1]:5272", { message: "no", code: "ECONNREFUSED" }, "no; try karat serve --host ::1"],
    ["a connection that breaks", undefined, { message: "other side closed", code: "UND_ERR_SOCKET" }, "other side closed"],
    ["another machine", "http://192.0.2.1:5272", { message: "refused", code: "ECONNREFUSED" }, "refused"],
  ]) {
    it(`the hint for ${name}`, async () => {
      const fetch = async () => {
        throw new TypeError("fetch failed", { cause: Object.assign(new Error(cause.message), { code: cause.code }) });
      };
      const karat = new Karat({ url, fetch, retries: 0 });
      await assert.rejects(karat.health(), { message: `cannot reach the server: ${words}` });
    });
  }

  it("a redirect is not followed: keys stay with the server they are for", async () => {
    const evaluator = await client([answer(307, "", { Location: "http://127.0.0.1:9/" })]);
    await assert.rejects(ask(evaluator), (error) => error instanceof BadAnswer && /redirects/.test(error.message));
  });
});

describe("keys", () => {
  const other = { fiBaseUrl: "https://example.org", fetch: () => GOOD };

  it("a server on another machine needs keys, one on this machine does not", async () => {
    assert.throws(() => new Evaluator({ fiBaseUrl: "https://example.org" }), (error) =>
      error instanceof MissingAuthError && error.missingApiKey && error.missingSecretKey);
    assert.throws(() => new Evaluator({ ...other, fiApiKey: "team" }), (error) =>
      error instanceof MissingAuthError && !error.missingApiKey && error.missingSecretKey);
    for (const host of ["127.0.0.1", "localhost", "[::1]"]) new Evaluator({ fiBaseUrl: `http://${host}:1` });
    new Evaluator({ ...other, fiApiKey: "team", fiSecretKey: "k" });
  });

  it("keys are headers, never part of an address or a message", async () => {
    const evaluator = await client([answer(403, "the key is wrong")], { fiApiKey: "team", fiSecretKey: "s3cret" });
    await assert.rejects(ask(evaluator), (error) => {
      const all = JSON.stringify([{ ...error }, error.message, error.stack]);
      return error instanceof Unauthorized && !all.includes("s3cret");
    });
    const [{ headers, url, body }] = server.requests;
    assert.deepEqual([headers["x-api-key"], headers["x-secret-key"]], ["team", "s3cret"]);
    assert.ok(!(url + body).includes("s3cret"));
    assert.ok(!JSON.stringify(evaluator).includes("s3cret"));
  });

  it("the environment is used where there are no options", async () => {
    server = await scripted(GOOD);
    const before = { ...process.env };
    try {
      Object.assign(process.env, { FI_BASE_URL: `${server.url}/`, FI_API_KEY: "n", FI_SECRET_KEY: "s" });
      assert.equal(new Evaluator().baseUrl, server.url);
      assert.equal(new Evaluator({ fiBaseUrl: "http://localhost:1" }).baseUrl, "http://localhost:1");
      await new Evaluator().evaluate("mrr", INPUTS);
      assert.equal(server.requests[0].headers["x-secret-key"], "s");
      for (const name of ["FI_BASE_URL", "FI_API_KEY", "FI_SECRET_KEY"]) delete process.env[name];
      Object.assign(process.env, { KARAT_URL: server.url, KARAT_KEY: "karat_k" });
      await new Evaluator().evaluate("mrr", INPUTS);
      assert.equal(server.requests[1].headers.authorization, "Bearer karat_k");
      delete process.env.KARAT_URL;
      assert.equal(new Evaluator().baseUrl, "http://127.0.0.1:5272");
    } finally {
      process.env = before;
    }
  });
});

describe("bodies", () => {
  it("a bigint is an id, written exactly", () => {
    assert.equal(toJson({ ids: [9007199254740993n] }), '{"ids":["9007199254740993"]}');
  });

  for (const [name, value, place] of [
    ["NaN", { samples: [{ retrieved: [{ id: "a", score: NaN }] }] }, "samples[0].retrieved[0].score is NaN"],
    ["Infinity", { k: Infinity }, "k is Infinity"],
    ["undefined in a list", { gold: ["a", undefined] }, "gold[1] is undefined"],
    ["a Set", { gold: new Set(["a"]) }, "gold is a Set"], ["a Map", { by: new Map() }, "by is a Map"],
    ["a typed array", { scores: new Float32Array(2) }, "scores is a Float32Array"],
    ["a function", { judge: () => 1 }, "judge is a function"],
  ]) {
    it(`${name} is refused, with its place`, () => {
      assert.throws(() => toJson(value), (error) => error instanceof InvalidValue && error.message.startsWith(place));
    });
  }

  it("undefined fields are left out, dates are text", () => {
    assert.equal(toJson({ a: undefined, b: new Date(0) }), '{"b":"1970-01-01T00:00:00.000Z"}');
  });

  it("bad options and arguments are refused before anything is sent", async () => {
    for (const options of [{ timeout: 0 }, { timeout: NaN }, { retries: 1.5 }, { retries: -1 }, { fiBaseUrl: "here" },
      { fiBaseUrl: "ftp://x" }, { fiBaseUrl: "http://a:b@127.0.0.1" }, { fiBaseUrl: "http://127.0.0.1?x=1" }]) {
      assert.throws(() => new Evaluator(options), InvalidValue, JSON.stringify(options));
    }
    const evaluator = await client([GOOD], { throwOnError: false });
    await assert.rejects(evaluator.evaluate(5, INPUTS), InvalidValue);
    await assert.rejects(evaluator.evaluate([], INPUTS), InvalidValue);
    await assert.rejects(evaluator.evaluate("mrr", [INPUTS]), InvalidValue);
    await assert.rejects(evaluator.evaluate("mrr", { hypothesis: [NaN], reference: ["a"] }), InvalidValue);
    await assert.rejects(evaluator.evaluate("mrr", INPUTS, { platform: "langfuse" }), InvalidValue);
    assert.equal(server.requests.length, 0);
  });
});
