"""The keyword arguments of `start`, `faults.add` and `journal.find`: typed, and checked at run time."""

import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypedDict

from control_api.faults import FaultEffects, FaultOptions
from control_api.fields import fields_of
from control_api.journal import JournalQuery
from control_api.spelling import hint

__all__ = ["DOES", "FaultOptions", "JournalQuery", "StartOptions", "between", "check", "named"]


class StartOptions(TypedDict, total=False):
    """Options of `understudy serve` as keyword arguments; ports default to free ones."""

    brokers: int | Iterable[int]
    broker_id: int
    rack: str | Iterable[str]
    host: str
    port: int | str | Iterable[int]
    advertise: str
    listeners: Iterable[str]
    controllers: int | Iterable[int]
    controller_port: int
    topics: Iterable[str] | Mapping[str, int]
    add_scram: Iterable[str]
    settings: Mapping[str, object]
    features: Mapping[str, int]
    as_version: str
    data_dir: str | os.PathLike[str]
    read_only: bool
    allow_reset: bool
    for_tests: bool
    lazy_coordinators: bool
    strict_settings: bool
    no_strict_settings: bool
    schema_registry: int | str
    schema_registry_url: str
    key_schema: Iterable[str] | os.PathLike[str]
    value_schema: Iterable[str] | os.PathLike[str]
    control_port: int | Literal["off"]
    control_host: str
    control_token: str
    config: str | os.PathLike[str]
    journal: str | os.PathLike[str]
    otlp_endpoint: str
    scenario: str | os.PathLike[str]
    seed: int
    log_format: Literal["console", "json"]
    log_level: str


DOES = frozenset(name for name in fields_of(FaultEffects) if name != "where")
"""Effects of a fault, of which each fault has one."""


def named(positional: tuple[object, ...], such: str) -> None:
    """Raise TypeError for positional arguments."""
    if positional:
        raise TypeError(f"pass {positional[0]!r} by keyword, such as {such}")


def between(name: str, limits: Any) -> dict[str, Any] | None:
    """Return versions of an API as JSON. Raises TypeError unless they are a pair or None."""
    if limits is None:
        return None
    try:
        least, most = limits
    except (TypeError, ValueError):
        raise TypeError(f"versions.set: {name} needs (least, most), such as (0, 3), not {limits!r}") from None
    return {"min": least, "max": most}


def check(names: Iterable[str], known: type, what: str) -> None:
    """Raise TypeError, with the nearest name, for an unknown keyword."""
    for name in names:
        if name not in known.__annotations__:
            body = {"match": "api='EndTxn', topic='orders'", "do": "drop=True, or error='NOT_COORDINATOR'"}
            flat = (
                f"; its contents are keywords here, such as {body[name]}"
                if known is FaultOptions and name in body
                else ""
            )
            raise TypeError(f"{what} has no option {name!r}{flat or hint(name, known.__annotations__)}")
