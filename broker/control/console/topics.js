// Topics: partitions, lag of groups, messages, settings.

import { get, path, post, put, remove } from "./ask.js";
import { h } from "./dom.js";
import { bytes, number, plural } from "./format.js";
import * as messages from "./messages.js";
import { brokers, button, choices, code, facts, field, lagOf, link, listed, panel, state, table, time, to, unknown } from "./parts.js";

let internal = false;
let steered = { topic: null, partition: 0 };

export const title = ([name]) => name ?? "Topics";

export async function load([name]) {
  const groups = (await get("v1/groups")).groups;
  if (name === undefined) return { topics: (await get("v1/topics")).topics, groups };
  const topic = await get(path`v1/topics/${name}`);
  if (steered.topic !== name) steered = { topic: name, partition: 0 };
  const [cluster, replicas] = await Promise.all([get("v1/cluster"), get(path`v1/topics/${name}/partitions/${steered.partition}`)]);
  return { topic, groups, cluster, replicas, found: await messages.load(topic) };
}

export const render = (data, names, tools) => (data.topic ? one(data, tools) : all(data, tools));

// Offsets that a number cannot hold exactly are strings.
const summed = (counts) => (counts.length === 0 ? null : counts.reduce((sum, each) => sum + BigInt(each), 0n));

const records = (topic) => topic.partitions.reduce((sum, each) => sum + BigInt(each.high_watermark) - BigInt(each.log_start_offset), 0n);

function lags(groups, topic) {
  return groups
    .map((group) => ({ group: group.group_id, read: group.lags.filter((each) => each.topic === topic) }))
    .filter(({ read }) => read.length > 0)
    .map(({ group, read }) => ({ group, lag: summed(read.map((each) => each.lag).filter((each) => each !== null)) }));
}

function all({ topics, groups }, { act, refresh }) {
  const shown = topics.filter((topic) => internal || !topic.internal);
  const hidden = topics.length - shown.length;
  return [
    panel(null,
      listed("Topics", [
        ["Topic", (topic) => [link(to("topics", topic.name), topic.name), topic.internal && [" ", h("span", { class: "chip" }, "internal")]], "wide"],
        ["Partitions", (topic) => number(topic.partitions.length), "number"],
        ["Offsets", (topic) => number(records(topic)), "number"],
        ["Size", (topic) => bytes(topic.partitions.reduce((sum, each) => sum + each.size_bytes, 0)), "number"],
        ["Lag", (topic) => lags(groups, topic.name).map((each) => h("div", { key: each.group }, link(to("groups", each.group), each.group), ": ", lagOf(each.lag))), "wide"],
        ["Health", health, "wide"],
      ], shown, (topic) => topic.name,
      [h("p", null, "No topics yet. A client that requests a topic creates it, or:"), code("understudy ctl records write orders '[{\"value\": \"hello\"}]'")], (topic) => topic.name, { refresh }),
      h("label", { class: "check" },
        h("input", { type: "checkbox", onchange: (event) => { internal = event.target.checked; refresh(); } }),
        hidden ? `Show internal topics (${hidden})` : "Show internal topics")),
    panel("Create a topic", create(act)),
  ];
}

let made = 0; // a new form, to clear its fields

/** Lines of NAME=VALUE as settings. */
const settings = (text) => Object.fromEntries(text.split("\n").map((line) => line.trim()).filter(Boolean)
  .map((line) => [line.split("=")[0].trim(), line.split("=").slice(1).join("=").trim()]));

function create(act) {
  const send = (event) => {
    event.preventDefault();
    const { topic, partitions, replication, configs } = event.target.elements;
    const body = { name: topic.value.trim() };
    if (partitions.value !== "") body.partitions = Number(partitions.value);
    if (replication.value !== "") body.replication_factor = Number(replication.value);
    if (configs.value.trim() !== "") body.configs = settings(configs.value);
    act(async () => {
      const answer = await post("v1/topics", body);
      made += 1;
      return answer;
    }, ({ name, partitions: parts }) => `${name} is created, with ${plural(parts.length, "partition")}.`);
  };
  return h("form", { key: `create ${made}`, class: "fields", "aria-label": "Create a topic", onsubmit: send },
    field("Name", h("input", { name: "topic", required: true, autocomplete: "off", spellcheck: "false" })),
    field("Partitions", h("input", { name: "partitions", type: "number", min: "1", placeholder: "num.partitions" })),
    field("Replication factor", h("input", { name: "replication", type: "number", min: "1", placeholder: "default.replication.factor" })),
    h("div", { class: "broad" }, field("Settings, one per line", h("textarea", { name: "configs", rows: "2", placeholder: "cleanup.policy=compact", spellcheck: "false" }))),
    h("button", { type: "submit" }, "Create"));
}

