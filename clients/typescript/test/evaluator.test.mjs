/** The code of Future AGI's pages in TypeScript, against a real `karat serve`: the values are those of the pages. */

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";

import {
  BadRequest, Evaluator, ExecutionError, InvalidValue, Templates, Unauthorized, evaluate, evaluate_pipeline, get_eval_result,
  get_pipeline_results, list_evaluations,
} from "karat-client";

import { serve } from "./server.mjs";

const [P, E, F, O, N] = [
  "Paris is the capital of France.", "The Eiffel Tower was built in 1889.", "France is in Europe.",
  "The Louvre is in Paris.", "Napoleon was born in Corsica.",
];
const BATCH = {
  hypothesis: [[P, F, N], ["The sky is blue.", "Water is wet."], ["Unrelated 1.", "Unrelated 2.", "Unrelated 3.", O]],
  reference: [[P, E], ["The sky is blue.", "Water is wet."], [O]],
};
const json = (lists) => lists.map((list) => JSON.stringify(list));

let server;
let evaluator;
before(async () => {
  server = await serve();
  evaluator = new Evaluator({ fiApiKey: "any", fiSecretKey: "value", fiBaseUrl: server.url });
});
after(() => server.stop());

describe("the pages", () => {
  const pages = [
    ["recall_at_k", [P, E, F, O, N], [P, E, O], 5, 1, "Recall@5: 1.0"],
    ["recall_at_k", [P, E, F, O, N], [P, E, O], 3, 2 / 3, "Recall@3: 0.667"],
    ["recall_at_k", [P, E, F, O, N], [P, E, O], undefined, 1, "Recall@5: 1.0"],
    ["precision_at_k", [P, F, E, N, O], [P, E, O], 5, 0.6, "Precision@5: 0.6"],
    ["precision_at_k", [P, F, E, N, O], [P, E, O], 2, 0.5, "Precision@2: 0.5"],
    ["ndcg_at_k", [F, P, N, E, O], [P, E, O], 5, 0.6797310500037655, "NDCG@5: 0.68"],
    ["ndcg_at_k", [F, P, N, E, O], [P, E, O], 3, 0.2960819109658652, "NDCG@3: 0.296"],
    ["mrr", [F, N, P, E, O], [P, E, O], undefined, 1 / 3, "MRR: 0.333"],
    ["hit_rate", [F, P, N], [P, E], undefined, 1, "Hit Rate: 1.0"],
    ["mean_average_precision", [P, F, E], [P, E], undefined, (1 + 2 / 3) / 2, "MAP: 0.833"],
  ];
  for (const [template, hypothesis, reference, k, output, reason] of pages) {
    it(`${template}${k === undefined ? "" : ` with k=${k}`}`, async () => {
      const inputs = { hypothesis: JSON.stringify(hypothesis), reference: JSON.stringify(reference) };
      const result = await evaluator.evaluate(template, inputs, k === undefined ? {} : { evalConfig: { k } });
      assert.equal(result.error, undefined);
      assert.equal(result.eval_results.length, 1);
      const [row] = result.eval_results;
      assert.equal(row.output, output);
      assert.equal(row.reason, reason);
      assert.deepEqual([row.name, row.output_type, row.error_localizer], [template, "score", null]);
      assert.match(row.eval_id, /^[0-9a-f-]{36}$/);
      assert.equal(typeof row.runtime, "number");
    });
  }

  for (const [template, outputs] of [
    ["recall_at_k", [0.5, 1, 0]], ["precision_at_k", [1 / 3, 2 / 3, 0]], ["ndcg_at_k", [0.6131471927654584, 1, 0]],
  ]) {
    it(`a batch of ${template}, as JSON and as lists`, async () => {
      for (const write of [json, (lists) => lists]) {
        const inputs = { hypothesis: write(BATCH.hypothesis), reference: write(BATCH.reference) };
        const { eval_results: rows } = await evaluator.evaluate(template, inputs, { evalConfig: { k: 3 } });
        assert.deepEqual(rows.map((row) => row.output), outputs);
      }
    });
  }

  it("a bare string in a list of one, as their client sends it", async () => {
    const inputs = { hypothesis: ['["x", "a"]'], reference: ['["a"]'] };
    const { eval_results: [row, ...more] } = await evaluator.evaluate("mrr", inputs);
    assert.deepEqual([row.output, more.length], [0.5, 0]);
  });

  it("chunk_attribution and chunk_utilization", async () => {
    const inputs = { context: [P, E], output: "Paris is the capital of France." };
    const attribution = await evaluator.evaluate(Templates.ChunkAttribution, inputs, { modelName: "turing_flash" });
    assert.equal(attribution.eval_results[0].output, "Passed");
    const utilization = await evaluator.evaluate("chunk_utilization", inputs);
    assert.equal(typeof utilization.eval_results[0].output, "number");
  });
});

