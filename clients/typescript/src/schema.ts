/** The types of karat's API, generated from its OpenAPI document by docs/typescript_types.py: `make docs`. */

/** One check of a gate. */
export interface CheckedRule {
  rule: string;
  slice: string | null;
  verdict: "failed" | "passed" | "undecided";
  /** the measured values */
  text: string;
  metric: string | null;
  query: string | null;
  figures: { [name: string]: number | null };
  by: string | null;
}

/** The result of a comparison: one row per metric. */
export interface CompareAnswer {
  names: string[];
  queries: number;
  test: string;
  rows: ComparedMetric[];
  /** the queries that changed most */
  moved: unknown[];
  remarks: string[];
  /** slices, measures, numbers, standings, if there are any */
  more: { [name: string]: unknown };
}

/** A comparison of two runs or more, query by query. */
export interface CompareRequest {
  runs: readonly (string | EvaluateInput)[];
  names?: readonly string[] | null | undefined;
  /** some of the metrics that all runs have */
  metrics?: string | readonly string[] | null | undefined;
  /** fields of the samples: also compare their values */
  by?: string | readonly string[] | undefined;
  /** also if queries, gold or settings differ. Default: false */
  allow_mismatch?: boolean | undefined;
  /** Default: "sign-flip" */
  test?: "bounded" | "sign-flip" | undefined;
  /** compared instead of the mean, such as p10 */
  summary?: string | null | undefined;
  /** numeric fields to compare, such as cost,tokens */
  also?: string | readonly string[] | undefined;
  /** answer at once with 202, and do it as a job. Default: false */
  job?: boolean | undefined;
}

/** One metric of all runs, and the second run compared with the first; `pairs` has all pairs. */
export interface ComparedMetric {
  metric: string;
  /** by name of the run */
  means: { [name: string]: number | null };
  difference: number | null;
  low: number | null;
  high: number | null;
  /** corrected for all metrics and pairs */
  p: number | null;
  won: number;
  tied: number;
  lost: number;
  n: number;
  detectable: number | null;
  /** of the second run, compared with the first */
  verdict: "better" | "cannot tell" | "same" | "worse";
  winner: string | null;
  pairs: unknown[];
}

/** The result of a diagnosis. */
export interface DiagnoseAnswer {
  k: number;
  query_id: string | null;
  queries: number;
  judged: number;
  recall: number | null;
  gold_items: number;
  missed: number;
  /** misses by cause */
  causes: { [name: string]: number };
  advice: string[];
  /** advice whose effect this run cannot show */
  not_measured: string[];
  /** what could not be checked */
  notes: string[];
  misses: unknown[];
  more: { [name: string]: unknown };
}

/** A diagnosis of the gold items that a run misses. */
export interface DiagnoseRequest {
  /** the id or the name of a stored run (of several with one name the newest), or data to evaluate */
  run: string | EvaluateInput;
  /** one query alone */
  query?: string | number | bigint | null | undefined;
  k?: number | bigint | null | undefined;
  /** a second run over the same queries */
  other?: string | EvaluateInput | null | undefined;
  /** answer at once with 202, and do it as a job. Default: false */
  job?: boolean | undefined;
}

/** The result of an evaluation. */
export interface EvaluateAnswer {
  /** of the stored run */
  id: string | null;
  name: string | null;
  queries: number;
  /** queries that could be judged */
  judged: number;
  mean: { [name: string]: number | null };
  /** 95 % intervals of the means; null with fewer than 5 queries */
  interval: { [name: string]: (number | null)[] };
  /** queries that are not in the mean of a metric */
  undefined: { [name: string]: number };
  /** queries that could not be judged, with the reason */
  failures: { [name: string]: string };
  judge: string;
  /** why, if karat chose the judge */
  judge_reason: string;
  convention: string;
  /** sentences that a reader of the means should know */
  remarks: string[];
  /** by field and value */
  by: { [name: string]: { [name: string]: SliceMeans } };
  /** by summary and metric */
  summaries: { [name: string]: unknown };
  /** numeric fields beside the scores, such as latency */
  numbers: { [name: string]: unknown };
  /** metrics with a unit */
  measures: { [name: string]: unknown };
  /** one object per query: query_id, then its scores */
  table: QueryScores[] | null;
}

