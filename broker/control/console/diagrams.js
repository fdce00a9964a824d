// The sequence diagram of a transactional id, producer, group or connection.

import { download, get, path, query } from "./ask.js";
import { h } from "./dom.js";
import { clockTime, number, plural } from "./format.js";
import { button, choices, field, journalOf, link, panel, save, state, table, time, to } from "./parts.js";

const SUBJECTS = { transactions: "transactional_id", producers: "producer_id", groups: "group", connections: "connection" };
const LABELS = { transactions: "transactional id", producers: "producer", groups: "group", connections: "connection" };
const ZOOMS = [0.35, 0.5, 0.65, 0.8, 1, 1.25, 1.5, 2];
const FIRST = { limit: "60", errors: false, polls: false };
let chosen = { ...FIRST };
let zoom = ZOOMS.indexOf(1);
let shown = { asked: "", diagram: null, drawing: null };
let again = false; // whether to load again although the query is the same

export const wide = true; // uses the full width

export const title = ([kind, name]) => (name === undefined ? "Diagrams" : `Diagram of ${LABELS[kind] ?? kind} ${name}`);

/** The address of a diagram. */
export const diagramOf = (kind, name) => to("diagrams", kind, String(name));

/** Parts of a subject that can be selected: one transaction of a transactional id, one generation of a group. */
const PARTS = {
  transactions: { name: "transaction", label: "Transaction", load: async (id) => (await get(path`v1/transactions/${id}/history`)).transactions.filter((each) => each.id !== null).map(option) },
  groups: { name: "generation", label: "Generation", load: generations },
};

/** The part in the address. */
const part = (name) => new URLSearchParams(location.hash.split("?")[1] ?? "").get(name) ?? "";

const question = ([kind, name]) => query({ [SUBJECTS[kind]]: name, transaction: part("transaction"), generation: part("generation"), limit: chosen.limit, errors: chosen.errors || "", polls: chosen.polls || "" });

export async function load(names) {
  if (names.length < 2 || !(names[0] in SUBJECTS)) return subjects();
  const asked = question(names);
  if (again || shown.asked !== asked) {
    const [diagram, past] = await Promise.all([
      get("v1/diagrams" + asked),
      PARTS[names[0]]?.load(names[1]) ?? []]);
    shown = { asked, diagram, drawing: draw(diagram), past };
    again = false;
  }
  return shown;
}

async function subjects() {
  const [transactions, groups, producers, journal] = await Promise.all([get("v1/transactions"), get("v1/groups"), get("v1/producers"), get("v1/journal?limit=300")]);
  const connections = new Map(journal.entries.map((entry) => [entry.connection, entry]));
  return { subjects: [
    ...transactions.transactions.map((each) => ["transactions", each.transactional_id, each.state]),
    ...groups.groups.map((each) => ["groups", each.group_id, each.state]),
    ...producers.producers.filter((each) => each.transactional_id === null).slice(-50).map((each) => ["producers", String(each.producer_id), each.client_id ?? ""]),
    ...[...connections.values()].reverse().map((each) => ["connections", String(each.connection), `${each.client_id ?? ""} to broker ${each.broker}`]),
  ] };
}

export const render = (data, names, tools) => (data.subjects ? all(data.subjects) : one(data, names, tools));

function all(subjects) {
  return panel(null,
    h("p", null, "Lanes are clients, coordinators, partition leaders and logs. Steps are requests, responses, markers, state changes, faults and holds."),
    table("Diagrams", [
      ["Of", ([kind]) => LABELS[kind], "wide"],
      ["Diagram", ([kind, name]) => link(diagramOf(kind, name), name), "wide"],
      ["About", ([, , about]) => about, "wide"],
    ], subjects.slice(0, 200), ([kind, name]) => `${kind}/${name}`, "Nothing has happened yet."));
}

