/** JSON without silent losses. */

import { InvalidValue, BadAnswer } from "./errors.js";

/**
 * The JSON of a value. A bigint becomes a string: karat compares ids as text, so 1, 1n and "1" are the same id.
 *
 * `JSON.stringify` writes NaN as null and a Set as {}: here these are errors that name the place.
 */
export function toJson(value: unknown): string {
  let fault: string | undefined;
  const text = JSON.stringify(value, function (this: unknown, _key: string, given: unknown): unknown {
    if (typeof given === "bigint") return given.toString();
    fault ??= faultOf(given, Array.isArray(this));
    return given;
  });
  if (fault !== undefined) throw new InvalidValue(`${placeOf(value, "") ?? "the body"} is ${fault}`);
  if (text === undefined) throw new InvalidValue(`the body is ${typeof value}, which JSON cannot carry`);
  return text;
}

/** The value of a JSON text. */
export function fromJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw new BadAnswer(`${what} is not JSON: ${text.slice(0, 80) || "it is empty"}`, { cause });
  }
}

/** Whether a value is an object with names. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function faultOf(value: unknown, inArray: boolean): string | undefined {
  switch (typeof value) {
    case "number":
      return Number.isFinite(value) ? undefined : `${value}, which JSON cannot carry; leave it out or send null`;
    case "undefined":
      return inArray ? "undefined, which JSON cannot carry in a list" : undefined;
    case "function":
    case "symbol":
      return `a ${typeof value}, which JSON cannot carry`;
    case "object":
      if (value instanceof Set || value instanceof Map) return `a ${value.constructor.name}; send [...it]`;
      if (ArrayBuffer.isView(value)) return `a ${value.constructor.name}; send Array.from(it)`;
      return undefined;
    default:
      return undefined;
  }
}

/** The place of the first fault, such as retrieved[0][2].score; only asked for if there is one. */
function placeOf(value: unknown, path: string, inArray = false, depth = 0): string | undefined {
  if (faultOf(value, inArray) !== undefined) return path || "the body";
  if (typeof value !== "object" || value === null || depth > 64) return undefined;
  for (const [key, inner] of Object.entries(value)) {
    const at = Array.isArray(value) ? `${path}[${key}]` : path ? `${path}.${key}` : key;
    const found = placeOf(inner, at, Array.isArray(value), depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}
