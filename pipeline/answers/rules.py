"""Checks of one response against its request, API by API."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pipeline.answers.calls import NONE, ZERO_ID, Call, Fault, listed

_KIND: Final = "answer-value"
_TOPIC: Final = 2
_DYNAMIC_SOURCES: Final = (2, 3)
"""DYNAMIC_BROKER_CONFIG and DYNAMIC_DEFAULT_BROKER_CONFIG: broker configurations that change at run time."""
_DEFAULT_SOURCE: Final = 5  # DEFAULT_CONFIG
_ITERATIONS: Final = range(4096, 16385)
"""Iterations of SCRAM credentials that AlterUserScramCredentials accepts."""
_OWN_SOURCES: Final = (7, 8)
"""CLIENT_METRICS_CONFIG and GROUP_CONFIG, which precede all other sources."""
_NO_LEADERS: Final = frozenset({(-1, -1), (0, 0)})
"""Leader and epoch in a response without a leader hint: the fields' defaults, and what brokers fill in."""


def faults_of(call: Call) -> Iterator[Fault]:
    """Yield the faults of one response."""
    rule = _RULES.get(call.api)
    for what in rule(call) if rule is not None else ():
        yield Fault(call.id, _KIND, what)


def _topics(call: Call) -> Iterator[str]:
    """Check a topic's replicas: they exist, and the ISR and the leader are among them."""
    paged = call.response.get("next_cursor") is not None or call.request.get("cursor") is not None
    for each in listed(call.response, "topics"):
        if each["error_code"] == NONE and not listed(each, "partitions") and not paged:
            yield f"{each['name']} without partitions"
        for part in listed(each, "partitions"):
            replicas = set(part["replica_nodes"])
            inside = {*part["isr_nodes"], *part["offline_replicas"], *({part["leader_id"]} - {-1})}
            if not replicas or not inside <= replicas:
                place = f"{each['name']}-{part['partition_index']}"
                yield f"{place} has replicas {sorted(replicas)} and among them {sorted(inside)}"
            if part["leader_id"] >= 0 and part["leader_id"] not in part["isr_nodes"]:
                yield f"{each['name']}-{part['partition_index']} has a leader that is not in sync"
            if part["leader_id"] >= 0 > part["leader_epoch"] and call.version >= 7:  # the first of KIP-320
                yield f"{each['name']}-{part['partition_index']} has a leader without an epoch"


def _cluster(call: Call) -> Iterator[str]:
    nodes = {each["broker_id"] for each in listed(call.response, "brokers")}
    if call.error is None and call.request.get("endpoint_type", 1) == 1:
        if not call.response["cluster_id"]:
            yield "no cluster id"
        if not nodes or (call.broker >= 0 and call.broker not in nodes):
            yield f"brokers are {sorted(nodes)}, without the broker that responds"
        if call.response["controller_id"] not in {-1, *nodes}:
            yield f"controller {call.response['controller_id']} is not among the brokers"


def _quorum(call: Call) -> Iterator[str]:
    nodes = {each["node_id"] for each in listed(call.response, "nodes")}
    for topic in listed(call.response, "topics"):
        for part in listed(topic, "partitions"):
            if part["error_code"] != NONE:
                continue
            voters = {each["replica_id"]: each["log_end_offset"] for each in listed(part, "current_voters")}
            if part["leader_id"] not in voters:
                yield f"leader {part['leader_id']} is not among the voters"
            elif voters[part["leader_id"]] < part["high_watermark"]:
                yield "a high watermark beyond the leader's log"
            if part["leader_epoch"] < 0 or part["high_watermark"] < 0:
                yield f"leader epoch {part['leader_epoch']}, high watermark {part['high_watermark']}"
            if call.version >= 2 and not voters.keys() <= nodes:
                yield "voters without addresses"
    for each in listed(call.response, "nodes"):
        if not listed(each, "listeners"):
            yield f"node {each['node_id']} without listeners"


