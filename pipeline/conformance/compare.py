"""Compares two runs: invariants that are newly violated, and changes in the clients' behaviour.

Clients are identified by the name of their software without its version, because users mostly compare versions.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pipeline.conformance.run import NOT_EXERCISED, Broken, Run, times

KINDS: Final = ("worse", "better", "other")
"""`worse` is what a build should fail for."""
_TIMES: Final = 2
"""A latency or number of requests that changed by a smaller factor is not reported."""
_LEAST_MS: Final = 1.0
_LEAST_REQUESTS: Final = 10
"""Minimum difference in requests; with fewer requests, latencies are not compared either.

Arbitrary, with fewer every run differs.
"""

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """A difference. `subject`: an invariant, an API, an error of an API; texts are None if that run has nothing."""

    kind: str
    part: str
    software: str
    subject: str
    before: str | None
    now: str | None


def changes(before: Run, now: Run) -> list[Change]:
    """Return all differences, `worse` first."""
    all_changes = [
        *_invariants(before, now),
        *_rows(before, now, "clients", (), _versions_of_clients),
        *_rows(before, now, "versions", ("api",), _versions),
        *_rows(before, now, "errors", ("api", "error"), _reactions),
        *_numbers(before, now),
    ]
    return sorted(all_changes, key=lambda each: (KINDS.index(each.kind), each.software, each.part, each.subject))


def is_new(each: Broken, before: Run) -> bool:
    """Return whether the same software did not violate this invariant in the earlier run."""
    return not any(old.software == each.software and old.check.name == each.check.name for old in before.broken)


def _invariants(before: Run, now: Run) -> Iterator[Change]:
    old, new = _broken(before), _broken(now)
    for key in sorted({**old, **new}):
        was, count = old.get(key, 0), new.get(key, 0)
        if was == count:
            continue
        kind = "worse" if not was else "better" if not count else "other"
        yield Change(
            kind, "invariants", *key,
            times(was) if was else _unbroken(before, *key), times(count) if count else _unbroken(now, *key),
        )  # fmt: skip
    for key in sorted(_exercised(before) ^ _exercised(now)):
        if key not in old and key not in new:
            yield Change("other", "invariants", *key, _unbroken(before, *key), _unbroken(now, *key))


def _exercised(run: Run) -> set[tuple[str, str]]:
    return {(row["software"], row["invariant"]) for row in run.parts["occasions"]}


def _unbroken(run: Run, software: str, invariant: str) -> str:
    return "kept" if (software, invariant) in _exercised(run) else NOT_EXERCISED


def _broken(run: Run) -> dict[tuple[str, str], int]:
    counts: dict[tuple[str, str], int] = {}
    for each in run.broken:
        key = each.software, each.check.name
        counts[key] = counts.get(key, 0) + each.count
    return counts


def _grouped(run: Run, part: str, names: tuple[str, ...]) -> dict[tuple[str, str], list[Row]]:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in run.parts[part]:
        groups.setdefault((row["software"], " ".join(str(row[name]) for name in names)), []).append(row)
    return groups


def _rows(
    before: Run, now: Run, part: str, names: tuple[str, ...], describe: Callable[[list[Row]], str]
) -> Iterator[Change]:
    old, new = _grouped(before, part, names), _grouped(now, part, names)
    for key in sorted({**old, **new}):
        was, is_now = (describe(side[key]) if key in side else None for side in (old, new))
        if was != is_now:
            yield Change("other", part, *key, was, is_now)


def _versions_of_clients(rows: list[Row]) -> str:
    return ", ".join(sorted({str(row["software_version"]) for row in rows}))


def _versions(rows: list[Row]) -> str:
    used = sorted({version for row in rows for version in row["versions"]})
    return "version" + ("s " if len(used) > 1 else " ") + ", ".join(map(str, used))


def _reactions(rows: list[Row]) -> str:
    return "; ".join(sorted({str(row["reaction"]) for row in rows}))


def _numbers(before: Run, now: Run) -> Iterator[Change]:
    """Compare requests and latencies of APIs that both runs used."""
    old, new = _grouped(before, "latencies", ("api",)), _grouped(now, "latencies", ("api",))
    for key in sorted(old.keys() & new.keys()):
        was, count = (sum(row["requests"] for row in side[key]) for side in (old, new))
        if abs(was - count) >= _LEAST_REQUESTS and _far(was, count):
            yield Change("other", "requests", *key, str(was), str(count))
        for name in ("p50_ms", "p99_ms"):
            slow, fast = (max(row[name] for row in side[key]) for side in (old, new))
            if min(was, count) >= _LEAST_REQUESTS and abs(slow - fast) >= _LEAST_MS and _far(slow, fast):
                yield Change("other", name.removesuffix("_ms"), *key, f"{slow:.1f} ms", f"{fast:.1f} ms")


def _far(one: float, other: float) -> bool:
    low, high = sorted((one, other))
    return high >= _TIMES * low
