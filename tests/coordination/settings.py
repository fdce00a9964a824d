"""Broker settings of a coordinator under test."""

from collections.abc import Mapping
from typing import Any


class FixedSettings:
    """The coordinators' ``Settings`` out of a dict, by Kafka's names; a test may change the dict."""

    static: Mapping[str, str] = {}

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = dict(values)

    def int(self, name: str) -> int:
        """Return a numeric setting."""
        number: int = self.values[name]
        return number

    def boolean(self, name: str) -> bool:
        """Return a boolean setting."""
        flag: bool = self.values[name]
        return flag

    def string(self, name: str) -> str:
        """Return a string setting."""
        text: str = self.values[name]
        return text

    def list(self, name: str) -> tuple[str, ...]:
        """Return a list setting."""
        texts: tuple[str, ...] = self.values[name]
        return texts
