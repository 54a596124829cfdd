/** Requests: keys, timeouts, retries and cancellation. It uses nothing but `fetch`. */

import { Aborted, BadAnswer, Disconnected, InvalidValue, KaratError, TimedOut, errorOf } from "./errors.js";
import { fromJson, isRecord, toJson } from "./json.js";
import type { Problem } from "./schema.js";

const DEFAULT_URL = "http://127.0.0.1:5272";
const DEFAULT_TIMEOUT = 200;
const DEFAULT_RETRIES = 2;
const FIRST_DELAY = 0.25;
const LONGEST_DELAY = 8;
const LONGEST_TIMER = 2_147_483;
const LOOPBACK = new Set(["127.0.0.1", "localhost", "[::1]"]);

/** Options of both clients. */
export interface ConnectionOptions {
  /** The address of the server. Default: KARAT_URL, else http://127.0.0.1:5272. */
  readonly url?: string | undefined;
  /** A key of `karat serve --new-key`. Default: KARAT_KEY. A server on this machine needs none. */
  readonly key?: string | undefined;
  /** Seconds for a whole call, with its retries. Default: 200. */
  readonly timeout?: number | undefined;
  /** How often a request is sent again after 429, 502, 503, 504 or a broken connection. Default: 2. */
  readonly retries?: number | undefined;
  /** Headers of every request, for a proxy in front of the server. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Another implementation of fetch. */
  readonly fetch?: typeof fetch | undefined;
}

/** Options of a single call. */
export interface CallOptions {
  /** Cancels the call: it rejects with `Aborted`. */
  readonly signal?: AbortSignal | undefined;
  /** Seconds for this call, with its retries. */
  readonly timeout?: number | undefined;
  /** How often this request is sent again. */
  readonly retries?: number | undefined;
  /** A name of this request. The server answers a repeated one without doing the work again. Default: a random one. */
  readonly idempotencyKey?: string | undefined;
}

/** A request. */
export interface Asked extends CallOptions {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | null | undefined>> | undefined;
  /** A value, sent as JSON; or text or bytes, sent as they are with `contentType`. */
  readonly body?: unknown;
  readonly contentType?: string | undefined;
  readonly accept?: string | undefined;
  /** Ask for a job. */
  readonly later?: boolean | undefined;
}

/** An answer. */
export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Uint8Array;
}

/** A variable of the environment; undefined where there is no environment, as in browsers. */
export function environment(name: string): string | undefined {
  const scope = globalThis as { process?: { env?: Record<string, string | undefined> } };
  try {
    return scope.process?.env?.[name] || undefined;
  } catch {
    return undefined; // Deno without the permission to read it
  }
}

/** A connection to a server: every request of a client passes through it. */
export class Connection {
  readonly url: string;
  readonly timeout: number;
  readonly #retries: number;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #fetch: typeof fetch;

  constructor(options: ConnectionOptions, keys: Readonly<Record<string, string>> = {}) {
    this.url = addressOf(options.url ?? environment("KARAT_URL") ?? DEFAULT_URL);
    this.timeout = positive("timeout", options.timeout ?? DEFAULT_TIMEOUT);
    this.#retries = count("retries", options.retries ?? DEFAULT_RETRIES);
    this.#headers = { ...options.headers, ...keys };
    this.#fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
  }

  /** Whether the server is on this machine, where it needs no key. */
  get isLocal(): boolean {
    return LOOPBACK.has(new URL(this.url).hostname);
  }

  /** The JSON of an answer. */
  async json(asked: Asked): Promise<unknown> {
    const { bytes } = await this.ask(asked);
    return fromJson(new TextDecoder().decode(bytes), `the answer to ${asked.method} ${asked.path}`);
  }

