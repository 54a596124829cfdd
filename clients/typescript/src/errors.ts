/**
 * The errors of this client.
 *
 * KaratError
 * ├── BadRequest     400, 405, 422 …  the server cannot use the request; `problem` says why
 * ├── Unauthorized   401, 403         the key is missing or wrong, or the page's origin is not allowed
 * ├── NotFound       404              no such run, job or path
 * ├── Conflict       409              the request contradicts another one
 * ├── TooLarge       413              the body or the number of queries is above a limit of the server
 * ├── RateLimited    429              too many requests; `retryAfter` says when to ask again
 * ├── Unavailable    503, 502, 504    the server is busy, starting or stopping
 * ├── ServerFailed   other 5xx        the server failed on this request
 * ├── TimedOut       408, or no answer in time
 * ├── Disconnected   no connection, or it broke
 * ├── Aborted        the caller's AbortSignal
 * ├── JobFailed      a job ended without a result
 * ├── BadAnswer      the answer is not what a karat server sends
 * └── InvalidValue   a value that JSON cannot carry, or an argument of the wrong type
 */

import type { Problem } from "./schema.js";

/** One word for each kind of error, to switch on. */
export type ErrorKind =
  | "bad-request" | "unauthorized" | "not-found" | "conflict" | "too-large" | "rate-limited" | "unavailable"
  | "server-failed" | "timed-out" | "disconnected" | "aborted" | "job-failed" | "bad-answer" | "invalid-value";

/** Facts about a failed request. */
export interface ErrorFacts {
  readonly status?: number | undefined;
  readonly problem?: Partial<Problem> | undefined;
  readonly retryAfter?: number | undefined;
  readonly cause?: unknown;
}

/** An error with the server's sentence, the value that was given, and what to try. */
export abstract class KaratError extends Error {
  abstract readonly kind: ErrorKind;
  /** The status of the answer, if there was one. */
  readonly status: number | undefined;
  /** The problem details (RFC 9457) of the answer, if it had any. */
  readonly problem: Partial<Problem> | undefined;
  /** Seconds after which the server wants to be asked again. */
  readonly retryAfter: number | undefined;

  constructor(message: string, facts: ErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.status = facts.status;
    this.problem = facts.problem;
    this.retryAfter = facts.retryAfter;
  }

  /** What to write instead, if the server knows. */
  get hint(): string | undefined {
    return this.problem?.hint ?? undefined;
  }

  /** The id of the request in the log of the server. */
  get requestId(): string | undefined {
    return this.problem?.instance ?? undefined;
  }
}

export class BadRequest extends KaratError {
  override readonly name: string = "BadRequest";
  readonly kind = "bad-request";
}

export class Unauthorized extends KaratError {
  override readonly name: string = "Unauthorized";
  readonly kind = "unauthorized";
}

export class NotFound extends KaratError {
  override readonly name: string = "NotFound";
  readonly kind = "not-found";
}

export class Conflict extends KaratError {
  override readonly name: string = "Conflict";
  readonly kind = "conflict";
}

export class TooLarge extends KaratError {
  override readonly name: string = "TooLarge";
  readonly kind = "too-large";
}

export class RateLimited extends KaratError {
  override readonly name: string = "RateLimited";
  readonly kind = "rate-limited";
}

export class Unavailable extends KaratError {
  override readonly name: string = "Unavailable";
  readonly kind = "unavailable";
}

export class ServerFailed extends KaratError {
  override readonly name: string = "ServerFailed";
  readonly kind = "server-failed";
}

export class TimedOut extends KaratError {
  override readonly name: string = "TimedOut";
  readonly kind = "timed-out";
}

export class Disconnected extends KaratError {
  override readonly name: string = "Disconnected";
  readonly kind = "disconnected";
}

/** Its name is that of the platform's own error, so that code which looks for `AbortError` finds it. */
export class Aborted extends KaratError {
  override readonly name: string = "AbortError";
  readonly kind = "aborted";
}

export class JobFailed extends KaratError {
  override readonly name: string = "JobFailed";
  readonly kind = "job-failed";
}

export class BadAnswer extends KaratError {
  override readonly name: string = "BadAnswer";
  readonly kind = "bad-answer";
}

export class InvalidValue extends KaratError {
  override readonly name: string = "InvalidValue";
  readonly kind = "invalid-value";
}

type FromAnswer = new (message: string, facts?: ErrorFacts) => KaratError;

const BY_STATUS: Readonly<Record<number, FromAnswer>> = {
  401: Unauthorized, 403: Unauthorized, 404: NotFound, 408: TimedOut, 409: Conflict, 413: TooLarge, 429: RateLimited,
  502: Unavailable, 503: Unavailable, 504: Unavailable,
};

/** The error of an answer, from its status and its problem details or text. */
export function errorOf(status: number, facts: ErrorFacts & { readonly text?: string | undefined }): KaratError {
  const kind = BY_STATUS[status] ?? (status >= 500 ? ServerFailed : BadRequest);
  return new kind(messageOf(status, facts.problem, facts.text), { ...facts, status });
}

function messageOf(status: number, problem: Partial<Problem> | undefined, text: string | undefined): string {
  const sentence = problem?.detail ?? problem?.title ?? (text?.trim() || `the server answered ${status}`);
  if (sentence.endsWith("?")) return sentence; // it says already what to try
  const got = problem?.got == null ? [] : [`got ${problem.got}`];
  const hint = problem?.hint == null ? [] : [`try ${problem.hint}`];
  return [sentence, ...got, ...hint].join("; ");
}