describe("inputs", () => {
  it("numbers, bigints and numeric strings are the same ids", async () => {
    for (const ids of [[7, 9], [7n, 9n], ["7", "9"], "[7, 9]"]) {
      const { eval_results: [row] } = await evaluator.evaluate("recall_at_k", { hypothesis: ids, reference: "[9, 8]" });
      assert.equal(row.output, 0.5, String(ids));
    }
  });

  it("other names of inputs, and inputs that a template does not use", async () => {
    const inputs = { response: '["a"]', ground_truth: '["a", "b"]', query: "q" };
    const { eval_results: [row] } = await evaluator.evaluate("recall_at_k", inputs);
    assert.equal(row.output, 0.5);
  });

  it("a template is a name, an object, or a list of one", async () => {
    const inputs = { hypothesis: '["a"]', reference: '["a"]' };
    for (const template of ["mrr", Templates.Mrr, ["mrr"], [Templates.Mrr]]) {
      const { eval_results: rows } = await evaluator.evaluate(template, inputs);
      assert.deepEqual(rows.map((row) => row.name), ["mrr"]);
    }
  });

  it("several templates: the rows of the first, then those of the second", async () => {
    const inputs = { hypothesis: ['["x", "a"]', '["x"]'], reference: ['["a"]', '["a"]'] };
    const { eval_results: rows, error } = await evaluator.evaluate([Templates.Mrr, "hit_rate"], inputs);
    assert.deepEqual(rows.map((row) => [row.name, row.output]),
      [["mrr", 0.5], ["mrr", 0], ["hit_rate", 1], ["hit_rate", 0]]);
    assert.equal(error, undefined);
  });

  it("several k give a row for each", async () => {
    const inputs = { hypothesis: '["x", "a"]', reference: '["a"]' };
    const { eval_results: rows } = await evaluator.evaluate("recall_at_k", inputs, { evalConfig: { k: [1, 2] } });
    assert.deepEqual(rows.map((row) => row.reason), ["Recall@1: 0.0", "Recall@2: 1.0"]);
  });

  it("20,000 rows in one call", async () => {
    const lists = Array.from({ length: 20_000 }, (_, i) => [`d${i}`, "x"]);
    const inputs = { hypothesis: json(lists), reference: json(lists) };
    const { eval_results: rows } = await evaluator.evaluate("recall_at_k", inputs, { evalConfig: { k: 1 } });
    assert.equal(rows.length, 20_000);
    assert.ok(rows.every((row) => row.output === 0.5));
  });
});

describe("faults", () => {
  it("a bad row fails alone", async () => {
    const inputs = { hypothesis: ['["a"]', null, '["b"]'], reference: ['["a"]', '["a"]', '["b"]'] };
    const { eval_results: rows, error } = await evaluator.evaluate("recall_at_k", inputs);
    assert.deepEqual(rows.map((row) => row.output), [1, null, 1]);
    assert.match(rows[1].reason, /hypothesis/);
    assert.equal(error, undefined);
  });

  it("a bad request is a row without an output for each query, and an error", async () => {
    const inputs = { hypothesis: json(BATCH.hypothesis), reference: json(BATCH.reference) };
    const options = { evalConfig: { k: "many" } };
    const { eval_results: rows, error } = await evaluator.evaluate("recall_at_k", inputs, options);
    assert.deepEqual(rows.map((row) => row.output), [null, null, null]);
    assert.ok(rows.every((row) => row.reason.startsWith("k must be an integer")));
    assert.ok(error instanceof BadRequest);
  });

  it("one of several templates fails alone", async () => {
    const inputs = { hypothesis: ['["x", "a"]', '["x"]'], reference: ['["a"]', '["a"]'] };
    const { eval_results: rows, error } = await evaluator.evaluate(["mrr", "hit_rat"], inputs);
    assert.deepEqual(rows.slice(0, 2).map((row) => row.output), [0.5, 0]);
    assert.ok(rows.length > 2 && rows.slice(2).every((row) => row.output === null && row.reason === error.message));
    assert.match(error.message, /hit_rat/);
  });

  it("it is thrown with throwOnError", async () => {
    const strict = new Evaluator({ fiBaseUrl: server.url, throwOnError: true });
    const inputs = { hypothesis: '["a"]', reference: '["a"]' };
    await assert.rejects(strict.evaluate("recall_at_k", inputs, { evalConfig: { k: 0 } }), (error) =>
      error instanceof BadRequest && error.message.startsWith("k must be >= 1"));
    await assert.rejects(strict.evaluate("recal_at_k", inputs), /recall_at_k/);
    await assert.rejects(strict.evaluate(["mrr", "recal_at_k"], inputs), /recall_at_k/);
  });

  it("a server that is gone: a row for each query, with the reason", async () => {
    const gone = new Evaluator({ fiBaseUrl: "http://127.0.0.1:9", retries: 0 });
    const inputs = { hypothesis: ['["a"]', '["b"]'], reference: ['["a"]', '["b"]'] };
    const { eval_results: rows, error } = await gone.evaluate("mrr", inputs);
    assert.deepEqual(rows.map((row) => row.output), [null, null]);
    assert.match(rows[0].reason, /cannot reach the server/);
    assert.equal(error.kind, "disconnected");
  });
});

