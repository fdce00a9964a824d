// Formats times, sizes and numbers. All times are the cluster's.

const grouped = new Intl.NumberFormat("en", { useGrouping: "min2" });

export const number = (value) => (value < 0 ? "none" : grouped.format(value));

export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

const DAY = 86_400_000;
const LAST = 8.64e15 - DAY; // the latest Date, in every time zone

/** Local time as in all outputs: 2026-11-22T12:03:04.056+01:00; the number itself if it is no valid date. */
export function instant(ms) {
  const at = Number(ms);
  if (!(Math.abs(at) < LAST)) return String(ms);
  const ahead = -new Date(at).getTimezoneOffset();
  const two = (value) => String(value).padStart(2, "0");
  const zone = `${ahead < 0 ? "-" : "+"}${two(Math.floor(Math.abs(ahead) / 60))}:${two(Math.abs(ahead) % 60)}`;
  return new Date(at + ahead * 60_000).toISOString().slice(0, -1) + zone;
}

let today = "";

/** Set the cluster's current time: times of the same day are shown without a date. */
export function setNow(ms) {
  today = instant(ms).slice(0, 10);
}

/** The time of day, with the date if that is not today, in the browser's time zone. */
export function clockTime(ms) {
  const text = instant(ms);
  if (!text.includes("T")) return text;
  return text.startsWith(today) ? text.slice(11, 23) : text.slice(0, 19).replace("T", " ");
}

const UNITS = [["d", 86_400_000], ["h", 3_600_000], ["min", 60_000], ["s", 1000]];

/** A duration in its two largest units: 1 h 3 min. */
export function duration(ms) {
  const sign = ms < 0 ? "-" : "";
  const first = UNITS.findIndex(([, size]) => Math.abs(ms) >= size);
  const least = first < 0 ? 1 : UNITS[Math.min(first + 1, UNITS.length - 1)][1]; // the second of the two units is rounded
  let left = Math.round(Math.abs(ms) / least) * least;
  const parts = [];
  for (const [unit, size] of UNITS) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count) parts.push(`${count} ${unit}`);
  }
  return sign + (parts.slice(0, 2).join(" ") || `${Math.round(left)} ms`);
}

/** How long a request took: 0.4 ms, 3.0 s. */
export function latency(ms) {
  return ms < 1000 ? `${ms.toFixed(1)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

const GIVEN = { ms: 1, s: 1000, m: 60_000, min: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds of "90s", "15m", "2 h", "500"; undefined for any other text. */
export function parsed(text) {
  const match = /^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d)?\s*$/.exec(text);
  return match ? Math.round(Number(match[1]) * GIVEN[match[2] ?? "ms"]) : undefined;
}

export function bytes(count) {
  if (count < 0) return "none";
  if (count < 1024) return `${count} B`;
  if (count < 1024 * 1024) return `${(count / 1024).toFixed(1)} KiB`;
  return `${(count / 1024 / 1024).toFixed(1)} MiB`;
}

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/** Parse JSON; an integer that a number cannot hold exactly becomes a BigInt. */
export function exactValue(text) {
  const plain = JSON.parse(text); // reports an error at its place in the original text
  if (text.includes("\\u0000")) return plain; // the mark is already used in a string
  const marked = text.replace(TOKEN, (token) => (/^-?\d+$/.test(token) && !Number.isSafeInteger(Number(token)) ? `"\\u0000${token}"` : token));
  return JSON.parse(marked, (_, value) => (typeof value === "string" && /^\u0000-?\d+$/.test(value) ? BigInt(value.slice(1)) : value));
}

/** Encode as JSON; a BigInt becomes a number with all digits. */
export const exactly = (value, indent) =>
  JSON.stringify(value, (_, each) => (typeof each === "bigint" ? `\u0000${each}` : each), indent).replace(/"\\u0000(-?\d+)"/g, "$1");

/** Indent JSON, with its numbers unchanged digit by digit; undefined if the text is not JSON. */
export function indented(text) {
  if (!/^\s*[{[]/.test(text)) return undefined;
  try {
    JSON.parse(text);
  } catch {
    return undefined;
  }
  let out = "";
  let depth = 0;
  let before = "";
  const line = () => `\n${"  ".repeat(depth)}`;
  for (const [token] of text.matchAll(TOKEN)) {
    const closes = token === "}" || token === "]";
    const empty = closes && (before === "{" || before === "[");
    if (closes) depth -= 1;
    if (!empty && (closes || before === "," || before === "{" || before === "[")) out += line();
    out += token === ":" ? ": " : token;
    if (token === "{" || token === "[") depth += 1;
    before = token;
  }
  return out;
}
