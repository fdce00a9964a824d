"""Plants: answers that no broker may give, API by API. The clients ask as they should, as far as they can."""

from collections.abc import Callable
from typing import Any

from tests.pipeline.journal_faults import ANSWERS, answer
from tests.pipeline.journal_lines import Wire, Wiring


def changed(wiring: Wiring, number: int, change: Callable[[Any], Any]) -> int:
    """Change the answer of the request with this id."""
    change(wiring.lines[number - 1]["response"])
    return number


def _produced(wiring: Wiring, number: int) -> Any:
    return wiring.lines[number - 1]["response"]["responses"][0]["partition_responses"][0]


def _fetched(wiring: Wiring, number: int) -> Any:
    return wiring.lines[number - 1]["response"]["responses"][0]["partitions"][0]


def _of_produce(check: str, **fields: Any) -> None:
    """An answer to Produce with other fields of the partition."""

    def make(wiring: Wiring, name: str) -> int:
        number = wiring.connect(name).produce(name, offset=4)
        _produced(wiring, number).update(fields)
        return number

    ANSWERS["produce-" + "-".join(fields)] = (check, make)


_of_produce("produce-answer", base_offset=-1)
_of_produce("produce-answer", log_start_offset=9)
_of_produce("produce-answer", index=3)


def _of_fetch(name: str, check: str = "fetch-answer", **fields: Any) -> None:
    """An answer to a Fetch of offset 4, which has the offsets 4 to 8, with other fields of the partition."""

    def make(wiring: Wiring, topic: str) -> int:
        number = wiring.connect(topic).fetch(topic, 4, [(4, 6), (7, 8)], stable=9)
        _fetched(wiring, number).update(fields)
        return number

    ANSWERS[name] = (check, make)


def _records(*batches: tuple[int, int]) -> dict[str, Any]:
    listed = [{"base_offset": first, "last_offset": last, "producer_id": -1, "transactional": False, "control": False,
             "count": last - first + 1} for first, last in batches]  # fmt: skip
    return {"size_bytes": 100, "batches": listed, "base_offset": batches[0][0], "last_offset": batches[-1][1]}


_of_fetch("fetch-stable-beyond-watermark", last_stable_offset=12)
_of_fetch("fetch-start-beyond-watermark", log_start_offset=12)
_of_fetch("fetch-records-beyond-watermark", high_watermark=6, last_stable_offset=6)
_of_fetch("fetch-watermark-none", high_watermark=-1, last_stable_offset=-1)
_of_fetch("fetch-records-before", records=_records((0, 2)))
_of_fetch("fetch-records-out-of-order", records=_records((7, 8), (4, 6)))
_of_fetch("fetch-records-overlap", records=_records((4, 6), (6, 8)))
_of_fetch("fetch-error-with-records", error_code="NOT_LEADER_OR_FOLLOWER")
_of_fetch("fetch-unasked-partition", "answer-items", partition_index=5)
_of_fetch("fetch-aborted-for-uncommitted", aborted_transactions=[{"producer_id": 700, "first_offset": 4}])


@answer("fetch-answer")
def fetch_records_beyond_the_stable_offset(wiring: Wiring, topic: str) -> int:
    """A read_committed consumer gets a batch that its own response calls unstable, and no later one calls stable."""
    number = wiring.connect(topic).fetch(topic, 4, [(4, 6), (7, 8)], stable=9, committed=True)
    _fetched(wiring, number).update(last_stable_offset=7)
    return number


@answer("produce-answer")
def produce_error_with_offset(wiring: Wiring, name: str) -> int:
    """An error, and a place."""
    number = wiring.connect(name).produce(name, error="NOT_ENOUGH_REPLICAS")
    _produced(wiring, number)["base_offset"] = 3
    return number


@answer("produce-answer")
def produce_partition_unanswered(wiring: Wiring, name: str) -> int:
    """The answer leaves the partition out."""
    number = wiring.connect(name).produce(name)
    wiring.lines[number - 1]["response"]["responses"] = []
    return number


@answer("produce-offsets")
def produce_same_offsets(wiring: Wiring, name: str) -> int:
    """Two batches at one place."""
    wire = wiring.connect(name)
    wire.produce(name, offset=3)
    return wire.produce(name, offset=4)


