// Transactional ids: state, timeline, transactions, and holding a commit or abort at a step.

import { get, path, post, query } from "./ask.js";
import { diagramOf } from "./diagrams.js";
import { h } from "./dom.js";
import { duration, number } from "./format.js";
import { button, chips, choices, code, facts, field, inTime, link, listed, moves, panel, reason, state, table, time, timeline, to } from "./parts.js";

const STEPS = [["prepare", "prepare"], ["markers", "markers"], ["complete", "complete"]];
const IDLE = new Set(["Empty", "CompleteCommit", "CompleteAbort", "Dead"]);
let step = "prepare";

export const title = ([name]) => name ?? "Transactions";

export async function load([name]) {
  if (name === undefined) return get("v1/transactions");
  const here = path`v1/transactions/${name}`;
  const [found, why, past, cluster] = await Promise.all([get(here), get(`${here}/why`), get(`${here}/history`), get("v1/cluster")]);
  return { ...found, why, past: past.transactions, cluster };
}

export const render = (data, names, tools) => (data.transactions ? all(data.transactions, tools) : one(data, tools));

function all(transactions, tools) {
  const { now_ms } = tools;
  const idle = (each) => IDLE.has(each.state) && !each.held_at;
  const ordered = [...transactions.filter((each) => !idle(each)), ...transactions.filter(idle)];
  return [panel(null, listed("Transactional ids", [
    ["Transactional id", (each) => link(to("transactions", each.transactional_id), each.transactional_id), "wide"],
    ["State", (each) => [state(each.state), each.held_at && state("held")]],
    ["Producer", (each) => `${each.producer_id}, epoch ${each.producer_epoch}`, "rest"],
    ["Coordinator", (each) => each.coordinator, "number"],
    ["Partitions", (each) => number(each.partitions.length), "number"],
    ["Times out", (each) => (each.deadline_ms === null ? "" : inTime(each.deadline_ms, now_ms)), "rare"],
  ], ordered, (each) => each.transactional_id, "No transactional ids yet: no producer has called initTransactions.", (each) => `${each.transactional_id} ${each.producer_id}`, tools)),
  panel("Hold a transaction", h("p", null, "The next commit or abort of this transactional id is held at a step until it is released. The id need not exist yet."),
    hold(tools, null))];
}

/** A form that holds a transaction at a step, of a given id or with a field for it. */
function hold({ act, refresh }, name) {
  const holds = (event) => {
    event.preventDefault();
    const { id, after } = event.target.elements;
    const body = { at: step };
    if (step === "markers" && after.value) body.after_markers = Number(after.value);
    act(() => post(path`v1/transactions/${name ?? id.value}/hold`, body), `The next commit or abort will be held at ${step}.`);
  };
  return h("form", { class: "row", onsubmit: holds },
    name === null && field("Transactional id", h("input", { name: "id", required: true, autocomplete: "off", spellcheck: "false" })),
    field("Hold at", choices("at", STEPS, step, (event) => { step = event.target.value; refresh({ redraw: true }); })),
    step === "markers" && field("After this many", h("input", { name: "after", type: "number", min: "0", placeholder: "0", size: 4 })),
    h("button", { type: "submit" }, "Hold"));
}

function one(found, tools) {
  const { act, now_ms } = tools;
  const where = path`v1/transactions/${found.transactional_id}`;
  const pending = Object.entries(found.pending_offsets);
  return [
    reason(found.why),
    h("p", null, link(diagramOf("transactions", found.transactional_id), "Sequence diagram")),
    panel("About",
      facts(
        ["State", state(found.state)],
        ["Producer id and epoch", [link(to("producers", String(found.producer_id)), String(found.producer_id)), `, ${found.producer_epoch}`]],
        ["Coordinator", `broker ${found.coordinator}`],
        ["Timeout", duration(found.timeout_ms)],
        found.deadline_ms !== null && ["Times out", inTime(found.deadline_ms, now_ms)],
        found.partitions.length > 0 && ["Partitions", found.partitions.map((name) => h("span", { key: name, class: "chip" }, name))],
        pending.length > 0 && ["Pending offsets", pending.map(([group, offsets]) => h("div", { key: group },
          `${group}: `, code(Object.entries(offsets).map(([name, offset]) => `${name} ${offset}`).join(", "))))],
        found.held_at && ["Held", [state("held"), ` at ${found.held_at}`, found.stopped ? ", a commit or abort is waiting there" : ", not reached yet"]],
      ),
      hold(tools, found.transactional_id),
      (found.held_at || found.state === "Ongoing") && h("div", { class: "row" },
        found.held_at && button("Release", () => act(() => post(`${where}/release`), "Released: the commit or abort continues.")),
        found.state === "Ongoing" && button("Abort", () => act(() => post(`${where}/abort`), "Aborted, as by its timeout."))),
      moves("transaction", found.transactional_id, found.cluster, found.coordinator, tools)),
    panel("Transactions", table("Transactions", [
      ["Began", (each) => each.began_ms !== null && (each.id === null ? time(each.began_ms) : link(diagramOf("transactions", found.transactional_id) + query({ transaction: each.id }), time(each.began_ms)))],
      ["Ended", (each) => each.ended_ms !== null && time(each.ended_ms), "rare"],
      ["Outcome", (each) => [state(each.outcome, OUTCOMES[each.outcome])]],
      ["How", (each) => each.how, "wide"],
      ["Epoch", (each) => each.producer_epoch, "number"],
      ["Refusals", (each) => each.refusals > 0 && state(number(each.refusals), "bad"), "number rare"],
      ["Client", (each) => each.client_id && link(to("clients", each.client_id), each.client_id)],
      ["Partitions", (each) => chips(each.partitions), "wide"],
    ], found.past.slice(-100).reverse(), (each) => `${each.id}/${each.began_ms}`, "No transactions yet."),
    found.past.length > 100 && h("p", { class: "quiet" }, "The newest 100 are shown.")),
    panel("Timeline", timeline(found.timeline, { words: (event) => event.detail, stood })),
  ];
}

const OUTCOMES = { committed: "good", open: "busy", ending: "busy" };

const stood = (event) => [event.state_before && `${event.state_before}, epoch ${event.epoch_before}`, `${event.state_after}, epoch ${event.epoch_after}`];
