// What the views are made of: tables that become cards on a narrow screen, states, buttons, fields.

import { post, query } from "./ask.js";
import { h } from "./dom.js";
import { clockTime, duration, exactly, instant, number, parsed } from "./format.js";

/**
 * A table. `columns` are [title, cell(row), kind]: the kind is "number", "actions", "wide" or nothing, with "rare" a column that is left
 * out while no row has anything in it. `key(row)` tells rows apart.
 * Roles are said because a narrow screen lays the table out as blocks, which would take them away.
 */
export function table(label, columns, rows, key, empty) {
  if (rows.length === 0) return h("div", { class: "empty" }, empty);
  const shown = columns.filter(([, cell, kind = ""]) => !kind.includes("rare") || rows.some((row) => isFilled(cell(row))));
  return h("table", { role: "table", "aria-label": label },
    h("thead", { role: "rowgroup" },
      h("tr", { role: "row" }, shown.map(([title, , kind]) => h("th", { role: "columnheader", scope: "col", class: kind },
        title || h("span", { class: "unseen" }, "Actions"))))),
    h("tbody", { role: "rowgroup" },
      rows.map((row) => h("tr", { role: "row", key: key(row) },
        shown.map(([title, cell, kind]) => h("td", { role: "cell", class: kind, "data-label": title }, h("div", null, cell(row))))))));
}

const isFilled = (cell) => (Array.isArray(cell) ? cell.some(isFilled) : cell !== "" && cell !== false && cell !== null && cell !== undefined);

const MOODS = {
  running: "good", Stable: "good", CompleteCommit: "good", commit: "good",
  Ongoing: "busy", PrepareCommit: "busy", PrepareAbort: "busy", PreparingRebalance: "busy", CompletingRebalance: "busy",
  paused: "busy", held: "busy", fenced: "bad", down: "bad", Dead: "bad", CompleteAbort: "quiet", Empty: "quiet",
};

/** A name such as NOT_LEADER_OR_FOLLOWER or PrepareCommit, which is broken between its words only. */
const words = (text) => (typeof text === "string" ? text.split(/(?<=_)|(?<=[a-z])(?=[A-Z])/).map((part, at) => [at > 0 && h("wbr"), part]) : text);

export const state = (text, mood = MOODS[text] ?? "quiet") => h("span", { class: `state ${mood}` }, words(text));

export const code = (text) => h("code", null, text);

/** A button; `label` says to those who do not see the row what it is about. */
export function button(text, onclick, label) {
  return h("button", { type: "button", onclick, "aria-label": label ? `${text} ${label}` : undefined }, text);
}

/** A time as people read it; the whole of it when it is pointed at. */
export const time = (ms) => h("time", { datetime: instant(ms), title: instant(ms) }, clockTime(ms));

export const link = (to, text, mood) => h("a", { href: to, class: mood && `state ${mood}` }, words(text));

/** The address of a view: names are escaped. */
export const to = (...parts) => `#/${parts.map(encodeURIComponent).join("/")}`;

/** Terms with their values: [term, value, kind]; the kind "wide" takes the room that it needs. */
export function facts(...pairs) {
  const known = pairs.filter(Boolean);
  return h("dl", { class: "facts" }, known.map(([term, value, kind]) => h("div", { key: term, class: kind }, h("dt", null, term), h("dd", null, value))));
}

export function field(label, control) {
  return h("label", { class: "field" }, h("span", null, label), control);
}

export function choices(name, values, value, onchange) {
  return h("select", { name, value, onchange },
    values.map((each) => (Array.isArray(each) ? h("option", { value: each[0] }, each[1]) : h("option", { value: each }, each))));
}

/** What has happened, newest first. `words(event)` says what of it is more than its name; `before` and `after` how it stood. */
export function timeline(events, { words, stood }) {
  if (events.length === 0) return h("p", { class: "empty" }, "Nothing is remembered of it.");
  return h("ol", { class: "timeline", reversed: true }, events.map((event, at) => moment(event, at, words, stood)).slice(-300).reverse());
}

