"""Plants: one answer each that contradicts others, the group that it is about, or the logs."""

from typing import Any

from protocol.types import uuid_text
from tests.pipeline.fault_files import topic_id_of
from tests.pipeline.journal_faults import answer
from tests.pipeline.journal_lines import Wire, Wiring

GROUP = 32
"""ConfigResource.Type."""


def _heartbeat(wire: Wire, group_id: str, member_id: str, epoch: int, owned: Any, assigned: Any) -> int:
    """ConsumerGroupHeartbeat that is answered with the next epoch, or the same one; `None`: as before."""
    request = {"group_id": group_id, "member_id": member_id, "member_epoch": epoch, "topic_partitions": owned,
               "subscribed_topic_names": [group_id]}  # fmt: skip
    got = {"error_code": "NONE", "error_message": None, "member_id": member_id, "member_epoch": max(epoch, 1),
           "heartbeat_interval_ms": 5000, "assignment": assigned and {"topic_partitions": assigned}}  # fmt: skip
    return wire.call("ConsumerGroupHeartbeat", request, got, version=1)


def _partition(topic: str, *numbers: int) -> list[dict[str, Any]]:
    return [{"topic_id": uuid_text(topic_id_of(topic)), "partitions": list(numbers)}]


@answer("assignment-answer")
def partition_of_two_members(wiring: Wiring, name: str) -> int:
    """A second member is given a partition that the first one keeps."""
    wiring.where.shelf(name).data(3)
    one, two = wiring.connect(f"{name}-1"), wiring.connect(f"{name}-2")
    owned = _partition(name, 0)
    _heartbeat(one, name, "m1", 0, [], owned)
    heartbeat_id = _heartbeat(two, name, "m2", 0, [], owned)
    _heartbeat(one, name, "m1", 1, owned, None)
    return heartbeat_id


@answer("group-description")
def description_with_another_epoch(wiring: Wiring, name: str) -> int:
    """A member has another epoch than it was given."""
    wiring.where.shelf(name).data(3)
    wire = wiring.connect(name)
    _heartbeat(wire, name, "m1", 0, [], _partition(name, 0))
    member: dict[str, Any] = {
              "member_id": "m1", "instance_id": None, "rack_id": None, "member_epoch": 2, "client_id": name,
              "client_host": "/127.0.0.1", "subscribed_topic_names": [name], "subscribed_topic_regex": None,
              "assignment": {"topic_partitions": []}, "target_assignment": {"topic_partitions": []},
              "member_type": 1}  # fmt: skip
    group = {"error_code": "NONE", "error_message": None, "group_id": name, "group_state": "Reconciling",
             "group_epoch": 2, "assignment_epoch": 2, "assignor_name": "uniform", "members": [member]}  # fmt: skip
    return wire.call("ConsumerGroupDescribe", {"group_ids": [name]}, {"groups": [group]}, version=1)


@answer("answer-contradicted")
def setting_that_was_not_taken(wiring: Wiring, name: str) -> int:
    """A setting has another value than it was given, and is not that of before."""
    wire = wiring.connect(name)
    of = {"resource_type": GROUP, "resource_name": name}
    config = {"name": "share.record.lock.duration.ms", "value": "15000", "read_only": False, "config_source": 8,
              "is_sensitive": False, "synonyms": [], "config_type": 3, "documentation": None}  # fmt: skip
    entry_id = 0
    for value, answered in (("15000", "15000"), ("20000", "17000")):
        change = {"name": config["name"], "config_operation": 0, "value": value}
        taken = {"responses": [{**of, "error_code": "NONE", "error_message": None}]}
        wire.call("IncrementalAlterConfigs", {"resources": [{**of, "configs": [change]}]}, taken, version=1)
        request = {"resources": [{**of, "configuration_keys": None}], "include_synonyms": False}
        result = {**of, "error_code": "NONE", "error_message": None, "configs": [{**config, "value": answered}]}
        entry_id = wire.call("DescribeConfigs", request, {"results": [result]}, version=4)
    return entry_id


def _share_fetch(wire: Wire, group_id: str, member_id: str, *acquired: tuple[int, int, int]) -> int:
    topic_id = uuid_text(topic_id_of(group_id))
    parts = [{"partition_index": 0, "acknowledgement_batches": []}]
    request = {"group_id": group_id, "member_id": member_id, "share_session_epoch": 0, "forgotten_topics_data": [],
               "topics": [{"topic_id": topic_id, "partitions": parts}]}  # fmt: skip
    runs = [{"first_offset": first, "last_offset": last, "delivery_count": count} for first, last, count in acquired]
    records = {"size_bytes": 100, "base_offset": acquired[0][0], "last_offset": acquired[-1][1]}
    part = {"partition_index": 0, "error_code": "NONE", "error_message": None, "acknowledge_error_code": "NONE",
            "current_leader": {"leader_id": 0, "leader_epoch": 0}, "records": records,
            "acquired_records": runs}  # fmt: skip
    got = {"error_code": "NONE", "error_message": None, "acquisition_lock_timeout_ms": 30_000, "node_endpoints": [],
           "responses": [{"topic_id": topic_id, "partitions": [part]}]}  # fmt: skip
    return wire.call("ShareFetch", request, got, version=1)


@answer("share-answer")
def records_of_two_members(wiring: Wiring, name: str) -> int:
    """A second member acquires what the first one has, whose connection goes on."""
    wiring.where.shelf(name).data(6)
    one, two = wiring.connect(f"{name}-1"), wiring.connect(f"{name}-2")
    _share_fetch(one, name, "m1", (0, 2, 1))
    fetch_id = _share_fetch(two, name, "m2", (2, 4, 1))
    one.call("ListGroups", {}, {"error_code": "NONE", "groups": []})
    return fetch_id


@answer("answer-place")
def epoch_that_ends_beyond(wiring: Wiring, name: str) -> int:
    """A leader epoch ends behind the end of the log."""
    wiring.where.shelf(name).data(3)
    request = {"topics": [{"topic": name, "partitions": [{"partition": 0, "leader_epoch": 0}]}]}
    part = {"partition": 0, "error_code": "NONE", "leader_epoch": 0, "end_offset": 9}
    got = {"topics": [{"topic": name, "partitions": [part]}]}
    return wiring.connect(name).call("OffsetForLeaderEpoch", request, got, version=4)
