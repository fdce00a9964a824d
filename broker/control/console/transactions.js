// Transactional ids, what has happened to each, and stopping a commit at a step.

import { get, path, post } from "./ask.js";
import { h } from "./dom.js";
import { day, duration, number, time } from "./format.js";
import { button, choices, code, facts, field, inTime, link, panel, state, table, to } from "./parts.js";

let step = "prepare";

export const title = ([name]) => name ?? "Transactions";

export async function load([name]) {
  if (name === undefined) return get("v1/transactions");
  const [found, why] = await Promise.all([get(path`v1/transactions/${name}`), get(path`v1/transactions/${name}/why`)]);
  return { ...found, why };
}

export const render = (data, names, tools) => (data.transactions ? all(data.transactions, tools) : one(data, tools));

function all(transactions, { now_ms }) {
  return panel(null, table("Transactional ids", [
    ["Transactional id", (each) => link(to("transactions", each.transactional_id), each.transactional_id), "wide"],
    ["State", (each) => [state(each.state), each.held_at && state("held")]],
    ["Producer", (each) => `${each.producer_id}, epoch ${each.producer_epoch}`],
    ["Coordinator", (each) => each.coordinator, "number"],
    ["Partitions", (each) => number(each.partitions.length), "number"],
    ["Times out", (each) => (each.deadline_ms === null ? "" : inTime(each.deadline_ms, now_ms))],
  ], transactions, (each) => each.transactional_id, "No transactional ids yet: no producer has called initTransactions."));
}

function one(found, { act, now_ms }) {
  const where = path`v1/transactions/${found.transactional_id}`;
  const pending = Object.entries(found.pending_offsets);
  return [
    found.why.error && panel("Why the last refusal", h("p", { class: "why" }, found.why.why)),
    panel("About",
      facts(
        ["State", state(found.state)],
        ["Producer id and epoch", code(`${found.producer_id}, ${found.producer_epoch}`)],
        ["Coordinator", `broker ${found.coordinator}`],
        ["Timeout", duration(found.timeout_ms)],
        found.deadline_ms !== null && ["Times out", inTime(found.deadline_ms, now_ms)],
        found.partitions.length > 0 && ["Partitions", found.partitions.map((name) => h("span", { key: name, class: "chip" }, name))],
        pending.length > 0 && ["Pending offsets", pending.map(([group, offsets]) => h("div", { key: group },
          `${group}: `, code(Object.entries(offsets).map(([name, offset]) => `${name} ${offset}`).join(", "))))],
        found.held_at && ["Held", [state("held"), ` at ${found.held_at}`, found.stopped ? ", a commit is waiting there" : ", no commit has come there yet"]],
      ),
      h("div", { class: "row" },
        field("Hold at", choices("at", [["prepare", "prepare"], ["markers", "markers"], ["complete", "complete"]], step,
          (event) => { step = event.target.value; })),
        button("Hold", () => act(() => post(`${where}/hold`, { at: step }), `The next commit or abort stops at ${step}.`)),
        found.held_at && button("Release", () => act(() => post(`${where}/release`), "It goes on.")),
        found.state === "Ongoing" && button("Abort", () => act(() => post(`${where}/abort`), "Aborted, as its timeout would.")))),
    panel("Timeline",
      found.timeline.length === 0
        ? h("p", { class: "empty" }, "Nothing is remembered of it.")
        : h("ol", { class: "timeline", reversed: true }, found.timeline.map(moment).slice(-300).reverse())),
  ];
}

function moment(event, at) {
  const moved = event.state_before !== event.state_after || event.epoch_before !== event.epoch_after;
  const who = event.client_id !== null && [code(event.client_id), ` on connection ${event.connection}, by ${event.api} v${event.version} to broker ${event.broker}`];
  return h("li", { key: at, class: event.error ? "bad" : undefined },
    h("time", { datetime: new Date(event.at_ms).toISOString(), title: `${day(event.at_ms)} UTC` }, time(event.at_ms)),
    h("div", null,
      h("p", null, h("strong", null, event.event), event.error && [" ", state(event.error, "bad")], event.detail && ` ${event.detail}`),
      moved && h("p", { class: "quiet" },
        event.state_before ? `${event.state_before}, epoch ${event.epoch_before} → ${event.state_after}, epoch ${event.epoch_after}`
          : `→ ${event.state_after}, epoch ${event.epoch_after}`),
      h("p", { class: "quiet" }, who, who && event.rule && "; ", event.rule)));
}
