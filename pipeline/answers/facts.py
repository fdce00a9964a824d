"""Values that requests write and responses report (`registers`): topics, configurations, quotas, ACLs, groups."""

from collections.abc import Iterator
from typing import Final

from pipeline.answers import group_facts, rights
from pipeline.answers.calls import NONE, ZERO_ID, Body, Call, canonical, listed
from pipeline.answers.registers import ANY, LAG_US, Key, Registers
from pipeline.answers.rights import UNSET, Reported

_OWN_SOURCES: Final = {2: (1,), 4: (2,), 16: (7,), 32: (8,)}
"""ConfigSource of a value that was set on a resource itself, by type: topic, broker, client metrics, group."""
_CLUSTER_SOURCE: Final = 3
"""ConfigSource of the cluster-wide default for brokers, resource name ''."""
_BUILT_IN: Final = 5
"""ConfigSource of a built-in default."""
_TOPIC_APIS: Final = frozenset({"Metadata", "DescribeTopicPartitions"})
_IDS: Final = {"Metadata": 10}
"""API -> first version in which topics have ids."""
_SET, _DELETE = 0, 1
_TOPIC: Final = "2"
_BROKER: Final = 4  # ConfigResource.Type, below too
_GROUP: Final = 32
_AT_ONCE: Final = frozenset({"committed offset", "share start"})
"""Kinds that a coordinator both writes and reports, so that its reads do not lag."""
_ALL: Final = 1
"""ANY in an ACL filter."""


def note(call: Call, values: Registers) -> None:
    """Record what a request wrote and what its response reports."""
    if call.api in _WRITERS and (not call.is_answered or call.response):
        _WRITERS[call.api](call, values)
    if call.is_answered:
        for key, value, topic, group_id in _reported(call, values):
            if key[0] == "topic id" and value is not None:
                values.names[key[1]] = value
            times = (call.start_us, call.end_us)
            lag_us = 0 if key[0] in _AT_ONCE else LAG_US
            values.read(key, value, times, call.broker, call.id, topic=topic, group_id=group_id, lag_us=lag_us)
        for key, value in _missing(call, values):
            values.read(key, value, (call.start_us, call.end_us), call.broker, call.id)


def _reported(call: Call, values: Registers) -> Reported:
    """Yield what a response reports; committed offsets by topic name, even if the response has ids (KIP-848)."""
    if call.api == "OffsetFetch":
        yield from group_facts.fetched_offsets(call, values.names)
    elif call.api in _READERS:
        yield from _READERS[call.api](call)


# ---------------------------------------------------------------------- topics


def _topic(name: str, topic_id: str | None, partitions: int | None, is_internal: bool | None) -> Reported:
    if topic_id not in (None, ZERO_ID):
        yield ("topic", name, "id"), topic_id, name, None
        yield ("topic id", topic_id, "name"), name, name, None
    if partitions is not None:
        yield ("topic", name, "partitions"), str(partitions), name, None
    if is_internal is not None:
        yield ("topic", name, "internal"), str(is_internal), name, None


def _described_topics(call: Call) -> Reported:
    """Return the topics of Metadata and DescribeTopicPartitions."""
    whole = call.api == "Metadata" or (call.response.get("next_cursor"), call.request.get("cursor")) == (None, None)
    for each in listed(call.response, "topics"):
        name = each.get("name")
        if each.get("error_code") != NONE or not name:
            continue
        parts = listed(each, "partitions")
        yield from _topic(name, each.get("topic_id"), len(parts) if whole else None, each.get("is_internal"))
        for part in parts:
            number = str(part["partition_index"])
            if part["leader_id"] >= 0 and part["leader_epoch"] >= 0:
                key = ("topic", name, number, f"leader in epoch {part['leader_epoch']}")
                yield key, str(part["leader_id"]), name, None
            replicas = sorted(part["replica_nodes"])
            if replicas:
                yield ("topic", name, number, "replicas"), canonical(replicas), name, None
    yield from _cluster(call)