def _deleted(call: Call) -> Iterator[str]:
    requested_offsets = {
        (each["name"], part["partition_index"]): part["offset"]
        for each in listed(call.request, "topics")
        for part in listed(each, "partitions")
    }
    for each in listed(call.response, "topics"):
        for part in listed(each, "partitions"):
            if part["error_code"] == NONE and part["low_watermark"] < requested_offsets.get(
                (each["name"], part["partition_index"]), 0
            ):
                place = f"{each['name']}-{part['partition_index']}"
                yield f"{place} begins at {part['low_watermark']}, before what was deleted"


def _created(call: Call) -> Iterator[str]:
    requested_topics = {each["name"]: each for each in listed(call.request, "topics")}
    for each in listed(call.response, "topics"):
        sent = requested_topics.get(each["name"])
        # Since version 5 with the topic's settings (KIP-525).
        if each["error_code"] != NONE or sent is None or call.version < 5 or each["topic_config_error_code"]:
            continue
        if not listed(each, "configs"):
            yield f"{each['name']} without settings"
        placed = listed(sent, "assignments")
        factor = len(placed[0]["broker_ids"]) if placed else sent["replication_factor"]
        if factor > 0 and each["replication_factor"] != factor:
            yield f"{each['name']} has {each['replication_factor']} replicas, not {factor}"
        for config in listed(each, "configs"):
            if config["is_sensitive"] and config["value"] is not None:
                yield f"{each['name']} reports the sensitive {config['name']}"


def _settings(call: Call) -> Iterator[str]:
    """Check that a value is that of its first synonym, with that source, and that sensitive values are not reported."""
    for result in listed(call.response, "results"):
        for each in listed(result, "configs"):
            name = f"{result['resource_name']} {each['name']}"
            if each["is_sensitive"]:
                if each["value"] is not None:
                    yield f"{name} is sensitive and its value is reported"
                continue
            synonyms = listed(each, "synonyms")
            sources = [one["source"] for one in synonyms if one["source"] not in _OWN_SOURCES]
            if sources != sorted(sources):
                yield f"{name} has synonyms of the sources {sources}, which are not in their order"
            if not call.request.get("include_synonyms") or result["resource_type"] != _TOPIC:
                continue  # synonyms of a broker lag behind its configuration
            if synonyms:
                first = synonyms[0]
                both = {first["source"], each["config_source"]}
                same = (first["value"], first["source"]) == (each["value"], each["config_source"])
                if not same and both.isdisjoint(_DYNAMIC_SOURCES):  # and so do those of a topic
                    reported = f"{each['value']} of source {each['config_source']}"
                    yield f"{name} is {reported}, its first synonym {first['value']} of {first['source']}"
            elif each["value"] is not None and each["config_source"] != _DEFAULT_SOURCE:
                yield f"{name} without synonyms"


def _credentials(call: Call) -> Iterator[str]:
    for each in listed(call.response, "results"):
        infos = listed(each, "credential_infos")
        if each["error_code"] == NONE and not infos:
            yield f"{each['user']} without credentials"
        if any(one["mechanism"] not in {1, 2} or one["iterations"] not in _ITERATIONS for one in infos):
            yield f"{each['user']} has credentials {infos}"


def _versions(call: Call) -> Iterator[str]:
    supported = {each["name"]: each for each in listed(call.response, "supported_features")}
    for each in supported.values():
        if not 0 <= each["min_version"] <= each["max_version"]:
            yield f"{each['name']} from {each['min_version']} to {each['max_version']}"
    for each in listed(call.response, "finalized_features"):
        there = supported.get(each["name"])
        if there is None and call.version >= 4:  # before, features from 0 on are not listed (KIP-1022)
            yield f"the feature {each['name']} is finalized and not supported"
        if not each["min_version_level"] <= each["max_version_level"]:
            yield f"{each['name']} is finalized from {each['min_version_level']} to {each['max_version_level']}"
        if there is not None and each["max_version_level"] > there["max_version"]:
            yield f"{each['name']} is finalized at {each['max_version_level']}, beyond what is supported"


