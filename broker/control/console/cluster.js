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

let release; // the one that is chosen

export function render(cluster, _, { act, confirm }) {
  const features = Object.entries(cluster.features).filter(([, level]) => level > 0);
  return [
    panel("Brokers",
      table("Brokers", columns(cluster, act), cluster.brokers, (broker) => broker.id, "No broker."),
      button("Add a broker", () => act(() => post("v1/brokers"), "One more broker."))),
    panel("About",
      facts(
        ["Bootstrap servers", h("code", null, cluster.brokers.map((broker, at) => [at > 0 && [",", h("wbr")], `${broker.host}:${broker.port}`])), "wide"],
        ["Behaves like", `Apache Kafka ${cluster.as_version}`],
        ["Cluster id", code(cluster.cluster_id)],
        ["Seed", code(cluster.seed)],
        ["Features", features.map(([name, level]) => h("span", { key: name, class: "chip" }, `${name} ${level}`)), "wide"],
      )),
    panel("Behave like another release",
      h("p", null, "Versions of the APIs, features and behaviours are those of that Kafka release, for connections that are made from now on."),
      h("div", { class: "row" },
        field("Release", choices("release", cluster.releases, cluster.as_version, (event) => { release = event.target.value; })),
        button("Behave like it", () => act(() => put("v1/versions", { as_version: release ?? cluster.as_version }),
          `New connections meet Apache Kafka ${release ?? cluster.as_version}.`)))),
    panel("Snapshots",
      table("Snapshots", [
        ["Snapshot", (each) => code(each.id)],
        ["Taken at", (each) => time(each.at_ms), "wide"],
        ["", (each) => button("restore", () => act(() => post(path`v1/snapshots/${each.id}/restore`), `Back at snapshot ${each.id}.`), `snapshot ${each.id}`), "actions"],
      ], cluster.snapshots, (each) => each.id, "None yet. One keeps topics, records, groups, transactions and the time, to go back to as often as you like."),
      button("Take a snapshot", () => act(() => post("v1/snapshots"), "The state is kept."))),
    panel("Reset",
      h("p", null, "Topics, groups, transactions, faults, the journal and the clock are as just started, within milliseconds. Connected clients stay connected."),
      button("Reset the cluster", () => confirm("Reset the cluster?", "Everything in it will be gone.", "Reset",
        () => act(() => post("v1/reset"), "The cluster is as just started.")))),
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
      button("remove", () => act(() => remove(path`v1/brokers/${broker.id}`), `Broker ${broker.id} is out of the cluster.`), `broker ${broker.id}`)), "actions"],
  ];
}