function one({ diagram, drawing, past }, names, { act, refresh }) {
  const change = (name, value) => { chosen[name] = value; refresh(); };
  const refused = diagram.steps.filter((step) => step.reason);
  return [
    panel("Diagram",
      h("form", { class: "row tight", "aria-label": "Diagram options", onsubmit: (event) => event.preventDefault() },
        past.length > 0 && whole(names, past),
        field("Newest requests", choices("limit", ["20", "60", "200", "1000"], chosen.limit, (event) => change("limit", event.target.value))),
        check("Only errors, faults and missing responses", chosen.errors, (on) => change("errors", on)),
        check("Include successful Fetch, heartbeats, Metadata", chosen.polls, (on) => change("polls", on))),
      h("div", { class: "row tight" },
        button("Smaller", () => { zoom = Math.max(0, zoom - 1); refresh({ redraw: true }); }),
        h("span", { class: "quiet", role: "status" }, `${Math.round(ZOOMS[zoom] * 100)} %`),
        button("Larger", () => { zoom = Math.min(ZOOMS.length - 1, zoom + 1); refresh({ redraw: true }); }),
        button("Fit", () => { zoom = fitting(diagram.width); refresh({ redraw: true }); }, "the width"),
        button("Refresh", () => { again = true; refresh(); }),
        button("Save as SVG", () => act(async () => save(await download("v1/diagrams.svg" + question(names)), "diagram.svg"))),
        button("Save as Mermaid", () => act(() => save(new Blob([diagram.mermaid], { type: "text/plain" }), "diagram.mmd"))),
        names[0] === "connections"
          ? link(journalOf({ connection: names[1] }), "Requests in the journal")
          : link(to(...names), `About this ${LABELS[names[0]]}`)),
      h("p", { class: "quiet" }, `${plural(diagram.steps.length, "step")}`, diagram.left_out > 0 && `, ${plural(diagram.left_out, "older request")} omitted`),
      h("div", { class: "drawing", tabindex: "0", role: "region", "aria-label": diagram.title },
        picture(drawing.head, 0, diagram.head, diagram.width, "head"), picture(drawing.body, diagram.head, diagram.height - diagram.head, diagram.width))),
    refused.length > 0 && panel("Refusals and their causes", table("Refusals", [
      ["Time", (step) => time(step.at_ms)],
      ["Client", (step) => diagram.lanes[step.target].title, "brief"],
      ["Error", (step) => [link(to("journal", String(step.entry)), step.error), step.count > 1 && ` ${number(step.count)} times`, step.fault && [" ", state(`fault ${step.fault}`, "busy")]], "brief wide"],
      ["Why", (step) => step.reason, "wide"],
    ], refused.toReversed(), (step) => step.entry, "")),
    panel("As text", h("details", null, h("summary", null, "The diagram in characters"), h("pre", { class: "plain", tabindex: "0" }, diagram.text)),
      h("details", null, h("summary", null, "The diagram for Mermaid"), h("pre", { tabindex: "0" }, diagram.mermaid))),
  ];
}

/** The list of selectable parts, newest first. */
function whole(names, past) {
  const { name, label } = PARTS[names[0]];
  return h("div", { key: `${name} ${part(name)}` }, field(label, choices(name, [["", "all (newest requests)"], ...past.toReversed()], part(name),
    (event) => { location.hash = diagramOf(...names) + query({ [name]: event.target.value }); })));
}

/** The generations of a group that its timeline still has one by one; none if the group no longer exists. */
async function generations(id) {
  const { timeline } = await get(path`v1/groups/${id}`).catch(() => ({ timeline: [] }));
  const made = new Map();
  for (const each of timeline) {
    if (each.error === null && each.count === 1 && each.epoch_before !== each.epoch_after && each.epoch_after > 0) made.set(each.epoch_after, each);
  }
  return [...made.values()].map((each) => [String(each.epoch_after), `${each.epoch_after}, since ${clockTime(each.at_ms)}`]);
}

/** An option for a transaction: its begin, outcome, refusals and partitions. */
const option = (each) => [String(each.id), [clockTime(each.began_ms), each.outcome, each.refusals > 0 && plural(each.refusals, "refusal"), few(each.partitions)].filter(Boolean).join(", ")];

const few = (names) => names.slice(0, 3).join(" ") + (names.length > 3 ? ` +${names.length - 3}` : "");

/** The largest zoom at which all lanes are visible. */
function fitting(width) {
  const has = document.querySelector(".drawing").clientWidth;
  return Math.max(0, ZOOMS.findLastIndex((size) => width * size <= has));
}

const check = (text, on, change) => h("label", { class: "check" },
  h("input", { type: "checkbox", checked: on, onchange: (event) => change(event.target.checked) }), text);

/** A part of the drawing, from `top`; the lanes' titles stay visible while the rest scrolls. */
function picture(shapes, top, height, width, kind = "") {
  const size = ZOOMS[zoom];
  return h("svg", { key: kind || "body", class: `diagram ${kind}`, viewBox: `0 ${top} ${width} ${height}`, width: Math.round(width * size), height: Math.round(height * size) }, shapes);
}

/** The shapes as elements, grouped by step; a request links to its journal entry. */
function draw(diagram) {
  const head = diagram.shapes.filter((each) => each.step < 0 && each.y < diagram.head && each.style !== "life").map(shape);
  const lives = diagram.shapes.filter((each) => each.style === "life").map(shape);
  const steps = diagram.steps.map(() => []);
  for (const each of diagram.shapes) if (each.step >= 0) steps[each.step].push(shape(each));
  return { head, body: [...lives, ...steps.map((shapes, at) => grouped(shapes, diagram.steps[at], at))] };
}

function grouped(shapes, step, at) {
  if (step.kind !== "request") return h("g", { key: at }, shapes);
  return h("a", { key: at, href: to("journal", String(step.entry)), "aria-label": `${step.text}, in the journal` }, shapes);
}

function shape({ kind, style, x, y, x2, y2, text }, key) {
  if (kind === "text") return h("text", { key, class: style, x, y }, text);
  if (kind === "line") return h("line", { key, class: style, x1: x, y1: y, x2, y2 });
  return h("rect", { key, class: style, x, y, width: x2 - x, height: y2 - y, rx: 4 });
}
