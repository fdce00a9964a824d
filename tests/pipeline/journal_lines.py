"""Wire journals written line by line (`docs/debugging.md`), with the log that they speak of beside them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from tests.pipeline.fault_files import Planting, Shelf

RUN = "20231114T221320000Z-1"
BEGIN_US = 1_700_000_000_000_000
_KEYS = {key.title: key for key in ApiKey}
Answer = Mapping[str, Any] | None


class Wiring:
    """A journal in the making. `connect` begins a connection; `write` saves the file."""

    def __init__(self, where: Planting) -> None:
        self.where = where
        self.lines: list[dict[str, Any]] = []
        self.now_us = BEGIN_US
        self._connections = 0
        self.ends: dict[str, int] = {}
        self.appended: dict[str, int] = {}

    def connect(
        self, client_id: str, *, software: str = "planted-client", software_version: str = "1.0", greets: bool = True
    ) -> "Wire":
        """A new connection, which asks for the versions first."""
        self._connections += 1
        wire = Wire(self, self._connections, client_id, software, software_version)
        if greets:
            keys = [{"api_key": int(key), "min_version": 0, "max_version": 20} for key in ApiKey]
            got = {"error_code": "NONE", "api_keys": keys}
            wire.call("ApiVersions", {"client_software_name": software}, got, version=4)
        return wire

    def write(self, folder: Path) -> Path:
        """Save what there is; returns the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps(line) + "\n" for line in self.lines)
        (folder / f"wire-{RUN}-000001.jsonl").write_text(text, encoding="utf-8")
        return folder


