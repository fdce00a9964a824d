"""The process of a run's brokers: their settings, their task group, their stopwatch and log, and observed methods."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import structlog

from broker.time import clock as broker_clock
from simulator.loop import VirtualLoop

# Ours, all shorter than Kafka's defaults, so that within the minutes of a run sessions end and locks expire: sessions
# are the shortest of a classic group, a heartbeat comes four times in each. Two partitions: coordinators differ.
SETTINGS = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "share.coordinator.state.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "group.initial.rebalance.delay.ms": "100",
    "broker.session.timeout.ms": "3000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
    "auto.create.topics.enable": "false",
    "connections.max.idle.ms": "-1",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "1500",
    "group.consumer.min.heartbeat.interval.ms": "1500",
    "group.streams.session.timeout.ms": "6000",
    "group.streams.min.session.timeout.ms": "6000",
    "group.streams.heartbeat.interval.ms": "1500",
    "group.streams.min.heartbeat.interval.ms": "1500",
    "group.share.session.timeout.ms": "6000",
    "group.share.min.session.timeout.ms": "6000",
    "group.share.heartbeat.interval.ms": "1500",
    "group.share.min.heartbeat.interval.ms": "1500",
    "group.share.record.lock.duration.ms": "5000",
    "group.share.min.record.lock.duration.ms": "5000",
    "share.coordinator.state.topic.replication.factor": "3",
}


class Tasks:
    """Task group of a cluster; tasks are cancelled in the order in which they were started."""

    def __init__(self) -> None:
        self._running: dict[asyncio.Task[Any], None] = {}
        self.failures: list[BaseException] = []

    def start_soon(self, work: Callable[..., Coroutine[Any, Any, Any]], *arguments: Any, name: object = None) -> None:
        """Start a task, which runs in a later iteration of the loop."""
        task = asyncio.get_running_loop().create_task(work(*arguments), name=None if name is None else str(name))
        self._running[task] = None
        task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[Any]") -> None:
        self._running.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failures.append(error)

    def cancel(self) -> None:
        """Cancel all tasks."""
        for task in list(self._running):
            task.cancel()


@contextmanager
def virtual(loop: VirtualLoop, logged: Callable[[dict[str, Any]], None]) -> Iterator[None]:
    """Replace the brokers' stopwatch and log by those of the run."""

    def keep(_logger: object, level: str, event: Any) -> Any:
        logged({"level": level, **event})
        raise structlog.DropEvent

    stopwatch, configured = broker_clock.stopwatch_ns, structlog.get_config()
    broker_clock.stopwatch_ns = loop.time_ns
    structlog.configure(processors=[keep], cache_logger_on_first_use=False)
    try:
        yield
    finally:
        broker_clock.stopwatch_ns = stopwatch
        structlog.configure(**configured)


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Replace an attribute of a class, a module or an object within the block."""
    original = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, original)
