"""The journal over HTTP, in Python and in the shell: its entries, how they are searched, and captures of them."""

import struct
import subprocess
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.control.conftest import ControlPlaneOf
from tests.control.harness import ControlPlane
from tests.examples.running import needs
from tests.scenarios.core.batches import batch
from tests.wire import Wire, header

T, U = "t", "u"


def produce(wire: Wire, topic: str, records: bytearray, *, acks: int = -1, version: int = 8) -> Any:
    """One set of records to partition 0."""
    data = [TopicProduceData(topic, [PartitionProduceData(0, records)])]
    request = ProduceRequest(None, acks, 1000, data)
    if acks == 0:
        wire.send(ApiKey.PRODUCE, version, request, answered=False)
        return None
    return wire.call(ApiKey.PRODUCE, version, request)


def fetch(wire: Wire, *, wait_ms: int = 0, version: int = 11) -> Any:
    """From the beginning of partition 0 of t."""
    topics = [FetchTopic(T, [FetchPartition(0, 0, 1 << 20)])]
    return wire.call(ApiKey.FETCH, version, FetchRequest(-1, wait_ms, 1, 1 << 20, 0, topics, 0, -1))


def entries(plane: ControlPlane, query: str = "") -> list[dict[str, Any]]:
    """What a query finds."""
    matching: list[dict[str, Any]] = plane.http("GET", f"/v1/journal?{query}" if query else "/v1/journal")["entries"]
    return matching


def names(plane: ControlPlane, query: str = "") -> list[str]:
    """The APIs of what a query finds."""
    return [entry["api"] for entry in entries(plane, query)]


def some_requests(plane: ControlPlane) -> Wire:
    """A few, of two clients."""
    wire = plane.server.wire(client_id="app")
    wire.call(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("walker", "1.2"))
    produce(wire, T, batch(b"v"))
    produce(wire, U, batch(b"w"))
    other = plane.server.wire(client_id="other")
    other.call(ApiKey.HEARTBEAT, 4, HeartbeatRequest("g", 1, "m"))
    other.call(ApiKey.END_TXN, 3, EndTxnRequest("x", 1, 0, committed=True))
    return wire


def test_an_entry_has_everything_of_a_request(plane: ControlPlane) -> None:
    """Client, request, time, connection, and the response."""
    some_requests(plane)
    _, entry, *_ = entries(plane)
    assert entry["api"] == "Produce"
    assert (entry["version"], entry["broker"], entry["listener"]) == (8, 1, "PLAINTEXT")
    assert (entry["client_id"], entry["software"], entry["correlation_id"]) == ("app", "walker 1.2", 2)
    assert entry["outcome"] == "answered"
    assert entry["duration_ms"] > 0
    assert abs(entry["at_ms"] - plane.server.now_ms()) < 60_000
    assert entry["request"]["topic_data"][0]["name"] == T
    reported = entry["request"]["topic_data"][0]["partition_data"][0]["records"]
    assert (reported["count"], reported["base_offset"], reported["compression"]) == (1, 0, "none")
    answer = entry["response"]["responses"][0]["partition_responses"][0]
    assert (answer["error_code"], answer["base_offset"]) == ("NONE", 0)


def test_large_records_are_shown_by_size_and_first_batch(plane: ControlPlane) -> None:
    """Of a request all are counted, as it carries one batch."""
    wire = plane.server.wire()
    records = batch(*[b"v" * 1000] * 10)
    produce(wire, T, records)
    produce(wire, T, batch(*[b"v" * 1000] * 10))
    fetch(wire)
    first, _, fetched = entries(plane)
    reported = first["request"]["topic_data"][0]["partition_data"][0]["records"]
    assert (reported["size_bytes"], reported["count"]) == (len(records), 10)
    reported = fetched["response"]["responses"][0]["partitions"][0]["records"]
    assert (reported["size_bytes"], reported["count"], reported["base_offset"]) == (2 * len(records), None, 0)