def _cluster(call: Call) -> Reported:
    if call.response.get("cluster_id"):
        yield ("cluster id",), call.response["cluster_id"], None, None
    for each in listed(call.response, "brokers"):
        yield from _node(call, each.get("node_id", each.get("broker_id")), each)


def _quorum(call: Call) -> Reported:
    """Yield the addresses of the quorum's nodes as one broker reports them on one connection."""
    for each in listed(call.response, "nodes"):
        for one in listed(each, "listeners"):
            key = ("node of the quorum", str(call.connection), str(each["node_id"]), one["name"])
            yield key, f"{one['host']}:{one['port']}", None, None


def _coordinator(call: Call) -> Reported:
    # Since version 4 for many keys (KIP-699).
    for each in listed(call.response, "coordinators") if call.version >= 4 else [call.response]:
        if each["error_code"] == NONE:
            yield from _node(call, each["node_id"], each)


def _node(call: Call, node_id: int, where: Body) -> Reported:
    """Yield a broker's own address, which does not change as long as a connection to it lasts."""
    if node_id == call.broker:
        yield ("node", call.listener, str(call.connection)), f"{where['host']}:{where['port']}", None, None


def _create_topics(call: Call, values: Registers) -> None:
    done = {each["name"]: each for each in listed(call.response, "topics")}
    for each in listed(call.request, "topics") if not call.request.get("validate_only") else ():
        result = done.get(each["name"])
        if result is not None and result["error_code"] != NONE:
            continue
        times, certain = (call.start_us, call.end_us), result is not None
        name = each["name"]
        topic_id = result and result.get("topic_id")
        count = each["num_partitions"] if each["num_partitions"] > 0 else len(listed(each, "assignments"))
        written: dict[Key, object] = {
            ("topic", name, "id"): topic_id if topic_id not in (None, ZERO_ID) else ANY,
            ("topic", name, "partitions"): str(count) if count else ANY,
        }
        for config in listed(each, "configs"):
            value = ANY if config["value"] is None else plain(config["value"])
            written["setting", _TOPIC, name, config["name"]] = value
        for key, value in written.items():
            if certain:
                values.begin(key, value, *times)
            else:
                values.write(key, value, *times, certain=False)


def _created_topics(call: Call) -> Reported:
    for each in listed(call.response, "topics"):
        # Since version 5 with the topic's settings (KIP-525).
        if each["error_code"] == NONE and call.version >= 5 and listed(each, "configs"):
            if each["num_partitions"] > 0 and not call.request.get("validate_only"):
                yield ("topic", each["name"], "partitions"), str(each["num_partitions"]), each["name"], None
            for config in each["configs"]:
                yield from _setting(_TOPIC, each["name"], config)
            if each.get("topic_id") not in (None, ZERO_ID) and not call.request.get("validate_only"):
                yield ("topic id", each["topic_id"], "name"), each["name"], each["name"], None
            yield from _listed_settings(call, each["configs"])


def _listed_settings(call: Call, configs: list[Body]) -> Reported:
    """Yield the names of a topic's configurations, and the sources of inherited values: the same for all topics."""
    where = (call.api, str(call.broker))
    yield ("setting names", *where), canonical(sorted(each["name"] for each in configs)), None, None
    for each in configs:
        if each["config_source"] not in _OWN_SOURCES[int(_TOPIC)]:
            yield ("setting source", *where, each["name"]), str(each["config_source"]), None, None


def _delete_topics(call: Call, values: Registers) -> None:
    for each in listed(call.request, "topics"):
        _forget_topic(values, call, each.get("name"))
    for name in listed(call.request, "topic_names"):
        _forget_topic(values, call, name)