/** Samples, or results and gold apart, and how they are evaluated. */
export interface EvaluateInput {
  /** one object per query, or columns by name */
  samples?: readonly SampleInput[] | { [name: string]: any } | null | undefined;
  /** results alone: lists in the order of the queries, lists or dicts of scores by query id, or rows of a long table */
  retrieved?: readonly unknown[] | { [name: string]: any } | null | undefined;
  /** gold alone: lists in the order of the queries, lists or dicts of scores by query id, or rows of a long table */
  gold?: readonly unknown[] | { [name: string]: any } | null | undefined;
  /** such as recall@1,5 ndcg@10; GET /v1/metrics lists them */
  metrics?: string | readonly string[] | null | undefined;
  /** how items are matched; GET /v1/judges lists them. Default: "auto" */
  judge?: string | undefined;
  /** definition of the metrics; GET /v1/conventions lists them. Default: "standard" */
  convention?: string | undefined;
  /** your names by karat's, such as {"retrieved": "docs"} */
  fields?: { [name: string]: string } | null | undefined;
  /** what is compared. Default: "item" */
  at?: "doc" | "item" | "step" | undefined;
  /** score sorts lists by their scores */
  order?: "listed" | "score" | null | undefined;
  /** how steps become one ranking. Default: "concat" */
  merge?: string | undefined;
  /** numeric fields to summarise, such as cost,tokens */
  also?: string | readonly string[] | undefined;
  /** skip and count rows that cannot be read. Default: false */
  skip_bad_rows?: boolean | undefined;
}

/** An evaluation. */
export interface EvaluateRequest {
  /** one object per query, or columns by name */
  samples?: readonly SampleInput[] | { [name: string]: any } | null | undefined;
  /** results alone: lists in the order of the queries, lists or dicts of scores by query id, or rows of a long table */
  retrieved?: readonly unknown[] | { [name: string]: any } | null | undefined;
  /** gold alone: lists in the order of the queries, lists or dicts of scores by query id, or rows of a long table */
  gold?: readonly unknown[] | { [name: string]: any } | null | undefined;
  /** such as recall@1,5 ndcg@10; GET /v1/metrics lists them */
  metrics?: string | readonly string[] | null | undefined;
  /** how items are matched; GET /v1/judges lists them. Default: "auto" */
  judge?: string | undefined;
  /** definition of the metrics; GET /v1/conventions lists them. Default: "standard" */
  convention?: string | undefined;
  /** your names by karat's, such as {"retrieved": "docs"} */
  fields?: { [name: string]: string } | null | undefined;
  /** what is compared. Default: "item" */
  at?: "doc" | "item" | "step" | undefined;
  /** score sorts lists by their scores */
  order?: "listed" | "score" | null | undefined;
  /** how steps become one ranking. Default: "concat" */
  merge?: string | undefined;
  /** numeric fields to summarise, such as cost,tokens */
  also?: string | readonly string[] | undefined;
  /** skip and count rows that cannot be read. Default: false */
  skip_bad_rows?: boolean | undefined;
  /** fields of the samples: also the means of each of their values */
  by?: string | readonly string[] | undefined;
  /** summaries other than the mean, such as p10,median */
  summary?: string | readonly string[] | undefined;
  /** false leaves out the scores of the single queries. Default: true */
  table?: boolean | undefined;
  /** true or a name: keep the run on the server. Default: false */
  store?: boolean | string | undefined;
  /** answer at once with 202, and do it as a job. Default: false */
  job?: boolean | undefined;
}

/** A gold item, and the rank at which it was found. */
export interface FoundGold {
  gold: string;
  grade: number | null;
  rank: number | null;
}

/** The result of a gate. */
export interface GateAnswer {
  passed: boolean;
  verdict: "failed" | "passed" | "undecided";
  counts: { [name: string]: number };
  run: string;
  judge: string;
  queries: number;
  when: string;
  checks: CheckedRule[];
  by: string[];
  baseline: string | null;
  alpha: number;
  /** the queries that dropped most */
  worst: unknown[];
  remarks: string[];
}