def _directories(call: Call) -> Iterator[str]:
    if call.error is None and not listed(call.response, "results"):
        yield "no directory"
    for each in listed(call.response, "results"):
        if each["error_code"] != NONE:
            continue
        # Since version 4 with sizes (KIP-827).
        if call.version >= 4 and not -1 <= each["usable_bytes"] <= each["total_bytes"]:
            yield f"{each['usable_bytes']} of {each['total_bytes']} bytes are usable"
        for topic in listed(each, "topics"):
            for part in listed(topic, "partitions"):
                if part["partition_size"] < 0 or part["offset_lag"] < 0:
                    place = f"{topic['name']}-{part['partition_index']}"
                    yield f"{place}: size {part['partition_size']}, lag {part['offset_lag']}"
            if not listed(topic, "partitions"):
                yield f"{topic['name']} without partitions"


def _hints(call: Call) -> Iterator[str]:
    """Check leader hints: ShareFetch and ShareAcknowledge have one only if another broker is the leader."""
    for each in listed(call.response, "responses"):
        if not listed(each, "partitions"):
            yield "a topic without partitions"
        for part in listed(each, "partitions"):
            leader = part["current_leader"]
            if part["error_code"] == NONE and (leader["leader_id"], leader["leader_epoch"]) not in _NO_LEADERS:
                yield f"another leader, {leader['leader_id']} in epoch {leader['leader_epoch']}, without an error"


def _share_offsets(call: Call) -> Iterator[str]:
    requested_topics = {each["group_id"]: each.get("topics") for each in listed(call.request, "groups")}
    for group in listed(call.response, "groups"):
        topics = requested_topics.get(group["group_id"])
        if group["error_code"] != NONE:
            continue
        reported = [
            (each["topic_name"], part["partition_index"])
            for each in listed(group, "topics")
            for part in listed(each, "partitions")
        ]
        if topics is not None:
            wanted = {(each["topic_name"], part) for each in topics for part in each["partitions"]}
            if wanted != set(reported):
                yield f"partitions {sorted(reported)}, not {sorted(wanted)}"
        for each in listed(group, "topics"):
            if each.get("topic_id") == ZERO_ID and any(one["error_code"] == NONE for one in listed(each, "partitions")):
                yield f"{each['topic_name']} without an id"
            for part in listed(each, "partitions"):
                if part["start_offset"] < -1 or part["lag"] < -1 or part["leader_epoch"] < -1:
                    place = f"{each['topic_name']}-{part['partition_index']}"
                    yield f"{place} starts at {part['start_offset']}, lag {part['lag']}"


def _assigned(call: Call) -> Iterator[str]:
    """Check that heartbeats and group descriptions contain no topic or subtopology without partitions."""
    if _has_empty_partitions(call.response):
        yield "an assignment without partitions"


def _has_empty_partitions(value: Any) -> bool:
    if isinstance(value, dict):
        return value.get("partitions") == [] or any(map(_has_empty_partitions, value.values()))
    return isinstance(value, list) and any(map(_has_empty_partitions, value))


_RULES: Final[Mapping[str, Callable[[Call], Iterator[str]]]] = {
    "ApiVersions": _versions, "ConsumerGroupDescribe": _assigned, "ConsumerGroupHeartbeat": _assigned,
    "CreateTopics": _created, "DeleteRecords": _deleted, "DescribeCluster": _cluster, "DescribeConfigs": _settings,
    "DescribeLogDirs": _directories, "DescribeQuorum": _quorum, "DescribeShareGroupOffsets": _share_offsets,
    "DescribeTopicPartitions": _topics, "DescribeUserScramCredentials": _credentials,
    "ShareAcknowledge": _hints, "ShareFetch": _hints, "ShareGroupDescribe": _assigned, "ShareGroupHeartbeat": _assigned,
    "StreamsGroupDescribe": _assigned, "StreamsGroupHeartbeat": _assigned,
}  # fmt: skip
