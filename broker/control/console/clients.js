// Clients and their connections: software, versions of APIs that they used, errors, throttling.

import { get } from "./ask.js";
import { diagramOf } from "./diagrams.js";
import { h } from "./dom.js";
import { duration, number } from "./format.js";
import { chips, facts, journalOf, link, panel, sparkline, state, table, to, unknown } from "./parts.js";

export const title = ([name]) => name ?? "Clients";

export async function load() {
  return (await get("v1/overview")).clients;
}

export function render(clients, [name]) {
  if (name === undefined) return all(clients);
  const found = clients.filter((each) => each.client_id === name);
  return found.length === 0 ? h("p", { class: "empty" }, "No connection of this client is open, and none was used in the last two minutes.") : found.map(one);
}

function all(clients) {
  return panel(null, table("Clients", [
    ["Client", (each) => link(to("clients", each.client_id), each.client_id || "no client id"), "wide"],
    ["Software", (each) => each.software || unknown("the client does not say"), "wide"],
    ["Host", (each) => each.host],
    ["Open connections", (each) => number(each.open), "number"],
    ["Requests", (each) => number(each.requests), "number"],
    ["Errors", (each) => (each.errors ? link(journalOf({ client_id: each.client_id }), number(each.errors)) : ""), "number"],
    ["Throttled", (each) => each.throttled_ms > 0 && state(duration(each.throttled_ms), "busy")],
    ["", (each) => sparkline(each.series, `requests of ${each.client_id}`)],
  ], clients, (each) => `${each.client_id}/${each.software}/${each.host}`, "No client is connected."),
  h("p", { class: "quiet" }, "Requests and errors are those of the last two minutes."));
}

function one(client) {
  return panel(client.software || "Unknown software",
    facts(
      ["Host", client.host],
      ["Open connections", number(client.open)],
      ["Requests in the last two minutes", [link(journalOf({ client_id: client.client_id }), number(client.requests)), " ", sparkline(client.series, "requests")]],
      ["Errors", client.errors ? state(number(client.errors), "bad") : "none"],
      client.throttled_ms > 0 && ["Throttled for", duration(client.throttled_ms)],
      ["APIs and versions", chips(client.apis), "wide"],
      ["Connections", client.connections.map((each) => [link(diagramOf("connections", each), `connection ${each}`), " "]), "wide"]));
}
