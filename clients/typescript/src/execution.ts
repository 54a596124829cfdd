/** Handles of evaluations that run on the server, as Future AGI's client has them. */

import { InvalidValue, KaratError, TimedOut } from "./errors.js";
import { pauseFor } from "./job.js";
import type { EvalResult } from "./templates.js";

export type ExecutionKind = "eval" | "composite";
export type ExecutionStatus = "pending" | "processing" | "completed" | "failed";

const FIRST_POLL = 0.05;
const STATUSES: Readonly<Record<string, ExecutionStatus>> = {
  pending: "pending", processing: "processing", running: "processing", completed: "completed", failed: "failed",
};

/** The status in the words of this client. */
export function normalizeStatus(raw: string | null | undefined): ExecutionStatus {
  return STATUSES[raw?.toLowerCase() ?? "pending"] ?? "pending";
}

/** An execution that failed. */
export class ExecutionError extends KaratError {
  override readonly name: string = "ExecutionError";
  readonly kind = "job-failed";

  constructor(readonly executionId: string, message?: string) {
    super(message ?? `execution ${executionId} failed`);
  }
}

export interface WaitOptions {
  /** Seconds to wait. Default: 300. */
  timeout?: number;
  /** The longest pause between two questions, in seconds; the first ones are shorter. Default: 2. */
  pollInterval?: number;
  /** Throw an ExecutionError if it failed. Default: true. */
  raiseOnFailure?: boolean;
  /** Stop waiting. The execution goes on. */
  signal?: AbortSignal;
}

/** The state of an execution. */
export interface ExecutionState {
  id: string;
  kind: ExecutionKind;
  status?: ExecutionStatus;
  result?: EvalResult | null;
  errorMessage?: string | null;
  errorLocalizer?: Record<string, any> | null;
}

type Refresher = (signal?: AbortSignal) => Promise<ExecutionState>;

/** An evaluation that runs on the server, or has ended. */
export class Execution {
  readonly id: string;
  readonly kind: ExecutionKind;
  status: ExecutionStatus = "pending";
  result: EvalResult | null = null;
  errorMessage: string | null = null;
  errorLocalizer: Record<string, any> | null = null;
  readonly #refresher: Refresher | undefined;

  constructor(state: ExecutionState, refresher?: Refresher) {
    this.id = state.id;
    this.kind = state.kind;
    this.#refresher = refresher;
    this.#take(state);
  }

  /** Whether it has completed or failed. */
  isDone(): boolean {
    return this.status === "completed" || this.status === "failed";
  }

  /** Ask the server for the state now. */
  async refresh(signal?: AbortSignal): Promise<Execution> {
    if (this.#refresher) this.#take(await this.#refresher(signal));
    return this;
  }

  /** Wait until it is done. */
  async wait(options: WaitOptions = {}): Promise<Execution> {
    const { timeout = 300, pollInterval = 2, raiseOnFailure = true, signal } = options;
    if (!(timeout >= 0) || !(pollInterval > 0)) throw new InvalidValue("timeout and pollInterval are seconds above 0");
    const end = Date.now() + timeout * 1000;
    for (let pause = FIRST_POLL; !this.isDone(); pause = Math.min(pause * 2, pollInterval)) {
      await this.refresh(signal);
      if (this.isDone()) break;
      const left = (end - Date.now()) / 1000;
      if (left <= 0) throw new TimedOut(`execution ${this.id} is ${this.status} after ${timeout} seconds`);
      await pauseFor(Math.min(pause, left), signal);
    }
    if (this.status === "failed" && raiseOnFailure) {
      throw new ExecutionError(this.id, this.errorMessage ?? undefined);
    }
    return this;
  }

  #take(state: ExecutionState): void {
    this.status = state.status ?? "pending";
    this.result = state.result ?? null;
    this.errorMessage = state.errorMessage ?? null;
    this.errorLocalizer = state.errorLocalizer ?? null;
  }
}
