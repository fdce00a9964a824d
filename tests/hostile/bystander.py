"""A well-behaved client during the attacks of ``attack``: all its requests must succeed with correct responses."""

import asyncio
import contextlib
import itertools
import time
from typing import Any

from protocol.apis import ApiKey
from protocol.client.in_flight import InFlightRequests
from protocol.errors import ErrorCode
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.batch import RecordBatch
from protocol.records.records import Record, build_batch, read_records

TOPIC, GROUP = "bystander", "bystander-group"
PATIENCE_S = 60.0
PACE_S = 0.005


class Client:
    """A connection that sends one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._requests = InFlightRequests("bystander")

    @classmethod
    async def connect(cls, address: str) -> "Client":
        """Connect to ``HOST:PORT``."""
        host, _, port = address.rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port), limit=1 << 24))

    async def call(self, key: ApiKey, version: int, request: Any) -> Any:
        """Send a request and wait for its response."""
        self._writer.write(self._requests.encode(key, version, request))
        async with asyncio.timeout(PATIENCE_S):
            while (frame := self._requests.frame()) is None:
                self._requests.receive(await self._reader.readexactly(self._requests.missing_bytes))
        return self._requests.decode(frame)

    async def close(self) -> None:
        """Close the connection."""
        self._writer.close()
        await self._writer.wait_closed()


class Bystander:
    """Produces, fetches its records, commits and fetches its offset, and requests metadata, repeatedly."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._client: Client
        self._stopped = asyncio.Event()
        self.requests = 0
        self.slowest_s = 0.0
        self.failures: list[str] = []

    async def begin(self) -> None:
        """Connect, create the topic, find the coordinator."""
        self._client = await Client.connect(self._address)
        topic = CreatableTopic(TOPIC, 1, 1)
        created = await self._client.call(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([topic], 10_000))
        _check((created.topics[0].error_code, created.topics[0].error_message), (ErrorCode.NONE, None), "CreateTopics")
        for _ in range(100):
            request = FindCoordinatorRequest(coordinator_keys=[GROUP])
            response = await self._client.call(ApiKey.FIND_COORDINATOR, 4, request)
            if response.coordinators[0].error_code is ErrorCode.NONE:
                break
            await self._pause()
        await self._round(0)

    async def work(self) -> None:
        """Run rounds until `end` is called or a request fails; failures are recorded."""
        try:
            for number in itertools.count(1):
                if self._stopped.is_set():
                    return
                await self._round(number)
                await self._pause()
        except (OSError, asyncio.IncompleteReadError, AssertionError, TimeoutError) as error:
            self.failures.append(f"after {self.requests} requests: {type(error).__name__}: {error}")

    async def _pause(self) -> None:
        """Wait until the next request is due, or until :meth:`end` is called."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), PACE_S)

    async def end(self, task: "asyncio.Task[None]") -> None:
        """Finish the round and close the connection."""
        self._stopped.set()
        await task
        await self._client.close()

    async def _call(self, key: ApiKey, version: int, request: Any) -> Any:
        started = time.monotonic()
        response = await self._client.call(key, version, request)
        self.slowest_s = max(self.slowest_s, time.monotonic() - started)
        self.requests += 1
        return response

    async def _round(self, number: int) -> None:
        """Run one round, and check every response."""
        value = b"record %d" % number
        data = [PartitionProduceData(0, build_batch([Record(0, time.time_ns() // 1_000_000, b"k", value)]))]
        produced = await self._call(
            ApiKey.PRODUCE, 9, ProduceRequest(None, -1, 30_000, [TopicProduceData(TOPIC, data)])
        )
        answer = produced.responses[0].partition_responses[0]
        _check((answer.error_code, answer.base_offset), (ErrorCode.NONE, number), "Produce")
        fetched = await self._call(
            ApiKey.FETCH,
            12,
            FetchRequest(
                max_wait_ms=1000, min_bytes=1, topics=[FetchTopic(TOPIC, [FetchPartition(0, number, 1 << 20)])]
            ),
        )
        part = fetched.responses[0].partitions[0]
        _check(part.error_code, ErrorCode.NONE, "Fetch")
        records = list(read_records(RecordBatch(bytes(part.records))))
        _check([(each.offset, each.value) for each in records], [(number, value)], "Fetch")
        end = await self._call(
            ApiKey.LIST_OFFSETS, 7, ListOffsetsRequest(-1, [ListOffsetsTopic(TOPIC, [ListOffsetsPartition(0, -1)])])
        )
        _check(end.topics[0].partitions[0].offset, number + 1, "ListOffsets")
        await self._offsets(number)
        metadata = await self._call(ApiKey.METADATA, 12, MetadataRequest([MetadataRequestTopic(TOPIC)]))
        topic = metadata.topics[0]
        _check((topic.error_code, topic.partitions[0].leader_id), (ErrorCode.NONE, 1), "Metadata")

    async def _offsets(self, number: int) -> None:
        """Commit an offset and read it again."""
        partitions = [OffsetCommitRequestPartition(0, committed_offset=number, committed_metadata="")]
        request = OffsetCommitRequest(
            GROUP, generation_id_or_member_epoch=-1, member_id="", topics=[OffsetCommitRequestTopic(TOPIC, partitions)]
        )
        committed = await self._call(ApiKey.OFFSET_COMMIT, 8, request)
        _check(committed.topics[0].partitions[0].error_code, ErrorCode.NONE, "OffsetCommit")
        group_request = OffsetFetchRequestGroup(GROUP, [OffsetFetchRequestTopics(TOPIC, [0])])
        fetched = await self._call(ApiKey.OFFSET_FETCH, 8, OffsetFetchRequest(groups=[group_request]))
        _check(fetched.groups[0].topics[0].partitions[0].committed_offset, number, "OffsetFetch")


def _check(actual: object, expected: object, where: str) -> None:
    if actual != expected:
        raise AssertionError(f"{where} answered {actual!r} where {expected!r} was right")
