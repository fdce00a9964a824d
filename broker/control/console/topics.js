// Topics, their partitions, how far groups have read them, and their messages.

import { get, path, post } from "./ask.js";
import { h } from "./dom.js";
import { bytes, number, plural } from "./format.js";
import * as messages from "./messages.js";
import { brokers, choices, code, facts, field, lag, link, panel, state, table, to, total } from "./parts.js";

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

function lags(groups, topic) {
  return groups
    .map((group) => ({ group: group.group_id, lag: total(group.offsets.filter((each) => each.topic === topic), (each) => each.lag),
      reads: group.offsets.some((each) => each.topic === topic) }))
    .filter((each) => each.reads);
}

function all({ topics, groups }, { refresh }) {
  const shown = topics.filter((topic) => internal || !topic.internal);
  const hidden = topics.length - shown.length;
  return [
    panel(null,
      table("Topics", [
        ["Topic", (topic) => [link(to("topics", topic.name), topic.name), topic.internal && [" ", h("span", { class: "chip" }, "internal")]], "wide"],
        ["Partitions", (topic) => number(topic.partitions.length), "number"],
        ["Records", (topic) => number(total(topic.partitions, (each) => each.high_watermark - each.log_start_offset)), "number"],
        ["Size", (topic) => bytes(total(topic.partitions, (each) => each.size_bytes)), "number"],
        ["Lag", (topic) => lags(groups, topic.name).map((each) => h("div", { key: each.group }, `${each.group}: ${lag(each.lag)}`)), "wide"],
        ["Health", health, "wide"],
      ], shown, (topic) => topic.name,
      [h("p", null, "No topics yet. A client that asks for one makes it, or:"), code("understudy ctl records write orders '[{\"value\": \"hello\"}]'")]),
      h("label", { class: "check" },
        h("input", { type: "checkbox", onchange: (event) => { internal = event.target.checked; refresh(); } }),
        hidden ? `Show internal topics (${hidden})` : "Show internal topics")),
  ];
}

function health(topic) {
  const leaderless = topic.partitions.filter((each) => each.leader < 0).length;
  const thin = topic.partitions.filter((each) => each.isr.length < each.replicas.length).length;
  const open = topic.partitions.filter((each) => each.last_stable_offset < each.high_watermark).length;
  return [
    leaderless > 0 && state(`${leaderless} without leader`, "bad"),
    thin > 0 && state(`${thin} under-replicated`, "busy"),
    open > 0 && state(`${plural(open, "partition")} with an open transaction`, "busy"),
    !leaderless && !thin && !open && state("in order", "good"),
  ];
}

function one({ topic, groups, found, cluster, replicas }, tools) {
  const configs = Object.entries(topic.configs);
  const read = groups.flatMap((group) => group.offsets.filter((each) => each.topic === topic.name)
    .map((each) => ({ ...each, group: group.group_id })));
  return [
    panel("Partitions", table("Partitions", PARTITION, topic.partitions, (each) => each.partition, "None is hosted.")),
    panel("Steer a partition", steer(topic, replicas, cluster, tools)),
    panel("Read by", table("Offsets of groups", [
      ["Group", (each) => link(to("groups", each.group), each.group)],
      ["Partition", (each) => each.partition, "number"],
      ["Offset", (each) => number(each.offset), "number"],
      ["Lag", (each) => lag(each.lag), "number"],
    ], read, (each) => `${each.group}/${each.partition}`, "No group has committed an offset.")),
    panel("Messages", messages.render(topic, found, tools), write(topic, tools)),
    panel("About", facts(["Topic id", code(topic.id)], configs.length > 0 && ["Settings",
      configs.map(([name, value]) => h("div", { key: name }, code(`${name}=${value}`)))])),
  ];
}

let written = 0; // the fields of a message that was written are emptied

/** One message into a topic. Headers are lines of NAME: VALUE. */
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
      field("Into partition", choices("partition", [["", "as Kafka's Java client chooses"], ...topic.partitions.map((each) => String(each.partition))])),
      h("div", { class: "broad" }, field("Value", h("textarea", { name: "value", rows: "4", spellcheck: "false" }))),
      h("div", { class: "broad" }, field("Headers, one a line", h("textarea", { name: "headers", rows: "2", placeholder: "name: value", spellcheck: "false" }))),
      h("label", { class: "check" }, h("input", { type: "checkbox", name: "tombstone" }), "Without a value (a tombstone)"),
      h("button", { type: "submit", class: "main" }, "Write")));
}

const REPLICA = [["in", "in sync"], ["held", "in sync, replicates nothing"], ["out", "out of sync"]];

/** Who leads a partition, and which replicas are in sync. */
function steer(topic, partition, cluster, { act, refresh }) {
  const where = path`v1/topics/${topic.name}/partitions/${partition.partition}`;
  const choose = (event) => { steered.partition = Number(event.target.value); refresh(); };
  const lead = (event) => {
    event.preventDefault();
    const chosen = event.target.elements.leader.value;
    const said = chosen === "" ? "Nobody leads it now." : `Broker ${chosen} leads it now.`;
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
      field("Leader", brokers("leader", cluster, String(partition.leader < 0 ? "" : partition.leader), undefined, ["", "nobody"])),
      h("button", { type: "submit" }, "Let it lead")),
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
