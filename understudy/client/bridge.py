"""Access from blocking to asynchronous code; the counterpart in the asynchronous client is `understudy.aio.bridge`."""

from functools import cached_property
from typing import TYPE_CHECKING

from understudy.client.steering import Faults
from understudy.client.verbs import ClusterVerbs
from understudy.launcher import ServerProcess
from understudy.transport import Address

if TYPE_CHECKING:  # imported only if `aio` is used
    from understudy.aio import AsyncCluster


class Bridge(ClusterVerbs):
    """A cluster with an asynchronous twin."""

    address: Address
    process: ServerProcess | None
    owned: bool
    schema_registry_url: str
    servers: list[str]
    faults: Faults

    @cached_property
    def aio(self) -> "AsyncCluster":
        """Return the same cluster for asynchronous code, where waiting does not block the event loop."""
        from understudy.aio import AsyncCluster

        twin = AsyncCluster(self.address, (), self.process, owned=self.owned)
        twin.servers, twin.schema_registry_url = self.servers, self.schema_registry_url
        twin.faults.optional, twin.faults.missed = self.faults.optional, self.faults.missed
        return twin
