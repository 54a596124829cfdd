/** A program that uses the package, compiled by the tests in every mode. It is never run. */

import {
  BadRequest, Evaluator, Job, Karat, KaratError, RateLimited, Templates, evaluate, list_evaluations,
} from "karat-client";
import type {
  BatchRunResult, EvalResult, EvaluateAnswer, EvaluateOptions, EvaluatorConfig, SampleInput,
} from "karat-client";

interface Mine {
  query: string;
  retrieved: string[];
  gold: string[];
  topic: string;
}

export async function drop(): Promise<void> {
  const config: EvaluatorConfig = { fiApiKey: "a", fiSecretKey: "b", timeout: 10, maxWorkers: 8 };
  const options: EvaluateOptions = { evalConfig: { k: 3 }, modelName: "turing_flash" };
  const evaluator = new Evaluator(config);
  const inputs: Record<string, string | string[]> = { hypothesis: JSON.stringify(["a"]), reference: ["[]"] };
  const result: BatchRunResult = await evaluator.evaluate("recall_at_k", inputs, options);
  const rows: (EvalResult | null)[] = result.eval_results;
  const score: number = result.eval_results[0]?.output;
  const reason: string | undefined = rows[0]?.reason;
  console.log(score, reason, result.error instanceof BadRequest);
  await evaluator.evaluate([Templates.RecallAtK], { hypothesis: [["a"], ["b", 1, 2n]], reference: [["a"], ["b"]] });
  await evaluator.evaluate(["mrr", Templates.HitRate], inputs);
  await evaluate("mrr", { hypothesis: "[]", reference: "[]" }, { fiBaseUrl: "http://127.0.0.1:1", isAsync: true });
  const templates: Record<string, any>[] = await list_evaluations();
  const handle = await evaluator.submit("mrr", inputs);
  const done = await handle.wait({ timeout: 1, pollInterval: 1, raiseOnFailure: false });
  console.log(templates, done.result?.output, done.errorMessage);
  // @ts-expect-error: a template is a name or an object
  await evaluator.evaluate(5, inputs);
  // @ts-expect-error: inputs are an object
  await evaluator.evaluate("mrr", [inputs]);
}

export async function own(mine: Mine[], columns: { retrieved: string[][]; gold: string[][] }): Promise<void> {
  const karat = new Karat({ url: "http://127.0.0.1:5272", key: "k", timeout: 30, retries: 3, fetch });
  const abort = new AbortController();
  const options = { signal: abort.signal, timeout: 5, retries: 0, idempotencyKey: "k" };
  const run: EvaluateAnswer = await karat.evaluate({ samples: mine, metrics: ["recall@5"], by: "topic" }, options);
  const mean: number | null | undefined = run.mean["recall@5"];
  const first = run.table?.[0];
  const id: string | undefined = first?.query_id;
  console.log(mean, id, first?.["recall@5"], run.by["topic"]?.["a"]?.mean["recall@5"]);
  await karat.evaluate({ samples: [{ retrieved: ["a", { id: 1n, score: 0.5 }], gold: { a: 2 }, year: 2021 }] });
  await karat.evaluate({ samples: columns, at: "doc" });
  await karat.evaluate({ retrieved: [["a"]], gold: [["a"]] });
  const given = { samples: mine, metrics: "rr" };
  const found = await karat.compare({ runs: ["main", given, { samples: [{ retrieved: ["a"], gold: ["a"], x: 1 }] }] });
  const verdict: string | undefined = found.rows[0]?.verdict;
  const passed: boolean = (await karat.gate({ run: "main", rules: ["rr >= 0.5"], baseline: { samples: mine } })).passed;
  const causes: { [cause: string]: number } = (await karat.diagnose({ run: { samples: mine }, k: 5 })).causes;
  const job: Job<EvaluateAnswer> = await karat.start("evaluate", { samples: mine });
  const isDone: boolean = job.state === "done" && job.report.done === job.report.of;
  const later: EvaluateAnswer = await job.wait({ timeout: 60, onProgress: ({ done, of }) => console.log(done, of) });
  for await (const stored of karat.allRuns({ limit: 10 })) console.log(stored.id, stored.mean["rr"]);
  for await (const row of karat.allRows("main")) console.log(row.query_id, row["rr"]);
  await karat.evaluateFile(new Uint8Array(), "parquet", { metrics: "rr", table: false });
  await karat.evaluateFile("{}", "jsonl");
  console.log(verdict, passed, causes, isDone, later.queries);
  const sample: SampleInput = { retrieved: ["a"], gold: ["a"] };
  console.log(sample);
  // @ts-expect-error: rankings are lists or scores by id
  await karat.evaluate({ samples: [{ retrieved: 5, gold: ["a"] }] });
  // @ts-expect-error: there is no such format
  await karat.evaluateFile("", "xlsx");
  // @ts-expect-error: there is no such level
  await karat.evaluate({ samples: mine, at: "chapter" });
  // @ts-expect-error: a gate has rules
  await karat.gate({ run: "main" });
  // @ts-expect-error: there is no such field in an answer
  console.log(run.means);
}

export function kind(error: unknown): number {
  if (error instanceof RateLimited) return error.retryAfter ?? 1;
  if (!(error instanceof KaratError)) return 0;
  switch (error.kind) {
    case "unauthorized":
      return error.status ?? 0;
    case "timed-out":
      return 408;
    // @ts-expect-error: there is no such kind
    case "sleepy":
      return 1;
    default:
      return error.problem?.status ?? 0;
  }
}
