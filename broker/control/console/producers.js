// Producer ids, idempotent and transactional: their state in partitions, and their timelines.

import { get, path, remove } from "./ask.js";
import { diagramOf } from "./diagrams.js";
import { h } from "./dom.js";
import { number } from "./format.js";
import { button, code, facts, link, listed, panel, reason, state, table, timeline, to } from "./parts.js";

export const title = ([name]) => (name === undefined ? "Producers" : `Producer ${name}`);

export async function load([name]) {
  if (name === undefined) return get("v1/producers");
  const [found, why] = await Promise.all([get(path`v1/producers/${name}`), get(path`v1/producers/${name}/why`)]);
  return { ...found, why };
}

export const render = (data, names, tools) => (data.producers ? all(data.producers, tools) : one(data, tools));

function all(producers, tools) {
  return panel(null, listed("Producers", [
    ["Producer id", (each) => link(to("producers", String(each.producer_id)), String(each.producer_id))],
    ["Epoch", (each) => number(each.producer_epoch), "number"],
    ["Client", (each) => each.client_id ?? "", "brief"],
    ["Transactional id", (each) => (each.transactional_id === null ? "" : link(to("transactions", each.transactional_id), each.transactional_id)), "wide"],
    ["Partitions", (each) => each.partitions.slice(0, 12).map((place) => h("span", { key: place.partition, class: "chip" }, place.partition)), "wide"],
  ], producers.toReversed(), (each) => each.producer_id, "No producer ids yet: only idempotent and transactional producers have one.",
  (each) => `${each.producer_id} ${each.client_id ?? ""} ${each.transactional_id ?? ""}`, tools));
}

function one(found, { act }) {
  return [
    reason(found.why),
    h("p", null, link(diagramOf("producers", found.producer_id), "Sequence diagram")),
    panel("About", facts(
      ["Epoch", number(found.producer_epoch)],
      found.client_id !== null && ["Client", code(found.client_id)],
      ["Transactional id", found.transactional_id === null ? "none" : link(to("transactions", found.transactional_id), found.transactional_id)])),
    panel("Partitions", table("State in partitions", [
      ["Partition", (each) => each.partition, "wide"],
      ["Epoch", (each) => each.producer_epoch, "number"],
      ["Last sequence", (each) => number(each.last_sequence), "number"],
      ["Transaction", (each) => (each.txn_start_offset < 0 ? "" : state(`open since offset ${each.txn_start_offset}`, "busy")), "wide rare"],
      ["", (each) => button("forget", () => act(() => remove(placed(each.partition, found.producer_id)), `${each.partition} has removed its state.`), each.partition), "actions"],
    ], found.partitions, (each) => each.partition, "No partition has state of this producer.")),
    panel("Timeline", timeline(found.timeline, { words, stood: (event) => [at(event.epoch_before), at(event.epoch_after)] })),
  ];
}

const at = (epoch) => (epoch < 0 ? "" : `epoch ${epoch}`);

function placed(name, producer) {
  const cut = name.lastIndexOf("-");
  return path`v1/topics/${name.slice(0, cut)}/partitions/${name.slice(cut + 1)}/producers/${producer}`;
}

function words(event) {
  const run = event.first_sequence === event.last_sequence ? `sequence ${event.first_sequence}` : `sequences ${event.first_sequence} to ${event.last_sequence}`;
  const what = [event.partition, event.first_sequence >= 0 && run, event.batches > 1 && `in ${event.batches} batches`].filter(Boolean).join(" ");
  return [what, event.detail].filter(Boolean).join(": ");
}