  /** The answer to a request, after retries; a status outside of 200–299 is an error. */
  async ask(asked: Asked): Promise<Answered> {
    const timeout = positive("timeout", asked.timeout ?? this.timeout);
    const retries = count("retries", asked.retries ?? this.#retries);
    const request = this.#request(asked);
    const clock = new Clock(timeout, asked.signal, this.url);
    try {
      for (let attempt = 0; ; attempt++) {
        try {
          clock.check();
          return await clock.hold(this.#send(request, clock));
        } catch (error) {
          const fault = clock.fault(error);
          const delay = attempt < retries ? delayBefore(fault, attempt) : undefined;
          if (delay === undefined || delay >= clock.left) throw fault;
          await clock.hold(clock.sleep(delay)).catch((reason: unknown) => { throw clock.fault(reason); });
        }
      }
    } finally {
      clock.stop();
    }
  }

  #request(asked: Asked): { readonly url: string; readonly init: RequestInit } {
    const headers: Record<string, string> = { ...this.#headers, Accept: asked.accept ?? "application/json" };
    const init: RequestInit = { method: asked.method, headers, redirect: "manual" };
    if (asked.later) headers["Prefer"] = "respond-async";
    if (asked.method === "POST") headers["Idempotency-Key"] = asked.idempotencyKey ?? randomKey();
    if (asked.body !== undefined) {
      headers["Content-Type"] = asked.contentType ?? "application/json";
      init.body = asked.contentType === undefined ? toJson(asked.body) : asked.body as BodyInit;
    }
    return { url: this.url + asked.path + queryOf(asked.query), init };
  }

  async #send(request: { readonly url: string; readonly init: RequestInit }, clock: Clock): Promise<Answered> {
    const answer = await this.#fetch(request.url, { ...request.init, signal: clock.signal });
    if (answer.type === "opaqueredirect" || (answer.status >= 300 && answer.status < 400)) {
      throw new BadAnswer(`${this.url} redirects; give the address it redirects to`, { status: answer.status });
    }
    const bytes = new Uint8Array(await answer.arrayBuffer());
    if (answer.ok) return { status: answer.status, headers: answer.headers, bytes };
    const text = new TextDecoder().decode(bytes);
    throw errorOf(answer.status, { ...problemIn(text), retryAfter: secondsIn(answer.headers.get("retry-after")) });
  }
}

/** The time of a call: its deadline, the caller's signal, and the pauses between attempts. */
class Clock {
  readonly #abort = new AbortController();
  readonly #end: number;
  readonly #timer: ReturnType<typeof setTimeout>;
  readonly #given: AbortSignal | undefined;
  readonly #onAbort = (): void => this.#abort.abort(this.#given?.reason);
  #late = false;