@pytest.mark.parametrize(
    ("query", "apis"),
    [
        ("api=Heartbeat", ["Heartbeat"]),
        ("api=END_TXN", ["EndTxn"]),
        ("client_id=app", ["ApiVersions", "Produce", "Produce"]),
        ("client_id=ap", []),
        ("topic=u", ["Produce"]),
        ("topic=nothing", []),
        ("group=g", ["Heartbeat"]),
        ("transactional_id=x", ["EndTxn"]),
        ("broker=1&api=Produce", ["Produce", "Produce"]),
        ("broker=2", []),
        ("limit=2", ["Heartbeat", "EndTxn"]),
        ("limit=0", []),
        ("api=Produce&limit=1", ["Produce"]),
    ],
)
def test_requests_are_found_by_their_fields(plane: ControlPlane, query: str, apis: list[str]) -> None:
    """All conditions have to hold; the newest are found first and listed last."""
    some_requests(plane)
    assert names(plane, query) == apis


def test_requests_are_found_by_connection_id_and_time(plane: ControlPlane) -> None:
    """A small number is an entry's id, a large one a time."""
    some_requests(plane)
    all_of_them = entries(plane)
    connections = {entry["connection"] for entry in all_of_them}
    assert len(connections) == 2
    first = all_of_them[0]
    assert names(plane, f"connection={first['connection']}") == ["ApiVersions", "Produce", "Produce"]
    assert [e["id"] for e in entries(plane, f"since={all_of_them[3]['id']}")] == [e["id"] for e in all_of_them[3:]]
    plane.server.advance(60_000)
    later_ms = plane.server.now_ms()
    fetch(plane.server.wire())
    assert names(plane, f"since={later_ms}") == ["Fetch"]


def test_requests_are_found_by_topic_id(plane: ControlPlane) -> None:
    """Newer versions name no topic; who asks does."""
    wire = plane.server.wire()
    topic_id = wire.call(ApiKey.METADATA, 12, MetadataRequest([MetadataRequestTopic(T)])).topics[0].topic_id
    plane.http("DELETE", "/v1/journal")
    data = [TopicProduceData("", [PartitionProduceData(0, batch(b"v"))], topic_id)]
    wire.call(ApiKey.PRODUCE, 13, ProduceRequest(None, -1, 1000, data))
    assert names(plane, "topic=t") == ["Produce"]
    assert names(plane, "topic=u") == []


def test_topics_that_the_wire_names_by_id_have_their_names(plane: ControlPlane) -> None:
    """Also once they are deleted; an id that no topic ever had leaves the name empty."""
    wire = plane.server.wire()
    topic_id = wire.call(ApiKey.METADATA, 12, MetadataRequest([MetadataRequestTopic(T)])).topics[0].topic_id
    for each in (topic_id, UUID(int=7)):
        data = [TopicProduceData("", [PartitionProduceData(0, batch(b"v"))], each)]
        wire.call(ApiKey.PRODUCE, 13, ProduceRequest(None, -1, 1000, data))

    def listed_names() -> list[str]:
        produces = entries(plane, "api=Produce")
        return [
            body[0]["name"]
            for each in produces
            for body in (each["request"]["topic_data"], each["response"]["responses"])
        ]

    assert listed_names() == [T, T, "", ""]
    plane.kafka.topics[T].delete()
    plane.kafka.topics.create(T)
    assert listed_names() == [T, T, "", ""]


def test_requests_are_found_by_the_error_anywhere_in_the_answer(plane: ControlPlane) -> None:
    """The journal finds requests by an error anywhere in the response, and by the fault that met them."""
    wire = plane.server.wire()
    fault = plane.http("POST", "/v1/faults", {"match": {"topic": U}, "do": {"error": "KAFKA_STORAGE_ERROR"}})["id"]
    produce(wire, T, batch(b"v"))
    produce(wire, U, batch(b"v"))
    (entry,) = entries(plane, "error=KAFKA_STORAGE_ERROR")
    assert (entry["error"], entry["fault"]) == ("KAFKA_STORAGE_ERROR", fault)
    assert [e["id"] for e in entries(plane, f"fault={fault}")] == [entry["id"]]
    assert entries(plane, "error=NOT_COORDINATOR") == []


