/** The interface of Future AGI's client for retrieval templates, talking to `karat serve`. */

import { BadAnswer, BadRequest, InvalidValue, KaratError } from "./errors.js";
import { Execution, normalizeStatus } from "./execution.js";
import type { ExecutionState } from "./execution.js";
import { isRecord } from "./json.js";
import type {
  BatchRunResult, EvalInputs, EvalResult, EvalTemplate, EvaluateOptions, EvaluatorConfig, PipelineEvalData,
} from "./templates.js";
import { Connection, environment } from "./transport.js";

const EVALUATIONS = "/sdk/api/v1/new-eval/";
const TEMPLATES = "/sdk/api/v1/get-evals/";
const PIPELINES = "/sdk/api/v1/evaluate-pipeline/";

type Template = string | EvalTemplate | readonly (string | EvalTemplate)[];

/** A server on another machine, and no keys. */
export class MissingAuthError extends KaratError {
  override readonly name: string = "MissingAuthError";
  readonly kind = "unauthorized";

  constructor(readonly missingApiKey: boolean, readonly missingSecretKey: boolean) {
    super("a server on another machine needs keys; try FI_API_KEY=NAME FI_SECRET_KEY=KEY, or KARAT_KEY=KEY");
  }
}

/** Evaluates retrieval by the templates of Future AGI. */
export class Evaluator {
  readonly #connection: Connection;
  readonly #throwOnError: boolean;

