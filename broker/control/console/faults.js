// What goes wrong on purpose: what there is, and a form for another.

import { get, path, post, remove } from "./ask.js";
import { h } from "./dom.js";
import { parsed } from "./format.js";
import { button, choices, code, field, json, panel, state, table } from "./parts.js";

// What the form can say; the last one leaves it to whoever writes it. A way takes a value, if it has a label for one.
const WAYS = {
  error: ["answer an error instead of doing it", "Error", (value) => ({ error: value })],
  then_error: ["do it, then answer an error", "Error", (value) => ({ apply_then: { error: value } })],
  then_reset: ["do it, then reset the connection", null, () => ({ apply_then: { disconnect: "reset" } })],
  then_drop: ["do it, then never answer", null, () => ({ apply_then: { drop: true } })],
  delay: ["delay it", "For how long", (value) => ({ delay_ms: parsed(value) })],
  drop: ["neither do it nor answer", null, () => ({ drop: true })],
  reset: ["reset the connection instead", null, () => ({ disconnect: "reset" })],
  throttle: ["answer with a throttle time", "Throttle time", (value) => ({ throttle_ms: parsed(value) })],
  json: ["as I write it", "What to do, as JSON", (value) => JSON.parse(value)],
};
const MATCH = [["client_id", "Client id"], ["topic", "Topic"], ["group", "Group"], ["transactional_id", "Transactional id"]];
const NUMBERS = [["partition", "Partition"], ["broker", "Broker"]];
const EXAMPLES = { error: "NOT_COORDINATOR", then_error: "REQUEST_TIMED_OUT", delay: "2s", throttle: "5s", json: '{"bytes": {"truncate": 10}}' };
const said = { api: "", way: "error", value: "", times: "1", skip: "0", ...Object.fromEntries([...MATCH, ...NUMBERS].map(([name]) => [name, ""])) };
let apis = [];

export const title = () => "Faults";

export async function load() {
  if (apis.length === 0) apis = Object.keys((await get("v1/versions")).apis).sort();
  return get("v1/faults");
}

export function render({ faults }, _, { act, refresh }) {
  return [
    panel(null, table("Faults", [
      ["Fault", (fault) => code(fault.id)],
      ["Meets", (fault) => [h("code", { class: "long" }, json(fault.match)), times(fault)], "wide"],
      ["Does", (fault) => h("code", { class: "long" }, json(fault.do)), "wide"],
      ["Hits", (fault) => (fault.hits ? fault.hits : state("unmet")), "number"],
      ["", (fault) => button("remove", () => act(() => remove(path`v1/faults/${fault.id}`), "Taken back."), `fault ${fault.id}`), "actions"],
    ], faults, (fault) => fault.id, "Nothing goes wrong on purpose."),
    faults.length > 1 && button("Remove all", () => act(() => remove("v1/faults"), "All taken back."))),
    panel("Add a fault", form(act, refresh)),
  ];
}

function times(fault) {
  const words = [
    fault.skip > 0 && `after ${fault.skip}`,
    fault.times === null ? "every time" : fault.times > 1 && `${fault.times} times`,
    fault.probability < 1 && `with probability ${fault.probability}`,
  ].filter(Boolean);
  return words.length > 0 && h("div", { class: "quiet" }, words.join(", "));
}

/** The fault as the form says it, for POST /v1/faults. Throws where the JSON in it is none. */
function body() {
  const match = {};
  if (said.api) match.api = said.api;
  for (const [name] of MATCH) if (said[name]) match[name] = said[name];
  for (const [name] of NUMBERS) if (said[name] !== "") match[name] = Number(said[name]);
  const found = { match, do: WAYS[said.way][2](said.value) };
  if (said.times !== "1") found.times = said.times === "" ? null : Number(said.times);
  if (Number(said.skip) > 0) found.skip = Number(said.skip);
  return found;
}

function preview() {
  try {
    return JSON.stringify(body(), null, 2);
  } catch (error) {
    return `No JSON: ${error.message}`;
  }
}

function form(act, refresh) {
  const input = (name, label, more = {}) => field(label, h("input", {
    name, value: said[name], autocomplete: "off", spellcheck: "false", ...more,
    oninput: (event) => { said[name] = event.target.value.trim(); refresh({ redraw: true }); },
  }));
  const chosen = (name, values) => choices(name, values, said[name], (event) => {
    said[name] = event.target.value;
    if (name === "way") said.value = "";
    refresh({ redraw: true });
  });
  const [, asks] = WAYS[said.way];
  return h("form", { class: "fault", onsubmit: (event) => { event.preventDefault(); act(() => post("v1/faults", body()), "The fault is waiting for its request."); } },
    h("div", { class: "fields" },
      field("When a request is", chosen("api", [["", "of any API"], ...apis])),
      MATCH.map(([name, label]) => input(name, label, { placeholder: "any" })),
      NUMBERS.map(([name, label]) => input(name, label, { type: "number", min: "0", placeholder: "any" }))),
    h("div", { class: "fields" },
      h("div", { class: "broad" }, field("Then", chosen("way", Object.entries(WAYS).map(([name, [label]]) => [name, label])))),
      asks && h("div", { key: said.way, class: "broad" }, input("value", asks, { placeholder: EXAMPLES[said.way], required: true })),
      input("times", "How often (empty: always)", { type: "number", min: "1" }),
      input("skip", "Let pass first", { type: "number", min: "0" })),
    h("details", null, h("summary", null, "As it is sent"), h("pre", { tabindex: "0" }, `POST /v1/faults\n${preview()}`)),
    h("div", { class: "row" }, h("button", { type: "submit", class: "main" }, "Add the fault")));
}
