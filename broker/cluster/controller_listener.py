"""The controller's own listener, for clients with `bootstrap.controllers` (KIP-919) and Kafka's tools.

It belongs to no broker: it stays open when a broker is killed, like that of a controller in a process of its own.
"""

from broker.cluster.base import ClusterBase
from broker.handlers import CONTROLLER_APIS
from broker.request.node import Node
from broker.server.server import BrokerServer
from broker.settings.endpoints import Endpoint


class ControllerListener:
    """The controller's listener and its connections."""

    _server: BrokerServer
    """Made when the listener is bound for the first time."""

    def __init__(self, cluster: ClusterBase, endpoint: Endpoint) -> None:
        self._cluster, self._endpoint = cluster, endpoint
        self._node: Node | None = None

    async def bind(self) -> None:
        """Bind the listener, on the same port as before if it had one.

        Raises:
            PortTaken: the port is in use.
        """
        cluster, name = self._cluster, self._endpoint.name
        broker = cluster.nodes[cluster.controller_id]
        if self._node is None:  # with its broker's settings: in Kafka's combined mode both are one process
            self._node = Node(
                broker.id, broker.settings, cluster.partitions, lambda: broker.sessions, lambda: broker.shares
            )
            self._node.is_controller = True
            self._server = cluster.new_server(self._node, CONTROLLER_APIS)
        _, previous_port = self._node.bound.get(name, (self._endpoint, None))
        port = await self._server.listen(self._endpoint, previous_port)
        self._node.bound[name], cluster.controller_listener = (self._endpoint, port), self._endpoint.opened(port)
        broker.settings.set_listener_settings(cluster.listener_settings(broker))

    async def accept(self) -> None:
        """Accept connections; if the listener was closed, bind it again."""
        if not self._server.listening:
            await self.bind()
        await self._server.accept()

    def disconnect(self, *, move: bool) -> None:
        """Close all connections and, with ``move``, the listener, so that a port chosen by the system changes."""
        self._server.connections.close()
        if move and self._node is not None:
            self._server.close()
            self._node.bound.clear()
            self._cluster.controller_listener = None

    def end_silence(self) -> None:
        """Resume reading after a pause (reset); see :meth:`~broker.server.server.BrokerServer.end_silence`."""
        self._server.end_silence()

    def close(self) -> None:
        """Close the listener and its connections."""
        if self._node is not None:
            self._server.close()
