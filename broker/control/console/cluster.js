// The cluster as a whole, and its brokers.

import { get, path, post, put, remove } from "./ask.js";
import { h } from "./dom.js";
import { button, choices, code, facts, field, panel, state, table, time } from "./parts.js";

export const title = () => "Cluster";

export async function load() {
  const [cluster, versions, kept] = await Promise.all([get("v1/cluster"), get("v1/versions"), get("v1/snapshots")]);
  return { ...cluster, releases: versions.releases, snapshots: kept.snapshots };
}

const WAYS = { running: ["kill", "stop", "pause"], paused: ["resume", "kill"], down: ["start"] };

let release; // the selected one

export function render(cluster, _, { act, confirm }) {
  const features = Object.entries(cluster.features).filter(([, level]) => level > 0);
  return [
    panel("Brokers",
      table("Brokers", columns(cluster, act), cluster.brokers, (broker) => broker.id, "No broker."),
      button("Add a broker", () => act(() => post("v1/brokers"), "A broker was added."))),
    panel("About",
      facts(
        ["Bootstrap servers", h("code", null, cluster.brokers.map((broker, at) => [at > 0 && [",", h("wbr")], `${broker.host}:${broker.port}`])), "wide"],
        ["Behaves like", `Apache Kafka ${cluster.as_version}`],
        ["Cluster id", code(cluster.cluster_id)],
        ["Seed", code(cluster.seed)],
        ["Features", features.map(([name, level]) => h("span", { key: name, class: "chip" }, `${name} ${level}`)), "wide"],
      )),
    panel("Behave like another release",
      h("p", null, "New connections get the API versions, the features and the behaviour of that Kafka release."),
      h("div", { class: "row" },
        field("Release", choices("release", cluster.releases, cluster.as_version, (event) => { release = event.target.value; })),
        button("Emulate", () => act(() => put("v1/versions", { as_version: release ?? cluster.as_version }),
          `New connections get Apache Kafka ${release ?? cluster.as_version}.`)))),
    panel("Snapshots",
      table("Snapshots", [
        ["Snapshot", (each) => code(each.id)],
        ["Taken at", (each) => time(each.at_ms), "wide"],
        ["", (each) => button("restore", () => act(() => post(path`v1/snapshots/${each.id}/restore`), `Snapshot ${each.id} is restored.`), `snapshot ${each.id}`), "actions"],
      ], cluster.snapshots, (each) => each.id, "No snapshots yet. A snapshot keeps topics, records, groups, transactions and the time, and can be restored any number of times."),
      button("Take a snapshot", () => act(() => post("v1/snapshots"), "The snapshot is taken."))),
    panel("Reset",
      h("p", null, "Returns topics, groups, transactions, faults, the journal and the clock to their state after the start, within milliseconds. Clients stay connected."),
      button("Reset the cluster", () => confirm("Reset the cluster?", "All data in it will be deleted.", "Reset",
        () => act(() => post("v1/reset"), "The cluster was reset.")))),
  ];
}

function columns(cluster, act) {
  return [
    ["Broker", (broker) => [`${broker.id} `, broker.id === cluster.controller && h("span", { class: "chip" }, "controller")]],
    ["Address", (broker) => code(`${broker.host}:${broker.port}`), "wide"],
    ["State", (broker) => [state(broker.state), broker.fenced && state("fenced")]],
    ["Epoch", (broker) => broker.epoch, "number"],
    ["", (broker) => WAYS[broker.state].map((way) => button(way, () =>
      act(() => post(path`v1/brokers/${broker.id}/` + way), `Broker ${broker.id}: ${way}.`), `broker ${broker.id}`)).concat(
      button("remove", () => act(() => remove(path`v1/brokers/${broker.id}`), `Broker ${broker.id} was removed.`), `broker ${broker.id}`,
        broker.id === cluster.controller ? "This broker holds the cluster's metadata and cannot be removed." : undefined)), "actions"],
  ];
}