function health(topic) {
  const leaderless = topic.partitions.filter((each) => each.leader < 0).length;
  const thin = topic.partitions.filter((each) => each.isr.length < each.replicas.length).length;
  const open = topic.partitions.filter((each) => each.last_stable_offset < each.high_watermark).length;
  return [
    leaderless > 0 && state(`${leaderless} without leader`, "bad"),
    thin > 0 && state(`${thin} under-replicated`, "busy"),
    open > 0 && state(`${plural(open, "partition")} with an open transaction`, "busy"),
    !leaderless && !thin && !open && state("healthy", "good"),
  ];
}

function one({ topic, groups, found, cluster, replicas }, tools) {
  const configs = Object.entries(topic.configs);
  const read = groups.flatMap((group) => group.lags.filter((each) => each.topic === topic.name)
    .map((each) => ({ ...each, group: group.group_id })));
  return [
    panel("Partitions", table("Partitions", PARTITION, topic.partitions, (each) => each.partition, "No partitions.")),
    panel(`Partition ${replicas.partition}`, steer(topic, replicas, cluster, tools), inside(replicas)),
    panel("Groups", table("Offsets of groups", [
      ["Group", (each) => link(to("groups", each.group), each.group), "wide"],
      ["Partition", (each) => each.partition, "number"],
      ["Offset", (each) => (each.offset === null ? unknown("no committed offset") : number(each.offset)), "number"],
      ["End offset", (each) => (each.end_offset === null ? unknown("no replica is up") : number(each.end_offset)), "number"],
      ["Lag", (each) => lagOf(each.lag), "number"],
    ], read, (each) => `${each.group}/${each.partition}`, "No group reads this topic.")),
    panel("Messages", messages.render(topic, found, tools), write(topic, tools)),
    panel("Settings", configure(topic, configs, tools.act)),
    panel("About", facts(["Topic id", code(topic.id)]),
      !topic.internal && h("div", { class: "row" }, button("Delete the topic", () => tools.confirm(`Delete ${topic.name}?`, "Its records and settings will be deleted. Its consumers will get UNKNOWN_TOPIC_OR_PARTITION.", "Delete",
        () => tools.act(async () => { await remove(path`v1/topics/${topic.name}`); location.hash = "#/topics"; }))))),
  ];
}

const COMMON = ["cleanup.policy", "compression.type", "delete.retention.ms", "max.message.bytes", "message.timestamp.type", "min.compaction.lag.ms", "min.insync.replicas", "retention.bytes", "retention.ms", "segment.bytes", "segment.ms", "unclean.leader.election.enable"];
let configured = 0; // a new form, to clear its fields

/** The settings that differ from the cluster's, and a form to change them. */
function configure(topic, configs, act) {
  const change = (name, value) => act(async () => {
    await put(path`v1/topics/${topic.name}/configs`, { configs: { [name]: value } });
    configured += 1;
  }, value === null ? `${name} is reset to its default.` : `${name} is ${value}.`);
  const send = (event) => {
    event.preventDefault();
    const { setting, to: value } = event.target.elements;
    change(setting.value.trim(), value.value);
  };
  return [
    table("Settings", [
      ["Setting", ([name]) => code(name), "wide"],
      ["Value", ([, value]) => code(value), "wide"],
      ["", ([name]) => button("reset", () => change(name, null), name), "actions"],
    ], configs, ([name]) => name, "No settings differ from the cluster's."),
    h("form", { key: `set ${configured}`, class: "row", "aria-label": "Change a setting", onsubmit: send },
      field("Setting", h("input", { name: "setting", list: "settings", required: true, autocomplete: "off", spellcheck: "false", size: 28 })),
      h("datalist", { id: "settings" }, COMMON.map((name) => h("option", { key: name, value: name }))),
      field("Value", h("input", { name: "to", required: true, autocomplete: "off", spellcheck: "false" })),
      h("button", { type: "submit" }, "Set")),
  ];
}

/** Segments, producers and transactions of one partition. */
function inside(partition) {
  const { segments, producers, aborted_transactions: aborted } = partition;
  return [
    h("h2", { class: "part-of" }, "Segments"),
    table("Segments", [
      ["First offset", (each) => number(each.base_offset)],
      ["Size", (each) => bytes(each.size_bytes), "number"],
    ], segments, (each) => each.base_offset, "No segments."),
    producers.length > 0 && [h("h2", { class: "part-of" }, "Producers"), table("Producers", [
      ["Producer id", (each) => link(to("producers", String(each.producer_id)), String(each.producer_id))],
      ["Epoch", (each) => number(each.producer_epoch), "number"],
      ["Last sequence", (each) => number(each.last_sequence), "number"],
      ["Last batch", (each) => time(each.last_timestamp_ms)],
      ["Transaction", (each) => each.txn_start_offset >= 0 && state(`open since offset ${each.txn_start_offset}`, "busy"), "wide rare"],
    ], producers.slice(-20), (each) => each.producer_id, "")],
    aborted.length > 0 && h("p", { class: "quiet" }, `${plural(aborted.length, "aborted transaction")}; the latest from offset ${number(aborted.at(-1).first_offset)} to ${number(aborted.at(-1).last_offset)}.`),
  ];
}

