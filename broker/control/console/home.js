// The start page: rates, errors, refusals, clients, groups, transactions, faults, with links to their pages.

import { get, Refusal } from "./ask.js";
import { diagramOf } from "./diagrams.js";
import { h } from "./dom.js";
import { number } from "./format.js";
import { exhausted, inTime, journalOf, lagOf, link, panel, sparkline, state, table, time, to, unknown } from "./parts.js";

export const wide = true;

export const title = () => "Overview";

export async function load() {
  try {
    const found = await get("v1/overview");
    const waits = found.clients.length === 0 && found.requests === 0;
    return { ...found, brokers: waits ? (await get("v1/cluster")).brokers : null };
  } catch (error) {
    if (error instanceof Refusal && error.status === 409) return null; // a proxy
    throw error;
  }
}

export function render(found) {
  if (found === null) return h("p", null, "This is a proxy: ", link("#/cluster", "its brokers"), ", ", link("#/journal", "requests"), " and ", link("#/faults", "faults"), ".");
  const spent = found.faults.filter(exhausted).length;
  return [
    h("dl", { class: "figures", "aria-label": "Figures" },
      figure("Requests", link("#/journal", rate(found.series, found.step_ms)), sparkline(found.series, "requests in the last two minutes")),
      figure("Errors in two minutes", link(errorsOf(found), number(found.errors)), sparkline(found.error_series, "errors in the last two minutes")),
      figure("Open connections", link("#/clients", number(found.clients.reduce((sum, each) => sum + each.open, 0)))),
      figure("Open transactions", link("#/transactions", number(found.transactions.length))),
      figure("Faults", link("#/faults", number(found.faults.length - spent)), spent > 0 && h("div", { class: "quiet" }, `and ${number(spent)} exhausted`))),
    found.skipped > 0 && h("p", { class: "quiet" }, `The counts omit ${number(found.skipped)} requests: too many arrived to count all of them.`),
    found.brokers && panel("No client has connected yet",
      h("p", null, "Connect any Kafka client, in any language, with ", h("code", null, `bootstrap.servers=${found.brokers.map((each) => `${each.host}:${each.port}`).join(",")}`),
        ". Its requests are shown here, and the reason of each refusal. Without a client, ", link("#/topics", "create a topic and write messages"), ".")),
    h("div", { class: "board" }, panels(found)),
  ];
}

const KINDS = { transactions: "id", groups: "group", producers: "producer" };

function panels(found) {
  return [
    part("Refusals of the last minutes", table("Refusals", [
      ["Time", (each) => time(each.at_ms)],
      ["Subject", (each) => [h("span", { class: "quiet" }, `${KINDS[each.kind] ?? each.kind} `), link(diagramOf(each.kind, each.name), each.name)], "brief"],
      ["Error", (each) => state(each.error, "bad"), "wide"],
      ["Why", (each) => each.why, "wide"],
    ], found.refusals, (each) => `${each.kind}/${each.name}`, "Nothing was refused."), "double"),
    part("Faults, holds and other disturbances", oddities(found)),
    part("Open transactions", table("Open transactions", [
      ["Transactional id", (each) => link(to("transactions", each.transactional_id), each.transactional_id), "wide"],
      ["State", (each) => [state(each.state), each.held_at && state(each.stopped ? `held at ${each.held_at}` : `will be held at ${each.held_at}`, "busy")]],
      ["Times out", (each) => each.deadline_ms !== null && inTime(each.deadline_ms, found.now_ms)],
    ], found.transactions, (each) => each.transactional_id, "No open transactions.")),
    part("Errors in the last two minutes", table("Errors", [
      ["API", (each) => link(journalOf({ api: each.api }), each.api)],
      ["Error", (each) => link(errorsOf(found, { api: each.api, [each.outcome ? "outcome" : "error"]: each.error }), each.error), "wide"],
      ["Count", (each) => link(errorsOf(found, { api: each.api, [each.outcome ? "outcome" : "error"]: each.error }), number(each.count)), "number"],
      ["Latest", (each) => link(to("journal", String(each.entry)), each.client_id || `request ${each.entry}`)],
    ], found.counted_errors, (each) => `${each.api}/${each.error}`, "No errors.")),
    part("Groups", table("Groups", [
      ["Group", (each) => link(to("groups", each.group_id), each.group_id), "wide"],
      ["State", (each) => state(each.state)],
      ["Members", (each) => number(each.members), "number"],
      ["Lag", (each) => lagOf(each.lag), "number"],
    ], found.groups, (each) => each.group_id, "No groups yet.")),
    part("Requests by API", counted("Requests by API", "API", found.apis, (name) => journalOf({ api: name }), (name) => errorsOf(found, { api: name }))),
    part("Requests by topic", counted("Requests by topic", "Topic", found.topics, (name) => to("topics", name), null)),
    part("Clients", table("Clients", [
      ["Client", (each) => link(to("clients", each.client_id), each.client_id || "no client id"), "wide"],
      ["Software", (each) => each.software || unknown("the client has not sent it"), "wide"],
      ["Host", (each) => each.host],
      ["Requests", (each) => link(journalOf({ client_id: each.client_id }), number(each.requests)), "number"],
      ["Errors", (each) => each.errors > 0 && link(errorsOf(found, { client_id: each.client_id }), number(each.errors), "bad"), "number"],
      ["", (each) => sparkline(each.series, `requests of ${each.client_id}`)],
    ], found.clients, (each) => `${each.client_id}/${each.software}/${each.host}`, "No client yet."), "double"),
  ];
}

/** The address of the counted failed requests in the journal. */
const errorsOf = (found, filters = {}) => journalOf({ ...filters, errors: true, since: found.first_entry });

const counted = (label, name, rows, where, errors) => table(label, [
  [name, (each) => link(where(each.name), each.name), "wide"],
  ["Requests", (each) => number(each.requests), "number"],
  errors && ["Errors", (each) => each.errors > 0 && link(errors(each.name), number(each.errors), "bad"), "number"],
  ["", (each) => sparkline(each.series, `requests of ${each.name}`)],
].filter(Boolean), rows, (each) => each.name, "No requests in the last two minutes.");

function oddities(found) {
  const rows = [...found.faults.map((fault) => ({ key: fault.id, fault })), ...found.oddities.map((text) => ({ key: text, text }))];
  return table("Faults and disturbances", [
    ["What", ({ fault, text }) => (fault ? [link("#/faults", `fault ${fault.id}`), ` ${fault.meets}: ${fault.does}`] : link("#/cluster", text)), "wide"],
    ["Hits", ({ fault }) => fault && link(journalOf({ fault: fault.id }), number(fault.hits)), "number"],
    ["", ({ fault }) => fault && exhausted(fault) && state("exhausted")],
  ], rows, (each) => each.key, "No faults, no holds, no brokers down.");
}

const figure = (name, value, more) => h("div", { key: name }, h("dt", null, name), h("dd", null, value, more));

/** A panel of fixed height, so that new rows do not move other panels. */
const part = (name, content, kind = "") => h("div", { key: name, class: `part ${kind}` }, panel(name, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${name}, list` }, content)));

/** Requests per second, over the last five complete steps. */
function rate(series, step_ms) {
  const last = series.slice(-6, -1);
  const each = last.reduce((sum, count) => sum + count, 0) / (last.length * step_ms / 1000);
  return `${each < 10 ? each.toFixed(1) : number(Math.round(each))} a second`;
}
