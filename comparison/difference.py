"""Differences between two comparable values, field by field."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_INDEX = re.compile(r"\[\d+\]")


@dataclass(frozen=True, slots=True)
class Difference:
    """Field with different values on the two clusters; ``path`` is its place in the response."""

    api: str
    path: str
    kafka: Any
    understudy: Any

    @property
    def field(self) -> str:
        """The path without list indexes: ``topics[].partitions[].error_code``."""
        return _INDEX.sub("[]", self.path)

    def __str__(self) -> str:
        return f"{self.api} {self.path}: Kafka {self.kafka!r}, Understudy {self.understudy!r}"


MISSING = "(absent)"


def differences(api: str, kafka: Any, understudy: Any, path: str = "") -> Iterator[Difference]:
    """Yield all differences between two comparable values."""
    if isinstance(kafka, dict) and isinstance(understudy, dict):
        for key in dict.fromkeys([*kafka, *understudy]):
            inner = f"{path}.{key}" if path else key
            yield from differences(api, kafka.get(key, MISSING), understudy.get(key, MISSING), inner)
    elif isinstance(kafka, list) and isinstance(understudy, list):
        if len(kafka) != len(understudy):
            yield Difference(api, f"{path}.length", len(kafka), len(understudy))
        for index, (theirs, ours) in enumerate(zip(kafka, understudy, strict=False)):
            yield from differences(api, theirs, ours, f"{path}[{index}]")
    elif kafka != understudy or type(kafka) is not type(understudy):
        yield Difference(api, path, kafka, understudy)
