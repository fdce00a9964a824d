"""Runs `understudy conformance` on a journal, and `understudy audit` on client logs, in a separate process."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy.errors import ConformanceError

LIMIT_S = 300.0  # ends a judge that hangs; an audit of a test takes seconds; ours, for a busy machine


@dataclass(frozen=True, slots=True)
class BrokenInvariant:
    """An invariant of the protocol that a client violated.

    ``rows`` are the requests, at most as many as the report lists; ``count`` is the number of violations.
    ``severity`` is ``error``, ``warning`` or ``info``.
    """

    invariant: str
    severity: str
    title: str
    software: str
    software_version: str | None
    count: int
    rows: tuple[Mapping[str, Any], ...]

    def __str__(self) -> str:
        """Return the heading of `understudy conformance`, and the first request."""
        client = " ".join(filter(None, (self.software, self.software_version)))
        first = ", ".join(f"{name} {value}" for name, value in (self.rows[0] if self.rows else {}).items())
        return f"{self.severity.upper()} {self.invariant}: {self.title} ({client}, {self.count} x): {first}"


@dataclass(frozen=True, slots=True)
class Conformance:
    """Conformance of clients according to the journal: docs/clients.md.

    ``broken`` has the violated invariants, ``kept`` the names of those that some client had an occasion to violate and
    none did. ``document`` is the whole report, as from `understudy conformance --format json`.
    """

    broken: tuple[BrokenInvariant, ...]
    kept: tuple[str, ...]
    document: Mapping[str, Any]

    @property
    def errors(self) -> tuple[BrokenInvariant, ...]:
        """Return the violations of severity ``error``: what a correct client never does."""
        return tuple(invariant for invariant in self.broken if invariant.severity == "error")

    def __str__(self) -> str:
        """Return a line for each violation, and one for the invariants that were kept."""
        return "\n".join([*map(str, self.broken), f"{len(self.broken)} broken, {len(self.kept)} kept"])


def judge(entries: Sequence[Mapping[str, Any]], software: Sequence[str] = ()) -> Conformance:
    """Examine journal entries, as returned by `GET /v1/journal`.

    Raises:
        ConformanceError: `understudy conformance` failed, usually because `understudy-kafka[duckdb]` is not installed,
            or
            took more than LIMIT_S.
    """
    if not entries:
        return Conformance((), (), {})
    with tempfile.TemporaryDirectory(prefix="understudy-conformance-") as folder:
        journal = Path(folder) / "journal.json"
        journal.write_text(json.dumps(entries), encoding="utf-8")
        named = [part for name in software for part in ("--software", name)]
        return conformance_of(_report(["conformance", str(journal), *named], f"{len(entries)} requests"))


def findings_of_client_logs(lines: Sequence[str]) -> list[str]:
    """Check client logs by `understudy audit --history` (docs/audit.md); return a line for each kind of finding.

    Raises:
        ConformanceError: `understudy audit` failed, as for :func:`judge`.
    """
    with tempfile.TemporaryDirectory(prefix="understudy-client-logs-") as folder:
        (Path(folder) / "clients.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        document = _report(["audit", "--history", folder], f"{len(lines)} events")
    return [
        f"{each['check']}: {each['title']} ({each['count']} x): "
        + ", ".join(f"{name} {value}" for name, value in each["rows"][0].items())
        for each in document["findings"]
        if each["severity"] != "info"
    ]


def _report(arguments: Sequence[str], what: str) -> Mapping[str, Any]:
    """Run a command of the pipeline in a separate process; return its report."""
    with tempfile.TemporaryDirectory(prefix="understudy-report-") as folder:
        out = Path(folder) / "report.json"
        command = [sys.executable, "-P", str(Path(__file__).with_name("__main__.py")), *arguments]
        command += ["--format", "json", "--quiet", "--out", str(out)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        except subprocess.TimeoutExpired:
            raise ConformanceError(
                f"{what} could not be examined in {LIMIT_S:g} s; ask for those `since` a later time"
            ) from None
        if done.returncode not in {0, 1} or not out.exists():
            raise ConformanceError(done.stderr.strip() or f"understudy {arguments[0]} ended with {done.returncode}")
        document: Mapping[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        return document


def conformance_of(document: Mapping[str, Any]) -> Conformance:
    """Convert a report to its violations and kept invariants."""
    broken = tuple(BrokenInvariant(**{**each, "rows": tuple(each["rows"])}) for each in document["broken"])
    named = {each.invariant for each in broken}
    kept = {each["invariant"] for each in document["invariants"] if each["verdict"] == "kept"}
    return Conformance(broken, tuple(sorted(kept - named)), document)