  constructor(options: EvaluatorConfig = {}) {
    const name = options.fiApiKey ?? environment("FI_API_KEY");
    const secret = options.fiSecretKey ?? environment("FI_SECRET_KEY");
    const bearer = environment("KARAT_KEY");
    const url = options.fiBaseUrl ?? environment("FI_BASE_URL");
    const keys: Record<string, string> = {};
    if (name && secret) Object.assign(keys, { "X-Api-Key": name, "X-Secret-Key": secret });
    else if (bearer) keys["Authorization"] = `Bearer ${bearer}`;
    this.#connection = new Connection({ ...options, url }, keys);
    this.#throwOnError = options.throwOnError ?? false;
    if (!Object.keys(keys).length && !this.#connection.isLocal) throw new MissingAuthError(!name, !secret);
  }

  /** The address of the server. */
  get baseUrl(): string {
    return this.#connection.url;
  }

  /**
   * Evaluate one query or a batch: a row for each, in order. Several templates: the rows of the first, then those of
   * the second, and so on; each is a request of its own.
   *
   * A query that cannot be scored is a row with the output null and the reason. A request that fails gives such rows
   * for all its queries, and the `error`; with `throwOnError` it is thrown.
   */
  async evaluate(templates: Template, inputs: EvalInputs, options: EvaluateOptions = {}): Promise<BatchRunResult> {
    const names = namesOf(templates);
    if (options.platform !== undefined) throw new InvalidValue("platform= is not supported; use karat push");
    const ended = await Promise.allSettled(names.map((name) => this.#evaluate(name, inputs, options)));
    const results = ended.map((one) => {
      if (one.status === "rejected") throw one.reason;
      return one.value;
    });
    const error = results.find((result) => result.error)?.error;
    return { eval_results: results.flatMap((result) => result.eval_results), ...(error && { error }) };
  }

  async #evaluate(name: string, inputs: EvalInputs, options: EvaluateOptions): Promise<BatchRunResult> {
    const payload = payloadOf(name, inputs, options, options.isAsync ?? false);
    try {
      const answer = await this.#post(EVALUATIONS, payload, options);
      const refused = refusalIn(answer);
      if (refused && this.#throwOnError) throw refused;
      return { eval_results: rowsOf(answer), ...(refused && { error: refused }) };
    } catch (error) {
      const isOurs = error instanceof KaratError && !["invalid-value", "aborted"].includes(error.kind);
      if (!isOurs || this.#throwOnError) throw error;
      const row = { name, output: null, reason: error.message, runtime: 0 };
      return { eval_results: Array.from({ length: queriesIn(inputs) }, () => ({ ...row })), error };
    }
  }

  /** Start an evaluation by one template on the server. `evalConfig` counts here, too. */
  async submit(templates: Template, inputs: EvalInputs, options: EvaluateOptions = {}): Promise<Execution> {
    const [name, ...more] = namesOf(templates);
    if (more.length) throw new InvalidValue(`submit takes one template; got ${[name, ...more].join(", ")}`);
    const payload = payloadOf(name, inputs, options, true);
    const answer = accepted(await this.#post(EVALUATIONS, payload, options));
    const id = rowsOf(answer)[0]?.eval_id;
    if (!id) throw new BadAnswer("the server did not name the execution");
    return new Execution({ id, kind: "eval" }, (signal) => this.#state(id, signal));
  }

  /** The execution with this id. */
  async getExecution(id: string): Promise<Execution> {
    return new Execution(await this.#state(id), (signal) => this.#state(id, signal));
  }

  /** The state of an execution as the server sends it. */
  async getEvalResult(id: string): Promise<Record<string, any>> {
    return record(await this.#connection.json({ method: "GET", path: EVALUATIONS, query: { eval_id: id } }));
  }

  /** Every template that the server has. */
  async list_evaluations(): Promise<Record<string, any>[]> {
    const read = record(await this.#connection.json({ method: "GET", path: TEMPLATES }));
    if (!Array.isArray(read["result"])) throw new BadAnswer("the answer has no list of templates");
    return read["result"] as Record<string, any>[];
  }

  /** The same as `list_evaluations`. */
  listEvaluations(): Promise<Record<string, any>[]> {
    return this.list_evaluations();
  }

  /** Evaluate a version of a project by several templates. */
  async evaluatePipeline(project: string, version: string, data: PipelineEvalData[]): Promise<Record<string, any>> {
    return accepted(await this.#post(PIPELINES, { project_name: project, version, eval_data: data }));
  }

  /** The results of versions of a project. */
  async getPipelineResults(project: string, versions: readonly string[]): Promise<Record<string, any>> {
    if (!Array.isArray(versions) || !versions.every((one) => typeof one === "string")) {
      throw new InvalidValue("versions is a list of strings");
    }
    const query = { project_name: project, versions: versions.join(",") };
    return record(await this.#connection.json({ method: "GET", path: PIPELINES, query }));
  }

  #post(path: string, body: unknown, options: EvaluateOptions = {}): Promise<unknown> {
    return this.#connection.json({ method: "POST", path, body, signal: options.signal, timeout: options.timeout });
  }

  async #state(id: string, signal?: AbortSignal): Promise<ExecutionState> {
    const asked = { method: "GET", path: EVALUATIONS, query: { eval_id: id }, signal } as const;
    const state = record(record(await this.#connection.json(asked))["result"]);
    const result = isRecord(state["result"]) ? state["result"] : undefined;
    const said = result?.["error_message"] ?? state["error_message"];
    return {
      id, kind: "eval", status: normalizeStatus(text(state["eval_status"])),
      result: result ? rowOf({ ...result, eval_id: result["eval_id"] ?? id }) : null,
      errorMessage: text(said) ?? null,
      errorLocalizer: isRecord(result?.["error_localizer"]) ? result["error_localizer"] : null,
    };
  }
}

/** Evaluate with an evaluator made from the options. */
export function evaluate(
  templates: Template, inputs: EvalInputs, options: EvaluatorConfig & EvaluateOptions = {},
): Promise<BatchRunResult> {
  return new Evaluator(options).evaluate(templates, inputs, options);
}

/** Every template that the server has. */
export function list_evaluations(options: EvaluatorConfig = {}): Promise<Record<string, any>[]> {
  return new Evaluator(options).list_evaluations();
}

/** The state of an execution as the server sends it. */
export function get_eval_result(id: string, options: EvaluatorConfig = {}): Promise<Record<string, any>> {
  return new Evaluator(options).getEvalResult(id);
}

/** Evaluate a version of a project by several templates. */
export function evaluate_pipeline(
  project: string, version: string, data: PipelineEvalData[], options: EvaluatorConfig = {},
): Promise<Record<string, any>> {
  return new Evaluator(options).evaluatePipeline(project, version, data);
}

/** The results of versions of a project. */
export function get_pipeline_results(
  project: string, versions: string[], options: EvaluatorConfig = {},
): Promise<Record<string, any>> {
  return new Evaluator(options).getPipelineResults(project, versions);
}

function namesOf(templates: Template): [string, ...string[]] {
  const [first, ...more]: readonly unknown[] = Array.isArray(templates) ? templates : [templates];
  return [nameOf(first), ...more.map(nameOf)];
}

function nameOf(template: unknown): string {
  const name = isRecord(template) ? template["eval_name"] : template;
  if (typeof name !== "string" || !name) throw new InvalidValue('a template is its name; try "recall_at_k"');
  return name;
}

function payloadOf(name: string, inputs: EvalInputs, options: EvaluateOptions, isAsync: boolean): object {
  if (!isRecord(inputs)) throw new InvalidValue("inputs is an object of lists; try { hypothesis, reference }");
  return {
    eval_name: name, inputs, model: options.modelName, custom_eval_name: options.customEvalName,
    trace_eval: options.traceEval ?? false, is_async: isAsync, error_localizer: options.errorLocalizer ?? false,
    ...(options.evalConfig ? { config: { params: options.evalConfig } } : {}),
  };
}

/** The error of a request that the server refused with the status 200, as this protocol does. */
function refusalIn(answer: unknown): BadRequest | undefined {
  const { status, result } = record(answer);
  if (status !== false) return undefined;
  const row = text(result) === undefined ? rowsOf(answer)[0] : undefined;
  return new BadRequest(text(result) ?? row?.reason ?? "the server refused the evaluation", { status: 200 });
}

function accepted(answer: unknown): Record<string, unknown> {
  const refused = refusalIn(answer);
  if (refused) throw refused;
  return record(answer);
}

/** The rows of an answer. An answer without any is an error, never an empty list. */
function rowsOf(answer: unknown): EvalResult[] {
  const { result } = record(answer);
  const parts = Array.isArray(result) ? (result as unknown[]) : [];
  const lists = parts.map((part) => (isRecord(part) ? part["evaluations"] : undefined));
  const rows = lists.flatMap((list) => (Array.isArray(list) ? (list as unknown[]) : []));
  if (!rows.length) throw new BadAnswer("the answer has no evaluations");
  return rows.map((row) => rowOf(record(row)));
}

function rowOf(row: Record<string, unknown>): EvalResult {
  const { name, output, value, reason, runtime, error_localizer, ...more } = row;
  return {
    name: text(name) ?? "", output: output ?? value ?? null, reason: text(reason) ?? "",
    runtime: typeof runtime === "number" ? runtime : 0,
    ...pick(more, ["output_type", "eval_id", "model", "error_localizer_enabled", "metadata"]),
    error_localizer: isRecord(error_localizer) ? error_localizer : null,
  };
}

function pick(row: Record<string, unknown>, names: readonly string[]): Record<string, any> {
  return Object.fromEntries(names.filter((name) => row[name] != null).map((name) => [name, row[name]]));
}

/** The number of queries: a list of lists or of JSON lists is a batch. */
function queriesIn(inputs: EvalInputs): number {
  const lists = Object.values(inputs).map((value) => (Array.isArray(value) ? (value as unknown[]) : []));
  const batches = lists.filter((list) => list.some((one) => Array.isArray(one) || /^\s*\[/.test(String(one))));
  return Math.max(1, ...batches.map((batch) => batch.length));
}

function record(value: unknown): Record<string, unknown> {
  if (!isRecord(value)) throw new BadAnswer("the answer is not the one of a karat server");
  return value;
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