let written = 0; // a new form, to clear its fields

/** A form that writes a message to the topic. Headers are lines of NAME: VALUE. */
function write(topic, { act }) {
  const send = (event) => {
    event.preventDefault();
    const { key, value, headers, partition } = event.target.elements;
    const lines = headers.value.split("\n").filter((line) => line.trim() !== "").map((line) => /^([^:]*):\s?(.*)$/.exec(line) ?? [null, line, null]);
    const record = { key: key.value === "" ? null : key.value, value: event.target.elements.tombstone.checked ? null : value.value };
    if (lines.length > 0) record.headers = lines.map(([, name, text]) => ({ key: name.trim(), value: text }));
    if (partition.value !== "") record.partition = Number(partition.value);
    act(async () => {
      const answer = await post(path`v1/topics/${topic.name}/records`, { records: [record] });
      written += 1;
      return answer;
    }, ({ written: [place] }) => `Written to partition ${place.partition} at offset ${number(place.offset)}.`);
  };
  return h("details", { key: "write" }, h("summary", null, "Write a message"),
    h("form", { key: `write ${written}`, class: "fields", "aria-label": "Write a message", onsubmit: send },
      field("Key", h("input", { name: "key", placeholder: "null", autocomplete: "off", spellcheck: "false" })),
      h("div", { class: "broad" }, field("To partition", choices("partition", [["", "as Kafka's Java client chooses"], ...topic.partitions.map((each) => String(each.partition))]))),
      h("div", { class: "broad" }, field("Value", h("textarea", { name: "value", rows: "4", spellcheck: "false" }))),
      h("div", { class: "broad" }, field("Headers, one per line", h("textarea", { name: "headers", rows: "2", placeholder: "name: value", spellcheck: "false" }))),
      h("label", { class: "check" }, h("input", { type: "checkbox", name: "tombstone" }), "Without a value (a tombstone)"),
      h("button", { type: "submit", class: "main" }, "Write")));
}

const REPLICA = [["in", "in sync"], ["held", "in sync, not replicating"], ["out", "out of sync"]];

/** Forms that set the leader and the in-sync replicas of a partition. */
function steer(topic, partition, cluster, { act, refresh }) {
  const where = path`v1/topics/${topic.name}/partitions/${partition.partition}`;
  const choose = (event) => { steered.partition = Number(event.target.value); refresh(); };
  const lead = (event) => {
    event.preventDefault();
    const chosen = event.target.elements.leader.value;
    const said = chosen === "" ? "The partition has no leader now." : `Broker ${chosen} is the leader now.`;
    act(() => post(`${where}/leader`, { broker: chosen === "" ? null : Number(chosen) }), said);
  };
  const followers = partition.replicas.filter((id) => id !== partition.leader);
  const sync = (event) => {
    event.preventDefault();
    const ways = Object.fromEntries(followers.map((id) => [id, event.target.elements[`replica ${id}`].value]));
    const replicas = partition.replicas.filter((id) => ways[id] !== "out");
    const held = followers.filter((id) => ways[id] !== "in");
    act(() => post(`${where}/isr`, { replicas, held }), `In sync: ${replicas.join(", ")}.`);
  };
  const now = (id) => (!partition.isr.includes(id) ? "out" : partition.held.includes(id) ? "held" : "in");
  return [
    h("form", { key: `lead ${partition.partition}`, class: "row", onsubmit: lead },
      field("Partition", choices("partition", topic.partitions.map((each) => String(each.partition)), String(partition.partition), choose)),
      field("Leader", brokers("leader", cluster, String(partition.leader < 0 ? "" : partition.leader), undefined, ["", "none"])),
      h("button", { type: "submit" }, "Move the leader")),
    followers.length > 0 && h("form", { key: `sync ${partition.partition} ${partition.leader} ${partition.isr} ${partition.held}`, class: "row", onsubmit: sync },
      followers.map((id) => field(`Replica on broker ${id}`, choices(`replica ${id}`, REPLICA, now(id)))),
      h("button", { type: "submit" }, "Set replicas")),
  ];
}

const PARTITION = [
  ["Partition", (each) => each.partition],
  ["Leader", (each) => (each.leader < 0 ? state("none", "bad") : each.leader), "number"],
  ["Epoch", (each) => each.leader_epoch, "number"],
  ["Replicas", (each) => each.replicas.join(", ")],
  ["In sync", (each) => (each.isr.length < each.replicas.length ? state(each.isr.join(", ") || "none", "busy") : each.isr.join(", "))],
  ["Log start", (each) => number(each.log_start_offset), "number"],
  ["Last stable", (each) => (each.last_stable_offset < each.high_watermark ? h("span", { class: "state busy" }, number(each.last_stable_offset)) : number(each.last_stable_offset)), "number"],
  ["High watermark", (each) => number(each.high_watermark), "number"],
  ["Log end", (each) => number(each.log_end_offset), "number"],
];