/** A gate: rules that a run must meet. */
export interface GateRequest {
  /** the id or the name of a stored run (of several with one name the newest), or data to evaluate */
  run: string | EvaluateInput;
  /** such as "recall@5 >= 0.8" or "ndcg@10 no-drop" */
  rules: readonly string[];
  baseline?: string | EvaluateInput | null | undefined;
  /** fields of the samples: no-drop rules also for their values */
  by?: string | readonly string[] | undefined;
  /** ids of queries that may not drop at all */
  must_pass?: readonly string[] | undefined;
  tolerance?: number | null | undefined;
  slice_tolerance?: number | null | undefined;
  /** Default: 0.05 */
  alpha?: number | undefined;
  /** Default: 1 */
  min_defined?: number | bigint | undefined;
  min_judged?: number | null | undefined;
  /** Default: false */
  fail_undecided?: boolean | undefined;
  /** answer at once with 202, and do it as a job. Default: false */
  job?: boolean | undefined;
}

/** The item at this rank satisfies this gold item. */
export interface GoldMatch {
  rank: number;
  gold: string;
  grade: number | null;
  why: string;
}

/** The server runs. */
export interface Health {
  status: string;
  version: string;
}

/** A retrieved item or a gold item; a string alone is an id or a text. */
export interface ItemInput {
  id?: string | number | bigint | null | undefined;
  text?: string | null | undefined;
  doc?: string | number | bigint | null | undefined;
  start?: number | bigint | null | undefined;
  end?: number | bigint | null | undefined;
  /** of a retrieved item */
  score?: number | null | undefined;
  /** of a gold item; 1 if missing, 0 is judged irrelevant */
  grade?: number | null | undefined;
  /** of gold items that are alternatives */
  group?: string | number | bigint | null | undefined;
}

/** A job. */
export interface JobState {
  id: string;
  state: "cancelled" | "done" | "failed" | "running" | "waiting";
  operation: string;
  created: string;
  /** work done, of `of`; null for work that does not count its steps */
  done: number | null;
  of: number | null;
  /** the path of the result, once it is there */
  result: string | null;
}

/** Everything that can be named. */
export interface NameList {
  names: NamedThing[];
}

/** A metric, a judge or a convention. */
export interface NamedThing {
  name: string;
  about: string;
  settings: string[];
  aliases: string[];
}

/** Problem details. */
export interface Problem {
  /** Default: "about:blank" */
  type?: string;
  title: string;
  status: number;
  detail: string;
  got?: string | null;
  hint?: string | null;
  instance?: string | null;
}

/** One query of a run: its scores, its items and its gold. */
export interface QueryItems {
  query_id: string;
  query: string | null;
  scores: { [name: string]: number | null };
  failure: string | null;
  gold: FoundGold[];
  hits: GoldMatch[];
  /** null if the run stores no items */
  retrieved: RetrievedItem[] | null;
}

/** One query: its id, then its scores by metric. */
export interface QueryScores {
  query_id: string;
  [name: string]: number | string | boolean | null;
}

/** The server can evaluate, or not; then the status is 503. */
export interface Readiness {
  status: string;
  workers: number;
  waiting: number;
}

/** A retrieved item. */
export interface RetrievedItem {
  rank: number;
  id: string | null;
  text: string | null;
  doc: string | null;
  score: number | null;
  start: number | null;
  end: number | null;
  /** characters of the whole text, if it is cut */
  length: number | null;
}

/** A page of the stored runs, the newest first. */
export interface RunPage {
  runs: StoredRun[];
  total: number;
  /** the value of after for the next page; null at the end */
  next: string | null;
}

/** One query with its results and its gold. Any other field can be used for slices, with `by`. */
export interface SampleInput {
  /** its number if missing */
  id?: string | number | bigint | null | undefined;
  query?: string | null | undefined;
  /** best first; or scores by item */
  retrieved?: readonly (string | number | bigint | ItemInput)[] | { [name: string]: number } | null | undefined;
  /** relevant items; or grades by item */
  gold?: readonly (string | number | bigint | ItemInput)[] | { [name: string]: number } | null | undefined;
  /** the reference answer */
  answer?: string | null | undefined;
  /** the answer of your system */
  response?: string | null | undefined;
  /** false if nothing should be retrieved */
  answerable?: boolean | null | undefined;
  /** instead of retrieved: the retrieval failed */
  error?: string | null | undefined;
  /** milliseconds of the retriever */
  latency?: number | null | undefined;
  [name: string]: any;
}

/** The queries with one value of a field. */
export interface SliceMeans {
  queries: number;
  mean: { [name: string]: number | null };
  interval: { [name: string]: (number | null)[] };
  undefined: { [name: string]: number };
}