def _forget_topic(values: Registers, call: Call, name: str | None) -> None:
    times = (call.start_us, call.end_us) if call.is_answered and name else (call.start_us,)
    values.reset(("topic", name) if name else ("topic",), *times)
    values.reset(("setting", _TOPIC, name) if name else ("setting", _TOPIC), *times)
    values.reset(("committed offset",), call.start_us)


def _create_partitions(call: Call, values: Registers) -> None:
    done = {each["name"]: each["error_code"] for each in listed(call.response, "results")}
    for each in listed(call.request, "topics") if not call.request.get("validate_only") else ():
        if done.get(each["name"], NONE) == NONE:
            key = ("topic", each["name"], "partitions")
            values.write(key, str(each["count"]), call.start_us, call.end_us, certain=each["name"] in done)


def _reassign(call: Call, values: Registers) -> None:
    for each in listed(call.request, "topics"):
        for part in listed(each, "partitions"):
            values.reset(("topic", each["name"], str(part["partition_index"]), "replicas"), call.start_us)


# -------------------------------------------------------------------- settings


def _alter_configs(call: Call, values: Registers) -> None:
    """Record AlterConfigs, which replaces all settings of a resource, or IncrementalAlterConfigs, which does not."""
    done = {
        (each["resource_type"], each["resource_name"]): each["error_code"]
        for each in listed(call.response, "responses")
    }
    for each in listed(call.request, "resources") if not call.request.get("validate_only") else ():
        where = (str(each["resource_type"]), each["resource_name"])
        code = done.get((each["resource_type"], each["resource_name"]))
        if code not in (None, NONE):
            continue
        if each["resource_type"] == _BROKER:
            values.reset(("setting source",), call.start_us, call.end_us)
        if call.api == "AlterConfigs":
            values.reset(("setting", *where), call.start_us)
            continue
        for config in listed(each, "configs"):
            operation = config["config_operation"]
            value = {_SET: plain(config["value"]), _DELETE: UNSET}.get(operation, ANY)
            key = ("setting", *where, config["name"])
            values.write(key, value, call.start_us, call.end_us, certain=code is not None)
        if each["resource_type"] == _GROUP:
            values.reset(("group", each["resource_name"]), call.start_us, call.end_us)


def _described_configs(call: Call) -> Reported:
    for each in listed(call.response, "results"):
        if each["error_code"] == NONE:
            for config in listed(each, "configs"):
                yield from _setting(str(each["resource_type"]), each["resource_name"], config)


def _setting(resource: str, name: str, config: Body) -> Reported:
    """Yield what is reported of one setting; loggers and sensitive values are left out."""
    source, topic = config["config_source"], name if resource == _TOPIC else None
    if source < 0 or resource not in {"2", "4", "16", "32"}:
        return
    yield ("setting's kind", resource, config["name"], "sensitive"), str(config["is_sensitive"]), topic, None
    if config["is_sensitive"]:
        return
    own = (_CLUSTER_SOURCE,) if resource == "4" and not name else _OWN_SOURCES[int(resource)]
    key = ("setting", resource, name, config["name"])
    yield key, plain(config["value"]) if source in own else UNSET, topic, None
    if source == _BUILT_IN:
        yield ("default", resource, config["name"]), plain(config["value"]), topic, None
    what = "read only" if name else "read only for all"
    yield ("setting's kind", resource, config["name"], what), str(config["read_only"]), topic, None
    if config.get("config_type", 0) > 0:
        yield ("setting's kind", resource, config["name"], "type"), str(config["config_type"]), topic, None


