// Clients and their connections: software, used API versions, errors, throttling.

import { get, query } from "./ask.js";
import { diagramOf } from "./diagrams.js";
import { h } from "./dom.js";
import { duration, latency, number } from "./format.js";
import { chips, facts, journalOf, link, panel, sparkline, state, table, time, to, unknown } from "./parts.js";

export const title = ([name]) => name ?? "Clients";

const LATEST = 25;

export async function load([name]) {
  const { clients } = await get("v1/overview");
  if (name === undefined) return { clients };
  const found = await get("v1/journal" + query({ client_id: name, limit: LATEST, bodies: false }));
  return { clients, requests: found.entries.toReversed() };
}

export function render({ clients, requests }, [name]) {
  if (name === undefined) return all(clients);
  const found = clients.filter((each) => each.client_id === name);
  return [
    found.length === 0 ? h("p", { class: "empty" }, "No connection of this client is open, and none was used in the last two minutes.") : found.map(one),
    panel("Latest requests", table("Latest requests", [
      ["Time", (each) => time(each.at_ms)],
      ["Request", (each) => link(to("journal", String(each.id)), `${each.api} v${each.version}`)],
      ["Duration", (each) => each.duration_ms !== null && latency(each.duration_ms), "number"],
      ["Broker", (each) => each.broker, "number"],
      ["About", (each) => [...each.topics, ...each.groups, ...each.transactional_ids].slice(0, 4).join(", "), "rest"],
      ["Result", (each) => [each.error && state(each.error, "bad"), each.outcome !== "answered" && state(each.outcome, "busy"), each.fault !== null && state(`fault ${each.fault}`, "busy")], "wide"],
    ], requests, (each) => each.id, "The journal has no request of this client."),
    h("p", null, link(journalOf({ client_id: name }), "All requests of this client in the journal"))),
  ];
}

function all(clients) {
  return panel(null, table("Clients", [
    ["Client", (each) => link(to("clients", each.client_id), each.client_id || "no client id"), "wide"],
    ["Software", (each) => each.software || unknown("the client has not sent it"), "wide"],
    ["Host", (each) => each.host],
    ["Open", (each) => number(each.open), "number"],
    ["Requests", (each) => number(each.requests), "number"],
    ["Errors", (each) => (each.errors ? link(journalOf({ client_id: each.client_id, errors: true }), number(each.errors), "bad") : ""), "number"],
    ["Throttled", (each) => each.throttled_ms > 0 && state(duration(each.throttled_ms), "busy"), "rare"],
    ["", (each) => sparkline(each.series, `requests of ${each.client_id}`)],
  ], clients, (each) => `${each.client_id}/${each.software}/${each.host}`, "No client is connected."),
  h("p", { class: "quiet" }, "Open: connections that are open now. Requests and errors: in the last two minutes."));
}

function one(client) {
  return panel(client.software || "Unknown software",
    facts(
      ["Host", client.host],
      ["Open connections", number(client.open)],
      ["Requests in two minutes", [link(journalOf({ client_id: client.client_id }), number(client.requests)), " ", sparkline(client.series, "requests")]],
      ["Errors in two minutes", client.errors ? link(journalOf({ client_id: client.client_id, errors: true }), number(client.errors), "bad") : "none"],
      client.throttled_ms > 0 && ["Throttled for", duration(client.throttled_ms)],
      ["APIs and versions", chips(client.apis), "wide"],
      ["Connections", client.connections.map((each) => [link(diagramOf("connections", each), `connection\u00a0${each}`), " "]), "wide"]));
}