@answer("produce-offsets")
def produce_offsets_back(wiring: Wiring, name: str) -> int:
    """A later batch before an earlier one."""
    wire = wiring.connect(name)
    wire.produce(name, offset=30)
    return wire.produce(name, offset=10)


@answer("produce-accepted")
def produce_gap_accepted(wiring: Wiring, name: str) -> int:
    """The batch between was refused, and the broker takes the next one."""
    wire = wiring.connect(name)
    wire.produce(name, who=(701, 0), sequence=0, offset=0)
    wire.produce(name, who=(701, 0), sequence=3, error="NOT_ENOUGH_REPLICAS")
    return wire.produce(name, who=(701, 0), sequence=6, offset=3)


@answer("produce-accepted")
def produce_fenced_accepted(wiring: Wiring, name: str) -> int:
    """Another client has the next epoch already."""
    wire, other = wiring.connect(name), wiring.connect(f"{name}-2")
    wire.init(name, (702, 0))
    wire.produce(name, who=(702, 0), sequence=0, name=name, offset=0)
    other.init(name, (702, 1))
    return wire.produce(name, who=(702, 0), sequence=3, name=name, offset=4)


@answer("fetch-watermark-back")
def watermark_back(wiring: Wiring, name: str) -> int:
    """Nine, then six."""
    wire = wiring.connect(name)
    wire.fetch(name, 0, [(0, 2)], stable=9)
    return wire.fetch(name, 3, [(3, 5)], stable=6)


@answer("fetch-differs")
def fetch_of_other_batches(wiring: Wiring, name: str) -> int:
    """The log has 0-2 and 3-5, the answer 0-5 in one."""
    log, wire = wiring.where.shelf(name), wiring.connect(name)
    log.data(3)
    log.data(3)
    return wire.fetch(name, 0, [(0, 5)], stable=6)


@answer("fetch-differs")
def fetch_of_another_producer(wiring: Wiring, name: str) -> int:
    """The batch is there, with another producer."""
    log, wire = wiring.where.shelf(name), wiring.connect(name)
    log.data(3, producer=703)
    return wire.fetch(name, 0, [(0, 2)], producer=704, stable=3)


@answer("fetch-gap")
def fetch_left_out(wiring: Wiring, name: str) -> int:
    """The log has 0-2, and the answer begins at 3."""
    log, wire = wiring.where.shelf(name), wiring.connect(name)
    log.data(3)
    log.data(3)
    return wire.fetch(name, 0, [(3, 5)], stable=6)


@answer("fetch-gap")
def fetch_left_out_between(wiring: Wiring, name: str) -> int:
    """The second of three batches is not in the answer."""
    log, wire = wiring.where.shelf(name), wiring.connect(name)
    for _ in range(3):
        log.data(3)
    return wire.fetch(name, 0, [(0, 2), (6, 8)], stable=9)


def _list(wire: Wire, topic: str, asked_ms: int, offset: int, *, time_ms: int = -1, index: int = 0) -> int:
    """ListOffsets of partition 0."""
    request = {"replica_id": -1, "isolation_level": 0,
               "topics": [{"name": topic, "partitions": [{"partition_index": 0, "timestamp": asked_ms}]}]}  # fmt: skip
    part = {"partition_index": index, "error_code": "NONE", "timestamp": time_ms, "offset": offset, "leader_epoch": 0}
    return wire.call("ListOffsets", request, {"topics": [{"name": topic, "partitions": [part]}]}, version=7)


@answer("list-offsets-answer")
def latest_before_acknowledged(wiring: Wiring, name: str) -> int:
    """The end is before what was acknowledged."""
    wire = wiring.connect(name)
    wire.produce(name, offset=10)
    return _list(wire, name, -1, 5)


@answer("list-offsets-answer")
def latest_back(wiring: Wiring, name: str) -> int:
    """The end goes back."""
    wire = wiring.connect(name)
    _list(wire, name, -1, 9)
    return _list(wire, name, -1, 8)


@answer("list-offsets-answer")
def earlier_than_asked(wiring: Wiring, name: str) -> int:
    """A record of an earlier time than was asked for."""
    return _list(wiring.connect(name), name, 5000, 3, time_ms=4000)


