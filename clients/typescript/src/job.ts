/** Jobs: long work on the server, which is asked about until it has ended. */

import { Aborted, InvalidValue, JobFailed, KaratError, TimedOut } from "./errors.js";
import type { JobState } from "./schema.js";
import type { CallOptions } from "./transport.js";

const FIRST_POLL = 0.05;
const LONGEST_POLL = 2;

/** The requests of a job. */
export interface JobRequests<T> {
  report(options: CallOptions): Promise<JobState>;
  result(options: CallOptions): Promise<T>;
  cancel(options: CallOptions): Promise<JobState>;
}

/** Options of `Job.wait`. */
export interface JobWaitOptions {
  /** Seconds to wait. Default: until it has ended. */
  readonly timeout?: number | undefined;
  /** Stops waiting. The job goes on: `cancel` ends it. */
  readonly signal?: AbortSignal | undefined;
  /** Called with every report of the server. */
  readonly onProgress?: ((report: JobState) => void) | undefined;
}

/** Work that the server does. */
export class Job<T> {
  #report: JobState;
  readonly #requests: JobRequests<T>;

  constructor(report: JobState, requests: JobRequests<T>) {
    this.#report = report;
    this.#requests = requests;
  }

  get id(): string {
    return this.#report.id;
  }

  /** The state when the server was last asked. */
  get state(): JobState["state"] {
    return this.#report.state;
  }

  /** The last report of the server: the state, how far it is, when it began. */
  get report(): JobState {
    return this.#report;
  }

  /** Whether nothing more happens to it. */
  get ended(): boolean {
    return ["done", "failed", "cancelled"].includes(this.state);
  }

  /** Ask the server for a new report. */
  async refresh(options: CallOptions = {}): Promise<JobState> {
    return (this.#report = await this.#requests.report(options));
  }

  /** The result, when it is there. A job that failed throws the error that its request would have had. */
  async wait(options: JobWaitOptions = {}): Promise<T> {
    const { timeout = Infinity, signal, onProgress } = options;
    if (!(timeout > 0)) throw new InvalidValue(`timeout must be above 0; got ${timeout}`);
    const end = Date.now() + timeout * 1000;
    for (let pause = FIRST_POLL; !this.ended; pause = Math.min(pause * 1.5, LONGEST_POLL)) {
      const left = (end - Date.now()) / 1000;
      if (left <= 0) throw new TimedOut(`the job ${this.id} is ${this.state} after ${timeout} seconds`);
      await pauseFor(Math.min(pause, left), signal);
      const report = await this.refresh({ signal });
      onProgress?.(report);
    }
    if (this.state === "cancelled") throw new JobFailed(`the job ${this.id} was cancelled`);
    return this.#requests.result({ signal });
  }

  /** End it. A job that has ended is forgotten. */
  async cancel(options: CallOptions = {}): Promise<JobState> {
    return (this.#report = await this.#requests.cancel(options));
  }
}

/** The result of a job; if the wait is given up, the job is cancelled. */
export async function waitOrCancel<T>(job: Job<T>, options: JobWaitOptions): Promise<T> {
  try {
    return await job.wait(options);
  } catch (error) {
    if (!job.ended && error instanceof KaratError) await job.cancel({ retries: 0, timeout: 5 }).catch(() => undefined);
    throw error;
  }
}

/** Wait, unless the signal aborts. */
export function pauseFor(seconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(new Aborted("the call was aborted", { cause: signal?.reason }));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, seconds * 1000);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}