function moment(event, at, words, stood) {
  const [before, after] = stood(event);
  const cited = event.citation || event.rule;
  const who = event.client_id !== null && [code(event.client_id), ` on connection ${event.connection}, by ${event.api} v${event.version} to broker ${event.broker}`];
  return h("li", { key: at, class: event.error ? "bad" : undefined },
    time(event.at_ms),
    h("div", null,
      h("p", null, h("strong", null, event.event), event.error && [" ", state(event.error, "bad")],
        event.fault && [" ", state(`fault ${event.fault}`, "busy")], words(event) && ` ${words(event)}`),
      after && before !== after && h("p", { class: "quiet" }, before ? `${before} → ${after}` : `→ ${after}`),
      h("p", { class: "quiet" }, who, who && cited && "; ", cited)));
}

/** The last refusal in words, where there was one. */
export const reason = (why) => why.error && panel("Why the last refusal", h("p", { class: "why" }, why.why));

/** A choice among the brokers, and further ones before them. */
export const brokers = (name, cluster, value, onchange, ...first) =>
  choices(name, [...first, ...cluster.brokers.map((broker) => [String(broker.id), `broker ${broker.id}`])], value, onchange);

/** Giving a group or a transactional id another coordinator. */
export function moves(type, key, cluster, coordinator, { act }) {
  const move = (event) => {
    event.preventDefault();
    const { to: where, loading } = event.target.elements;
    const body = { type, key, broker: Number(where.value), loading_ms: parsed(loading.value || "0") ?? loading.value };
    act(() => post("v1/coordinators/move", body), `Broker ${where.value} coordinates it now.`);
  };
  return h("form", { class: "row", onsubmit: move },
    field("Coordinator", brokers("to", cluster, String(coordinator))),
    field("Loading for", h("input", { name: "loading", placeholder: "0 ms", size: 6, autocomplete: "off" })),
    h("button", { type: "submit" }, "Move"));
}

/** Numbers over time, as a line; `about` says what for those who do not see it. */
export function sparkline(series, about) {
  const most = Math.max(1, ...series);
  const step = 100 / Math.max(1, series.length - 1);
  const points = series.map((value, at) => `${(at * step).toFixed(1)},${(19 - (value / most) * 18).toFixed(1)}`).join(" ");
  return h("svg", { class: "sparkline", viewBox: "0 0 100 20", preserveAspectRatio: "none", role: "img", "aria-label": `${about}: at most ${most} in two seconds` },
    h("polyline", { points }));
}

export const chips = (names) => names.map((name) => h("span", { key: name, class: "chip" }, name));

/** The address of the journal with these filters. */
export const journalOf = (filters) => `#/journal${query(filters)}`;

/** Whether a fault affects no further request. */
export const exhausted = (fault) => fault.remaining === 0;

/** Keep something in a file. */
export function save(blob, name) {
  const address = URL.createObjectURL(blob);
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name;
  anchor.click();
  URL.revokeObjectURL(address);
}

/** Put a text on the clipboard; where the browser has none for this page, it is shown to be copied by hand. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    throw new Error(`This page may not use the clipboard. Copy it from here: ${text}`);
  }
}

/** A part of a view; without a title where the page's heading says it. */
export const panel = (title, ...children) => h("section", { class: "panel", "aria-label": title ?? undefined }, title && h("h2", null, title), children);

/** Where there is no value: a dash, which says why when it is pointed at. */
export const unknown = (why) => h("span", { class: "quiet", title: why, "aria-label": why, role: "img" }, "–");

export const json = (value) => exactly(value, 1).replace(/\n */g, " ");

/** Records that are left to read, as Kafka's tools show them. */
export const lagOf = (count) => (count === null ? unknown("unknown: without a committed offset, a consumer's auto.offset.reset decides where it begins") : number(count));

export const inTime = (deadline_ms, now_ms) => (deadline_ms > now_ms ? `in ${duration(deadline_ms - now_ms)}` : "due");