@answer("answer-items")
def listed_unasked(wiring: Wiring, name: str) -> int:
    """Another partition."""
    return _list(wiring.connect(name), name, -1, 3, index=6)


def _offsets(wire: Wire, group: str, topic: str, offset: int) -> int:
    """OffsetFetch of partition 0."""
    request = {"groups": [{"group_id": group, "topics": [{"name": topic, "partition_indexes": [0]}]}]}
    part = {"partition_index": 0, "committed_offset": offset, "error_code": "NONE"}
    got = {"groups": [{"group_id": group, "error_code": "NONE", "topics": [{"name": topic, "partitions": [part]}]}]}
    return wire.call("OffsetFetch", request, got, version=9)


@answer("offset-fetch-answer")
def offset_forgotten(wiring: Wiring, name: str) -> int:
    """None, though 5 was committed."""
    wire = wiring.connect(name)
    wire.join(name, name, 1)
    wire.fetch(name, 0, [(0, 4)])
    wire.commit(name, name, 1, name, 5)
    return _offsets(wire, name, name, -1)


@answer("offset-fetch-answer")
def offset_of_an_earlier_commit(wiring: Wiring, name: str) -> int:
    """OffsetFetch returns 3, though 5 was committed after it."""
    wire = wiring.connect(name)
    wire.join(name, name, 1)
    wire.fetch(name, 0, [(0, 4)])
    wire.commit(name, name, 1, name, 3)
    wire.commit(name, name, 1, name, 5)
    return _offsets(wire, name, name, 3)


@answer("offset-fetch-answer")
def offset_of_an_aborted_transaction(wiring: Wiring, name: str) -> int:
    """OffsetFetch returns 8, whose transaction was aborted."""
    wire = wiring.connect(name)
    wire.init(name, (705, 0))
    wire.join(name, name, 1)
    wire.fetch(name, 0, [(0, 9)])
    wire.commit(name, name, 1, name, 5)
    wire.commit_in_transaction(name, (705, 0), name, name, 1, name, 8)
    wire.end(name, (705, 0), committed=False, granted=(705, 1), version=5)
    return _offsets(wire, name, name, 8)


@answer("generation-accepted")
def old_commit_accepted(wiring: Wiring, name: str) -> int:
    """The group is a generation further."""
    wire, other = wiring.connect(name), wiring.connect(name)
    wire.join(name, f"{name}-1", 1)
    wire.fetch(name, 0, [(0, 4)])
    other.join(name, f"{name}-2", 2)
    return wire.commit(name, f"{name}-1", 1, name, 5)


@answer("generation-accepted")
def old_heartbeat_accepted(wiring: Wiring, name: str) -> int:
    """The group is two generations further, and the heartbeat is answered without an error."""
    wire, other = wiring.connect(name), wiring.connect(name)
    wire.join(name, f"{name}-1", 1)
    other.join(name, f"{name}-2", 3)
    return wire.heartbeat(name, f"{name}-1", 1)


@answer("join-answer")
def generation_back(wiring: Wiring, name: str) -> int:
    """JoinGroup answers generation 4, then 2."""
    wire = wiring.connect(name)
    wire.join(name, name, 4)
    return wire.join(name, name, 2)


@answer("join-answer")
def another_member(wiring: Wiring, name: str) -> int:
    """A member is given the id of another."""
    return wiring.connect(name).join(name, f"{name}-b", 1, sent_id=f"{name}-a")


@answer("join-answer")
def two_leaders(wiring: Wiring, name: str) -> int:
    """JoinGroup names each of two members as the leader."""
    wire, other = wiring.connect(name), wiring.connect(f"{name}-2")
    wire.join(name, f"{name}-1", 1)
    return other.join(name, f"{name}-2", 1)


@answer("producer-id-answer")
def identity_twice(wiring: Wiring, name: str) -> int:
    """Two clients with one identity."""
    wiring.connect(name).init(None, (706, 0))
    return wiring.connect(f"{name}-2").init(None, (706, 0))


@answer("producer-id-answer")
def epoch_granted_back(wiring: Wiring, name: str) -> int:
    """A transactional id's epoch goes back."""
    wiring.connect(name).init(name, (707, 5))
    return wiring.connect(f"{name}-2").init(name, (707, 4))