def test_a_refusal_in_version_0_is_shown_for_each_version_of_the_request(plane: ControlPlane) -> None:
    """ApiVersions beyond what a client is offered, though a known version of it (KIP-511)."""
    plane.http("PUT", "/v1/versions", {"ApiVersions": {"min": 0, "max": 0}})
    for version in (1, 2, 3):
        wire = plane.server.wire()
        wire.send(ApiKey.API_VERSIONS, version, ApiVersionsRequest("walker", "1.2"), answered=False)
        wire.receive_frame()
    shown = [(each["version"], each["error"], each["response"]["api_keys"]) for each in entries(plane)]
    listed = [{"api_key": int(ApiKey.API_VERSIONS), "min_version": 0, "max_version": 0}]
    assert shown == [(version, "UNSUPPORTED_VERSION", listed) for version in (1, 2, 3)]


def test_every_way_to_end_is_shown(plane: ControlPlane) -> None:
    """Answered or not, closed, silent, or still being served."""
    wire = plane.server.wire()
    produce(wire, T, batch(b"v"), acks=0)
    wire.call(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
    plane.http("POST", "/v1/faults", {"match": {"api": "Heartbeat"}, "do": {"disconnect": "close"}})
    hung_up = plane.server.wire()
    hung_up.send(ApiKey.HEARTBEAT, 4, HeartbeatRequest("g", 1, "m"))
    hung_up.check_closed()
    nonsense = plane.server.wire()
    nonsense.send_frame(header(ApiKey.METADATA, 12) + b"\xff\xff")
    nonsense.check_closed()
    unknown = plane.server.wire()
    unknown.send_frame(header(ApiKey.API_VERSIONS, 99, tags=b"\0") + b"\1\1\0")
    unknown.receive_frame()
    waiting = plane.server.wire()
    topics = [FetchTopic(T, [FetchPartition(0, 1, 1 << 20)])]
    waiting.send(ApiKey.FETCH, 11, FetchRequest(-1, 600_000, 1, 1 << 20, 0, topics, 0, -1))
    by_version = {(e["api"], e["version"]): e for e in until_served(plane)}
    assert by_version["Produce", 8]["outcome"] == "asked for no answer"
    assert by_version["Heartbeat", 4]["outcome"] == "closed: a fault hangs up"
    assert by_version["Metadata", 12]["outcome"].startswith("closed: Metadata v12")
    closed = plane.http("GET", "/v1/journal?outcome=closed")["entries"]
    assert {each["api"] for each in closed} == {"Heartbeat", "Metadata"}
    assert by_version["Metadata", 12]["request"] == {}
    assert by_version["ApiVersions", 99]["error"] == "UNSUPPORTED_VERSION"
    pending = by_version["Fetch", 11]
    assert (pending["outcome"], pending["duration_ms"], pending["response"]) == ("is being served", None, None)


def until_served(plane: ControlPlane) -> list[dict[str, Any]]:
    """All entries, once the fetch is being served."""
    while not names(plane, "api=Fetch"):
        pass
    return entries(plane)


def test_it_can_be_cleared_and_survives_a_reset_if_asked_to(plane: ControlPlane) -> None:
    """The journal can be cleared; a reset clears it too, unless it is asked to keep it."""
    some_requests(plane)
    assert plane.http("DELETE", "/v1/journal")["removed"] == 5
    assert entries(plane) == []
    some_requests(plane)
    plane.http("POST", "/v1/reset", {"keep": ["journal"]})
    assert len(entries(plane)) == 5
    plane.server.reset()
    assert entries(plane) == []


@pytest.mark.parametrize(
    ("query", "field", "text"),
    [
        ("api=EndTxm", "api", "did you mean EndTxn"),
        ("error=NOT_COORDINATR", "error", "did you mean NOT_COORDINATOR"),
        ("connection=x", "connection", "whole number"),
        ("limit=-1", "limit", "at least 0"),
        ("topc=t", "topc", "known parameters"),
    ],
)
def test_a_mistaken_query_is_answered_with_its_parameter(
    plane: ControlPlane, query: str, field: str, text: str
) -> None:
    """The error names the parameter, and what it may be."""
    status, problem = plane.refused("GET", f"/v1/journal?{query}")
    assert (status, problem["field"]) == (422, field)
    assert text in problem["detail"]


def test_python_finds_entries(plane: ControlPlane) -> None:
    """`journal.find` returns entries as objects."""
    some_requests(plane)
    (entry,) = plane.kafka.journal.find(api="EndTxn", client_id="other")
    assert (entry.api, entry.version, entry.request["committed"]) == ("EndTxn", 3, True)
    assert entry.error == ErrorCode.NOT_COORDINATOR.name
    assert plane.kafka.journal.pcap().startswith(struct.pack("<I", 0xA1B2C3D4))
    plane.kafka.journal.clear()
    assert plane.kafka.journal.find() == []


def test_the_shell_finds_entries(plane: ControlPlane, tmp_path: Path) -> None:
    """As a table or as JSON; the capture goes into a file."""
    some_requests(plane)
    assert [e["api"] for e in plane.ctl("journal", "list", "--topic", "u")["entries"]] == ["Produce"]
    assert "EndTxn" in plane.ctl_text("journal", "list")
    plane.ctl_text("journal", "pcap", "-o", str(tmp_path / "j.pcap"))
    assert len(packets(tmp_path / "j.pcap")) > 10
    assert plane.ctl("journal", "clear")["removed"] == 5


# --- the capture -----------------------------------------------------------------------------------------------------


def packets(path: Path) -> list[bytes]:
    """The packets of a capture."""
    content, at, records = path.read_bytes(), 24, []
    while at < len(content):
        size, original = struct.unpack_from("<II", content, at + 8)
        assert size == original
        records.append(content[at + 16 : at + 16 + size])
        at += 16 + size
    return records


def captured(plane: ControlPlane, tmp_path: Path) -> Path:
    """A capture of requests in versions that older Wiresharks know."""
    wire = plane.server.wire(client_id="app")
    wire.call(ApiKey.API_VERSIONS, 1, ApiVersionsRequest())
    wire.call(ApiKey.METADATA, 7, MetadataRequest([MetadataRequestTopic(T)]))
    produce(wire, T, batch(b"v"), version=7)
    produce(wire, T, batch(b"v" * 70_000), version=7)
    fetch(wire, version=10)
    wire.call(ApiKey.END_TXN, 1, EndTxnRequest("x", 1, 0, committed=True))
    path = tmp_path / "journal.pcap"
    path.write_bytes(plane.raw("GET", "/v1/journal.pcap")[1])
    return path


def test_conversations_are_whole(plane: ControlPlane, tmp_path: Path) -> None:
    """A handshake, then what each side sent, byte after byte, and sums that are right."""
    conversation = packets(captured(plane, tmp_path))
    assert [packet[33] for packet in conversation[:3]] == [0x02, 0x12, 0x10]  # SYN, SYN and ACK, ACK
    following: dict[bytes, int] = {}
    for packet in conversation:
        (sequence,) = struct.unpack_from(">I", packet, 24)
        sender = packet[12:16] + packet[20:22]
        assert following.setdefault(sender, sequence) == sequence
        following[sender] += len(packet) - 40 + (packet[33] & 0x02 > 0)
        assert total(packet[:20]) == 0xFFFF
        assert total(packet[12:20] + struct.pack(">HH", 6, len(packet) - 20) + packet[20:]) == 0xFFFF


def total(data: bytes) -> int:
    """The one's complement sum of 16-bit words."""
    padded = data + b"\0" * (len(data) % 2)
    folded: int = sum(struct.unpack(f">{len(padded) // 2}H", padded))
    while folded > 0xFFFF:
        folded = (folded & 0xFFFF) + (folded >> 16)
    return folded


def test_requests_by_the_id_of_a_topic_that_was_deleted_are_found_by_its_name(plane: ControlPlane) -> None:
    """Which the list shows, too; also once there is another topic of that name."""
    wire = plane.server.wire()
    topic_id = wire.call(ApiKey.METADATA, 12, MetadataRequest([MetadataRequestTopic(T)])).topics[0].topic_id
    data = [TopicProduceData("", [PartitionProduceData(0, batch(b"v"))], topic_id)]
    wire.call(ApiKey.PRODUCE, 13, ProduceRequest(None, -1, 1000, data))
    for again in (False, True):
        if again:
            plane.http("POST", "/v1/topics", {"name": T})
        else:
            plane.http("DELETE", f"/v1/topics/{T}")
        (entry,) = plane.http("GET", f"/v1/journal?api=Produce&topic={T}")["entries"]
        assert entry["topics"] == [T]


def test_records_in_an_older_format_are_shown_by_their_own_size(plane_of: ControlPlaneOf) -> None:
    """Of several sets that were converted, of which the large one is not kept."""
    plane = plane_of(topics=["t:2"], as_version="3.9")
    wire = plane.server.wire()
    produce(wire, T, batch(b"v"))
    data = [TopicProduceData(T, [PartitionProduceData(1, batch(b"v" * 3000))])]
    wire.call(ApiKey.PRODUCE, 8, ProduceRequest(None, -1, 1000, data))
    topics = [FetchTopic(T, [FetchPartition(0, 0, 1 << 20), FetchPartition(1, 0, 1 << 20)])]
    answer = wire.call(ApiKey.FETCH, 3, FetchRequest(-1, 0, 1, 1 << 20, 0, topics, 0, -1))
    sizes = [len(each.records) for each in answer.responses[0].partitions]
    (entry,) = entries(plane, "api=Fetch")
    shown = [each["records"]["size_bytes"] for each in entry["response"]["responses"][0]["partitions"]]
    assert shown == sizes


def test_a_capture_of_a_far_future(plane_of: ControlPlaneOf) -> None:
    """Its format ends with 2106, and begins again there.

    A server of its own: a client that an earlier test left behind would reconnect for centuries.
    """
    plane = plane_of(topics=["far"])
    plane.http("POST", "/v1/clock/advance", {"ms": 10**13})
    plane.server.wire().call(ApiKey.METADATA, 12, MetadataRequest(None))
    assert len(plane.raw("GET", "/v1/journal.pcap?api=Metadata")[1]) > 200


@pytest.mark.interop
def test_wireshark_reads_the_capture(plane: ControlPlane, tmp_path: Path) -> None:
    """Its Kafka dissector finds each request and answer, and nothing malformed."""
    needs("tshark")
    path = captured(plane, tmp_path)

    def tshark(*arguments: str) -> str:
        done = subprocess.run(
            ["tshark", "-r", path, *arguments], capture_output=True, text=True, check=True, timeout=120
        )
        return done.stdout

    listing = tshark("-Y", "kafka")
    for api, version in (("ApiVersions", 1), ("Metadata", 7), ("Produce", 7), ("Fetch", 10), ("EndTxn", 1)):
        assert f"{api} v{version} Request" in listing
        assert f"{api} v{version} Response" in listing
    assert "Malformed" not in listing
    assert "Missing" not in listing
    assert set(
        tshark("-T", "fields", "-e", "kafka.topic_name", "-Y", "kafka.topic_name").replace(",", "\n").split()
    ) == {T}
