// Groups: members, assignments, committed offsets, lag.

import { get, path, post } from "./ask.js";
import { diagramOf } from "./diagrams.js";
import { h } from "./dom.js";
import { number } from "./format.js";
import { button, choices, code, facts, field, lagOf, link, listed, moves, panel, reason, state, table, time, timeline, to, unknown } from "./parts.js";

export const title = ([name]) => name ?? "Groups";

export async function load([name]) {
  if (name === undefined) return get("v1/groups");
  const [found, why, cluster] = await Promise.all([get(path`v1/groups/${name}`), get(path`v1/groups/${name}/why`), get("v1/cluster")]);
  return { ...found, why, cluster };
}

export const render = (data, names, tools) => (data.groups ? all(data.groups, tools) : one(data, tools));

function all(groups, tools) {
  return panel(null, listed("Groups", [
    ["Group", (group) => link(to("groups", group.group_id), group.group_id), "wide"],
    ["State", (group) => state(group.state)],
    ["Type", (group) => group.type],
    ["Generation or group epoch", (group) => number(group.epoch), "number"],
    ["Members", (group) => number(group.members.length), "number"],
    ["Coordinator", (group) => group.coordinator, "number"],
    ["Lag", (group) => lagOf(group.lag), "number"],
  ], groups, (group) => group.group_id, "No groups yet: no consumer has joined one or committed an offset.",
  (group) => group.group_id, tools));
}

function one(group, tools) {
  const { act } = tools;
  const where = path`v1/groups/${group.group_id}`;
  const metadata = new Map(group.offsets.filter((each) => each.metadata).map((each) => [`${each.topic}/${each.partition}`, each.metadata]));
  return [
    reason(group.why),
    h("p", null, link(diagramOf("groups", group.group_id), "Sequence diagram")),
    panel("About",
      facts(["State", state(group.state)], ["Type", group.type], [counter(group), number(group.epoch)],
        group.protocol && ["Assignor", code(group.protocol)], ["Coordinator", `broker ${group.coordinator}`]),
      group.members.length > 0 && button("Rebalance", () => act(() => post(`${where}/rebalance`), "The members will rejoin.")),
      moves("group", group.group_id, group.cluster, group.coordinator, tools)),
    panel("Members", table("Members", [
      ["Member", (each) => [h("code", { class: "long" }, each.member_id), each.leads && [" ", h("span", { class: "chip" }, "leads")]], "wide"],
      ["Client", (each) => `${each.client_id} at ${each.client_host}`, "wide"],
      ["Instance", (each) => each.instance_id, "wide rare"],
      ["Assigned", (each) => each.assignment.map((name) => h("span", { key: name, class: "chip" }, name)), "wide"],
      ["", (each) => button("evict", () => act(() => post(`${where}/members/${encodeURIComponent(each.member_id)}/evict`),
        "Evicted, as if its session had timed out."), each.member_id), "actions"],
    ], group.members, (each) => each.member_id, "The group has no members.")),
    group.type === "share" ? panel("Share partitions", table("Share partitions", [
      ["Topic", (each) => link(to("topics", each.topic), each.topic)],
      ["Partition", (each) => each.partition, "number"],
      ["Leader", (each) => `broker ${each.leader}`],
      ["Start offset", (each) => number(each.start_offset), "number"],
      ["Lag", (each) => lagOf(group.lags.find((found) => found.topic === each.topic && found.partition === each.partition)?.lag ?? null), "number"],
      ["Next to acquire", (each) => number(each.next_offset), "number"],
      ["In flight", (each) => number(each.records.reduce((sum, run) => sum + run.last_offset - run.first_offset + 1, 0)), "number"],
    ], group.share_partitions, (each) => `${each.topic}/${each.partition}`, "No share partition is loaded: no member has fetched yet."))
    : panel("Offsets", table("Committed offsets", [
      ["Topic", (each) => link(to("topics", each.topic), each.topic), "wide"],
      ["Partition", (each) => each.partition, "number"],
      ["Committed", (each) => (each.offset === null ? unknown("no committed offset") : number(each.offset)), "number"],
      ["End offset", (each) => (each.end_offset === null ? unknown("no replica is up") : number(each.end_offset)), "number"],
      ["Lag", (each) => lagOf(each.lag), "number"],
      ["Metadata", (each) => metadata.get(`${each.topic}/${each.partition}`), "rare"],
    ], group.lags, (each) => `${each.topic}/${each.partition}`, "No committed offsets and no assigned partitions."), resets(group, where, act)),
    group.pending_offsets.length > 0 && panel("Pending offsets", table("Offsets in open transactions", [
      ["Partition", (each) => `${each.topic}-${each.partition}`],
      ["Offset", (each) => number(each.offset), "number"],
      ["Transactional id", (each) => each.transactional_id && link(to("transactions", each.transactional_id), each.transactional_id), "wide"],
      ["Since", (each) => each.since_ms && time(each.since_ms)],
      ["Until", (each) => each.until_ms && time(each.until_ms)],
    ], group.pending_offsets, (each) => `${each.topic}/${each.partition}/${each.producer_id}`)),
    group.share_partitions.length > 0 && panel("Records in flight", table("Records in flight", [
      ["Topic", (each) => link(to("topics", each.topic), each.topic)],
      ["Partition", (each) => each.partition, "number"],
      ["Offsets", (each) => (each.first_offset === each.last_offset ? number(each.first_offset) : `${number(each.first_offset)} to ${number(each.last_offset)}`), "number"],
      ["State", (each) => state(each.state)],
      ["Deliveries", (each) => number(each.delivery_count), "number"],
      ["Member", (each) => each.member_id && h("code", { class: "long" }, each.member_id), "wide rare"],
      ["Since", (each) => each.since_ms && time(each.since_ms), "rare"],
      ["Locked until", (each) => each.lock_until_ms && time(each.lock_until_ms), "rare"],
      ["Last acquired", (each) => each.last_end && `${each.last_member_id}: ${each.last_end}`, "wide rare"],
    ], group.share_partitions.flatMap((part) => part.records.map((each) => ({ ...each, topic: part.topic, partition: part.partition }))),
      (each) => `${each.topic}/${each.partition}/${each.first_offset}`, "No records are in flight.")),
    panel("Timeline", timeline(group.timeline, { words: (event) => [event.member_id, event.detail, event.partitions.join(", ")].filter(Boolean).join(", "), stood: stood(counter(group).toLowerCase()) })),
  ];
}

