/** The class Karat against a real `karat serve` with a store. */

import assert from "node:assert/strict";
import { mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";

import {
  Aborted, BadRequest, Conflict, InvalidValue, JobFailed, Karat, KaratError, NotFound, TimedOut, Unauthorized,
} from "karat-client";

import { karat as command, scripted, serve, answer } from "./server.mjs";

const SAMPLES = [
  { id: "q1", query: "When does the shop close?", retrieved: ["hours", "faq"], gold: ["hours"], topic: "visit" },
  { id: "q2", query: "Can I return a gift?", retrieved: ["faq", "returns"], gold: ["returns"], topic: "orders" },
  { id: "q3", query: "Is there parking?", retrieved: ["faq"], gold: ["parking"], topic: "visit" },
];
const BETTER = SAMPLES.map((sample) => ({ ...sample, retrieved: sample.gold }));
const METRICS = "recall@1,2 rr";

let store;
let server;
let karat;
before(async () => {
  store = mkdtempSync(join(tmpdir(), "karat-store-"));
  server = await serve("--store", store);
  karat = new Karat({ url: server.url, timeout: 60 });
  await karat.evaluate({ samples: SAMPLES, metrics: METRICS, store: "main" });
});
after(() => server.stop());

describe("evaluate", () => {
  it("means, intervals, slices and the table", async () => {
    const run = await karat.evaluate({ samples: SAMPLES, metrics: METRICS, by: "topic" });
    assert.deepEqual(run.mean, { "recall@1": 1 / 3, "recall@2": 2 / 3, rr: 0.5 });
    assert.equal(run.by.topic.visit.queries, 2);
    assert.deepEqual(run.table[1], { query_id: "q2", "recall@1": 0, "recall@2": 1, rr: 0.5 });
    assert.deepEqual([run.id, run.queries, run.judge], [null, 3, "ids"]);
  });

  it("results and gold apart, with bigints as ids", async () => {
    const gold = [["9007199254740993"]];
    const run = await karat.evaluate({ retrieved: [[9007199254740993n, 2]], gold, metrics: "rr" });
    assert.equal(run.mean.rr, 1);
  });

  it("undefined is null", async () => {
    const run = await karat.evaluate({ samples: [{ retrieved: ["a"], gold: [] }], metrics: "recall@1" });
    assert.deepEqual([run.mean["recall@1"], run.undefined["recall@1"]], [null, 1]);
  });

  it("files: lines of JSON, CSV, and the run file that was downloaded", async () => {
    const lines = SAMPLES.map((sample) => JSON.stringify(sample)).join("\n");
    assert.equal((await karat.evaluateFile(lines, "ndjson", { metrics: "rr" })).mean.rr, 0.5);
    assert.equal((await karat.evaluateFile(lines, "jsonl", { metrics: "rr" })).mean.rr, 0.5);
    const bytes = new TextEncoder().encode(lines);
    assert.equal((await karat.evaluateFile(bytes, "ndjson", { metrics: "rr", table: false })).table, null);
  });

  it("a format that is not known is refused before anything is sent", async () => {
    for (const format of ["xlsx", "JSONL", "constructor", undefined, { metrics: "rr" }]) {
      await assert.rejects(karat.evaluateFile("{}", format), (error) => error instanceof InvalidValue
        && /^the format of a file is ndjson, jsonl, parquet, arrow or csv; got /.test(error.message));
    }
  });

  it("NaN is refused before anything is sent", async () => {
    await assert.rejects(karat.evaluate({ samples: [{ retrieved: [{ id: "a", score: NaN }], gold: ["a"] }] }),
      (error) => error instanceof InvalidValue && error.message.startsWith("samples[0].retrieved[0].score is NaN"));
  });

  it("the server's sentence, what it got and a hint", async () => {
    await assert.rejects(karat.evaluate({ samples: SAMPLES, metrics: "recal@5" }), (error) => {
      assert.ok(error instanceof BadRequest);
      assert.equal(error.status, 400);
      assert.match(error.message, /recal/);
      assert.equal(typeof error.hint, "string");
      assert.match(error.requestId, /^[0-9a-f]{32}$/);
      return true;
    });
  });

  it("the same idempotency key does the work once", async () => {
    const request = { samples: SAMPLES, metrics: "rr", store: "once" };
    const options = { idempotencyKey: "k-1" };
    const [first, second] = [await karat.evaluate(request, options), await karat.evaluate(request, options)];
    assert.equal(first.id, second.id);
    assert.equal((await karat.runs({ name: "once" })).total, 1);
    await assert.rejects(karat.evaluate({ ...request, metrics: "ap" }, options), BadRequest);
  });
});

describe("stored runs", () => {
  it("are listed, shown and files that karat reads", async () => {
    const page = await karat.runs({ limit: 1 });
    assert.equal(page.runs.length, 1);
    const run = await karat.run("main", { by: "topic" });
    assert.equal(run.name, "main");
    assert.deepEqual(Object.keys(run.by.topic).sort(), ["orders", "visit"]);
    const bytes = await karat.download(run.id);
    assert.equal(new TextDecoder().decode(bytes.slice(0, 4)), "PAR1");
    const file = readdirSync(store).find((name) => name.startsWith("main"));
    assert.match(await command("show", join(store, file)), /recall@2/);
  });

  it("pages are followed", async () => {
    const names = [];
    for await (const run of karat.allRuns({ limit: 1 })) names.push(run.name);
    assert.ok(names.includes("main") && names.length >= 2, String(names));
    const rows = [];
    for await (const row of karat.allRows("main", { limit: 2 })) rows.push(row.query_id);
    assert.deepEqual(rows, ["q1", "q2", "q3"]);
    assert.equal((await karat.table("main", { limit: 2, offset: 2 })).rows[0].query_id, "q3");
  });

  it("one query", async () => {
    const items = await karat.items("main", "q2");
    assert.deepEqual(items.gold, [{ gold: "returns", grade: 1, rank: 2 }]);
    assert.deepEqual(items.retrieved.map((item) => item.id), ["faq", "returns"]);
  });

  it("are deleted", async () => {
    const { id } = await karat.evaluate({ samples: SAMPLES, metrics: "rr", store: "short-lived" });
    assert.equal(await karat.deleteRun(id), undefined);
    await assert.rejects(karat.run(id), NotFound);
  });

  it("ids cannot lead to other paths", async () => {
    for (const id of ["", ".", "..", undefined, 5]) await assert.rejects(async () => karat.run(id), InvalidValue);
    for (const id of ["../../etc/passwd", "a/b", "a?b", "%2e%2e"]) await assert.rejects(karat.run(id), KaratError);
  });
});

describe("verdicts", () => {
  it("compare", async () => {
    const better = { samples: BETTER, metrics: METRICS };
    const found = await karat.compare({ runs: ["main", better], names: ["main", "new"] });
    assert.deepEqual(found.names, ["main", "new"]);
    assert.equal(found.rows[0].metric, "recall@1");
    assert.equal(found.rows[0].difference, 2 / 3);
    assert.deepEqual(found.rows[0].means, { main: 1 / 3, new: 1 });
  });

  it("gate", async () => {
    const better = { samples: BETTER, metrics: METRICS };
    const good = await karat.gate({ run: better, rules: ["recall@1 >= 0.9"], baseline: "main" });
    assert.equal(good.passed, true);
    const bad = await karat.gate({ run: "main", rules: ["recall@1 >= 0.9"] });
    assert.deepEqual([bad.passed, bad.checks.length], [false, 1]);
  });

  it("diagnose", async () => {
    const found = await karat.diagnose({ run: "main", k: 1 });
    assert.deepEqual([found.missed, found.gold_items, found.k], [2, 3, 1]);
  });
});

describe("jobs", () => {
  it("a job is waited for, with its progress", async () => {
    const job = await karat.start("evaluate", { samples: SAMPLES, metrics: METRICS });
    assert.ok(["waiting", "running"].includes(job.state));
    const states = [];
    const run = await job.wait({ onProgress: (report) => states.push(report.state) });
    assert.equal(run.mean.rr, 0.5);
    assert.equal(states.at(-1), "done");
    assert.ok(job.ended);
    assert.deepEqual([job.state, job.report.state, job.report.operation], ["done", "done", "evaluate"]);
    assert.equal((await (await karat.job(job.id)).wait()).mean.rr, 0.5);
  });

  it("evaluate waits for work that became a job", async () => {
    assert.equal((await karat.evaluate({ samples: SAMPLES, metrics: METRICS, job: true })).mean.rr, 0.5);
    const job = await karat.start("gate", { run: "main", rules: ["recall@1 >= 0.9"] });
    assert.equal((await job.wait()).passed, false);
  });

  it("a job that fails throws the error of its request", async () => {
    const job = await karat.start("gate", { run: "nothing", rules: ["recall@1 >= 0.9"] });
    await assert.rejects(job.wait(), (error) => error instanceof NotFound && /no such run/.test(error.message));
    assert.equal(job.state, "failed");
  });

  it("a job is cancelled", async () => {
    const many = Array.from({ length: 50_000 }, (_, i) => ({ retrieved: [`a${i}`, "b"], gold: ["b"] }));
    const metrics = Array.from({ length: 60 }, (_, k) => `ndcg@${k + 1}`);
    const job = await karat.start("evaluate", { samples: many, metrics });
    assert.equal((await job.cancel()).state, "cancelled");
    await assert.rejects(job.wait(), JobFailed);
  });

  it("unknown jobs, and results that are not there", async () => {
    await assert.rejects(karat.job("nothing"), NotFound);
  });

  it("a wait ends at its timeout or signal, and evaluate then cancels the job", async () => {
    const state = { id: "j1", state: "running", operation: "evaluate", created: "", done: 0, of: 0, result: null };
    const cancelled = { ...state, state: "cancelled" };
    const fake = await scripted((response, { method }) =>
      answer(method === "POST" ? 202 : 200, method === "DELETE" ? cancelled : state)(response));
    try {
      const client = new Karat({ url: fake.url });
      const job = await client.start("evaluate", { samples: SAMPLES });
      await assert.rejects(job.wait({ timeout: 0.2 }), TimedOut);
      await assert.rejects(job.wait({ signal: AbortSignal.timeout(100) }), Aborted);
      assert.ok(!fake.requests.some((request) => request.method === "DELETE"));
      await assert.rejects(client.evaluate({ samples: SAMPLES }, { timeout: 2 }), TimedOut);
      assert.equal(fake.requests.at(-1).method, "DELETE");
    } finally {
      await fake.stop();
    }
  });

  it("a result that is not there yet is a conflict", async () => {
    const fake = await scripted(answer(409, { title: "Conflict", status: 409, detail: "the job has not ended" }));
    try {
      await assert.rejects(new Karat({ url: fake.url }).job("j1"), Conflict);
    } finally {
      await fake.stop();
    }
  });
});

describe("names and service", () => {
  it("metrics, judges, conventions", async () => {
    assert.ok((await karat.metrics()).some((one) => one.name === "ndcg" && one.about));
    assert.ok((await karat.judges()).some((one) => one.name === "fuzzy"));
    assert.ok((await karat.conventions()).some((one) => one.name === "futureagi"));
  });

  it("health and readiness", async () => {
    assert.equal((await karat.health()).status, "ok");
    assert.equal((await karat.readiness()).status, "ready");
    assert.equal(karat.url, server.url);
  });
});

it("a key is sent as a bearer", async () => {
  const keys = join(mkdtempSync(join(tmpdir(), "karat-")), "keys.json");
  const key = await command("serve", "--keys", keys, "--new-key", "team");
  const locked = await serve("--keys", keys);
  try {
    assert.ok((await new Karat({ url: locked.url, key }).metrics()).length > 5);
    const missing = (error) => error instanceof Unauthorized && error.status === 401;
    await assert.rejects(new Karat({ url: locked.url }).metrics(), missing);
    await assert.rejects(new Karat({ url: locked.url, key: "wrong" }).metrics(), (error) => error.status === 403);
  } finally {
    await locked.stop();
  }
});