/** A run file in the store. */
export interface StoredRun {
  id: string;
  name: string;
  /** when it was written */
  time: string;
  bytes: number;
  queries: number | null;
  mean: { [name: string]: number | null };
  judge: string | null;
  convention: string | null;
  /** why the file cannot be read */
  error: string | null;
}

/** A page of the scores of single queries. */
export interface TablePage {
  rows: QueryScores[];
  total: number;
  /** the value of offset for the next page; null at the end */
  next: number | null;
}

/** Every operation: its parameters, its body, and its answers in JSON by status. */
export interface Operations {
  /** The server runs */
  "GET /healthz": {
    path: {};
    query: {};
    body: undefined;
    answers: { 200: Health };
  };
  /** Counters for Prometheus */
  "GET /metrics": {
    path: {};
    query: {};
    body: undefined;
    answers: {};
  };
  /** The server can evaluate */
  "GET /readyz": {
    path: {};
    query: {};
    body: undefined;
    answers: { 200: Readiness };
  };
  /** Compare runs query by query */
  "POST /v1/compare": {
    path: {};
    query: {};
    body: CompareRequest;
    answers: { 200: CompareAnswer; 202: JobState };
  };
  /** List the conventions */
  "GET /v1/conventions": {
    path: {};
    query: {};
    body: undefined;
    answers: { 200: NameList };
  };
  /** Find the causes of missed gold items */
  "POST /v1/diagnose": {
    path: {};
    query: {};
    body: DiagnoseRequest;
    answers: { 200: DiagnoseAnswer; 202: JobState };
  };
  /** Evaluate samples */
  "POST /v1/evaluate": {
    path: {};
    query: {
      metrics?: string;
      judge?: string;
      convention?: string;
      fields?: string;
      at?: string;
      order?: string;
      merge?: string;
      by?: string;
      summary?: string;
      also?: string;
      skip_bad_rows?: boolean;
      table?: boolean;
      store?: string;
      job?: boolean;
    };
    body: EvaluateRequest;
    answers: { 200: EvaluateAnswer; 202: JobState };
  };
  /** Check a run against rules and a baseline */
  "POST /v1/gate": {
    path: {};
    query: {};
    body: GateRequest;
    answers: { 200: GateAnswer; 202: JobState };
  };
  /** Show the state of a job */
  "GET /v1/jobs/{job_id}": {
    path: {
      job_id: string;
    };
    query: {};
    body: undefined;
    answers: { 200: JobState };
  };
  /** Cancel a job, or forget one that has ended */
  "DELETE /v1/jobs/{job_id}": {
    path: {
      job_id: string;
    };
    query: {};
    body: undefined;
    answers: { 200: JobState };
  };
  /** Show the answer of a job */
  "GET /v1/jobs/{job_id}/result": {
    path: {
      job_id: string;
    };
    query: {};
    body: undefined;
    answers: {};
  };
  /** List the judges that requests may name */
  "GET /v1/judges": {
    path: {};
    query: {};
    body: undefined;
    answers: { 200: NameList };
  };
  /** List the metrics */
  "GET /v1/metrics": {
    path: {};
    query: {};
    body: undefined;
    answers: { 200: NameList };
  };
  /** List the stored runs, the newest first */
  "GET /v1/runs": {
    path: {};
    query: {
      limit?: number;
      after?: string;
      name?: string;
    };
    body: undefined;
    answers: { 200: RunPage };
  };
  /** Show a stored run, or download its file */
  "GET /v1/runs/{run_id}": {
    path: {
      run_id: string;
    };
    query: {
      by?: string;
      summary?: string;
    };
    body: undefined;
    answers: { 200: EvaluateAnswer };
  };
  /** Delete a stored run */
  "DELETE /v1/runs/{run_id}": {
    path: {
      run_id: string;
    };
    query: {};
    body: undefined;
    answers: {};
  };
  /** Show one query of a stored run */
  "GET /v1/runs/{run_id}/items": {
    path: {
      run_id: string;
    };
    query: {
      query: string;
    };
    body: undefined;
    answers: { 200: QueryItems };
  };
  /** Show the scores of the queries of a stored run */
  "GET /v1/runs/{run_id}/table": {
    path: {
      run_id: string;
    };
    query: {
      limit?: number;
      offset?: number;
      fields?: boolean;
    };
    body: undefined;
    answers: { 200: TablePage };
  };
}