class Wire:
    """One connection. Its methods are requests with their answers; each returns the request's id."""

    def __init__(
        self, wiring: Wiring, number: int, client_id: str, software: str, software_version: str = "1.0"
    ) -> None:
        self.wiring, self.number, self.client_id, self.software = wiring, number, client_id, software
        self.software_version = software_version
        self._correlation = 0

    def call(
        self,
        api: str,
        request: Mapping[str, Any],
        response: Answer = None,
        *,
        version: int = 9,
        outcome: str = "answered",
        took_us: int = 400,
        step_us: int = 100_000,
        client_id: str | None = None,
        correlation_id: int | None = None,
    ) -> int:
        """One line. Time goes on by `step_us` before it; shorter than `took_us` of the one before: they overlap."""
        wiring = self.wiring
        wiring.now_us += step_us
        self._correlation += 1
        codes = [code for code in _errors(response) if code != "NONE"]
        number = len(wiring.lines) + 1
        wiring.lines.append(
            {
                "v": 1, "run": RUN, "era": 0, "id": number, "lost": 0, "cluster_id": "planted", "ts_us": wiring.now_us,
                "duration_us": took_us, "at_ms": wiring.now_us // 1000, "broker": 1, "listener": "PLAINTEXT",
                "connection": self.number, "client": f"127.0.0.1:{50000 + self.number}", "principal": "User:ANONYMOUS",
                "client_id": client_id or self.client_id, "software": self.software,
                "software_version": self.software_version,
                "api_key": int(_KEYS[api]), "api": api, "version": version,
                "correlation_id": self._correlation if correlation_id is None else correlation_id, "outcome": outcome,
                "error_codes": sorted({int(ErrorCode[code]) for code in codes}), "error": codes[0] if codes else None,
                "faults": [], "request_bytes": 100, "response_bytes": 100,
                "request": dict(request), "response": response,
            }
        )  # fmt: skip
        return number

    # ------------------------------------------------------------------ producers

    def init(
        self, name: str | None, granted: tuple[int, int], *, had: tuple[int, int] = (-1, -1), timeout_ms: int = 60_000
    ) -> int:
        """InitProducerId."""
        request = {"transactional_id": name, "transaction_timeout_ms": timeout_ms}
        request |= {"producer_id": had[0], "producer_epoch": had[1]}
        got = {"throttle_time_ms": 0, "error_code": "NONE", "producer_id": granted[0], "producer_epoch": granted[1]}
        return self.call("InitProducerId", request, got, version=5)

    def add(self, name: str, who: tuple[int, int], topic: str, *partitions: int, version: int = 3) -> int:
        """AddPartitionsToTxn of a client."""
        request = {
            "v3_and_below_transactional_id": name, "v3_and_below_producer_id": who[0],
            "v3_and_below_producer_epoch": who[1], "transactions": [],
            "v3_and_below_topics": [{"name": topic, "partitions": list(partitions)}],
        }  # fmt: skip
        results = [{"partition_index": each, "partition_error_code": "NONE"} for each in partitions]
        got = {
            "error_code": "NONE",
            "results_by_topic_v3_and_below": [{"name": topic, "results_by_partition": results}],
        }
        return self.call("AddPartitionsToTxn", request, got, version=version)

    def end(
        self,
        name: str,
        who: tuple[int, int],
        *,
        committed: bool = True,
        granted: tuple[int, int] = (-1, -1),
        error: str = "NONE",
        version: int = 4,
        **options: Any,
    ) -> int:
        """EndTxn."""
        request = {"transactional_id": name, "producer_id": who[0], "producer_epoch": who[1], "committed": committed}
        got = {"throttle_time_ms": 0, "error_code": error, "producer_id": granted[0], "producer_epoch": granted[1]}
        return self.call("EndTxn", request, got, version=version, **options)

    def produce(
        self,
        topic: str,
        *,
        who: tuple[int, int] = (-1, -1),
        sequence: int = -1,
        count: int = 3,
        offset: int | None = None,
        error: str = "NONE",
        name: str | None = None,
        transactional: bool | None = None,
        control: bool = False,
        crc: int = 7,
        acks: int = -1,
        max_timestamp_ms: int = -1,
        version: int = 12,
        outcome: str = "answered",
        hint: int = -1,
        last_offset: int | None = None,
        **options: Any,
    ) -> int:
        """Produce of one batch to partition 0 that was appended, or would have been, at `offset` (behind the last)."""
        if offset is None:
            offset = self.wiring.appended.get(topic, 0)
        if error == "NONE" and outcome == "answered":
            self.wiring.appended[topic] = offset + count
        transactional = name is not None if transactional is None else transactional
        last_offset = offset + count - 1 if last_offset is None else last_offset
        batch = {
            "base_offset": offset, "last_offset": last_offset, "count": count, "size_bytes": 100, "leader_epoch": 0,
            "producer_id": who[0], "producer_epoch": who[1], "base_sequence": sequence, "transactional": transactional,
            "control": control, "compression": "none", "log_append_time": False, "base_timestamp_ms": max_timestamp_ms,
            "max_timestamp_ms": max_timestamp_ms, "crc": crc,
        }  # fmt: skip
        reported = {key: batch[key] for key in (
            "size_bytes", "count", "base_offset", "last_offset", "producer_id", "producer_epoch", "base_sequence",
            "transactional", "control", "compression",
        )} | {"batch_count": 1, "batches": [batch]}  # fmt: skip
        request = {
            "transactional_id": name, "acks": acks, "timeout_ms": 1000,
            "topic_data": [{"name": topic, "topic_id": None, "partition_data": [{"index": 0, "records": reported}]}],
        }  # fmt: skip
        answer = {
            "index": 0, "error_code": error, "base_offset": offset if error == "NONE" else -1,
            "log_append_time_ms": -1, "log_start_offset": 0, "record_errors": [], "error_message": None,
            "current_leader": {"leader_id": hint, "leader_epoch": -1},
        }  # fmt: skip
        got = {"responses": [{"name": topic, "topic_id": None, "partition_responses": [answer]}], "throttle_time_ms": 0}
        response = got if outcome == "answered" else None
        return self.call("Produce", request, response, version=version, outcome=outcome, **options)

    def append(
        self, log: Shelf, *, who: tuple[int, int] = (-1, -1), count: int = 3, sequence: int = 0, **options: Any
    ) -> int:
        """Append to the log, then Produce what was appended; returns the offset."""
        transactional = options.get("name") is not None
        offset = log.data(count, producer=who[0], epoch=max(who[1], 0), sequence=sequence if who[0] >= 0 else None,
                          transactional=transactional)  # fmt: skip
        self.produce(
            log.topic, who=who, sequence=sequence if who[0] >= 0 else -1, count=count, offset=offset,
            max_timestamp_ms=self.wiring.where.now_ms + count - 1, **options,
        )  # fmt: skip
        return offset

    # ------------------------------------------------------------------ consumers

    def fetch(
        self,
        topic: str,
        offset: int,
        batches: Sequence[tuple[int, int]] = (),
        *,
        producer: int = -1,
        committed: bool = False,
        aborted: Sequence[tuple[int, int]] = (),
        stable: int | None = None,
        leader_epoch: int = 0,
        session: tuple[int, int] = (0, -1),
        **options: Any,
    ) -> int:
        """Fetch of partition 0; `batches` as first and last offset each, of a producer's transaction if it is named.

        A batch of one offset of a transactional producer is its marker.

        Without `stable`, everything that the partition ever had is stable.
        """
        ends = [stable or 0, self.wiring.ends.get(topic, 0), offset, *(last + 1 for _, last in batches)]
        if stable is None:
            stable = max(ends)
        self.wiring.ends[topic] = stable
        reported = [
            {"base_offset": first, "last_offset": last, "producer_id": producer, "transactional": producer >= 0,
             "control": producer >= 0 and first == last, "count": last - first + 1}
            for first, last in batches
        ]  # fmt: skip
        records = {"size_bytes": 100, "batches": reported} if reported else None
        if records:
            records |= {"base_offset": batches[0][0], "last_offset": batches[-1][1]}
        request = {
            "replica_id": -1, "isolation_level": int(committed), "session_id": session[0], "session_epoch": session[1],
            "topics": [{"topic": topic, "topic_id": None, "partitions": [
                {"partition": 0, "fetch_offset": offset, "current_leader_epoch": leader_epoch}]}],
        }  # fmt: skip
        answer = {
            "partition_index": 0, "error_code": "NONE", "high_watermark": stable, "last_stable_offset": stable,
            "aborted_transactions": [{"producer_id": who, "first_offset": first} for who, first in aborted],
            "records": records,
        }  # fmt: skip
        got = {"error_code": "NONE", "session_id": session[0], "throttle_time_ms": 0,
               "responses": [{"topic": topic, "topic_id": None, "partitions": [answer]}]}  # fmt: skip
        return self.call("Fetch", request, got, version=12, **options)

    def join(self, group: str, member: str, generation: int, *, sent_id: str | None = None) -> int:
        """JoinGroup of `member`; `sent_id`: the id that its request has, if that is another."""
        request = {"group_id": group, "member_id": member if sent_id is None else sent_id, "group_instance_id": None}
        got = {"error_code": "NONE", "generation_id": generation, "member_id": member, "leader": member}
        return self.call("JoinGroup", request, got)

    def sync(self, group: str, member: str, generation: int, owned: Mapping[str, bytes]) -> int:
        """SyncGroup of the leader; `owned`: each member's assignment."""
        assignments = [{"member_id": who, "assignment": raw.decode()} for who, raw in owned.items()]
        request = {"group_id": group, "generation_id": generation, "member_id": member, "protocol_type": "consumer",
                   "assignments": assignments}  # fmt: skip
        return self.call("SyncGroup", request, {"error_code": "NONE"})

    def heartbeat(self, group: str, member: str, generation: int, error: str = "NONE") -> int:
        """Heartbeat."""
        request = {"group_id": group, "generation_id": generation, "member_id": member}
        return self.call("Heartbeat", request, {"error_code": error})

    def commit(self, group: str, member: str, generation: int, topic: str, offset: int, error: str = "NONE") -> int:
        """OffsetCommit for partition 0."""
        request = {"group_id": group, "generation_id_or_member_epoch": generation, "member_id": member,
                   "topics": _offsets(topic, {"partition_index": 0, "committed_offset": offset})}  # fmt: skip
        got = {"topics": _offsets(topic, {"partition_index": 0, "error_code": error})}
        return self.call("OffsetCommit", request, got)

    def commit_in_transaction(
        self, name: str, who: tuple[int, int], group: str, member: str, generation: int, topic: str, offset: int,
        version: int = 5,
    ) -> int:  # fmt: skip
        """TxnOffsetCommit for partition 0."""
        request = {"transactional_id": name, "group_id": group, "producer_id": who[0], "producer_epoch": who[1],
                   "generation_id": generation, "member_id": member,
                   "topics": _offsets(topic, {"partition_index": 0, "committed_offset": offset})}  # fmt: skip
        got = {"topics": _offsets(topic, {"partition_index": 0, "error_code": "NONE"})}
        return self.call("TxnOffsetCommit", request, got, version=version)


def assignment(topic: str, *partitions: int) -> bytes:
    """A ConsumerProtocolAssignment of version 0."""
    head = b"\0\0" + (1).to_bytes(4) + len(topic).to_bytes(2) + topic.encode() + len(partitions).to_bytes(4)
    return head + b"".join(number.to_bytes(4) for number in partitions)


def _offsets(topic: str, partition: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"name": topic, "topic_id": None, "partitions": [dict(partition)]}]


def _errors(body: Any) -> Iterator[str]:
    if isinstance(body, Mapping):
        for name, part in body.items():
            if name == "error_code":
                yield part
            else:
                yield from _errors(part)
    elif isinstance(body, list):
        for part in body:
            yield from _errors(part)
