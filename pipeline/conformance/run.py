"""The report of one run: its parts, and the violated invariants."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from pipeline.audits import findings, registry
from pipeline.audits.engine import Engine
from pipeline.audits.findings import ORDER, ROWS_KEPT, Finding
from pipeline.audits.registry import SEVERITIES, Check
from pipeline.conformance import tables
from pipeline.rendering.text import counted, plain

Rows = Sequence[dict[str, Any]]
UNKNOWN: Final = "?"
"""Version of a client that did not send one (`views/spoken.sql`)."""
NOT_EXERCISED: Final = "not exercised"
_PART: Final = "software"
_CLIENT: Final = ("spoken_software", "spoken_version")
_COUNT: Final = "spoken_count"
_PLACE: Final = "spoken_place"
_ADDED: Final = {*_CLIENT, _COUNT, _PLACE}


def named(software: str, version: str) -> str:
    """Return a client's name with its version, if it sent one."""
    return software if version == UNKNOWN else f"{software} {version}"


def times(count: int) -> str:
    """Return a count as text."""
    return "once" if count == 1 else f"{count} times"


@dataclass(frozen=True, slots=True)
class Broken:
    """An invariant that one client software violated `count` times; `rows` are the first violations."""

    software: str
    version: str
    check: Check
    count: int
    rows: Rows


@dataclass(frozen=True, slots=True)
class Verdict:
    """An invariant and a client: `broken`, `kept` on all of its `occasions`, or `not exercised` without any."""

    software: str
    version: str
    check: Check
    occasions: int
    broken: int

    @property
    def text(self) -> str:
        """Return the verdict as text."""
        return "broken" if self.broken else "kept" if self.occasions else NOT_EXERCISED


@dataclass(frozen=True, slots=True)
class Run:
    """Analysis of a journal. `parts`: the rows of each question by name; `broken`: violations, the worst first."""

    journal: str
    checks: Sequence[Check]
    parts: dict[str, Rows]
    broken: Sequence[Broken] = field(default_factory=tuple)

    @property
    def requests(self) -> int:
        """Return the number of requests."""
        return sum(row["requests"] for row in self.parts["clients"])

    @property
    def summary(self) -> str:
        """Return a one-line summary."""
        names = [named(row["software"], row["software_version"]) for row in self.parts["clients"]]
        summary = (
            # What fits on a line.
            f"{counted(self.requests, 'request')} of {', '.join(names[:6])}{' and others' if len(names) > 6 else ''}"
        )
        kinds = {each.check.name for each in self.broken}
        exercised = {row["invariant"] for row in self.parts["occasions"]} | kinds
        count = sum(each.count for each in self.broken)
        broken = f"{len(kinds) or 'none'} of {len(self.checks)} invariants broken"
        often = f", {times(count)}" if count else ""
        quiet = len(self.checks) - len(exercised)
        return f"{summary}: {broken}{often}; {len(exercised) - len(kinds)} kept, {quiet} {NOT_EXERCISED}"

    def verdicts(self) -> Iterator[Verdict]:
        """Return the verdict on each invariant for each client."""
        occasions = {(row["software"], row["software_version"], row["invariant"]): row["occasions"]
                     for row in self.parts["occasions"]}  # fmt: skip
        broken = {(each.software, each.version, each.check.name): each.count for each in self.broken}
        for client in self.parts["clients"]:
            software, version = client["software"], client["software_version"]
            for check in self.checks:
                key = software, version, check.name
                yield Verdict(software, version, check, occasions.get(key, 0), broken.get(key, 0))


def invariants(names: Iterable[str] = (), without: Iterable[str] = ()) -> list[Check]:
    """Return the checks of clients on the wire: those in `names` (default: all) except `without`.

    Raises NoSuchCheckError.
    """
    # Such as i04.
    known = {name for name in registry.checks() if name[0] == "i" and name[1:3].isdigit()}
    for name in (*names, *without):
        if name not in known:
            raise registry.NoSuchCheckError(f"there is no invariant {name!r}; `understudy audit --list` shows them")
    wanted = registry.chosen(list(names) or sorted(known), without=without, has=registry.NEEDS)
    return sorted(wanted, key=lambda check: (SEVERITIES.index(check.severity), check.name))


def look(
    engine: Engine,
    path: str,
    checks: Sequence[Check],
    *,
    software: Sequence[str] = (),
    show: Callable[[str], None] = lambda _what: None,
) -> Run:
    """Run all queries on a journal.

    Args:
        engine: has the journal's tables.
        path: the journal's folder.
        checks: the invariants to check.
        software: only clients with these names or patterns; none: all.
        show: called with the name of each step.

    Raises:
        FileNotFoundError: no journal, or no request of such a client.
    """
    parts: dict[str, Rows] = {}
    for name, question in tables.questions().items():
        show(name)
        rows = engine.rows(question.sql).to_pylist()
        parts[name] = [
            {column: plain(value) for column, value in row.items()} for row in rows if _wanted(row, software)
        ]
    names = {check.name for check in checks}
    parts["occasions"] = [row for row in parts["occasions"] if row["invariant"] in names]
    if not parts["clients"]:
        whose = f" of {', '.join(software)}" if software else ""
        raise FileNotFoundError(f"{path} holds no request{whose}: was a client there while the journal was written?")
    broken_checks = findings.ask_all(engine, checks, lambda check, _count: show(check.name))
    broken = [
        each for one in broken_checks for each in _by_software(engine, one) if _wanted({_PART: each.software}, software)
    ]
    return Run(path, checks, parts, broken)


def _wanted(row: dict[str, Any], software: Sequence[str]) -> bool:
    return not software or any(fnmatchcase(row[_PART], pattern) for pattern in software)


def by_software(check: Check) -> str:
    """Return the query for a check's first rows of each client, which is that of the request that a row refers to."""
    client = "spoken.software, spoken.software_version"
    return f"""
      SELECT * FROM (
        SELECT found.*, spoken.software AS {_CLIENT[0]}, spoken.software_version AS {_CLIENT[1]},
               count(*) OVER (PARTITION BY {client}) AS {_COUNT},
               row_number() OVER (PARTITION BY {client} ORDER BY found.run, found.id) AS {_PLACE}
        FROM ({check.sql}) found JOIN spoken ON spoken.run = found.run AND spoken.id = found.id
      ) WHERE {_PLACE} <= {ROWS_KEPT} ORDER BY {", ".join(_CLIENT)}, {_PLACE}
    """  # noqa: S608 - a query of ours


def _by_software(engine: Engine, finding: Finding) -> list[Broken]:
    whole = []
    rows_by_software = engine.rows(by_software(finding.check)).to_pylist()
    for (software, version), rows in groupby(rows_by_software, itemgetter(*_CLIENT)):
        own = list(rows)
        evidence = [{name: plain(value) for name, value in row.items() if name not in _ADDED} for row in own]
        evidence.sort(key=lambda row: [(row[name] is not None, row[name] or 0) for name in ORDER if name in row])
        whole.append(Broken(software, version, finding.check, own[0][_COUNT], evidence))
    return whole
