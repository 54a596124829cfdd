export * from "./errors.js";
export * from "./evaluator.js";
export * from "./execution.js";
export * from "./templates.js";
export type { CallOptions, ConnectionOptions } from "./transport.js";
