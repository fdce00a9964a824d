// Faults: the list, presets of common faults, and a form with the options that the API supports.

import { get, getExactly, path, post, remove } from "./ask.js";
import { codeOf, PLAIN } from "./code.js";
import { h } from "./dom.js";
import { conditionsOf, CONDITIONS, firstError, isError, PRESETS, WAYS, waysOf } from "./fault_library.js";
import { exactly, exactValue } from "./format.js";
import { button, choices, code, exhausted, field, journalOf, json, link, panel, state, table } from "./parts.js";

const EMPTY = {
  api: "", way: "error", value: firstError(), client_id: "", broker: "", topic: "", partition: "", group: "", transactional_id: "",
  field: "", field_value: "", first: "", last: "", altered: "", times: "1", skip: "0", probability: "1",
};
let language = ""; // of the preview
let said = { ...EMPTY };
let filled = 0; // how often a preset has filled the form
let known = { apis: [], error_codes: [] };

export const title = () => "Faults";

export async function load() {
  if (known.apis.length === 0) known = await get("v1/apis");
  return getExactly("v1/faults");
}

export function render({ faults }, _, tools) {
  const { act, refresh } = tools;
  const again = ({ match, do: does, skip, times, probability }) =>
    act(() => post("v1/faults", { match, do: does, skip, times, probability }), "The fault is added again.");
  return [
    panel(null, table("Faults", [
      ["Fault", (fault) => code(fault.id)],
      ["Matches", (fault) => h("span", { title: json(fault.match) }, fault.meets), "wide"],
      ["Effect", (fault) => h("span", { title: json(fault.do) }, fault.does), "wide"],
      ["Hits", (fault) => (fault.hits ? link(journalOf({ fault: fault.id }), fault.hits) : state("unmet")), "number"],
      ["Remaining", (fault) => (exhausted(fault) ? state("exhausted") : fault.remaining ?? "unlimited"), "number"],
      ["", (fault) => [
        exhausted(fault) && button("again", () => again(fault), `fault ${fault.id}`),
        button("remove", () => act(() => remove(path`v1/faults/${fault.id}`), "Removed."), `fault ${fault.id}`),
      ], "actions"],
    ], faults, (fault) => fault.id, "No faults."),
    faults.length > 1 && button("Remove all", () => act(() => remove("v1/faults"), "All faults removed."))),
    panel("Common faults", h("ul", { class: "library" }, PRESETS.map(([name, sees, fields]) => h("li", { key: name },
      button(name, () => fill({ ...EMPTY, ...fields }, refresh)), h("p", { class: "quiet" }, sees))))),
    panel("Add a fault", form(tools)),
  ];
}

function fill(fields, refresh) {
  said = fields;
  filled += 1;
  refresh({ redraw: true });
  document.querySelector("form.fault select").focus();
}

const apiOf = (name) => known.apis.find((each) => each.name === name);

/** The fault in the form, for POST /v1/faults. Throws for invalid JSON. */
function body() {
  const match = {};
  const fit = conditionsOf(apiOf(said.api), said.way);
  if (said.api) match.api = said.api;
  if (said.api && said.first !== "") match.versions = [Number(said.first), Number(said.last === "" ? said.first : said.last)];
  for (const name of ["client_id", "topic", "group", "transactional_id"]) if (said[name] && (name === "client_id" || fit.includes(name))) match[name] = said[name];
  for (const name of ["broker", "partition"]) if (said[name] !== "" && (name === "broker" || fit.includes(name))) match[name] = Number(said[name]);
  if (said.field) match.request = { [said.field]: exactValue(said.field_value) };
  const found = { match, do: WAYS[said.way].does(said.value, said.altered) };
  if (said.times !== "1") found.times = said.times === "" ? null : Number(said.times);
  if (Number(said.skip) > 0) found.skip = Number(said.skip);
  if (Number(said.probability) !== 1) found.probability = Number(said.probability);
  return found;
}

function preview() {
  try {
    if (language) return codeOf(language, [[`POST /v1/faults ${exactly(body())}`]]);
    return `POST /v1/faults\n${exactly(body(), 2)}`;
  } catch (error) {
    return `Not JSON: ${error.message}`;
  }
}

