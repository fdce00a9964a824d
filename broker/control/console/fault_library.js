// Presets of common faults, and the form's options for each API.

import { parsed, exactValue } from "./format.js";

// The effects in the form; the last one is free JSON. `effect` is the field of `do` that the API must support, `asks` the
// label of the value, `of` the list of conditions that can be used.
export const WAYS = {
  error: { text: "respond with an error instead of serving it", effect: "error", asks: "Error", of: "error_conditions", does: (value) => ({ error: value }) },
  then_error: { text: "serve it, then respond with an error", effect: "error", asks: "Error", of: "error_conditions", does: (value) => ({ apply_then: { error: value } }) },
  then_reset: { text: "serve it, then reset the connection", effect: "apply_then", of: "request_conditions", does: () => ({ apply_then: { disconnect: "reset" } }) },
  then_drop: { text: "serve it, then never respond", effect: "apply_then", of: "request_conditions", does: () => ({ apply_then: { drop: true } }) },
  delay: { text: "delay it", effect: "delay_ms", asks: "Delay", such: "2s", of: "request_conditions", does: (value) => ({ delay_ms: parsed(value) }) },
  drop: { text: "neither serve it nor respond", effect: "drop", of: "request_conditions", does: () => ({ drop: true }) },
  reset: { text: "reset the connection instead", effect: "disconnect", of: "request_conditions", does: () => ({ disconnect: "reset" }) },
  throttle: { text: "respond with a throttle time", effect: "throttle_ms", asks: "Throttle time", such: "5s", of: "conditions", does: (value) => ({ throttle_ms: parsed(value) }) },
  alter: { text: "change a field of the response", effect: "alter", asks: "New value, as JSON", such: "-1", of: "conditions", does: (value, path) => ({ alter: { [path]: exactValue(value) } }) },
  json: { text: "custom, as JSON", effect: "bytes", asks: "Effect, as JSON", such: '{"bytes": {"truncate": 10}}', of: "conditions", does: (value) => exactValue(value) },
};

export const CONDITIONS = { topic: "Topic", partition: "Partition", group: "Group", transactional_id: "Transactional id" };

/** The effects that an API supports; without an API, those that need none. */
export const waysOf = (api) => Object.entries(WAYS).filter(([, way]) => (api ? api.effects.includes(way.effect) : way.effect !== "alter"));

/** The conditions that can be used for an API with this effect. */
export const conditionsOf = (api, way) => Object.keys(CONDITIONS).filter((name) => !api || api[WAYS[way].of].includes(name));

export const isError = (way) => WAYS[way].effect === "error";

/** The error that the form selects first. */
export const firstError = (api) => (api ? api.errors[0] : "NOT_COORDINATOR");

/** Presets: a name, what a client sees, and the form's fields. */
export const PRESETS = [
  ["The response to a commit is lost", "The transaction is committed; the producer retries on a new connection.", { api: "EndTxn", way: "then_reset", field: "committed", field_value: "true" }],
  ["The next commit fails", "The coordinator is loading; the producer retries.", { api: "EndTxn", way: "error", value: "COORDINATOR_LOAD_IN_PROGRESS" }],
  ["The coordinator has moved", "The producer looks up the coordinator again.", { api: "EndTxn", way: "error", value: "NOT_COORDINATOR" }],
  ["A producer is fenced", "Its next commit fails with a fatal error.", { api: "EndTxn", way: "error", value: "PRODUCER_FENCED" }],
  ["The acknowledgement of a write is lost", "The batch is written; an idempotent producer resends it, and it is not written twice.", { api: "Produce", way: "then_reset" }],
  ["The leader has moved", "The producer refreshes its metadata and resends the batch.", { api: "Produce", way: "error", value: "NOT_LEADER_OR_FOLLOWER" }],
  ["Too few replicas, three times", "The producer retries, at most until delivery.timeout.ms.", { api: "Produce", way: "error", value: "NOT_ENOUGH_REPLICAS", times: "3" }],
  ["Consumers rejoin", "The heartbeat response announces a rebalance.", { api: "Heartbeat", way: "error", value: "REBALANCE_IN_PROGRESS" }],
  ["An offset commit is refused", "The member's generation is no longer current.", { api: "OffsetCommit", way: "error", value: "ILLEGAL_GENERATION" }],
  ["The offset is out of range", "The consumer resets its position by auto.offset.reset.", { api: "Fetch", way: "error", value: "OFFSET_OUT_OF_RANGE" }],
  ["Fetches are slow", "Each fetch takes two seconds longer.", { api: "Fetch", way: "delay", value: "2s", times: "" }],
  ["A request is never answered", "The client waits for its request.timeout.ms.", { api: "Metadata", way: "drop" }],
];
