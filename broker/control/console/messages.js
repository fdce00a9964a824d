// The messages of a topic: the newest, or from an offset, from a time, or containing a text; each opens as JSON.

import { get, path, query } from "./ask.js";
import { h } from "./dom.js";
import { indented, instant, number } from "./format.js";
import { button, choices, code, facts, field, link, state, time, to } from "./parts.js";

const SHOWN = 50;
const ALL_OF = 12; // topics with at most this many partitions are read as a whole
const WAYS = [["newest", "newest first"], ["offset", "from an offset"], ["time", "from a time"]];
const AT_ONCE = 1000;
const DUMPED = 4096; // bytes in a hex dump
const found = new Map(); // results of searches so far, and the offset they have reached
let said = begin(null);
let opened = new Set();
let asked = { key: "", records: [] };
let stopped = null; // what is shown while the list is paused
let held = false; // whether it is paused only because a message is open, which newer ones would push out

function begin(topic) {
  return { topic, partition: "", way: "newest", offset: "", time: "", text: "", isolation: "" };
}

/** Load again only if the partitions or the query have changed. */
export async function load(topic) {
  if (said.topic !== topic.name) {
    said = begin(topic.name);
    opened = new Set();
    stopped = null;
    held = false;
    if (topic.partitions.length > ALL_OF) said.partition = "0";
  }
  const hosted = topic.partitions.filter((each) => each.log_end_offset >= 0 && (said.partition === "" || String(each.partition) === said.partition));
  const ends = hosted.map((each) => [each.partition, each.log_start_offset, each.high_watermark, each.last_stable_offset]);
  const key = JSON.stringify([topic.id, said, ends]);
  if (stopped !== null) return stopped;
  if (asked.key === key) return asked;
  const parts = await Promise.all(hosted.map((each) => (said.way === "newest" && said.text ? search(topic, each) : ask(topic, each, range(each)))));
  const late = said.way === "newest" ? -1 : 1;
  const records = parts.flat().sort((a, b) => late * ((parts.length > 1 && a.timestamp_ms - b.timestamp_ms) || a.offset - b.offset));
  asked = { key, records: records.slice(0, SHOWN), more: records.length > SHOWN || parts.some((part) => part.length >= SHOWN) };
  return asked;
}

const ask = async (topic, { partition }, range) => (await get(path`v1/topics/${topic.name}/partitions/${partition}/records` + query({ ...range, decode: true }))).records;

/** The newest messages with a text. A log is read forwards: once from its start, then from where the last search ended. */
async function search(topic, partition) {
  const key = JSON.stringify([topic.id, partition.partition, said.text, said.isolation]);
  const bound = said.isolation ? partition.last_stable_offset : partition.high_watermark;
  const before = found.get(key);
  const goesOn = before !== undefined && before.bound <= bound;
  if (!goesOn) found.clear();
  let offset = goesOn ? before.bound : partition.log_start_offset;
  let records = goesOn ? before.records : [];
  for (let more = offset < bound; more;) {
    const next = await ask(topic, partition, { offset, limit: AT_ONCE, text: said.text, isolation: said.isolation });
    records = [...records, ...next].slice(-SHOWN);
    more = next.length === AT_ONCE;
    if (more) offset = next.at(-1).offset + 1;
  }
  found.set(key, { bound: Math.max(bound, (records.at(-1)?.offset ?? -1) + 1), records });
  return records;
}

/** The query for a partition. */
function range(partition) {
  const { text, isolation } = said;
  const limit = SHOWN;
  if (said.way === "offset" && said.offset !== "") return { offset: said.offset, limit, text, isolation };
  if (said.way === "time" && said.time !== "") return { timestamp_ms: new Date(said.time).getTime(), limit, text, isolation };
  return said.way === "newest" ? { offset: Math.max(partition.log_start_offset, partition.high_watermark - SHOWN, 0), limit, isolation } : { limit, text, isolation };
}

export function render(topic, { records, more }, { refresh }) {
  const change = (name) => (event) => { said[name] = event.target.value.trim(); stopped = null; held = false; refresh(); };
  const chosen = (name, values) => choices(name, values, said[name], change(name));
  const input = (name, label, props = {}) => field(label, h("input", { name, value: said[name], autocomplete: "off", spellcheck: "false", onchange: change(name), ...props }));
  const kept = (key, control, kind) => h("div", { key, class: kind }, control); // keeps a field when others appear or disappear
  const several = topic.partitions.length > 1;
  return [
    h("form", { key: topic.name, class: "filters", "aria-label": "Messages to show", onsubmit: (event) => event.preventDefault() },
      kept("partition", field("From partition", chosen("partition", [...(topic.partitions.length <= ALL_OF ? [["", "all"]] : []), ...topic.partitions.map((each) => String(each.partition))]))),
      kept("way", field("Order", chosen("way", WAYS))),
      said.way === "offset" && kept("offset", input("offset", "Offset", { type: "number", placeholder: "the first" })),
      said.way === "time" && kept("time", input("time", "Time", { type: "datetime-local", step: "0.001" })),
      kept("text", input("text", "Containing", { placeholder: "any", type: "search" }), "broad"),
      kept("isolation", field("Isolation", chosen("isolation", [["", "read_uncommitted"], "read_committed"])), "broad")),
    h("div", { class: "row" }, button(stopped ? "Resume" : "Pause", () => { stopped = stopped ? null : asked; held = false; refresh(); }),
      held && h("p", { class: "quiet" }, "Paused while a message is open.")),
    records.length === 0
      ? h("p", { class: "empty" }, said.text || said.way !== "newest" ? "No matching message." : "No messages yet.")
      : h("ul", { class: "journal messages", "aria-label": "Messages" }, records.map((record) => line(record, several, refresh))),
    more && h("p", { class: "quiet" }, said.way === "newest" ? `The newest ${SHOWN} are shown.` : `The first ${SHOWN} are shown; continue from the offset or time of the last one.`),
  ];
}

