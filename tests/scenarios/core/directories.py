"""One broker over two log directories on disk, ours or a real one."""

import shutil
import tempfile
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
from tests.differential.cluster import KafkaCluster
from tests.scenarios.on_kafka import TARGET, OnKafka
from tests.serving import Server, start
from tests.wire import Wire

SETTINGS = {
    "replica.high.watermark.checkpoint.interval.ms": "500",  # meets a directory that has failed
    "log.segment.delete.delay.ms": "1000",
}
PATIENCE_S = 20.0
SET = 0


class Directories:
    """The broker, and its directories a and b; the metadata log is in a."""

    def __init__(self) -> None:
        self.place = Path(tempfile.mkdtemp(prefix="jbod-"))
        self.a, self.b = str(self.place / "a"), str(self.place / "b")
        self._kafka: OnKafka | None = None
        self._server: Server | None = None
        self._wire: Wire | None = None
        if TARGET == "kafka":
            settings = {**SETTINGS, "log.dirs": f"{self.a},{self.b}"}
            self._kafka = OnKafka(KafkaCluster(self.place / "kafka", settings=settings))
        self.start()

    def start(self) -> None:
        """Start it on what is there."""
        if self._kafka is None:
            self._server = Server(start(data_dir=f"{self.a},{self.b}", settings=SETTINGS))
        elif self._server is None:
            self._kafka.cluster.start()
            self._server = self._kafka
        else:
            self._kafka.control("POST", "/v1/brokers/1/start")

    def stop(self, *, clean: bool = True) -> None:
        """In good order, or by SIGKILL."""
        self.server.finish_test()
        self._wire = None
        if self._kafka is not None:
            self._kafka.cluster.stop(1, clean=clean)
            return
        if not clean:
            self.server.process.process.kill()
            self.server.process.process.wait()
        self.server.process.stop()

    def close(self) -> None:
        """End it; its directories go."""
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
