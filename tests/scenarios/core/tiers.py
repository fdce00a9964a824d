"""One broker with tiered storage, ours or a real one (KIP-405)."""

import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from protocol.records.records import Record, build_batch
from tests.clients.targets import kafka_libs
from tests.scenarios.core.asking import batches_of, created, fetch, produced
from tests.scenarios.core.disks import OnDisk
from tests.scenarios.on_kafka import TARGET
from tests.serving import Server, start

LATEST, EARLIEST, LARGEST_TIME, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6
TIERED = {"remote_storage_enable": "true", "internal_segment_bytes": "1000"}
"""Two records of :meth:`Tiers.put` fill a segment."""
SETTINGS = {
    "remote.log.storage.system.enable": "true",
    "remote.log.storage.manager.class.name": "FolderTier",
    "remote.log.metadata.manager.listener.name": "PLAINTEXT",
    "remote.log.manager.task.interval.ms": "300",
    "log.retention.check.interval.ms": "300",
    "log.initial.task.delay.ms": "100",
}
OF_KAFKA = {
    "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
    "rlmm.config.remote.log.metadata.initialization.retry.interval.ms": "300",
}
JAVA = Path(__file__).resolve().parents[2] / "differential" / "java"
PATIENCE_S = 60.0


class Tiers(OnDisk):
    """The broker; the tier of a real one is a folder."""

    def __init__(self) -> None:
        super().__init__("tiers-")
        self.time_ms = int(time.time() * 1000)
        if TARGET == "kafka":
            classes = self.place / "classes"
            compiler = ["javac", "-cp", f"{kafka_libs()}/*", "-d", str(classes), str(JAVA / "FolderTier.java")]
            subprocess.run(compiler, check=True)
            folders = {"remote.log.storage.manager.class.path": f"{classes}/", "rsm.config.dir": self.place / "tier"}
            self.on_kafka({**SETTINGS, **OF_KAFKA, **folders})
        self.start()

    def opened(self) -> Server:
        """A process, by the machine's time."""
        return Server(start(data_dir=str(self.place / "data"), settings=SETTINGS))

    # --- requests ----------------------------------------------------------------------------------------------------

    def topic(self, name: str, **configs: str) -> str:
        """A tiered topic whose segments have two records."""
        created(self.wire(), name, 1, 1, **TIERED, **configs)
        return name

    def put(self, topic: str, count: int, *, age_ms: int = 0, partition: int = 0) -> None:
        """Records of 471 bytes with their batches, of a time before the test's start."""
        for _ in range(count):
            produced(
                self.wire(),
                topic,
                build_batch([Record(0, self.time_ms - age_ms, b"k", b"x" * 400)]),
                partition=partition,
            )

    def set(self, topic: str, **configs: str) -> ErrorCode:
        """Alter settings of a topic."""
        altered = [AlterableConfig(name.replace("_", "."), 0, value) for name, value in configs.items()]
        request = IncrementalAlterConfigsRequest([AlterConfigsResource(2, topic, altered)])
        code: ErrorCode = self.wire().call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request).responses[0].error_code
        return code

    def listed(self, topic: str, timestamp: int) -> ListOffsetsPartitionResponse:
        """ListOffsets of partition 0."""
        request = ListOffsetsRequest(-1, [ListOffsetsTopic(topic, [ListOffsetsPartition(0, timestamp)])], 0, 5_000)
        ((answer,),) = [each.partitions for each in self.wire().call(ApiKey.LIST_OFFSETS, 11, request).topics]
        result: ListOffsetsPartitionResponse = answer
        return result

    def offsets(self, topic: str, *timestamps: int) -> list[int]:
        """The offsets at special timestamps."""
        return [self.listed(topic, each).offset for each in timestamps]

    def fetched(self, topic: str, offset: int) -> list[int]:
        """The base offsets of the batches that a fetch of partition 0 gets."""
        answer = fetch(self.wire(), topic, offset)
        assert answer.error_code is ErrorCode.NONE, answer.error_code
        return [each.base_offset for each in batches_of(answer)]

    def local_bytes(self, topic: str) -> int:
        """The size of partition 0 in DescribeLogDirs."""
        request = DescribeLogDirsRequest([DescribableLogDirTopic(topic, [0])])
        (result,) = self.wire().call(ApiKey.DESCRIBE_LOG_DIRS, 4, request).results
        return int(result.topics[0].partitions[0].partition_size)

    def all_moved(self, topic: str, count: int) -> str:
        """A topic of so many records, none of which is local any more."""
        self.topic(topic)
        self.put(topic, count)
        assert self.set(topic, local_retention_ms="1") is ErrorCode.NONE
        until(lambda: self.offsets(topic, EARLIEST_LOCAL, LATEST_TIERED) == [count, count - 1])
        return topic


def until(condition: Callable[[], bool]) -> None:
    """Ask until it is so: copying and retention come round."""
    deadline, pause = time.monotonic() + PATIENCE_S, threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        pause.wait(0.05)
