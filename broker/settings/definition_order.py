"""The order in which Kafka defines its settings, which decides which of several invalid ones is reported.

`definition_order.txt` is that of 4.4.0 (`KafkaConfig.configDef`, `LogConfig.configKeys`, `GroupConfig`); 4.3.1 has the
same without the settings that are new. It is read at the first error.
"""

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from broker.settings.names import base_name
from protocol.java import HashMap


@cache
def _ranks(kind: str) -> dict[str, int]:
    text = Path(__file__).with_suffix(".txt").read_text(encoding="ascii")
    _, _, tail = text.partition(f"[{kind}]")
    return {name: rank for rank, name in enumerate(tail.partition("[")[0].split())}


def as_defined(kind: str, names: Iterable[str]) -> list[str]:
    """Return names of `broker`, `topic` or `group` settings in the order of their definitions, unknown ones last."""
    ranks = _ranks(kind)
    return sorted(names, key=lambda name: ranks.get(base_name(name), len(ranks)))


def as_hashed(names: Iterable[str]) -> list[str]:
    """Return names in the iteration order of a Java HashMap, in which Kafka processes a request's configs."""
    return list(HashMap((name, None) for name in names))
