// Building blocks of the views: tables that become cards on narrow screens, states, buttons, fields.

import { post, query } from "./ask.js";
import { h } from "./dom.js";
import { clockTime, duration, exactly, instant, number, parsed } from "./format.js";

/**
 * A table. `columns` are [title, cell(row), kind]: the kind is "number", "actions", "wide" or nothing; a column that is
 * also "rare" is hidden while it is empty in all rows. `key(row)` identifies rows.
 * Roles are explicit because the block layout on narrow screens would remove them.
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

const LISTED = 50;
const lists = new Map(); // label -> the text that its rows contain, and how many of them are shown

/** A table that may be long: its first rows, a button for more, and a search among all. `text(row)` is what is searched. */
export function listed(label, columns, rows, key, empty, text, { refresh }) {
  const list = lists.get(label) ?? { sought: "", most: LISTED };
  lists.set(label, list);
  const search = (event) => {
    Object.assign(list, { sought: event.target.value.trim().toLowerCase(), most: LISTED });
    refresh({ redraw: true });
  };
  const found = rows.filter((row) => text(row).toLowerCase().includes(list.sought));
  const more = found.length - list.most;
  return [
    (rows.length > LISTED || list.sought !== "") && h("div", { key: "search", class: "row searched" },
      field("Containing", h("input", { type: "search", value: list.sought, oninput: search, autocomplete: "off", spellcheck: "false" }))),
    table(label, columns, found.slice(0, list.most), key, list.sought === "" ? empty : "No row contains this text."),
    more > 0 && h("div", { key: "more", class: "row" }, h("p", { class: "quiet" }, `${number(more)} more`),
      button("Show more", () => { list.most *= 4; refresh({ redraw: true }); })),
  ];
}

const isFilled = (cell) => (Array.isArray(cell) ? cell.some(isFilled) : cell !== "" && cell !== false && cell !== null && cell !== undefined);

const MOODS = {
  running: "good", Stable: "good", CompleteCommit: "good", commit: "good",
  Ongoing: "busy", PrepareCommit: "busy", PrepareAbort: "busy", PreparingRebalance: "busy", CompletingRebalance: "busy",
  paused: "busy", held: "busy", fenced: "bad", down: "bad", Dead: "bad", CompleteAbort: "quiet", Empty: "quiet",
};

/** A name such as NOT_LEADER_OR_FOLLOWER or PrepareCommit, with line breaks between its parts only. */
const words = (text) => (typeof text === "string" ? text.split(/(?<=_)|(?<=[a-z])(?=[A-Z])/).map((part, at) => [at > 0 && h("wbr"), part]) : text);

export const state = (text, mood = MOODS[text] ?? "quiet") => h("span", { class: `state ${mood}` }, words(text));

export const code = (text) => h("code", null, text);

/** A button; `label` names its row for screen readers. With `why`, it is disabled, and the tooltip has the reason. */
export function button(text, onclick, label, why) {
  return h("button", { type: "button", onclick, "aria-label": label ? `${text} ${label}` : undefined, disabled: why !== undefined, title: why }, text);
}

/** A time of day; the tooltip has the full time. */
export const time = (ms) => h("time", { datetime: instant(ms), title: instant(ms) }, clockTime(ms));

export const link = (to, text, mood) => h("a", { href: to, class: mood && `state ${mood}` }, words(text));

/** The address of a view, with its names escaped. */
export const to = (...parts) => `#/${parts.map(encodeURIComponent).join("/")}`;

/** Terms with their values: [term, value, kind]; the kind "wide" may use several columns. */
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

/** Events, newest first. `words(event)` adds text to the event's name; `stood(event)` returns the states before and after. */
export function timeline(events, { words, stood }) {
  if (events.length === 0) return h("p", { class: "empty" }, "No events are kept.");
  return h("ol", { class: "timeline", reversed: true }, events.map((event, at) => moment(event, at, words, stood)).slice(-300).reverse());
}