  constructor(readonly seconds: number, given: AbortSignal | undefined, readonly url: string) {
    this.#given = given;
    this.#end = Date.now() + seconds * 1000;
    this.#timer = setTimeout(() => {
      this.#late = true;
      this.#abort.abort();
    }, Math.min(seconds, LONGEST_TIMER) * 1000);
    if (given?.aborted) this.#onAbort();
    given?.addEventListener("abort", this.#onAbort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get left(): number {
    return (this.#end - Date.now()) / 1000;
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#given?.removeEventListener("abort", this.#onAbort);
  }

  /** Throw if the time is over. */
  check(): void {
    if (this.signal.aborted) throw this.fault(undefined);
  }

  /** The promise, or a rejection as soon as the signal aborts: not every fetch listens to its signal. */
  async hold<T>(promise: Promise<T>): Promise<T> {
    let release: (() => void) | undefined;
    const aborted = new Promise<never>((_, reject) => {
      release = (): void => reject(new Error("aborted"));
      if (this.signal.aborted) release();
      else this.signal.addEventListener("abort", release);
    });
    promise.catch(() => undefined);
    try {
      return await Promise.race([promise, aborted]);
    } finally {
      if (release) this.signal.removeEventListener("abort", release);
    }
  }

  sleep(seconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, seconds * 1000);
      this.signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
    });
  }

  /** The error for anything that an attempt threw. */
  fault(error: unknown): KaratError {
    if (this.#given?.aborted) return new Aborted("the call was aborted", { cause: this.#given.reason });
    if (this.#late) return new TimedOut(`no answer within ${this.seconds} seconds`);
    if (error instanceof KaratError) return error;
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    const code = (cause as { readonly code?: unknown } | undefined)?.code;
    const words = cause instanceof Error ? cause.message || String(code ?? cause.name) : String(cause);
    const command = commandFor(this.url, /conn(ection)? ?refused/i.test(`${String(code)} ${words}`));
    return new Disconnected(`cannot reach the server: ${words}${command && `; try ${command}`}`, { cause: error });
  }
}

/** The command after which a page may ask the server, or after which there is one on this machine; else nothing. */
function commandFor(url: string, isRefused: boolean): string {
  const { hostname, origin, port } = new URL(url);
  const page = originOfPage();
  const isForeign = page !== undefined && page !== origin; // a browser does not say which of the two is wrong
  const isLocal = LOOPBACK.has(hostname);
  if (!isForeign && !(isLocal && isRefused)) return "";
  return [
    "karat serve", ...(hostname === "[::1]" ? ["--host ::1"] : []),
    ...(isLocal && port && port !== new URL(DEFAULT_URL).port ? [`--port ${port}`] : []),
    ...(isForeign ? [`--allow-origin ${page}`] : []),
  ].join(" ");
}

/** The origin of the page that this runs in; undefined outside of browsers. */
function originOfPage(): string | undefined {
  const scope = globalThis as { readonly location?: unknown; readonly origin?: unknown };
  try {
    return scope.location !== undefined && typeof scope.origin === "string" ? scope.origin : undefined;
  } catch {
    return undefined; // Deno without an address of its own
  }
}

/** Seconds before the next attempt, undefined if there is none. Every request may be repeated: POSTs have a key. */
function delayBefore(fault: KaratError, attempt: number): number | undefined {
  if (!["rate-limited", "unavailable", "disconnected"].includes(fault.kind)) return undefined;
  const most = Math.min(FIRST_DELAY * 2 ** attempt, LONGEST_DELAY);
  const random = Math.random() * most;
  return fault.retryAfter === undefined ? most / 2 + random / 2 : fault.retryAfter + random / 4;
}

/** The seconds of a Retry-After header, which is a number or a date. */
export function secondsIn(header: string | null, now: number = Date.now()): number | undefined {
  if (header === null) return undefined;
  if (/^\s*\d+(\.\d+)?\s*$/.test(header)) return Number(header);
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, (date - now) / 1000);
}

function problemIn(text: string): { readonly problem?: Partial<Problem>; readonly text?: string } {
  try {
    const read: unknown = JSON.parse(text);
    if (typeof read === "string") return { text: read };
    const isProblem = isRecord(read) && [read["detail"], read["title"]].some((one) => typeof one === "string");
    if (isProblem) return { problem: read };
  } catch {
    // the text itself is shown
  }
  return { text: text.slice(0, 2000) };
}

function addressOf(url: string): string {
  let read: URL;
  try {
    read = new URL(url);
  } catch {
    throw new InvalidValue(`the address of the server is not a URL; got ${url}; try ${DEFAULT_URL}`);
  }
  if (!["http:", "https:"].includes(read.protocol) || read.search || read.hash || read.username) {
    throw new InvalidValue(`the address of the server is http(s)://HOST[:PORT][/PATH]; got ${url}; try ${DEFAULT_URL}`);
  }
  return url.replace(/\/+$/, "");
}

function queryOf(query: Asked["query"]): string {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null);
  return given.length ? `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}` : "";
}

function positive(name: string, value: number): number {
  if (!(value > 0)) throw new InvalidValue(`${name} must be above 0; got ${value}`);
  return value;
}

function count(name: string, value: number): number {
  if (Number.isInteger(value) && value >= 0) return value;
  throw new InvalidValue(`${name} is a whole number of at least 0; got ${value}`);
}

function randomKey(): string {
  const crypto = (globalThis as { crypto?: Crypto }).crypto;
  if (crypto?.randomUUID) return crypto.randomUUID(); // pages without https have none
  return Array.from({ length: 4 }, () => Math.random().toString(36).slice(2, 12)).join("");
}