def _missing(call: Call, values: Registers) -> Iterator[tuple[Key, str]]:
    """Yield known values that the response would contain if they were still in force."""
    if call.api == "DescribeAcls" and call.error is None and _wants_all(call.request):
        reported = {key for key, *_ in rights.described_acls(call)}
        yield from ((key, "not there") for key in values.known("permission") if key not in reported)
    for each in (
        listed(call.response, "topics") if call.api in _TOPIC_APIS and call.version >= _IDS.get(call.api, 0) else ()
    ):
        if each["error_code"] == NONE and each.get("name") and each.get("topic_id") in (None, ZERO_ID):
            yield from ((key, "none") for key in values.known("topic", each["name"], "id"))
    for one in listed(call.response, "groups") if call.api == "OffsetFetch" else ():
        whole = [each["group_id"] for each in listed(call.request, "groups") if each.get("topics") is None]
        are_known = all(each.get("name") or each.get("topic_id") in values.names for each in listed(one, "topics"))
        if one["error_code"] == NONE and one["group_id"] in whole and are_known:
            reported = {key for key, *_ in group_facts.fetched_offsets(call, values.names)}
            yield from (
                (key, UNSET) for key in values.known("committed offset", one["group_id"]) if key not in reported
            )
    for each in listed(call.response, "results") if call.api == "DescribeConfigs" else ():
        resource, name = each["resource_type"], each["resource_name"]
        if each["error_code"] != NONE or resource not in _OWN_SOURCES:
            continue
        wanted = {key for one in listed(call.request, "resources") for key in listed(one, "configuration_keys")}
        described_names = {one["name"] for one in listed(each, "configs")}
        absent = UNSET if resource == _BROKER and not name else "left out"
        for key in values.known("setting", str(resource), name):
            if key[-1] not in described_names and (not wanted or key[-1] in wanted):
                yield key, absent


def _wants_all(request: Body) -> bool:
    names = ("resource_type_filter", "pattern_type_filter", "operation", "permission_type")
    texts = ("resource_name_filter", "principal_filter", "host_filter")
    return all(request[name] == _ALL for name in names) and not any(request[name] for name in texts)


def plain(value: str | None) -> str | None:
    """Return a setting's value without the parts that brokers normalize: case, spaces, the format of numbers."""
    if value is None:
        return None
    text = value.lower().replace(" ", "")
    try:
        return canonical(float(text)) if "." in text else str(int(text))
    except ValueError:
        return text


_WRITERS: Final = {
    "AlterClientQuotas": rights.alter_quotas, "AlterConfigs": _alter_configs,
    "AlterPartitionReassignments": _reassign, "AlterShareGroupOffsets": group_facts.share_start,
    "AlterUserScramCredentials": rights.alter_credentials, "CreateAcls": rights.create_acls,
    "CreatePartitions": _create_partitions, "CreateTopics": _create_topics, "DeleteAcls": rights.delete_acls,
    "DeleteGroups": group_facts.delete_groups, "DeleteShareGroupOffsets": group_facts.share_start,
    "DeleteTopics": _delete_topics, "IncrementalAlterConfigs": _alter_configs, "OffsetCommit": group_facts.commit,
    "OffsetDelete": group_facts.delete_offsets, "ShareAcknowledge": group_facts.share_start,
    "ShareFetch": group_facts.share_start, "ShareGroupHeartbeat": group_facts.share_start,
    "TxnOffsetCommit": group_facts.commit,
}  # fmt: skip
_READERS: Final = {
    "AlterShareGroupOffsets": group_facts.altered_starts, "ConsumerGroupDescribe": group_facts.members_reported,
    "CreateTopics": _created_topics, "DescribeAcls": rights.described_acls,
    "DescribeClientQuotas": rights.described_quotas, "DescribeCluster": _cluster,
    "DescribeConfigs": _described_configs, "DescribeGroups": group_facts.members_reported,
    "DescribeQuorum": _quorum, "DescribeShareGroupOffsets": group_facts.share_starts,
    "DescribeTopicPartitions": _described_topics,
    "DescribeUserScramCredentials": rights.described_credentials, "FindCoordinator": _coordinator,
    "Metadata": _described_topics,
    "ShareAcknowledge": group_facts.locks, "ShareFetch": group_facts.locks,
    "ShareGroupDescribe": group_facts.members_reported, "StreamsGroupDescribe": group_facts.members_reported,
}  # fmt: skip
