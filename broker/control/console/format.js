// Times, sizes and numbers as people read them. All times are the cluster's, in UTC.

const grouped = new Intl.NumberFormat("en", { useGrouping: "min2" });

export const number = (value) => (value < 0 ? "none" : grouped.format(value));

export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

/** 12:03:04.056 */
export function time(ms) {
  return new Date(ms).toISOString().slice(11, 23);
}

/** 2026-11-21 12:03:04 */
export function day(ms) {
  return new Date(ms).toISOString().slice(0, 19).replace("T", " ");
}

const UNITS = [["d", 86_400_000], ["h", 3_600_000], ["min", 60_000], ["s", 1000]];

/** The two largest parts of a duration: 1 h 3 min. */
export function duration(ms) {
  const sign = ms < 0 ? "-" : "";
  let left = Math.abs(ms) >= 1000 ? Math.round(Math.abs(ms) / 1000) * 1000 : Math.abs(ms);
  const parts = [];
  for (const [unit, size] of UNITS) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count) parts.push(`${count} ${unit}`);
  }
  return sign + (parts.slice(0, 2).join(" ") || `${Math.round(left)} ms`);
}

const GIVEN = { ms: 1, s: 1000, m: 60_000, min: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds of "90s", "15m", "2 h", "500"; undefined where it is none. */
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
