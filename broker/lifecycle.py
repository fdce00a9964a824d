"""Brokers that die, stop, hang and come back while the cluster goes on.

A killed broker's connections are reset and its memory is gone; its log is recovered when it starts again. The cluster
notices after ``broker.session.timeout.ms``: leaders and coordinators move to other replicas, or leave. A stopped broker
hands over first. A paused one reads nothing more, as a process under SIGSTOP.
"""

from functools import partial
from typing import TYPE_CHECKING

import structlog

from broker.birth import CONTROLLER, load_logs, open_node, register
from broker.clock import Timer
from broker.coordination.metadata.image import METADATA_TOPIC
from broker.node import Node
from broker.producer_ids import ProducerIds
from protocol.errors import KafkaError

if TYPE_CHECKING:
    from broker.cluster import Cluster

_log = structlog.get_logger(__name__)


class WrongState(Exception):
    """A broker cannot do that in the state it is in; the message is for the user."""


class Lifecycle:
    """The comings and goings of one cluster's brokers."""

    def __init__(self, cluster: "Cluster") -> None:
        self._cluster = cluster
        self._unheard: dict[int, Timer] = {}

    def kill(self, node: Node) -> None:
        """As SIGKILL does. Raises WrongState if it is down."""
        self._check_up(node)
        assert node.server is not None
        node.server.close(reset=True)
        self._forget(node, clean=False)
        self._notice_later(node)

    def stop(self, node: Node) -> None:
        """Controlled shutdown: leaders move first, then everything is written. Raises WrongState if it is down."""
        self._check_up(node)
        machine = self._cluster.metadata.machine
        self._cluster.metadata.submit(lambda _now_ms: machine.broker_stopped(node.id))
        assert node.server is not None
        node.server.close()
        self._forget(node, clean=True)

    async def start(self, node: Node) -> None:
        """Come back on the same ports. Raises WrongState if it is up, PortTaken if somebody took a port."""
        if node.up:
            raise WrongState(f"broker {node.id} is running")
        cluster = self._cluster
        self._heard(node)
        open_node(cluster, node.id)
        assert node.logs is not None
        if node.id == CONTROLLER:
            node.logs.logs[METADATA_TOPIC, 0] = cluster.metadata_log
        await cluster.bind(node)
        load_logs(cluster, node)
        for topic, index, state in list(cluster.image.all_partitions()):
            if node.id in state.replicas:
                cluster.hosting.follow(topic.name, index)
        register(cluster, node)
        assert node.server is not None
        await node.server.accept()

    def pause(self, node: Node) -> None:
        """Read nothing more, from nobody. Raises WrongState if it is down."""
        self._check_up(node)
        assert node.server is not None
        node.server.pause()
        self._notice_later(node)

    def resume(self, node: Node) -> None:
        """Read again; a broker that was given up meanwhile is taken back. Raises WrongState if it is down."""
        self._check_up(node)
        assert node.server is not None
        self._heard(node)
        if not self._cluster.image.alive(node.id):
            machine = self._cluster.metadata.machine
            self._cluster.metadata.submit(lambda _now_ms: machine.unfence_broker(node.id))
        node.server.resume()

    def directory_failed(self, node: Node) -> None:
        """A broker's log directory went offline: it stays up and answers KAFKA_STORAGE_ERROR, others take over.

        Noticed in a later turn: whoever met the failure is in the middle of something. Kafka itself halts a broker
        whose only directory failed. Nothing moves if the metadata log stands in the same directory.
        """
        clock = self._cluster.clock
        clock.call_at(clock.now_ms(), partial(self._hand_over, node))

    def _hand_over(self, node: Node) -> None:
        if not node.up or node.logs is None or node.logs.environment.offline is None:
            return
        _log.error("log directory is offline", broker=node.id, error=str(node.logs.environment.offline))
        machine = self._cluster.metadata.machine
        try:
            self._cluster.metadata.submit(lambda _now_ms: machine.directory_failed(node.id))
        except KafkaError as error:
            _log.error("leaders cannot move", broker=node.id, error=str(error))

    def clear(self) -> None:
        """Give nobody up any more (reset, stop)."""
        for timer in self._unheard.values():
            timer.cancel()
        self._unheard.clear()

    # --- parts -------------------------------------------------------------------------------------------------------

    @staticmethod
    def _check_up(node: Node) -> None:
        if not node.up:
            raise WrongState(f"broker {node.id} is not running")

    def _forget(self, node: Node, *, clean: bool) -> None:
        """Memory goes: coordinators, sessions, open logs. What is in the files stays."""
        node.resign()
        for partition in self._cluster.partitions.values():
            if partition.logs.pop(node.id, None) is not None:
                partition.replicate()
        assert node.logs is not None
        node.logs.logs.pop((METADATA_TOPIC, 0), None)  # the controller is not this broker's process
        node.logs.close(now_ms=self._cluster.clock.now_ms(), clean=clean, broker_epoch=node.epoch)
        node.logs, node.up, node.sessions, node.producer_ids = None, False, None, ProducerIds()

    def _notice_later(self, node: Node) -> None:
        if node.id in self._unheard:  # it hangs already, or was killed while it did: silent since then
            return
        clock, timeout_ms = self._cluster.clock, node.settings.int("broker.session.timeout.ms")
        self._unheard[node.id] = clock.call_at(clock.now_ms() + timeout_ms, lambda: self._give_up(node))

    def _give_up(self, node: Node) -> None:
        self._unheard.pop(node.id, None)
        if self._cluster.image.alive(node.id):
            machine = self._cluster.metadata.machine
            self._cluster.metadata.submit(lambda _now_ms: machine.fence_broker(node.id))

    def _heard(self, node: Node) -> None:
        if timer := self._unheard.pop(node.id, None):
            timer.cancel()
