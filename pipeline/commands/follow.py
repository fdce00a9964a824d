"""`understudy audit --follow`: audits a directory in use repeatedly, reports what is new, and serves metrics."""

import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pipeline.audits import findings
from pipeline.audits.engine import EngineError
from pipeline.audits.follow import Followed, Row, is_at_least, measured
from pipeline.commands.progress import Progress
from pipeline.decoding.damage import DamagedError
from pipeline.rendering.text import formatted
from pipeline.transfer.wire import WireError

if TYPE_CHECKING:
    from prometheus_client.core import GaugeMetricFamily, Metric

    from pipeline.audits.findings import Finding
    from pipeline.audits.registry import Check
    from pipeline.duck.tables import DuckTables
    from pipeline.live.counts import Counts

OF_THE_COPY: Final = ("directory", "segment", "position", "file")
"""Columns that name files; for a running cluster they would name the files of the copy."""
BOUNDS: Final = {
    "log_start_offset": "First offset of the log.",
    "last_stable_offset": "Consumers of committed records get what is below.",
    "high_watermark": "Consumers get what is below.",
}
PROGRAM: Final = "understudy audit"
HOST: Final = "127.0.0.1"
"""Metrics are served to this machine only."""


class Follower:
    """The steps of one command.

    `pause` waits and returns whether to end; `show` gets each line of output, `complain` the reason of a failed step.
    """

    def __init__(
        self,
        arguments: Mapping[str, Any],
        wanted: "list[Check]",
        register: "Callable[[Progress], DuckTables]",
        show: Callable[[str], None],
        pause: Callable[[float], bool],
        counts: "Counts | None" = None,
        complain: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.followed = Followed()
        self._complain, self._complaint = complain, ""
        self._counts = counts
        self._counted: set[tuple[str, int]] = set()
        self._arguments, self._wanted, self._register = arguments, wanted, register
        self._show, self._pause = show, pause
        self._progress = Progress(quiet=True)

    def run(self) -> int:
        """Run steps until the end.

        Exit code 1: something of the severity of `--fail-on` was reported; 2: no step succeeded.
        """
        most, code = self._arguments["steps"], 0
        while True:
            for finding in self._step():
                row = _without_copy(finding) if self._arguments.get("is_cluster") else finding
                self._show(line(row, self._arguments["format"], self.followed.steps))
                code = code or int(is_at_least(row.check, self._arguments["fail_on"]))
            self._show_counts()
            if code and self._arguments["until_finding"]:
                return code
            if (most and self.followed.steps >= most) or self._pause(self._arguments["follow"]):
                return 2 if self.followed.failures == self.followed.steps else code

    def _show_counts(self) -> None:
        """Show each bucket once, after its end and another bucket's length."""
        if self._counts is None or self._arguments["format"] != "json":
            return
        now_ms = int(time.time() * 1000)  # noqa: TID251 - the time of records
        for row in self._counts.over(now_ms - self._counts.width_ms):
            key = row["topic"], row["bucket_ms"]
            if key not in self._counted:
                self._counted.add(key)
                self._show(json.dumps({"step": self.followed.steps, "counted": row["topic"], **row}))

    def _step(self) -> list[Row]:
        try:
            findings_now = self._findings()
        except (OSError, DamagedError, EngineError, WireError) as error:
            return self._failed(str(error))
        self._complaint = ""
        return self.followed.step(findings_now)

    def _findings(self) -> "Sequence[Finding]":
        """Return the findings of a step, and keep its measurements."""
        tables = self._register(self._progress)
        try:
            broken_checks = findings.ask_all(tables.engine, self._wanted)
            self.followed.measured = measured(tables.engine, is_cluster=bool(self._arguments.get("is_cluster")))
            self.followed.counts = [] if self._counts is None else self._counts.recent()
        finally:
            tables.forget()
        return broken_checks

    def _failed(self, why: str) -> list[Row]:
        """Count a failed step, for example because a file was deleted while it was read; the next step continues.

        The reason is reported once, until it changes.
        """
        self.followed.failures += 1
        self.followed.steps += 1
        if why != self._complaint:
            self._complaint = why
            self._complain(why)
        return []


def _without_copy(row: Row) -> Row:
    return Row(row.check, {name: value for name, value in row.row.items() if name not in OF_THE_COPY})


def line(row: Row, form: str, step: int) -> str:
    """Return a finding as one line of text or JSON."""
    if form == "json":
        head = {"step": step, "check": row.check.name, "severity": row.check.severity}
        return json.dumps({**head, **row.row}, default=str)
    fields = ", ".join(f"{name}={formatted(name, value)}" for name, value in row.row.items() if value is not None)
    return f"{row.check.severity.upper()} {row.check.name}: {row.check.title}: {fields}"


def follow(
    arguments: Mapping[str, Any],
    wanted: "list[Check]",
    register: "Callable[[Progress], DuckTables]",
    counts: "Counts | None" = None,
) -> int:
    """Follow until a signal or `--until-finding`; return the exit code. Raises OSError: the port is in use."""
    over = threading.Event()

    def answer(text: str) -> None:
        print(text, flush=True)  # noqa: T201 - a command's answer

    def complain(text: str) -> None:
        print(f"{PROGRAM}: {formatted('', text)}", file=sys.stderr, flush=True)  # noqa: T201

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    follower = Follower(arguments, wanted, register, answer, over.wait, counts, complain)

    if arguments["metrics_port"] is None:
        return follower.run()
    from prometheus_client import CollectorRegistry, start_http_server  # noqa: PLC0415 - it takes its time

    registry = CollectorRegistry()
    registry.register(Collector(follower.followed))
    port = arguments["metrics_port"]
    try:
        server, thread = start_http_server(port, HOST, registry)
    except OSError as error:
        raise OSError(f"--metrics-port {port} cannot be bound: {error.strerror}; choose another port") from error
    try:
        return follower.run()
    finally:
        server.shutdown()
        thread.join()


class Collector:
    """The metrics for prometheus_client."""

    def __init__(self, followed: Followed) -> None:
        self._followed = followed

    def collect(self) -> "Iterator[Metric]":
        """Yield all metric families of the last step."""
        known = self._followed
        yield _gauge("steps", "Audits done, those included that could not read the directory.", [], [((), known.steps)])
        yield _gauge("failed_steps", "Audits that could not read the directory.", [], [((), known.failures)])
        yield _gauge("time_seconds", "Time of this answer.", [], [((), time.time())])  # noqa: TID251 - for scrapers
        for name, text, counts in (
            ("findings", "Rows of each check in the last audit.", known.current),
            ("reported", "Rows of each check that were reported since the start.", known.reported),
        ):
            yield _gauge(name, text, ["check"], [((check,), count) for check, count in counts.items()])
        measured = known.measured
        records = [((row["topic"],), row["value"]) for row in measured.records]
        yield _gauge("records", "Records by topic.", ["topic"], records)
        place = ["topic", "partition"]
        lags = [((row["group_id"], row["topic"], str(row["partition"])), row["value"]) for row in measured.lag]
        yield _gauge("lag", "Offsets that a group has not committed yet.", ["group", *place], lags)
        rows = [((row["topic"], str(row["partition"])), row) for row in measured.open_transactions]
        opened = [(at, row["count"]) for at, row in rows]
        yield _gauge("open_transactions", "Transactions without a marker.", place, opened)
        ages = [(at, row["age_ms"] / 1000) for at, row in rows]
        yield _gauge("oldest_transaction_seconds", "Age of the oldest open transaction.", place, ages)
        for name, text in BOUNDS.items():
            bounds = [((row["topic"], str(row["partition"])), row[name]) for row in measured.bounds]
            yield _gauge(name, text, place, bounds)
        states = [((row["state"],), row["count"]) for row in measured.states]
        yield _gauge("transactions", "Transactional ids by state.", ["state"], states)
        counted = [((row["topic"], str(row["bucket_ms"] // 1000)), row["records"]) for row in known.counts]
        yield _gauge("records_in_bucket", "Committed records of the newest time buckets.", ["topic", "time"], counted)


def _gauge(
    name: str, text: str, labels: Sequence[str], values: Sequence[tuple[tuple[str, ...], float]]
) -> "GaugeMetricFamily":
    from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415 - it takes its time

    family = GaugeMetricFamily(f"understudy_audit_{name}", text, labels=labels)
    for at, value in values:
        family.add_metric(list(at), float(value))
    return family
