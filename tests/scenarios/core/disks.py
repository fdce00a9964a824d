"""One broker over a directory of its own, ours or a real one: what lies there belongs to the row."""

import shutil
import struct
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from protocol.apis import ApiKey
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.fetch import PartitionData
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.records.batch import RecordBatch
from protocol.records.records import Record, build_batch, read_records
from tests.conftest import BrokerWith
from tests.differential.cluster import KafkaCluster
from tests.scenarios.core.asking import create, fetch, produced, topic
from tests.scenarios.on_kafka import TARGET, OnKafka
from tests.server import Server
from tests.wire import Wire

QUICK = {
    "log.retention.check.interval.ms": 1_000,
    "log.initial.task.delay.ms": 500,
    "log.cleaner.backoff.ms": 300,
    "log.segment.delete.delay.ms": 5_000,
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
}
"""Retention and cleaning come round while one can wait for them."""
ROUND_MS = 4_000
"""By then both have come round."""
HEADER_BYTES = 61
LATEST, EARLIEST = -1, -2
Pair = tuple[bytes, bytes | None]


class OnDisk(ABC):
    """A broker over files of its own, ours or a real one, and one connection to it; the files go with it."""

    def __init__(self, prefix: str) -> None:
        self.place = Path(tempfile.mkdtemp(prefix=prefix))
        self._kafka: OnKafka | None = None
        self._server: Server | None = None
        self._wire: Wire | None = None

    def on_kafka(self, settings: Mapping[str, object], data_dir: Path | None = None) -> None:
        """Prepare the real broker, if that is the target."""
        if TARGET == "kafka":
            texts = {name: str(value) for name, value in settings.items()}
            self._kafka = OnKafka(KafkaCluster(self.place / "kafka", settings=texts, data_dir=data_dir))

    @abstractmethod
    def opened(self) -> Server:
        """Ours, started on the existing files."""

    def start(self) -> None:
        """Start it on the existing files."""
        if self._kafka is None:
            self._server = self.opened()
        elif self._server is None:
            self._kafka.cluster.start()
            self._server = self._kafka
        else:
            self._kafka.control("POST", "/v1/brokers/1/start")

    def stop(self, *, clean: bool = True) -> None:
        """In good order, or by SIGKILL."""
        server = self.server
        server.finish_test()
        self._wire = None
        if self._kafka is not None:
            self._kafka.cluster.stop(1, clean=clean)
            return
        server.stop() if clean else server.kill()

    def close(self) -> None:
        """End it; its files go."""
        self.stop(clean=False)
        shutil.rmtree(self.place, ignore_errors=True)

    @property
    def server(self) -> Server:
        """The one that runs."""
        assert self._server is not None
        return self._server

    def wire(self) -> Wire:
        """The connection."""
        self._wire = self._wire or self.server.wire()
        return self._wire


class Disk(OnDisk):
    """The broker, its directory, and short ways to ask about a topic's partition 0."""

    def __init__(self, broker_with: BrokerWith | None = None) -> None:
        super().__init__("disk-")
        self._started = broker_with
        self.folder = self.place / "data"
        self.on_kafka(QUICK, self.folder)
        self.start()

    def opened(self) -> Server:
        """The clock is frozen."""
        assert self._started is not None
        server = self._started(data_dir=str(self.folder), settings=QUICK)
        server.freeze()
        return server

    def topic(self, name: str, **configs: object) -> str:
        """A new topic; settings with ``_`` for dots."""
        settings = {key.replace("_", "."): str(value) for key, value in configs.items()}
        (result,) = create(self.wire(), topic(name, configs=settings))
        assert not result.error_code, result
        return name

    def delete(self, name: str) -> None:
        """Delete a topic."""
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name)], timeout_ms=5_000)
        self.wire().call(ApiKey.DELETE_TOPICS, 6, request)

    # --- what is on the disk -----------------------------------------------------------------------------------------

    def files(self, name: str, suffix: str = ".log") -> list[str]:
        """Files of partition 0 that end so, in order."""
        return sorted(each.name for each in (self.folder / f"{name}-0").iterdir() if each.name.endswith(suffix))

    def segments(self, name: str) -> list[int]:
        """The offsets that segments are named by."""
        return [int(file.removesuffix(".log")) for file in self.files(name)]

    def file(self, name: str, base: int, suffix: str = ".log") -> Path:
        """One file of partition 0."""
        return self.folder / f"{name}-0" / f"{base:020}{suffix}"

    def stored(self, name: str) -> list[RecordBatch]:
        """All batches of partition 0, as they lie there."""
        batches = []
        for base in self.segments(name):
            data, at = self.file(name, base).read_bytes(), 0
            while at + HEADER_BYTES <= len(data) and struct.unpack_from(">i", data, at + 8)[0]:
                batches.append(RecordBatch(data, at))
                at += batches[-1].size
        return batches

    # --- requests and records ----------------------------------------------------------------------------------------

    def put(self, name: str, *pairs: Pair, at_ms: int | None = None, **fields: Any) -> list[int]:
        """Produce each pair as a batch of its own, all of the same time; the sizes of the batches."""
        wire, time_ms = self.wire(), int(self.server.now_ms()) if at_ms is None else at_ms
        sizes = []
        for key, value in pairs:
            encoded = build_batch([Record(0, time_ms, key, value)], **fields)
            produced(wire, name, encoded)
            sizes.append(len(encoded))
        return sizes

    def bounds(self, name: str) -> tuple[int, int]:
        """The earliest offset and the high watermark."""
        return self.offset_at(name, EARLIEST), self.offset_at(name, LATEST)

    def offset_at(self, name: str, time_ms: int) -> int:
        """The offset that ListOffsets finds, -1 if none."""
        answer = self.wire().call(
            ApiKey.LIST_OFFSETS,
            8,
            ListOffsetsRequest(-1, [ListOffsetsTopic(name, [ListOffsetsPartition(0, time_ms)])], 0),
        )
        return int(answer.topics[0].partitions[0].offset)

    def fetched(self, name: str, offset: int) -> PartitionData:
        """A fetch."""
        return fetch(self.wire(), name, offset)

    def contents(self, name: str) -> list[tuple[int, bytes | None, bytes | None]]:
        """Offset, key and value of each record, as they lie there."""
        return [(r.offset, r.key, r.value) for batch in self.stored(name) for r in read_records(batch)]

    def come_round(self, ms: int = ROUND_MS) -> None:
        """Let retention and the cleaner run."""
        self.server.advance(ms)


def lines(text: bytes) -> Sequence[str]:
    """The lines of a checkpoint."""
    return text.decode().splitlines()