@answer("producer-id-answer")
def identity_none(wiring: Wiring, name: str) -> int:
    """No error, and no identity."""
    return wiring.connect(name).init(None, (-1, -1))


@answer("end-answer")
def end_of_a_fenced_producer(wiring: Wiring, name: str) -> int:
    """Another one has the next epoch."""
    wire, other = wiring.connect(name), wiring.connect(f"{name}-2")
    wire.init(name, (708, 0))
    other.init(name, (708, 1))
    return wire.end(name, (708, 0))


@answer("end-answer")
def end_with_an_older_epoch(wiring: Wiring, name: str) -> int:
    """The answer's epoch is below that of the request."""
    wire = wiring.connect(name)
    wire.init(name, (709, 4))
    return wire.end(name, (709, 4), granted=(709, 3), version=5)


def _metadata(wire: Wire, topic: str, **fields: Any) -> int:
    """Metadata of a topic with one partition on brokers 1 and 2."""
    partition = {"error_code": "NONE", "partition_index": 0, "leader_id": 1, "leader_epoch": 3, "replica_nodes": [1, 2],
                 "isr_nodes": [1, 2], "offline_replicas": []}  # fmt: skip
    described = {
        "error_code": "NONE",
        "name": topic,
        "is_internal": False,
        "topic_id": fields.pop("topic_id", f"{topic[:20]:A<22}"),
    }
    copies = fields.pop("copies", 1)
    got = {
        "brokers": [{"node_id": each, "host": "h", "port": 9} for each in (1, 2)], "cluster_id": "planted",
        "controller_id": fields.pop("controller_id", 1),
        "topics": [{**described, "partitions": [partition | fields for _ in range(copies)]}],
    }  # fmt: skip
    return wire.call("Metadata", {"topics": [{"name": topic}]}, got, version=12)


def _of_metadata(name: str, **fields: Any) -> None:
    ANSWERS[name] = ("metadata-answer", lambda wiring, topic: _metadata(wiring.connect(topic), topic, **fields))


_of_metadata("metadata-leader-unknown", leader_id=7, replica_nodes=[1, 7], isr_nodes=[1, 7])
_of_metadata("metadata-leader-no-replica", replica_nodes=[2], isr_nodes=[2])
_of_metadata("metadata-isr-no-replica", isr_nodes=[1, 3])
_of_metadata("metadata-partition-twice", copies=2)
_of_metadata("metadata-controller-unknown", controller_id=8)


@answer("metadata-changed")
def topic_id_changed(wiring: Wiring, name: str) -> int:
    """The topic has another id, and no request deleted it."""
    wire = wiring.connect(name)
    _metadata(wire, name)
    return _metadata(wire, name, topic_id="B" * 22)


@answer("metadata-changed")
def leader_epoch_went_back(wiring: Wiring, name: str) -> int:
    """Metadata has leader epoch 3, then 2."""
    wire = wiring.connect(name)
    _metadata(wire, name)
    return _metadata(wire, name, leader_epoch=2)


def _greeting(name: str, key: dict[str, int], *, twice: bool = False) -> None:
    def make(wiring: Wiring, client: str) -> int:
        got = {"error_code": "NONE", "api_keys": [key] * (2 if twice else 1)}
        return wiring.connect(client, greets=False).call("ApiVersions", {}, got, version=3)

    ANSWERS[name] = ("versions-answer", make)


_greeting("versions-upside-down", {"api_key": 3, "min_version": 5, "max_version": 4})
_greeting("versions-negative", {"api_key": 3, "min_version": -1, "max_version": 4})
_greeting("versions-twice", {"api_key": 3, "min_version": 0, "max_version": 12}, twice=True)


@answer("member-epoch-answer")
def member_epoch_went_back(wiring: Wiring, name: str) -> int:
    """Granted 5, then 4."""
    wire = wiring.connect(name)
    request = {"group_id": name, "member_id": name, "member_epoch": 0}
    wire.call("ConsumerGroupHeartbeat", request, {"error_code": "NONE", "member_id": name, "member_epoch": 5})
    request["member_epoch"] = 5
    return wire.call("ConsumerGroupHeartbeat", request, {"error_code": "NONE", "member_id": name, "member_epoch": 4})