describe("later", () => {
  const inputs = { hypothesis: '["x", "a"]', reference: '["a"]' };

  it("submit and wait, with k", async () => {
    const handle = await evaluator.submit("recall_at_k", inputs, { evalConfig: { k: 1 } });
    assert.equal(handle.kind, "eval");
    await handle.wait({ timeout: 120 });
    assert.ok(handle.isDone());
    assert.equal(handle.status, "completed");
    assert.deepEqual([handle.result.output, handle.result.reason], [0, "Recall@1: 0.0"]);
    const again = await evaluator.getExecution(handle.id);
    assert.equal((await again.refresh()).result.reason, "Recall@1: 0.0");
    assert.equal((await get_eval_result(handle.id, { fiBaseUrl: server.url })).result.eval_status, "completed");
  });

  it("isAsync gives ids", async () => {
    const { eval_results: [row] } = await evaluator.evaluate("mrr", inputs, { isAsync: true });
    assert.equal((await (await evaluator.getExecution(row.eval_id)).wait()).result.output, 0.5);
  });

  it("an unknown execution has failed", async () => {
    const handle = await evaluator.getExecution("00000000-0000-0000-0000-000000000000");
    assert.equal(handle.status, "failed");
    await assert.rejects(handle.wait(), (error) => error instanceof ExecutionError && error.executionId === handle.id);
    assert.equal((await handle.wait({ raiseOnFailure: false })).status, "failed");
  });

  it("a submission that is wrong is an error", async () => {
    await assert.rejects(evaluator.submit("recall_at_k", inputs, { evalConfig: { k: 0 } }), BadRequest);
    await assert.rejects(evaluator.submit(["mrr", "hit_rate"], inputs), (error) =>
      error instanceof InvalidValue && error.message === "submit takes one template; got mrr, hit_rate");
  });

  it("a pipeline", async () => {
    const batch = { hypothesis: ['["x", "a"]', '["a"]'], reference: ['["a"]', '["a"]'] };
    const data = [{ eval_template: "mrr", inputs: batch }];
    const options = { fiBaseUrl: server.url };
    assert.equal((await evaluate_pipeline("shop", "v1", data, options)).result.version, "v1");
    let result;
    do ({ result } = await get_pipeline_results("shop", ["v1"], options));
    while (result.status === "processing");
    assert.equal(result.evaluation_runs[0].results_summary.mrr, 75);
    await assert.rejects(evaluator.evaluatePipeline("shop", "v2", []), BadRequest);
  });
});

it("templates are listed, in any time", async () => {
  const names = (await list_evaluations({ fiBaseUrl: server.url })).map((row) => row.name);
  assert.ok(names.includes("recall_at_k"));
  for (const { eval_name: name } of Object.values(Templates)) assert.ok(names.includes(name), name);
  assert.deepEqual((await evaluator.listEvaluations()).map((row) => row.name), names);
});

it("the function evaluate", async () => {
  const inputs = { hypothesis: '["a"]', reference: '["a"]' };
  const { eval_results: [row] } = await evaluate("mrr", inputs, { fiBaseUrl: server.url });
  assert.equal(row.output, 1);
});

describe("a server with keys", () => {
  let locked;
  let key;
  before(async () => {
    const { mkdtempSync } = await import("node:fs");
    const { tmpdir } = await import("node:os");
    const { join } = await import("node:path");
    const { karat } = await import("./server.mjs");
    const keys = join(mkdtempSync(join(tmpdir(), "karat-")), "keys.json");
    key = await karat("serve", "--keys", keys, "--new-key", "team");
    locked = await serve("--keys", keys);
  });
  after(() => locked.stop());

  it("takes the right keys and no others", async () => {
    const inputs = { hypothesis: '["a"]', reference: '["a"]' };
    const own = { fiBaseUrl: locked.url, throwOnError: true };
    const ask = (options) => new Evaluator({ ...own, ...options }).evaluate("mrr", inputs);
    assert.equal((await ask({ fiApiKey: "team", fiSecretKey: key })).eval_results[0].output, 1);
    const wrong = (error) => error instanceof Unauthorized && error.status === 403;
    await assert.rejects(ask({ fiApiKey: "team", fiSecretKey: "wrong" }), wrong);
    await assert.rejects(ask({}), Unauthorized);
  });
});