/** A form that sets the committed offsets; as in Kafka, only for a group without members. */
function resets(group, where, act) {
  if (group.members.length > 0) return h("p", { class: "quiet" }, "Offsets can be set while the group has no members.");
  const send = (event) => {
    event.preventDefault();
    const { topic, to, offset } = event.target.elements;
    const body = { topic: topic.value.trim(), ...(to.value === "offset" ? { offset: BigInt(offset.value) } : { to: to.value }) };
    act(() => post(`${where}/offsets`, body), `${group.group_id} continues at ${to.value === "offset" ? `offset ${offset.value}` : `the ${to.value} offsets`} of ${body.topic}.`);
  };
  return h("form", { key: "reset", class: "row", "aria-label": "Set offsets", onsubmit: send },
    field("Topic", h("input", { name: "topic", required: true, value: group.offsets[0]?.topic ?? "", autocomplete: "off", spellcheck: "false" })),
    field("Continue at", choices("to", [["earliest", "the earliest offsets"], ["latest", "the latest offsets"], ["offset", "this offset"]], "earliest")),
    field("Offset", h("input", { name: "offset", type: "number", min: "0", placeholder: "0", value: "0" })),
    h("button", { type: "submit" }, "Set the offsets"));
}

/** Kafka's name of the number that a rebalance increases. */
const counter = (group) => (group.type === "classic" ? "Generation" : "Group epoch");

const stood = (word) => (event) => [[event.state_before, event.epoch_before], [event.state_after, event.epoch_after]].map(
  ([state, epoch]) => [state, epoch >= 0 && `${word} ${epoch}`].filter(Boolean).join(", "));