function line(record, several, refresh) {
  const id = `${record.partition}/${record.offset}`;
  const open = opened.has(id);
  const toggle = () => {
    if (!opened.delete(id)) opened.add(id);
    if (opened.size > 0 && stopped === null) [stopped, held] = [asked, true];
    else if (opened.size === 0 && held) [stopped, held] = [null, false];
    refresh({ redraw: true });
  };
  return h("li", { key: id },
    h("button", { type: "button", class: "entry", "aria-expanded": String(open), onclick: toggle },
      h("span", { class: "api" }, several ? `${record.partition} @ ${number(record.offset)}` : number(record.offset)),
      time(record.timestamp_ms),
      h("span", { class: "client" }, !record.control && brief(record.key, record.key_decoded, 80)),
      h("span", { class: "value" }, record.control ? state(record.control) : brief(record.value, record.value_decoded, 300))),
    open && h("div", { class: "opened" }, details(record)));
}

function details(record) {
  const sent = record.producer_id >= 0;
  return [
    facts(
      ["Partition and offset", `${record.partition} @ ${number(record.offset)}`],
      ["Time", instant(record.timestamp_ms)],
      sent && ["Producer", [link(to("producers", record.producer_id), record.producer_id), `, epoch ${record.producer_epoch}`, record.sequence >= 0 && `, sequence ${record.sequence}`]],
      record.transactional && ["Transactional", record.control ? `marker: ${record.control}` : "yes"],
      ...record.headers.map((header, at) => [`Header ${header.key}`, short(header.value, 1000), undefined, at])),
    record.key !== null && [h("h3", null, "Key"), part("key", record.key, record.key_decoded)],
    !record.control && [h("h3", null, "Value"), part("value", record.value, record.value_decoded)],
  ];
}

/** A key or value: decoded by its schema, as text, or as bytes; with its schema, if known. */
function part(side, value, decoded) {
  if (value === null) return h("p", { class: "quiet" }, "null");
  const bytes = () => h("pre", { class: "plain", tabindex: "0" }, dump(bytesOf(value)));
  const text = typeof value === "string";
  if (decoded) {
    const done = decoded.json !== null;
    return [
      schema(decoded),
      !done && h("p", { class: "state bad sentence" }, `Not decoded: ${decoded.problem}`),
      done ? h("pre", { tabindex: "0" }, indented(decoded.json) ?? decoded.json) : bytes(),
      done && h("details", null, h("summary", null, `Bytes of the ${side}`), bytes()),
    ];
  }
  if (!text) return [h("p", { class: "quiet" }, "Not text; its bytes:"), bytes()];
  return h("pre", { tabindex: "0" }, indented(value) ?? value);
}

function schema(decoded) {
  return facts(
    ["Schema", [decoded.type ?? "unknown", decoded.schema_id !== null && `, id ${decoded.schema_id}`, decoded.schema_guid !== null && `, GUID ${decoded.schema_guid}`]],
    decoded.subjects.length > 0 && ["Subject", decoded.subjects.map((each) => h("div", { key: each }, each))],
    decoded.magic !== null && ["Magic byte", decoded.magic],
    decoded.source !== null && ["From", decoded.source, "wide"]);
}

/** The bytes of a value that JSON has as text or base64. */
const bytesOf = (value) => (typeof value === "string" ? new TextEncoder().encode(value) : Uint8Array.from(atob(value.base64), (each) => each.charCodeAt(0)));

const digits = (bytes) => [...bytes].map((each) => each.toString(16).padStart(2, "0")).join(" ");

/** A hex dump, eight bytes per line, with ASCII. */
function dump(bytes) {
  const lines = [];
  for (let at = 0; at < Math.min(bytes.length, DUMPED); at += 8) {
    const some = bytes.subarray(at, at + 8);
    lines.push(`${at.toString(16).padStart(4, "0")}  ${digits(some).padEnd(23)}  ${[...some].map((each) => (each > 31 && each < 127 ? String.fromCharCode(each) : ".")).join("")}`);
  }
  return lines.join("\n") + (bytes.length > DUMPED ? `\n... ${number(bytes.length - DUMPED)} more bytes` : "");
}

const brief = (value, decoded, most) => (decoded?.problem ? [state("not decoded", "bad"), short(value, most)] : short(decoded?.json ?? value, most));

function short(value, most) {
  if (value === null) return h("span", { class: "quiet" }, "null");
  const text = typeof value === "string" ? value : digits(bytesOf(value).subarray(0, most / 3));
  return code(text.length > most ? `${text.slice(0, most)}…` : text);
}
