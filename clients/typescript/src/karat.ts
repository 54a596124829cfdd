/** The client of karat's own API. Its types come from the OpenAPI document of the server. */

import { BadAnswer, InvalidValue } from "./errors.js";
import { Job, waitOrCancel } from "./job.js";
import { fromJson } from "./json.js";
import type {
  CompareAnswer, CompareRequest, DiagnoseAnswer, DiagnoseRequest, EvaluateAnswer, EvaluateInput, EvaluateRequest,
  GateAnswer, GateRequest, Health, JobState, NamedThing, Operations, QueryItems, QueryScores, Readiness, RunPage,
  SampleInput, StoredRun, TablePage,
} from "./schema.js";
import { Connection, environment } from "./transport.js";
import type { Answered, CallOptions, ConnectionOptions } from "./transport.js";

/** One object per query, with any further fields to slice by; or columns by name. */
export type Samples = readonly SampleInput[] | { readonly [column: string]: readonly unknown[] };

interface WithSamples {
  /** One object per query, or columns by name. */
  readonly samples?: Samples | null | undefined;
}

/** The id or the name of a stored run, or data to evaluate. */
export type RunLike = string | (Omit<EvaluateInput, "samples"> & WithSamples);
export type Evaluation = Omit<EvaluateRequest, "samples"> & WithSamples;
export type Comparison = Omit<CompareRequest, "runs"> & { readonly runs: readonly RunLike[] };
export type GateCheck =
  Omit<GateRequest, "run" | "baseline"> & { readonly run: RunLike; readonly baseline?: RunLike | null | undefined };
export type Diagnosis =
  Omit<DiagnoseRequest, "run" | "other"> & { readonly run: RunLike; readonly other?: RunLike | null | undefined };

/** Formats of a file with samples. `jsonl` is another name of `ndjson`. */
export type FileFormat = "ndjson" | "jsonl" | "parquet" | "arrow" | "csv";

type Query<K extends keyof Operations> = Operations[K]["query"];
type Work = "evaluate" | "compare" | "gate" | "diagnose";
type WorkAnswer<W extends Work> = Operations[`POST /v1/${W}`]["answers"][200];

interface Parts {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>> | undefined;
  readonly body?: unknown;
  readonly contentType?: string;
  readonly accept?: string;
  readonly later?: boolean;
}

const MEDIA_TYPES: Readonly<Record<FileFormat, string>> = {
  ndjson: "application/x-ndjson", jsonl: "application/x-ndjson", parquet: "application/vnd.apache.parquet",
  arrow: "application/vnd.apache.arrow.file", csv: "text/csv",
};

/** A karat server. */
export class Karat {
  readonly #connection: Connection;

  constructor(options: ConnectionOptions = {}) {
    const key = options.key ?? environment("KARAT_KEY");
    this.#connection = new Connection(options, key ? { Authorization: `Bearer ${key}` } : {});
  }

  /** The address of the server. */
  get url(): string {
    return this.#connection.url;
  }

  /** Evaluate samples. Long work becomes a job on the server; this call then waits for its result. */
  evaluate(request: Evaluation, options: CallOptions = {}): Promise<EvaluateAnswer> {
    return this.#work("evaluate", { body: request }, options);
  }

  /** Evaluate a file with samples; the settings are those of `evaluate`. */
  async evaluateFile(
    file: Uint8Array | ArrayBuffer | Blob | string, format: FileFormat, settings: Query<"POST /v1/evaluate"> = {},
    options: CallOptions = {},
  ): Promise<EvaluateAnswer> {
    return this.#work("evaluate", { body: file, contentType: mediaTypeOf(format), query: settings }, options);
  }

  /** Compare runs query by query. */
  compare(request: Comparison, options: CallOptions = {}): Promise<CompareAnswer> {
    return this.#work("compare", { body: request }, options);
  }

  /** Check a run against rules and a baseline: read `passed`. */
  gate(request: GateCheck, options: CallOptions = {}): Promise<GateAnswer> {
    return this.#work("gate", { body: request }, options);
  }

  /** Find the causes of missed gold items. */
  diagnose(request: Diagnosis, options: CallOptions = {}): Promise<DiagnoseAnswer> {
    return this.#work("diagnose", { body: request }, options);
  }

  /** Start work as a job, and return at once. */
  start(work: "evaluate", request: Evaluation, options?: CallOptions): Promise<Job<EvaluateAnswer>>;
  start(work: "compare", request: Comparison, options?: CallOptions): Promise<Job<CompareAnswer>>;
  start(work: "gate", request: GateCheck, options?: CallOptions): Promise<Job<GateAnswer>>;
  start(work: "diagnose", request: Diagnosis, options?: CallOptions): Promise<Job<DiagnoseAnswer>>;
  async start(work: Work, request: unknown, options: CallOptions = {}): Promise<Job<unknown>> {
    const answer = await this.#ask(`POST /v1/${work}`, { body: request, later: true }, options);
    if (answer.status !== 202) throw new BadAnswer("the server did not start a job");
    return this.#jobOf(read(answer) as JobState);
  }

  /** A job by its id. */
  async job(id: string, options: CallOptions = {}): Promise<Job<unknown>> {
    return this.#jobOf(await this.#json("GET /v1/jobs/{job_id}", { path: { job_id: id } }, options));
  }

  /** A page of the stored runs, the newest first. */
  runs(query: Query<"GET /v1/runs"> = {}, options: CallOptions = {}): Promise<RunPage> {
    return this.#json("GET /v1/runs", { query }, options);
  }