/** Text in which citations of the specification are links: this server has its pages. */
export const linked = (text) => text.split(/(docs\/specification\/[\w/.-]+#[\w-]+)/).map((part, at) => at % 2 === 0
  ? part
  : h("a", { key: at, href: part, target: "_blank", rel: "noopener" }, placeOf(part)));

/** "docs/specification/core/d-produce.md#d-2-v11" is core D.2 V11. */
function placeOf(link) {
  const [page, anchor] = link.split("#");
  return [page.split("/")[2], ...anchor.toUpperCase().split("-")].reduce((all, part) => `${all}${/^\d/.test(part) ? "." : " "}${part}`);
}

function moment(event, at, words, stood) {
  const [before, after] = stood(event);
  const cited = event.citation ? linked(event.citation) : event.rule;
  const who = event.client_id !== null && [code(event.client_id), ` on connection ${event.connection}, by ${event.api} v${event.version} to broker ${event.broker}`];
  return h("li", { key: at, class: event.error ? "bad" : undefined },
    time(event.at_ms),
    h("div", null,
      h("p", null, h("strong", null, event.event), event.error && [" ", state(event.error, "bad")],
        event.fault && [" ", state(`fault ${event.fault}`, "busy")], words(event) && ` ${words(event)}`),
      after && before !== after && h("p", { class: "quiet" }, before ? `${before} → ${after}` : `→ ${after}`),
      h("p", { class: "quiet" }, who, who && cited && "; ", cited)));
}

/** The explanation of the last refusal, if there was one. */
export const reason = (why) => [
  why.error && panel("Why the last request was refused", h("p", { class: "why" }, linked(why.why))),
  why.also.length > 0 && panel("Who is gone, and what the others wait for", why.also.map((each) => h("p", { key: each, class: "why" }, linked(each)))),
];

/** A choice among the brokers, after other options. */
export const brokers = (name, cluster, value, onchange, ...first) =>
  choices(name, [...first, ...cluster.brokers.map((broker) => [String(broker.id), `broker ${broker.id}`])], value, onchange);

/** A form that moves the coordinator of a group or transactional id. */
export function moves(type, key, cluster, coordinator, { act }) {
  const move = (event) => {
    event.preventDefault();
    const { to: where, loading } = event.target.elements;
    const body = { type, key, broker: Number(where.value), loading_ms: parsed(loading.value || "0") ?? loading.value };
    act(() => post("v1/coordinators/move", body), `Broker ${where.value} is the coordinator now.`);
  };
  return h("form", { class: "row", onsubmit: move },
    field("Coordinator", brokers("to", cluster, String(coordinator))),
    field("Loading for", h("input", { name: "loading", placeholder: "0 ms", size: 6, autocomplete: "off" })),
    h("button", { type: "submit" }, "Move"));
}

/** Numbers over time, as a line; `about` describes it for screen readers. */
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

/** Return whether a fault affects no more requests. */
export const exhausted = (fault) => fault.remaining === 0;

/** Save data as a file. */
export function save(blob, name) {
  const address = URL.createObjectURL(blob);
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name;
  anchor.click();
  URL.revokeObjectURL(address);
}

/** Copy a text to the clipboard; without access to it, show the text to copy by hand. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    throw new Error(`The browser denies access to the clipboard. Copy the text from here: ${text}`);
  }
}

/** A part of a view; without a title if the page's heading is enough. */
export const panel = (title, ...children) => h("section", { class: "panel", "aria-label": title ?? undefined }, title && h("h2", null, title), children);

/** A dash for a missing value; the tooltip has the reason. */
export const unknown = (why) => h("span", { class: "quiet", title: why, "aria-label": why, role: "img" }, "–");

export const json = (value) => exactly(value, 1).replace(/\n */g, " ");

/** The lag, as Kafka's tools show it. */
export const lagOf = (count) => (count === null ? unknown("unknown: without a committed offset, the consumer's auto.offset.reset decides where it starts") : number(count));

export const inTime = (deadline_ms, now_ms) => (deadline_ms > now_ms ? `in ${duration(deadline_ms - now_ms)}` : "due");
