"""The keyword arguments of `start`, `faults.add` and `journal.find`: typed for editors, checked for people."""

import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypedDict

from understudy.actions import Action, Disconnect, Error
from understudy.parser import nearest


class StartOptions(TypedDict, total=False):
    """What `understudy serve` takes, as keyword arguments; ports are free ones unless given."""

    brokers: int
    host: str
    port: int | str | Iterable[int]
    advertise: str
    listeners: Iterable[str]
    topics: Iterable[str] | Mapping[str, int]
    settings: Mapping[str, object]
    features: Mapping[str, int]
    as_version: str
    data_dir: str | os.PathLike[str]
    read_only: bool
    control_port: int | Literal["off"]
    control_host: str
    control_token: str
    config: str | os.PathLike[str]
    journal: str | os.PathLike[str]
    seed: int
    log_format: Literal["console", "json"]
    log_level: str


class FaultOptions(TypedDict, total=False):
    """A fault: which requests it meets (joined by AND), how often, and what it does to them."""

    api: str
    versions: tuple[int, int] | list[int]
    broker: int
    listener: str
    client_id: str
    topic: str
    partition: int
    group: str
    transactional_id: str
    request: Mapping[str, Any]
    skip: int
    times: int | None
    probability: float
    error: str | Error
    apply_then: Action | Mapping[str, Any]
    delay_ms: int
    where: Literal["before", "after"]
    drop: bool
    disconnect: Literal["close", "reset"] | Disconnect
    throttle_ms: int
    alter: Mapping[str, Any]
    bytes: Mapping[str, Any]


class JournalQuery(TypedDict, total=False):
    """Which requests to find; conditions are joined by AND."""

    api: str
    client_id: str
    connection: int
    broker: int
    topic: str
    group: str
    transactional_id: str
    error: str
    fault: str
    since: int
    limit: int


DOES = frozenset({"error", "apply_then", "delay_ms", "drop", "disconnect", "throttle_ms", "alter", "bytes"})
"""What a fault can do to a request; each says one of them."""


def named(said: tuple[object, ...], such: str) -> None:
    """Raise TypeError for arguments without a name."""
    if said:
        raise TypeError(f"say what {said[0]!r} is, as in {such}")


def between(name: str, limits: Any) -> dict[str, Any] | None:
    """Versions of an API as JSON. Raises TypeError where they are no pair and not None."""
    if limits is None:
        return None
    try:
        least, most = limits
    except (TypeError, ValueError):
        raise TypeError(f"versions.set: {name} needs (least, most), such as (0, 3), not {limits!r}") from None
    return {"min": least, "max": most}


def check(said: Iterable[str], known: type, what: str) -> None:
    """Raise TypeError, with the nearest name, for a keyword that the TypedDict does not have."""
    for name in said:
        if name not in known.__annotations__:
            raise TypeError(f"{what} knows no {name!r}{nearest(name, known.__annotations__)}")
