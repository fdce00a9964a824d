"""`understudy audit HOST:PORT --follow`: audits a running cluster step by step."""

import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.commands import follow
from pipeline.live import counts as count_tables
from pipeline.live.asking import LiveCluster
from pipeline.live.counts import Counts
from pipeline.live.tables import TABLES
from pipeline.live.watch import Watch
from pipeline.transfer.security import read_security

if TYPE_CHECKING:
    from pipeline.audits.registry import Check
    from pipeline.commands.progress import Progress
    from pipeline.duck.tables import DuckTables

Register = Callable[[Mapping[str, Any], "Progress"], "DuckTables"]


def follow_cluster(arguments: Mapping[str, Any], wanted: "list[Check]", registered: Register) -> int:
    """Follow a cluster; return the exit code.

    Raises:
        WireError: no broker answers, or it does not accept this client.
        SecurityError: the client configuration cannot be used.
    """
    security = read_security(arguments["client_config"])
    width_s = arguments["count_by"]
    counts = None if width_s is None else Counts(width_s * 1000, arguments["input"], arguments["output"])
    with (
        LiveCluster(arguments["dir"], security=security) as cluster,
        tempfile.TemporaryDirectory(prefix="understudy-audit-") as folder,
    ):
        watch = Watch(
            cluster, Path(folder), _now_ms, topics=arguments["topic"], from_end=arguments["from_end"],
            most_bytes=arguments["keep"] << 20, look=look_of(counts),  # megabytes
        )  # fmt: skip
        register = register_of(watch, {**arguments, "dir": folder}, registered, counts)
        return follow.follow(arguments, wanted, register, counts)


def look_of(counts: Counts | None) -> Callable[[Watch], None]:
    """Return a function that counts the records of a copy while it grows."""

    def look(watch: Watch) -> None:
        if counts is not None:
            for place in watch.renewed:
                counts.begin_again(place)
            watch.renewed.clear()
            counts.add(str(watch.folder))

    return look


def register_of(
    watch: Watch, arguments: Mapping[str, Any], registered: Register, counts: Counts | None
) -> "Callable[[Progress], DuckTables]":
    """Return a function that makes the tables of one step. It raises OSError, WireError, EngineError."""

    def register(progress: "Progress") -> "DuckTables":
        answers = watch.step()
        tables = registered(arguments, progress)
        rows = (answers.partitions, answers.producers, answers.transactions, answers.commits, watch.changes)
        tables.add(TABLES, dict(zip(TABLES, rows, strict=True)))
        if counts is not None:
            tables.add(count_tables.TABLES, counts.tables())
        return tables

    return register


def _now_ms() -> int:
    return int(time.time() * 1000)  # noqa: TID251 - a command's time is the machine's
