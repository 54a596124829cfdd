/** A client of `karat serve`: `Karat` for its own API, `Evaluator` with the interface of Future AGI's client. */

export {
  Aborted, BadAnswer, BadRequest, Conflict, Disconnected, InvalidValue, JobFailed, KaratError, NotFound, RateLimited,
  ServerFailed, TimedOut, TooLarge, Unauthorized, Unavailable,
} from "./errors.js";
export type { ErrorKind } from "./errors.js";
export {
  Evaluator, MissingAuthError, evaluate, evaluate_pipeline, get_eval_result, get_pipeline_results, list_evaluations,
} from "./evaluator.js";
export { Execution, ExecutionError, normalizeStatus } from "./execution.js";
export type { ExecutionKind, ExecutionStatus, WaitOptions } from "./execution.js";
export { Job } from "./job.js";
export type { JobWaitOptions } from "./job.js";
export { Karat } from "./karat.js";
export type { Comparison, Diagnosis, Evaluation, FileFormat, GateCheck, RunLike, Samples } from "./karat.js";
export type * from "./schema.js";
export { Templates } from "./templates.js";
export type {
  BatchRunResult, EvalInput, EvalInputs, EvalResult, EvalTemplate, EvaluateOptions, EvaluatorConfig, PipelineEvalData,
} from "./templates.js";
export type { CallOptions, ConnectionOptions } from "./transport.js";
