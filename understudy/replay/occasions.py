"""Finds errors that are identified by the number of their request: the n-th of its API, client and item.

A fault counts the requests that reach it, but not those that an earlier fault stops: the numbers here assume a chain in
which late requests come first, then those cut off, then refused ones.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from understudy.replay.items import Item, asks_for_all, error_of, errors_of, items_of
from understudy.replay.journal import Line
from understudy.replay.verdict import (
    BY_ITSELF,
    ENDED,
    NEVER_PLAYED,
    REBALANCES,
    Verdict,
    cut_of,
    ended_us,
    is_gone,
    late_of,
    throttle_of,
)

BY_OFFSET = frozenset({"Produce", "Fetch"})
_GOOD = Verdict()


class Key(NamedTuple):
    """Requests that a fault counts together."""

    api: str
    client_id: str | None
    item: Item


@dataclass(slots=True)
class Run:
    """Consecutive requests with the same outcome. ``first``: the number of the first in the journal."""

    first: int
    verdict: Verdict
    count: int = 1
    ended_us: int = 0


class Fault(NamedTuple):
    """A fault: its rank in the chain, the number of its original request, its conditions and effect."""

    rank: int
    number: int
    arguments: dict[str, Any]


@dataclass
class Occasions:
    """Collects the failures of a run. ``last_us``: when the last request of each client arrived."""

    late_ms: int
    runs: dict[Key, list[Run]] = field(default_factory=dict)
    by_itself: Counter[tuple[str, str]] = field(default_factory=Counter)
    unplayed: Counter[str] = field(default_factory=Counter)
    members: dict[str, set[str]] = field(default_factory=dict)
    last_us: dict[str | None, int] = field(default_factory=dict)
    _for_all: Counter[tuple[str, str | None]] = field(default_factory=Counter)

    def see(self, line: Line) -> None:
        """Count a request."""
        api, client = line["api"], line["client_id"]
        self.last_us[client] = max(self.last_us.get(client, 0), line["ts_us"])
        request, response = line["request"] or {}, line["response"] or {}
        if response.get("member_id") and request.get("group_id"):
            self.members.setdefault(request["group_id"], set()).add(response["member_id"])
        if api in NEVER_PLAYED or line["api_key"] < 0 or is_gone(line):
            self.unplayed[api] += line["error"] is not None or cut_of(line) is not None
            return
        errors = [] if api in BY_OFFSET else errors_of(line)
        if api == "Fetch" and response.get("error_code", "NONE") != "NONE":
            errors = [({}, response["error_code"])]
        verdict = Verdict(None, cut_of(line), late_of(line, self.late_ms), throttle_of(line))
        if api in BY_OFFSET:
            code = errors[0][1] if errors else None
            self._count(Key(api, client, ()), line, Verdict(code, None, 0, verdict.throttle_ms))
            return
        items = items_of(line) or [()]
        if asks_for_all(line):
            items = self._all(api, client, errors)
        for place, item in enumerate(items):
            if verdict.cut is not None and place:
                break  # one fault cuts off the whole request
            code = error_of(item, errors)
            if code in BY_ITSELF or (api == "ApiVersions" and code == "UNSUPPORTED_VERSION"):
                self.by_itself[api, str(code)] += 1
                code = None
            late_ms, throttle_ms = (0, 0) if place else (verdict.late_ms, verdict.throttle_ms)
            self._count(Key(api, client, item), line, Verdict(code, verdict.cut, late_ms, throttle_ms))

    def _all(self, api: str, client: str | None, errors: list[tuple[dict[str, Any], str]]) -> list[Item]:
        """Count a request for all topics for any topic that a fault names, even if the fault comes later."""
        items = {key.item for key in self.runs if key.api == api and key.client_id == client and key.item}
        items |= {(("topic", about["topic"]),) for about, _ in errors if "topic" in about}
        for item in items:
            self._runs(Key(api, client, item))
        self._for_all[api, client] += 1
        return sorted(items) or [()]

    def _runs(self, key: Key) -> list[Run]:
        runs = self.runs.get(key)
        if runs is None:
            before = self._for_all[key.api, key.client_id]
            runs = self.runs[key] = [Run(0, _GOOD, before)] if before and key.item else []
        return runs

    def _count(self, key: Key, line: Line, verdict: Verdict) -> None:
        runs = self._runs(key)
        if runs and _alike(runs[-1].verdict, verdict) and verdict.cut != ENDED:
            runs[-1].count += 1
        else:
            runs.append(Run(line["id"], verdict, ended_us=ended_us(line)))

    @property
    def coordinated(self) -> set[str]:
        """Return `group` and `transactional_id`, if a coordinator of that type was used."""
        kinds = {kind for key in self.runs for kind, _ in key.item}
        return kinds & {"group", "transactional_id"}

    # --- faults ------------------------------------------------------------------------------------------------------

    def faults(self) -> Iterator[Fault]:
        """Return the faults that reproduce the failures."""
        for key, runs in self.runs.items():
            match = {
                "api": key.api,
                **({"client_id": key.client_id} if key.client_id is not None else {}),
                **dict(key.item),
            }
            played = [self._as_played(key, run) for run in runs]
            yield from _late(match, played)
            yield from _stopped(match, played, rank=1)
            yield from _stopped(match, [run for run in played if run.verdict.cut is None], rank=2)

    def came_back(self, client_id: str | None, ended_us: int) -> bool:
        """Return whether a client sent anything later; if not, the recording ended rather than a broker."""
        return self.last_us[client_id] > ended_us

    def _as_played(self, key: Key, run: Run) -> Run:
        """Leave out what other members of a group cause, because they are played back as well."""
        verdict = run.verdict
        members = self.members.get(dict(key.item).get("group", ""), ())
        if verdict.code in REBALANCES and len(members) > 1:
            self.by_itself[key.api, str(verdict.code)] += run.count
            verdict = verdict._replace(code=None)
        if verdict.cut == ENDED and not self.came_back(key.client_id, run.ended_us):
            verdict = verdict._replace(cut=None)
        return Run(run.first, verdict, run.count)


def _alike(one: Verdict, other: Verdict) -> bool:
    """Return whether one fault can represent both: delays that differ by less than half are the same."""
    if (one.code, one.cut, one.throttle_ms) != (other.code, other.cut, other.throttle_ms):
        return False
    if not one.late_ms or not other.late_ms:
        return one.late_ms == other.late_ms
    return one.late_ms / 1.5 <= other.late_ms <= one.late_ms * 1.5


def _limits(skip: int, times: int) -> dict[str, int]:
    return {**({"skip": skip} if skip else {}), **({"times": times} if times != 1 else {})}


def _late(match: dict[str, Any], runs: list[Run]) -> Iterator[Fault]:
    """Return delays and throttle times, which do not stop requests from reaching later faults."""
    seen = 0
    for run in runs:
        for name in ("delay_ms", "throttle_ms"):
            value = run.verdict.late_ms if name == "delay_ms" else run.verdict.throttle_ms
            if value:
                yield Fault(0, run.first, {**match, **_limits(seen, run.count), name: value})
        seen += run.count


def _stopped(match: dict[str, Any], runs: list[Run], rank: int) -> Iterator[Fault]:
    """Return the faults of one rank: cut-off requests, or errors."""
    seen = kept = 0
    for run in runs:
        verdict = run.verdict
        if (verdict.cut is not None) == (rank == 1) and (verdict.cut or verdict.code):
            yield Fault(rank, run.first, {**match, **_limits(seen - kept, run.count), **verdict.effect})
            kept += run.count if verdict.stops else 0
        seen += run.count
