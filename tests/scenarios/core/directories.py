"""One broker over two log directories on disk, ours or a real one."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResult
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.scenarios.core.disks import OnDisk
from tests.serving import Server, start

SETTINGS = {
    "replica.high.watermark.checkpoint.interval.ms": "500",  # meets a directory that has failed
    "log.segment.delete.delay.ms": "1000",
}
PATIENCE_S = 20.0
SET = 0


class Directories(OnDisk):
    """The broker, and its directories a and b; the metadata log is in a."""

    def __init__(self) -> None:
        super().__init__("jbod-")
        self.a, self.b = str(self.place / "a"), str(self.place / "b")
        self.on_kafka({**SETTINGS, "log.dirs": f"{self.a},{self.b}"})
        self.start()

    def opened(self) -> Server:
        """A process, by the machine's time."""
        return Server(start(data_dir=f"{self.a},{self.b}", settings=SETTINGS))

    # --- requests ----------------------------------------------------------------------------------------------------

    def described(self) -> list[DescribeLogDirsResult]:
        """Both directories, in the order of the response."""
        response = self.wire().call(ApiKey.DESCRIBE_LOG_DIRS, 5, DescribeLogDirsRequest(None))
        return list(response.results)

    def held(self, topic: str) -> dict[str, list[int]]:
        """The partitions of a topic in each directory; future ones are negative numbers, -1 for 0."""
        return {
            Path(each.log_dir).name: sorted(
                -1 - p.partition_index if p.is_future_key else p.partition_index
                for t in each.topics if t.name == topic for p in t.partitions
            )
            for each in self.described()
        }  # fmt: skip

    def move(self, path: str, topic: str, index: int = 0) -> ErrorCode:
        """AlterReplicaLogDirs of one replica."""
        request = AlterReplicaLogDirsRequest([AlterReplicaLogDir(path, [AlterReplicaLogDirTopic(topic, [index])])])
        response = self.wire().call(ApiKey.ALTER_REPLICA_LOG_DIRS, 2, request)
        code: ErrorCode = response.results[0].partitions[0].error_code
        return code

    def set(self, name: str, value: str | None, *, broker: str = "1") -> ErrorCode:
        """Set a dynamic setting of the broker, or of all; None deletes it."""
        config = AlterableConfig(name, SET if value is not None else 1, value)
        request = IncrementalAlterConfigsRequest([AlterConfigsResource(4, broker, [config])])
        response = self.wire().call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
        code: ErrorCode = response.responses[0].error_code
        return code

    # --- the disk ----------------------------------------------------------------------------------------------------

    def break_b(self) -> None:
        """Each write to b fails from now on."""
        (self.place / "b").rename(self.place / "b-away")
        (self.place / "b").touch()

    def mend_b(self) -> None:
        """B is as it was."""
        (self.place / "b").unlink()
        (self.place / "b-away").rename(self.place / "b")


def until(condition: Callable[[], bool]) -> None:
    """Ask until it is so: a move, a failure and a setting take effect after their response."""
    deadline, pause = time.monotonic() + PATIENCE_S, threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        pause.wait(0.05)
