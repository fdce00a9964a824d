"""The controller's own listener, for clients with `bootstrap.controllers` (KIP-919) and Kafka's tools.

It belongs to no broker: a broker that is killed leaves it open, as with a controller that is a process of its own.
"""

from broker.cluster.base import ClusterBase
from broker.handlers import CONTROLLER_APIS
from broker.network.endpoints import Endpoint
from broker.node import Node


class ControllerListener:
    """The listener, bound or not, and its connections."""

    def __init__(self, cluster: ClusterBase, endpoint: Endpoint) -> None:
        self._cluster, self._endpoint = cluster, endpoint
        self._node: Node | None = None

    async def bind(self) -> None:
        """Bind it: on the port that it had before, if it had any.

        Raises:
            PortTaken: another process listens there.
        """
        cluster, name = self._cluster, self._endpoint.name
        broker = cluster.nodes[cluster.controller_id]
        if self._node is None:  # with the settings of its broker: the two are one process in Kafka's combined mode
            self._node = Node(
                broker.id, broker.settings, cluster.partitions, lambda: broker.sessions, lambda: broker.shares
            )
            self._node.is_controller = True
            self._node.server = cluster.new_server(self._node, CONTROLLER_APIS)
        _, known = self._node.bound.get(name, (self._endpoint, None))
        port = await self._node.server.listen(self._endpoint, known)
        self._node.bound[name], cluster.controller_listener = (self._endpoint, port), self._endpoint.opened(port)
        broker.settings.set_listener_settings(cluster.listener_settings(broker))

    async def accept(self) -> None:
        """Accept connections, on a new port if it was closed."""
        assert self._node is not None
        if not self._node.server.listening:
            await self.bind()
        await self._node.server.accept()

    def disconnect(self, *, move: bool) -> None:
        """Close all connections and, to move, the listener: a port that the system chose is another one then."""
        assert self._node is not None
        self._node.server.connections.close()
        if move:
            self._node.server.close()
            self._node.bound.clear()
            self._cluster.controller_listener = None

    def end_silence(self) -> None:
        """On reset: see :meth:`~broker.network.server.BrokerServer.end_silence`."""
        assert self._node is not None
        self._node.server.end_silence()

    def close(self) -> None:
        """Close the listener and its connections."""
        if self._node is not None:
            self._node.server.close()
