/** The names and types of Future AGI's client, for its retrieval templates. */

import type { KaratError } from "./errors.js";

/** A template: its name is enough. */
export interface EvalTemplate {
  eval_id: string;
  eval_name: string;
  description?: string;
  eval_tags?: string[];
  required_keys?: string[];
  output?: string;
  eval_type_id?: string;
  config_schema?: Record<string, any>;
  criteria?: string;
  choices?: string[];
  multi_choice?: boolean;
}

/** The templates of retrieval, by the names of their classes. */
export const Templates = {
  ContextRelevance: { eval_name: "context_relevance", eval_id: "9" },
  ChunkAttribution: { eval_name: "chunk_attribution", eval_id: "11" },
  ChunkUtilization: { eval_name: "chunk_utilization", eval_id: "12" },
  NdcgAtK: { eval_name: "ndcg_at_k", eval_id: "127" },
  Mrr: { eval_name: "mrr", eval_id: "128" },
  HitRate: { eval_name: "hit_rate", eval_id: "129" },
  RecallAtK: { eval_name: "recall_at_k", eval_id: "131" },
  PrecisionAtK: { eval_name: "precision_at_k", eval_id: "132" },
  MeanAveragePrecision: { eval_name: "mean_average_precision", eval_id: "187" },
  NonLlmContextPrecision: { eval_name: "non_llm_context_precision", eval_id: "192" },
  NonLlmContextRecall: { eval_name: "non_llm_context_recall", eval_id: "193" },
} as const satisfies Readonly<Record<string, EvalTemplate>>;

/** A value of an input: JSON text, a ranking, or a batch of either. */
export type EvalInput =
  | string | number | bigint | null
  | readonly (string | number | bigint | null | readonly (string | number | bigint)[])[];

/** The inputs of an evaluation by their names: `hypothesis` and `reference` for most templates. */
export type EvalInputs = { readonly [name: string]: EvalInput | undefined };

/** The score of a query. */
export interface EvalResult {
  /** The name of the template. */
  name: string;
  /** A score, "Passed" or "Failed"; null if there is none, and `reason` says why. */
  output: any;
  reason: string;
  /** Milliseconds. */
  runtime: number;
  output_type?: string;
  eval_id?: string;
  model?: string;
  error_localizer_enabled?: boolean;
  error_localizer?: Record<string, any> | null;
  metadata?: string | any[] | Record<string, any>;
}

/** The results of an evaluation: a row for every query, in their order; for each template in turn. */
export interface BatchRunResult {
  eval_results: EvalResult[];
  /** The error of a request that failed, the first of several; each of its rows has the output null, and the reason is the error's message. */
  error?: KaratError;
}

/** Options of the evaluator. */
export interface EvaluatorConfig {
  /** The name of a key. Default: FI_API_KEY. A server on this machine needs none. */
  fiApiKey?: string | undefined;
  /** The key. Default: FI_SECRET_KEY. */
  fiSecretKey?: string | undefined;
  /** The address of the server. Default: FI_BASE_URL, KARAT_URL, http://127.0.0.1:5272. */
  fiBaseUrl?: string | undefined;
  /** Seconds for a whole call, with its retries. Default: 200. */
  timeout?: number | undefined;
  /** How often a request is sent again. Default: 2. */
  retries?: number | undefined;
  /** Throw the error of a request that failed, rather than return rows without an output. Default: false. */
  throwOnError?: boolean | undefined;
  /** Another implementation of fetch. */
  fetch?: typeof fetch | undefined;
  /** Accepted, without effect: requests of this client do not queue. */
  maxQueue?: number | undefined;
  /** Accepted, without effect. */
  maxWorkers?: number | undefined;
  /** Accepted, without effect, as are the next two. */
  langfuseSecretKey?: string | undefined;
  langfusePublicKey?: string | undefined;
  langfuseHost?: string | undefined;
}

/** Options of an evaluation. */
export interface EvaluateOptions {
  /** Seconds for this call. */
  timeout?: number | undefined;
  /** The model of a template that asks one. The server must allow it. */
  modelName?: string | undefined;
  customEvalName?: string | undefined;
  traceEval?: boolean | undefined;
  platform?: string | undefined;
  /** Return at once, with ids to ask for the results by. */
  isAsync?: boolean | undefined;
  errorLocalizer?: boolean | undefined;
  /** Settings of the template, `{ k: 3 }`; several k give a row for each. */
  evalConfig?: Record<string, any> | undefined;
  /** Cancels the call. */
  signal?: AbortSignal | undefined;
}

/** One evaluation of a pipeline. */
export interface PipelineEvalData {
  [key: string]: any;
}
