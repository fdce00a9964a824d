"""The schema registry of the cluster (`schema_registry=0`): its address and faults."""

from typing import Literal

from understudy import results
from understudy.aio.resource import without_none
from understudy.aio.verbs import RegistryVerbs
from understudy.from_json import build


class AsyncRegistry(RegistryVerbs):
    """The schema registry of the cluster. Its verbs raise ControlError 409 if there is none."""

    async def show(self) -> results.RegistryInfo:
        """Return the address of the schema registry, and the size of its contents."""
        return build(results.RegistryInfo, await self._ask("registry show"))

    async def fail(
        self,
        *,
        status: int | None = None,
        message: str | None = None,
        delay_ms: int | None = None,
        path: str | None = None,
        method: Literal["GET", "POST", "PUT", "DELETE"] | None = None,
        skip: int | None = None,
        times: int | None = None,
    ) -> results.RegistryFaultState:
        """Reject (`status`) or delay matching requests to the schema registry, once unless `times` is given."""
        chosen = without_none(
            status=status, message=message, delay_ms=delay_ms, path=path, method=method, skip=skip, times=times
        )
        return build(results.RegistryFaultState, await self._ask("registry fail", **chosen))

    async def faults(self) -> list[results.RegistryFaultState]:
        """Return all faults of the schema registry."""
        result = await self._ask("registry faults")
        return [build(results.RegistryFaultState, fault) for fault in result["faults"]]

    async def heal(self) -> None:
        """Remove all faults of the schema registry."""
        await self._ask("registry heal")
