"""Topics whose records the brokers compress again: their sizes depend on the compressor."""

from collections.abc import Iterator
from typing import Any

CODECS = frozenset({"gzip", "snappy", "lz4", "zstd"})
"""Values of `compression.type` with which a broker compresses again."""
EVERY = "*"
"""All topics, because a broker has such a `compression.type`."""
_BROKER = 4  # ConfigResource.Type.BROKER


def recompressed(request: Any) -> Iterator[str]:
    """Yield the names of topics for which a request sets such a value; `EVERY` if it does so for a broker."""
    for item in (*_list(request, "topics"), *_list(request, "resources")):
        if any(config.name == "compression.type" and config.value in CODECS for config in _list(item, "configs")):
            is_broker = getattr(item, "resource_type", None) == _BROKER
            yield EVERY if is_broker else getattr(item, "resource_name", None) or item.name


def _list(message: Any, name: str) -> Any:
    items = getattr(message, name, None)
    return items if isinstance(items, (list, tuple)) else ()


def named_at(value: Any, path: str) -> str | None:
    """Return the name of the topic in a response at or above a path such as `results[0].topics[1].partitions[0]`."""
    name = None
    for step in path.replace("[", ".").replace("]", "").split("."):
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdecimal():
            value = value[int(step)]
        if isinstance(value, dict) and isinstance(value.get("name"), str):
            name = value["name"]
    return name
