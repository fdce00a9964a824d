"""The reference member of a share group (KIP-932): explicit acknowledgement, a share session for each leader."""

import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from protocol.messages.share_fetch import FetchPartition, FetchTopic, ShareFetchRequest
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from protocol.records.batch import RecordBatch
from protocol.records.records import read_records
from tests.exam.drivers.kit import record_json
from tests.exam.reference.consumer import DEADLINE_S, GROUP, HEADER_BYTES, Place
from tests.exam.reference.network import RETRIABLE, Lost, Network, Refused

JOINS, LEAVES, LAST = 0, -1, -1
HEARTBEAT_S: Final = 0.3
TYPES: Final = {"accept": 1, "release": 2, "reject": 3}
OUT = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})
NO_SESSION = frozenset({ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH})


class ShareMember:
    """A member."""

    def __init__(self, network: Network, options: Mapping[str, Any]) -> None:
        self.network, self.options, self.mutations = network, options, network.mutations
        self.member_id, self.epoch, self.is_member = str(uuid.uuid4()), JOINS, False
        self.topics: list[str] = []
        self.ids: dict[str, Any] = {}
        self.places: list[Place] = []
        self.sessions: dict[str, int] = {}
        self.pending: dict[Place, dict[int, int]] = {}
        self.open: list[Mapping[str, Any]] = []
        self.errors: list[Refused] = []
        self.next_heartbeat = 0.0
        self.stopped = False

    # --- membership --------------------------------------------------------------------------------------------------

    def subscribe(self, topics: Sequence[str]) -> None:
        """Join the group with the next poll."""
        self.topics = list(topics)

    def _heartbeat(self, epoch: int) -> Any:
        request = ShareGroupHeartbeatRequest(self.options["group"], self.member_id, epoch, None, self.topics)
        deadline = time.monotonic() + DEADLINE_S
        return self.network.ask_coordinator(
            GROUP, self.options["group"], ApiKey.SHARE_GROUP_HEARTBEAT, 1, request, deadline
        )

    def _keep_membership(self) -> None:
        if time.monotonic() < self.next_heartbeat:
            return
        self.next_heartbeat = time.monotonic() + HEARTBEAT_S
        answer = self._heartbeat(self.epoch)
        code = answer.error_code
        if code in OUT and "never-joins-again" not in self.mutations:
            self.places, self.epoch, self.next_heartbeat = [], JOINS, 0.0
        elif code is not ErrorCode.NONE:
            self.stopped = True
            raise Refused("fatal", code, code.name)
        else:
            self.epoch, self.is_member = answer.member_epoch, True
            if answer.assignment is not None:
                names = {self._id(name): name for name in self.topics}
                topic_partitions = answer.assignment.topic_partitions
                self.places = [(names[each.topic_id], p) for each in topic_partitions for p in each.partitions]

    def _id(self, name: str) -> Any:
        if name not in self.ids:
            deadline = time.monotonic() + DEADLINE_S
            answer = self.network.ask_any(ApiKey.METADATA, 12, MetadataRequest([MetadataRequestTopic(name)]), deadline)
            self.ids[name] = answer.topics[0].topic_id
        return self.ids[name]

    # --- reading -----------------------------------------------------------------------------------------------------

    def poll(self, timeout_ms: int) -> list[dict[str, Any]]:
        """What was acquired."""
        until = time.monotonic() + timeout_ms / 1000
        records: list[dict[str, Any]] = []
        while not records and time.monotonic() < until:
            if self.stopped:
                break
            try:
                self._keep_membership()
                for place in self.places:
                    records += self._fetch(place)
            except Refused as error:
                self.errors.append(error)
                if not {"gives-up-on-errors", "gives-up-when-lost"}.isdisjoint(self.mutations):
                    self.stopped = True
                break
            if not records:
                self.network.never.wait(0.02)
        self.open += records
        return [] if "delivers-nothing" in self.mutations else records

    def _fetch(self, place: Place) -> list[dict[str, Any]]:
        topic, partition = place
        address = self.network.leader(topic, partition, time.monotonic() + DEADLINE_S)
        request = ShareFetchRequest(
            self.options["group"], self.member_id, self.sessions.get(address, 0), 50, 1, 1_000_000, 500, 500,
            [FetchTopic(self._id(topic), [FetchPartition(partition)])],
        )  # fmt: skip
        try:
            answer = self.network.ask(address, ApiKey.SHARE_FETCH, 1, request)
        except Lost as error:
            if "gives-up-when-lost" in self.mutations:
                raise Refused("other", None, str(error)) from error
            self._forget(place, address)
            return []
        fetched = next((each for topic_ in answer.responses for each in topic_.partitions), None)
        code = answer.error_code
        if code is ErrorCode.NONE:
            self.sessions[address] = self.sessions.get(address, 0) + 1
            code = fetched.error_code if fetched is not None else code
        if code is not ErrorCode.NONE:
            if "gives-up-on-errors" in self.mutations or code not in RETRIABLE | NO_SESSION:
                raise Refused("other", code, code.name)
            self._forget(place, address)
            return []
        return [] if fetched is None else self._acquired(place, fetched)

    def _forget(self, place: Place, address: str) -> None:
        self.sessions.pop(address, None)
        self.network.forget_leader(*place)

    def _acquired(self, place: Place, answer: Any) -> list[dict[str, Any]]:
        mine = {o for each in answer.acquired_records for o in range(each.first_offset, each.last_offset + 1)}
        data, at = bytes(answer.records or b""), 0
        records: list[dict[str, Any]] = []
        while len(data) - at >= HEADER_BYTES:
            batch = RecordBatch(data, at)
            if at + batch.size > len(data):
                break
            at += batch.size
            acquired = (each for each in read_records(batch) if each.offset in mine)
            records += [
                record_json((*place, each.offset), each.key, each.value, each.timestamp_ms, each.headers)
                for each in acquired
            ]
        return records

    # --- acknowledging -----------------------------------------------------------------------------------------------

    def acknowledge(self, kind: str, records: Sequence[Mapping[str, Any]]) -> None:
        """Keep it for the next commit."""
        if "accepts-everything" in self.mutations:
            kind = "accept"
        if kind == "reject" and "releases-rejected" in self.mutations:
            kind = "release"
        self.open = [each for each in self.open if each not in records]
        for record in records:
            self.pending.setdefault((record["topic"], record["partition"]), {})[record["offset"]] = TYPES[kind]

    def commit(self) -> None:
        """Send the acknowledgements. Raises Refused."""
        acknowledgements, self.pending = self.pending, {}
        if (
            "acknowledges-nothing" in self.mutations and len(acknowledgements.get(("t", 0), ())) > 1
        ):  # the probe comes alone
            return
        for (topic, partition), types in acknowledgements.items():
            address = self.network.leader(topic, partition, time.monotonic() + DEADLINE_S)
            batches = [AcknowledgementBatch(offset, offset, [kind]) for offset, kind in sorted(types.items())]
            topics = [AcknowledgeTopic(self._id(topic), [AcknowledgePartition(partition, batches)])]
            epoch = self.sessions.get(address, 0)
            request = ShareAcknowledgeRequest(self.options["group"], self.member_id, epoch, topics)
            try:
                answer = self.network.ask(address, ApiKey.SHARE_ACKNOWLEDGE, 1, request)
            except Lost as error:
                self._forget((topic, partition), address)
                if "lost-answer-is-success" in self.mutations:
                    continue
                raise Refused("other", None, str(error)) from error
            self.sessions[address] = epoch + 1
            codes = {answer.error_code} | {each.error_code for t in answer.responses for each in t.partitions}
            for code in codes - {ErrorCode.NONE}:
                self._forget((topic, partition), address)
                if "error-is-success" not in self.mutations:
                    raise Refused("other", code, code.name)

    def close(self) -> None:
        """End the sessions, so that what is not acknowledged is given to others, and leave the group."""
        try:
            if "accepts-the-rest-when-closed" in self.mutations:
                self.acknowledge("accept", self.open)
                self.commit()
            for address in self.sessions:
                request = ShareAcknowledgeRequest(self.options["group"], self.member_id, LAST)
                self.network.ask(address, ApiKey.SHARE_ACKNOWLEDGE, 1, request)
            if self.is_member and "closes-without-leaving" not in self.mutations:
                self._heartbeat(LEAVES)
        except (Lost, Refused):
            self.stopped = True  # the sessions will end by themselves
        self.network.close()
