# Made from understudy/aio/registry.py by tools/generate_client.py: change it there.
"""The schema registry of the cluster (`schema_registry=0`): its address and faults."""

from typing import Literal

from understudy import results
from understudy.client.resource import without_none
from understudy.client.verbs import RegistryVerbs
from understudy.from_json import build


class Registry(RegistryVerbs):
    """The schema registry of the cluster. Its verbs raise ControlError 409 if there is none."""

    def show(self) -> results.RegistryInfo:
        """Return the address of the schema registry, and the size of its contents."""
        return build(results.RegistryInfo, self._ask("registry show"))

    def fail(
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
        return build(results.RegistryFaultState, self._ask("registry fail", **chosen))

    def faults(self) -> list[results.RegistryFaultState]:
        """Return all faults of the schema registry."""
        result = self._ask("registry faults")
        return [build(results.RegistryFaultState, fault) for fault in result["faults"]]

    def heal(self) -> None:
        """Remove all faults of the schema registry."""
        self._ask("registry heal")
