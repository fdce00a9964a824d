"""The broker's settings as coordinators read them; ``broker.settings.BrokerSettings`` in a broker."""

from collections.abc import Mapping
from typing import Protocol


class Settings(Protocol):
    """Effective values by Kafka's names; read at each decision, as most of them may change while the broker runs."""

    @property
    def static(self) -> Mapping[str, str]:
        """The settings given at start, as strings."""
        ...

    def int(self, name: str) -> int:
        """Return the value of a numeric setting."""
        ...

    def boolean(self, name: str) -> bool:
        """Return the value of a boolean setting."""
        ...

    def string(self, name: str) -> str:
        """Return the value of a string setting."""
        ...

    def list(self, name: str) -> tuple[str, ...]:
        """Return the values of a list setting."""
        ...
