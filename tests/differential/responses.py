"""What of a client's calls is compared: everything but what chance, the clock or a cluster's place decides."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from broker.handlers import APIS

SERVED = {int(api.key) for api in APIS}
CHANCE = {
    "client.describe_cluster": "Kafka draws the controller that it returns",
    "client.list_topics": "a client that asked before has made topics of its own",
    "client.list_groups": "likewise groups",
}
"""Calls whose results are compared without their content, and why."""
OWN_SETTINGS = {
    "broker.id", "node.id", "process.roles", "advertised.listeners", "listeners", "log.dir", "log.dirs",
    "controller.listener.names", "controller.quorum.voters", "controlled.shutdown.enable",
    "listener.security.protocol.map", "offsets.topic.replication.factor", "transaction.state.log.replication.factor",
    "transaction.state.log.min.isr", "share.coordinator.state.topic.replication.factor",
    "share.coordinator.state.topic.min.isr", "log.initial.task.delay.ms",
}  # fmt: skip
"""Of a broker's settings: where it is and what each is started with; and the one that is listed always (GAPS.md)."""
VERBATIM = {"client.consume", "client.read", "client.read_at"}
"""What was written with timestamps of its own is read back to the last millisecond."""
SEVERAL_PARTITIONS = {"client.consume", "client.read"}
"""Which partition's records come first is the network's business."""
BY_TIMING = {"transform", "timeout", "group_rebalance", "group_leave", "zombie"}
"""Steps in which timing decides how often what is called: the different calls and outcomes count."""
CAPITAL = re.compile(r"(?<=[a-z])([A-Z])")
ADDRESS = re.compile(r"(127\.0\.0\.1|localhost):\d+(/\d+|/bootstrap)?")
TOOLS_CHANCE = re.compile(
    r"(?<=Cluster ID: )\S+|(?<=ClusterId:)\s+\S+|(?<=HighWatermark:)\s+\d+|(?<=Epoch: )\d+|(?<=TopicId: )\S+"
    r"|(?<=\"logDir\":)\"[^\"]*\"|(?<=Leader: )\d+|(?<=Replicas: )[\d,]+|(?<=Isr: )[\d,]+"
)
"""In what Kafka's tools print: ids, epochs, places."""
TOOL_API = re.compile(r"\t\w+\((\d+)\): ")
TOOL_SETTING = re.compile(r"  ([a-z][\w.]+)=")
LISTS = {"groups_command", "consumer_group_command"}
"""Tools that print groups in the order of a hash map."""
RATES = {"producer_performance", "consumer_performance"}
NUMBERS = re.compile(r"\d{4,}|(?<=PID\{Id:)\d+|[0-9a-f]{8}-[0-9a-f-]{27}|\b\d+ ?ms\b|\b\d+(\.\d+)? MB/sec|\b\d+\.\d+\b")


def text(value: Any) -> Any:
    """Without addresses, long numbers, producer ids, times and rates."""
    if isinstance(value, str):
        return NUMBERS.sub("N", ADDRESS.sub("BROKER", value))
    if isinstance(value, dict):
        return {key: text(inner) for key, inner in value.items()}
    return [text(inner) for inner in value] if isinstance(value, list) else value


def outcome(call: Mapping[str, Any]) -> str:
    """A call and how it ended."""
    return f"{call['call']}: {call.get('raised', 'returned')}"


def again(before: Mapping[str, Any], call: Mapping[str, Any]) -> bool:
    """Whether a call asks what the one before it asked, until it was so: then it counts once."""
    return bool(before["call"] == call["call"] and "code" not in call)


def without_chance(line: Mapping[str, Any]) -> Mapping[str, Any]:
    """A call's line without what chance decides."""
    call = CAPITAL.sub(r"_\1", line["call"]).lower()
    if "code" in line:
        return {"call": call, "code": line["code"], "returned": printed(call, line["returned"])}
    if "returned" not in line:
        return {name: text(value) for name, value in line.items()} | {"call": call}
    return {"call": call, "returned": result(call, line["returned"])}


def result(call: str, value: Any) -> Any:
    """What a call returned, without chance."""
    if call in CHANCE:
        return CHANCE[call]
    if call == "client.describe_broker_configs":
        return text({name: each for name, each in value.items() if name not in OWN_SETTINGS})
    if call == "client.describe_topic":
        return shape(value)
    plain = value if call in VERBATIM else text(value)
    return sorted(plain, key=_by_partition) if call in SEVERAL_PARTITIONS and isinstance(plain, list) else plain


def printed(tool: str, lines: Sequence[str]) -> list[str]:
    """What a tool of Kafka's printed, of what Understudy serves at all (GAPS.md)."""
    if tool in RATES:
        return ["rates"]
    kept = []
    for line in lines:
        api, setting = TOOL_API.match(line), TOOL_SETTING.match(line)
        if not ((api and int(api[1]) not in SERVED) or (setting and setting[1] in OWN_SETTINGS)):
            kept.append(text(TOOLS_CHANCE.sub("X", line)).rstrip(","))
    return sorted(kept) if tool in LISTS else kept


def shape(described: Mapping[str, Any]) -> Any:
    """A topic's partitions without the brokers that they were placed on by chance."""
    return {index: [len(replicas), sorted(isr) == sorted(replicas)] for index, (_, replicas, isr) in described.items()}


def _by_partition(record: Any) -> Any:
    """Each partition's records in their order; values without a partition, by themselves."""
    return (record["partition"], "") if isinstance(record, dict) and "partition" in record else (0, str(record))