/** Select another API or effect, and clear the fields that it does not support. */
function turn(name, value) {
  said[name] = value;
  const api = apiOf(said.api);
  const ways = waysOf(api).map(([way]) => way);
  if (!ways.includes(said.way)) said.way = "error";
  if (name === "way") said.value = "";
  if (isError(said.way) && !(api ?? { errors: known.error_codes }).errors.includes(said.value)) said.value = firstError(api);
  if (name === "api") Object.assign(said, { field: "", field_value: "", first: "", last: "", altered: api?.response_fields[0] ?? "" });
}

function form({ act, refresh }) {
  const redraw = () => refresh({ redraw: true });
  const input = (name, label, more = {}) => field(label, h("input", {
    name, value: said[name], autocomplete: "off", spellcheck: "false", ...more,
    oninput: (event) => { said[name] = event.target.value.trim(); redraw(); },
  }));
  const chosen = (name, values) => choices(name, values, said[name], (event) => { turn(name, event.target.value); redraw(); });
  const pick = (name, values) => choices(name, values, said[name], (event) => { said[name] = event.target.value; redraw(); });
  const api = apiOf(said.api);
  const way = WAYS[said.way];
  const fit = conditionsOf(api, said.way);
  const names = known.apis.filter((each) => each.versions !== null).map((each) => each.name).sort();
  return h("form", { key: filled, class: "fault", onsubmit: (event) => { event.preventDefault(); act(() => post("v1/faults", body()), "The fault is added."); } },
    h("div", { class: "fields" },
      field("Requests of", chosen("api", [["", "any API"], ...names])),
      h("div", { class: "broad" }, field("Effect", h("select", { key: said.api, name: "way", value: said.way, onchange: (event) => { turn("way", event.target.value); redraw(); } },
        waysOf(api).map(([name, { text }]) => h("option", { value: name }, text))))),
      said.way === "alter" && h("div", { key: `altered ${said.api}`, class: "broad" }, field("Field of the response", pick("altered", api.response_fields))),
      isError(said.way) && h("div", { key: `error ${said.api} ${said.way}`, class: "broad" }, field(way.asks, errors(api, redraw))),
      way.asks && !isError(said.way) && h("div", { key: said.way, class: "broad" }, input("value", way.asks, { placeholder: way.such, required: true }))),
    h("div", { class: "fields" },
      input("client_id", "Client id", { placeholder: "any" }),
      fit.map((name) => h("div", { key: name }, input(name, CONDITIONS[name], name === "partition" ? { type: "number", min: "0", placeholder: "any" } : { placeholder: "any" }))),
      input("broker", "Broker", { type: "number", min: "0", placeholder: "any" }),
      input("times", "How often (empty: unlimited)", { type: "number", min: "1" }),
      input("skip", "Skip first", { type: "number", min: "0" })),
    api && h("details", { key: `more ${said.api}`, open: said.field !== "" }, h("summary", null, "More conditions"),
      h("div", { class: "fields" },
        input("first", `First version (from ${api.versions?.min ?? 0})`, { type: "number", min: "0", placeholder: "any" }),
        input("last", `Last version (to ${api.versions?.max ?? 0})`, { type: "number", min: "0", placeholder: "the first" }),
        field("Field of the request", pick("field", [["", "any"], ...api.request_fields])),
        said.field && input("field_value", "Its value, as JSON", { placeholder: "true", required: true }),
        input("probability", "Probability", { type: "number", min: "0.01", max: "1", step: "0.01" }))),
    h("details", { key: "sent" }, h("summary", null, "As a request or as code"),
      field("Language", choices("language", [["", "HTTP"], ...PLAIN], language, (event) => { language = event.target.value; redraw(); })),
      h("pre", { tabindex: "0" }, preview())),
    h("div", { class: "row" }, h("button", { type: "submit", class: "main" }, "Add the fault")));
}

/** The error codes; first those that Kafka returns for the API. */
function errors(api, redraw) {
  const option = (name) => h("option", { key: name, value: name }, name);
  const others = known.error_codes.filter((name) => !api?.errors.includes(name)).sort();
  return h("select", { name: "value", value: said.value, onchange: (event) => { said.value = event.target.value; redraw(); } },
    api ? [h("optgroup", { label: `Kafka returns for ${api.name}` }, api.errors.map(option)), h("optgroup", { label: "Others" }, others.map(option))] : others.map(option));
}