  /** Every stored run, the newest first. */
  async *allRuns(
    query: Query<"GET /v1/runs"> = {}, options: CallOptions = {},
  ): AsyncGenerator<StoredRun, void, undefined> {
    let after: string | null | undefined = query.after;
    do {
      const page: RunPage = await this.runs({ ...query, ...(after == null ? {} : { after }) }, options);
      yield* page.runs;
      after = page.next;
    } while (after != null);
  }

  /** A stored run, by its id or its name. */
  run(id: string, query: Query<"GET /v1/runs/{run_id}"> = {}, options: CallOptions = {}): Promise<EvaluateAnswer> {
    return this.#json("GET /v1/runs/{run_id}", { path: { run_id: id }, query }, options);
  }

  /** The file of a stored run, as `karat show` reads it. */
  async download(id: string, options: CallOptions = {}): Promise<Uint8Array> {
    const parts = { path: { run_id: id }, accept: MEDIA_TYPES.parquet };
    return (await this.#ask("GET /v1/runs/{run_id}", parts, options)).bytes;
  }

  /** A page of the scores of the queries of a stored run. */
  table(id: string, query: Query<"GET /v1/runs/{run_id}/table"> = {}, options: CallOptions = {}): Promise<TablePage> {
    return this.#json("GET /v1/runs/{run_id}/table", { path: { run_id: id }, query }, options);
  }

  /** The scores of every query of a stored run. */
  async *allRows(
    id: string, query: Query<"GET /v1/runs/{run_id}/table"> = {}, options: CallOptions = {},
  ): AsyncGenerator<QueryScores, void, undefined> {
    let offset: number | null | undefined = query.offset;
    do {
      const page: TablePage = await this.table(id, { ...query, ...(offset == null ? {} : { offset }) }, options);
      yield* page.rows;
      offset = page.next;
    } while (offset != null);
  }

  /** One query of a stored run: its scores, items and gold. */
  items(id: string, query: string, options: CallOptions = {}): Promise<QueryItems> {
    return this.#json("GET /v1/runs/{run_id}/items", { path: { run_id: id }, query: { query } }, options);
  }

  /** Delete a stored run, by its id. */
  async deleteRun(id: string, options: CallOptions = {}): Promise<void> {
    await this.#ask("DELETE /v1/runs/{run_id}", { path: { run_id: id } }, options);
  }

  /** The metrics that requests may name. */
  async metrics(options: CallOptions = {}): Promise<NamedThing[]> {
    return (await this.#json("GET /v1/metrics", {}, options)).names;
  }

  /** The judges that requests may name. */
  async judges(options: CallOptions = {}): Promise<NamedThing[]> {
    return (await this.#json("GET /v1/judges", {}, options)).names;
  }

  /** The conventions that requests may name. */
  async conventions(options: CallOptions = {}): Promise<NamedThing[]> {
    return (await this.#json("GET /v1/conventions", {}, options)).names;
  }

  /** Whether the server runs, and its version. */
  health(options: CallOptions = {}): Promise<Health> {
    return this.#json("GET /healthz", {}, options);
  }

  /** Whether the server can evaluate; if it cannot yet, the error is `Unavailable`. */
  readiness(options: CallOptions = {}): Promise<Readiness> {
    return this.#json("GET /readyz", {}, options);
  }

  async #work<W extends Work>(work: W, parts: Parts, options: CallOptions): Promise<WorkAnswer<W>> {
    const { timeout = this.#connection.timeout, signal } = options;
    const begin = Date.now();
    const answer = await this.#ask(`POST /v1/${work}`, parts, options);
    if (answer.status !== 202) return read(answer) as WorkAnswer<W>;
    const left = Math.max(timeout - (Date.now() - begin) / 1000, 0.001);
    return waitOrCancel(this.#jobOf<WorkAnswer<W>>(read(answer) as JobState), { timeout: left, signal });
  }

  #jobOf<T>(report: JobState): Job<T> {
    const path = { job_id: report.id };
    return new Job<T>(report, {
      report: (options) => this.#json("GET /v1/jobs/{job_id}", { path }, options),
      result: async (options) => read(await this.#ask("GET /v1/jobs/{job_id}/result", { path }, options)) as T,
      cancel: (options) => this.#json("DELETE /v1/jobs/{job_id}", { path }, options),
    });
  }

  async #json<K extends keyof Operations>(
    operation: K, parts: Parts, options: CallOptions,
  ): Promise<Operations[K]["answers"] extends { 200: infer A } ? A : never> {
    return read(await this.#ask(operation, parts, options)) as never;
  }

  #ask(operation: keyof Operations, parts: Parts, options: CallOptions): Promise<Answered> {
    const [method, template] = operation.split(" ") as ["GET" | "POST" | "DELETE", string];
    const path = template.replace(/\{(\w+)\}/g, (_, name: string) => segment(name, parts.path?.[name]));
    return this.#connection.ask({ ...options, ...parts, method, path });
  }
}

function mediaTypeOf(format: FileFormat): string {
  if (Object.hasOwn(MEDIA_TYPES, format)) return MEDIA_TYPES[format];
  throw new InvalidValue(`the format of a file is ndjson, jsonl, parquet, arrow or csv; got ${JSON.stringify(format)}`);
}

/** A part of a path. Dots alone would lead to another path. */
function segment(name: string, value: unknown): string {
  if (typeof value !== "string" || /^\.{0,2}$/.test(value)) {
    throw new InvalidValue(`${name} is an id or a name; got ${JSON.stringify(value)}`);
  }
  return encodeURIComponent(value);
}

function read(answer: Answered): unknown {
  return fromJson(new TextDecoder().decode(answer.bytes), "the answer");
}
