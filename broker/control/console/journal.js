// Requests with their responses, newest first.

import { download, get, query, remove } from "./ask.js";
import { diagramOf } from "./diagrams.js";
import { h } from "./dom.js";
import { instant, latency, number } from "./format.js";
import { button, code, facts, field, link, panel, save, state, time, to } from "./parts.js";

const FIELDS = [
  ["api", "API"], ["client_id", "Client id"], ["topic", "Topic"], ["group", "Group"],
  ["transactional_id", "Transactional id"], ["error", "Error"],
];
const RARE = [["outcome", "Outcome"], ["fault", "Fault"], ["connection", "Connection"], ["broker", "Broker"], ["since", "Since (id or ms)"]];
const COLUMNS = [["topics", "Topic", "topics"], ["groups", "Group", "groups"], ["transactional_ids", "Transactional id", "transactions"]];
const SHOWN = 100;
const ASKED = 500;
const ASKED_FIRST = 120; // the first load, for which the page waits
const POLLING = new Set(["Fetch", "Heartbeat", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat", "ShareFetch"]);
const filter = { ...Object.fromEntries([...FIELDS, ...RARE].map(([name]) => [name, ""])), errors: "" };
const A_TIME_FROM = 1e11; // `since` is a time from here on, below it is an id
const opened = new Set();
let applied = ""; // the filters of the address
let linked = 0; // how often the address has changed them
let calm = true;
let stops = false; // whether the list is paused, and what it shows then
let stopped = null;
let held = false; // whether it is paused only because a request is open, which newer ones would push out
let apis = [];
let known = begin("");

const HEADS = ["Time", "Request", "Client", "Topic", "Group", "Transactional id", "Error", "Duration"];

export const wide = true;

export const title = ([id]) => (id === undefined ? "Journal" : `Request ${id}`);

/** Load requests that had not finished at the last load; bodies only of open rows. */
export async function load([id]) {
  if (id !== undefined) return { entry: (await get("v1/journal" + query({ id }))).entries[0] };
  follow();
  const named = apis.length === 0 ? get("v1/versions") : null;
  if (!stops || !stopped) stopped = await latest();
  if (named !== null) apis = Object.keys((await named).apis).sort();
  const entries = await Promise.all(stopped.entries.map((entry) => (opened.has(entry.id) ? whole(known, entry) : entry)));
  return { ...stopped, entries };
}

/** The newest requests that match the filters, without bodies. */
async function latest() {
  const filters = JSON.stringify(filter);
  if (known.filters !== filters) known = begin(filters);
  const mine = known;
  const limit = mine.next === null ? ASKED_FIRST : ASKED;
  const found = await get("v1/journal" + query({ ...filter, since: mine.next === null ? filter.since : newer(mine.next), limit, bodies: false }));
  if (found.next < mine.next) { // another server
    known = begin("");
    return latest();
  }
  mine.next = mine.next === null && found.entries.length === limit ? 0 : found.next; // there are more to load
  for (const entry of found.entries) mine.entries.set(entry.id, entry);
  const entries = [...mine.entries.values()].filter((entry) => entry.id >= found.oldest && isSince(entry)).sort((a, b) => b.id - a.id).slice(0, ASKED);
  mine.entries = new Map(entries.map((entry) => [entry.id, entry]));
  return { kept: found.kept, dropped: found.dropped, entries };
}

/** The id to continue from: the filter may start later than the new requests. */
const newer = (next) => (Number(filter.since) < A_TIME_FROM ? Math.max(next, Number(filter.since)) : next);

const isSince = (entry) => (Number(filter.since) < A_TIME_FROM ? entry.id : entry.at_ms) >= Number(filter.since);

/** The loaded part of the journal with these filters; requests before `next` are complete. */
function begin(filters) {
  return { filters, entries: new Map(), bodies: new Map(), next: null };
}

/** An open request with its bodies, loaded again until the request has finished. */
async function whole(mine, entry) {
  const before = mine.bodies.get(entry.id);
  if (before !== undefined) return before;
  const [found] = (await get("v1/journal" + query({ id: entry.id }))).entries;
  if (found === undefined) return entry;
  const made = { ...found, whole: true };
  if (made.duration_ms !== null) mine.bodies.set(entry.id, made);
  return made;
}

/** The filters of the address, so that a filtered journal can be linked to. */
function follow() {
  const here = location.hash.split("?")[1] ?? "";
  if (here === applied) return;
  const params = new URLSearchParams(here);
  for (const name of Object.keys(filter)) filter[name] = params.get(name) ?? "";
  applied = here;
  linked += 1;
  again();
  show();
}

/** Restart the list: the filters have changed. */
function again() {
  stopped = null;
  if (held) stops = held = false;
}

/** Put the filters into the address. */
function show() {
  applied = query(filter).slice(1);
  history.replaceState(null, "", `#/journal${query(filter)}`);
}

const polls = (entry) => POLLING.has(entry.api) && entry.error === null && entry.fault === null;

export function render(found, [id], { act, refresh }) {
  if (id !== undefined) return one(found.entry, id);
  const filtered = Object.values(filter).some((value) => value !== "");
  const leaves = calm && !filter.api;
  const shown = found.entries.filter((entry) => !(leaves && polls(entry))).slice(0, SHOWN);
  return [
    h("form", { key: linked, class: "filters", "aria-label": "Filters", onsubmit: (event) => event.preventDefault() },
      FIELDS.map((each) => input(each, refresh)),
      h("details", { class: "more", open: RARE.some(([name]) => filter[name] !== "") }, h("summary", null, "More filters"),
        h("div", { class: "filters" }, RARE.map((each) => input(each, refresh)))),
      h("datalist", { id: "apis" }, apis.map((name) => h("option", { key: name, value: name })))),
    h("div", { class: "row" },
      button(stops ? "Resume" : "Pause", () => { stops = !stops; held = false; stopped = null; refresh(); }),
      button("Clear filters", () => { clear(); refresh({ redraw: true }); refresh(); }),
      button("Save for Wireshark", () => act(async () => save(await download("v1/journal.pcap" + query(filter)), "journal.pcap"))),
      button("Clear the journal", () => act(() => remove("v1/journal"), "The journal is empty.")),
      h("label", { class: "check" },
        h("input", { type: "checkbox", checked: true, onchange: (event) => { calm = event.target.checked; refresh({ redraw: true }); } }),
        "Hide successful Fetch and heartbeats"),
      h("label", { class: "check" },
        h("input", { type: "checkbox", key: `errors ${linked}`, checked: filter.errors !== "", onchange: (event) => { filter.errors = event.target.checked ? "true" : ""; again(); show(); refresh(); } }),
        "Only errors: any error code, or no response"),
      h("p", { class: "quiet" }, held && "Paused while a request is open. ", `${number(found.kept)} requests kept`, found.dropped > 0 && `, ${number(found.dropped)} dropped`)),
    shown.length === 0
      ? h("p", { class: "empty" }, filtered ? "No request matches these filters." : "No requests yet.")
      : [h("div", { key: "heads", class: "heads", "aria-hidden": "true" }, HEADS.map((text) => h("span", null, text))),
        h("ul", { key: "requests", class: "journal", "aria-label": "Requests" }, shown.map((entry) => line(entry, refresh)))],
    shown.length === SHOWN && h("p", { class: "quiet" }, `The newest ${SHOWN} are shown.`),
  ];
}

const input = ([name, label], refresh) => field(label, h("input", {
  name, value: filter[name], list: name === "api" ? "apis" : undefined, autocomplete: "off", spellcheck: "false", placeholder: "any",
  onchange: (event) => { filter[name] = event.target.value.trim(); again(); show(); refresh(); },
}));

function clear() {
  for (const name of Object.keys(filter)) filter[name] = "";
  again();
  linked += 1;
  show();
}

function one(entry, id) {
  if (entry === undefined) return h("p", { class: "empty" }, `Request ${id} is no longer in the journal.`);
  return panel(`${entry.api} v${entry.version}`,
    h("p", null, instant(entry.at_ms), " ", entry.error && state(entry.error, "bad"), entry.outcome !== "answered" && state(entry.outcome, "busy"),
      entry.fault !== null && state(`fault ${entry.fault}`, "busy")),
    details(entry));
}

function line(entry, refresh) {
  const open = opened.has(entry.id);
  const toggle = () => {
    if (!opened.delete(entry.id)) opened.add(entry.id);
    if (opened.size > 0 && !stops) stops = held = true;
    else if (opened.size === 0 && held) again();
    refresh({ redraw: true });
    refresh();
  };
  return h("li", { key: entry.id },
    h("button", { type: "button", class: "entry", "aria-expanded": String(open), onclick: toggle },
      time(entry.at_ms),
      h("span", { class: "api" }, `${entry.api} v${entry.version}`),
      h("span", { class: "client" }, entry.client_id ?? "no client id"),
      COLUMNS.map(([name, label]) => h("span", { key: name, class: "named" }, entry[name].length > 0 && [h("span", { class: "label" }, `${label} `), few(entry[name])])),
      h("span", { class: "marks" },
        entry.error && state(entry.error, "bad"),
        entry.outcome !== "answered" && state(entry.outcome, "busy"),
        entry.fault !== null && state(`fault ${entry.fault}`, "busy")),
      h("span", { class: "number quiet" }, entry.duration_ms === null ? "" : latency(entry.duration_ms)),
      entry.hints.length > 0 && h("span", { class: "hint" }, entry.hints.join("; "))),
    open && h("div", { class: "opened" }, entry.whole ? details(entry) : h("p", { class: "quiet" }, "Loading.")));
}

const few = (names) => names.slice(0, 3).join(", ") + (names.length > 3 ? ` +${names.length - 3}` : "");

function details(entry) {
  return [
    entry.hints.length > 0 && h("ul", { class: "hints", "aria-label": "Hints" }, entry.hints.map((hint) => h("li", { key: hint }, hint))),
    facts(
      ...COLUMNS.map(([name, label, view]) => entry[name].length > 0 && [label, entry[name].map((each) => h("div", { key: each }, link(to(view, each), each)))]),
      ["From", [code(entry.client), " (", link(diagramOf("connections", entry.connection), `connection\u00a0${entry.connection}`), ")"]],
      ["Client id", entry.client_id ?? "none"],
      ["To", `broker ${entry.broker}, listener ${entry.listener}`],
      entry.software && ["Software", entry.software],
      ["Correlation id", entry.correlation_id],
      ["Bytes", `request ${number(entry.request_bytes)}, response ${number(entry.response_bytes)}`]),
    h("h2", { class: "part-of" }, "Request"), h("pre", { tabindex: "0" }, JSON.stringify(entry.request, null, 2)),
    h("h2", { class: "part-of" }, "Response"), h("pre", { tabindex: "0" }, entry.response === null ? "none" : JSON.stringify(entry.response, null, 2)),
  ];
}
