// Faults that are often wanted, and what can be said about the faults of an API.

import { parsed, exactValue } from "./format.js";

// What the form can say; the last one leaves it to whoever writes it. `effect` is the field of `do` that the API must
// have, `asks` the label of its value, `of` which conditions fit.
export const WAYS = {
  error: { text: "answer an error instead of doing it", effect: "error", asks: "Error", of: "error_conditions", does: (value) => ({ error: value }) },
  then_error: { text: "do it, then answer an error", effect: "error", asks: "Error", of: "error_conditions", does: (value) => ({ apply_then: { error: value } }) },
  then_reset: { text: "do it, then reset the connection", effect: "apply_then", of: "request_conditions", does: () => ({ apply_then: { disconnect: "reset" } }) },
  then_drop: { text: "do it, then never answer", effect: "apply_then", of: "request_conditions", does: () => ({ apply_then: { drop: true } }) },
  delay: { text: "delay it", effect: "delay_ms", asks: "For how long", such: "2s", of: "request_conditions", does: (value) => ({ delay_ms: parsed(value) }) },
  drop: { text: "neither do it nor answer", effect: "drop", of: "request_conditions", does: () => ({ drop: true }) },
  reset: { text: "reset the connection instead", effect: "disconnect", of: "request_conditions", does: () => ({ disconnect: "reset" }) },
  throttle: { text: "answer with a throttle time", effect: "throttle_ms", asks: "Throttle time", such: "5s", of: "conditions", does: (value) => ({ throttle_ms: parsed(value) }) },
  alter: { text: "change a field of the answer", effect: "alter", asks: "New value, as JSON", such: "-1", of: "conditions", does: (value, path) => ({ alter: { [path]: exactValue(value) } }) },
  json: { text: "as I write it", effect: "bytes", asks: "What to do, as JSON", such: '{"bytes": {"truncate": 10}}', of: "conditions", does: (value) => exactValue(value) },
};

export const CONDITIONS = { topic: "Topic", partition: "Partition", group: "Group", transactional_id: "Transactional id" };

/** The ways that fit an API; of any API, those that need none. */
export const waysOf = (api) => Object.entries(WAYS).filter(([, way]) => (api ? api.effects.includes(way.effect) : way.effect !== "alter"));

/** The conditions that fit an API with this way. */
export const conditionsOf = (api, way) => Object.keys(CONDITIONS).filter((name) => !api || api[WAYS[way].of].includes(name));

export const isError = (way) => WAYS[way].effect === "error";

/** The error that the form begins with. */
export const firstError = (api) => (api ? api.errors[0] : "NOT_COORDINATOR");

/** Faults that are often wanted: a name, what a client sees, and the form's fields. */
export const PRESETS = [
  ["The answer to a commit is lost", "It is committed; the producer asks again on a new connection.", { api: "EndTxn", way: "then_reset", field: "committed", field_value: "true" }],
  ["The next commit fails", "The coordinator says that it is loading; the producer tries again.", { api: "EndTxn", way: "error", value: "COORDINATOR_LOAD_IN_PROGRESS" }],
  ["The coordinator has moved", "The producer looks it up again.", { api: "EndTxn", way: "error", value: "NOT_COORDINATOR" }],
  ["A producer is fenced", "Its next commit is refused for good.", { api: "EndTxn", way: "error", value: "PRODUCER_FENCED" }],
  ["The acknowledgement of a write is lost", "It is written; an idempotent producer sends it again, and it is not written twice.", { api: "Produce", way: "then_reset" }],
  ["The leader has moved", "The producer refreshes its metadata and sends the batch again.", { api: "Produce", way: "error", value: "NOT_LEADER_OR_FOLLOWER" }],
  ["Too few replicas, three times", "The producer tries again until its delivery times out.", { api: "Produce", way: "error", value: "NOT_ENOUGH_REPLICAS", times: "3" }],
  ["Consumers join again", "The heartbeat says that the group rebalances.", { api: "Heartbeat", way: "error", value: "REBALANCE_IN_PROGRESS" }],
  ["An offset commit is refused", "The member's generation is over.", { api: "OffsetCommit", way: "error", value: "ILLEGAL_GENERATION" }],
  ["The offset is gone", "The consumer starts from where auto.offset.reset says.", { api: "Fetch", way: "error", value: "OFFSET_OUT_OF_RANGE" }],
  ["Reading is slow", "Each fetch takes two seconds longer.", { api: "Fetch", way: "delay", value: "2s", times: "" }],
  ["A request is never answered", "The client waits for its request.timeout.ms.", { api: "Metadata", way: "drop" }],
];
