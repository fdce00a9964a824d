"""Applies all rules for responses to the calls of a journal, and returns tables for the checks."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any, Final

import pyarrow as pa

from pipeline.answers import descriptions, facts, filters, group_lists, items, refusals, rules, shapes
from pipeline.answers.calls import ANSWER_FAULTS, ANSWER_PLACES, COLUMNS, Call, Fault, calls_of, canonical, listed
from pipeline.answers.generations import Generations
from pipeline.answers.members import HEARTBEATS, Groups
from pipeline.answers.places import rows_of
from pipeline.answers.quorum import Quorums
from pipeline.answers.registers import Registers
from pipeline.answers.share import ShareGroups
from pipeline.answers.topics import Topics
from pipeline.answers.transactions import Transactions
from pipeline.directory import Paths
from pipeline.reading import read_journal

_JUMP_MS: Final = 3_600_000
"""If the cluster's clock was advanced by more, committed offsets may have expired.

Ours, far below the default of offsets.retention.minutes, a week.
"""
_PER_GROUP: Final = ("heartbeat_interval_ms", "acceptable_recovery_lag", "task_offset_interval_ms")
"""Fields of heartbeat responses that are the same for all members of a group while its configuration is unchanged."""


_RULES: Final = (
    shapes.faults_of, items.faults_of, filters.faults_of, rules.faults_of, refusals.faults_of,
)  # fmt: skip
_INCOMPLETE: Final = (KeyError, TypeError, IndexError, AttributeError)
"""Errors that a rule raises for a body with fewer fields than a broker or proxy of ours writes."""


def _faults_by(rule: Callable[..., Iterator[Fault]], *about: object) -> list[Fault]:
    """Return what a rule finds; nothing if another program wrote the bodies and fields are missing."""
    try:
        return list(rule(*about))
    except _INCOMPLETE:
        return []


def faults_alone(call: Call) -> list[Fault]:
    """Return the faults of one response, compared only with its own request."""
    return [fault for rule in _RULES if call.is_answered for fault in _faults_by(rule, call)]


@dataclass
class _Life:
    """What the calls of one run and era have reported so far."""

    values: Registers = field(default_factory=Registers)
    groups: Groups = field(default_factory=Groups)
    share: ShareGroups = field(default_factory=ShareGroups)
    generations: Generations = field(default_factory=Generations)
    transactions: Transactions = field(default_factory=Transactions)
    quorums: Quorums = field(default_factory=Quorums)
    topics: Topics = field(default_factory=Topics)
    described: list[Call] = field(default_factory=list)
    offers: dict[tuple[int, str, int], list[tuple[Call, str]]] = field(default_factory=lambda: defaultdict(list))
    """By broker, listener and version: ApiVersions responses."""
    last_us: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    """By connection: time of its last request."""
    at_ms: int = 0

    @property
    def _judges(self) -> tuple[Groups | ShareGroups | Generations | Transactions | Quorums | Topics, ...]:
        return self.groups, self.share, self.generations, self.transactions, self.quorums, self.topics

    def note(self, call: Call) -> Iterator[Fault]:
        """Yield the faults of a call, compared with the calls before it."""
        if call.at_ms - self.at_ms > _JUMP_MS and self.at_ms:
            self.values.reset(("committed offset",), call.start_us)
        self.last_us[call.connection] = max(self.last_us[call.connection], call.start_us)
        self.at_ms = max(self.at_ms, call.at_ms)
        for step in (self._values, *(each.note for each in self._judges)):
            yield from _faults_by(step, call)
        if call.is_answered and (call.api in descriptions.DESCRIPTIONS or call.api in group_lists.LISTS):
            self.described.append(call)

    def _values(self, call: Call) -> Iterator[Fault]:
        """Record written and reported values, which are compared at the end."""
        self._versions(call)
        facts.note(call, self.values)
        if call.api in HEARTBEATS and call.is_accepted and call.request["member_epoch"] >= 0:
            for name in _PER_GROUP:
                if call.response.get(name, 0) > 0:
                    key = ("group", call.request["group_id"], name)
                    times = (call.start_us, call.end_us)
                    self.values.read(key, str(call.response[name]), times, call.broker, call.id, group_id=key[1])
        return iter(())

    def _versions(self, call: Call) -> None:
        """Note that a broker offers other versions: it was replaced by another release, whose defaults differ."""
        if call.api != "ApiVersions" or not call.is_accepted:
            return
        # Since version 3 with features (KIP-584).
        names = ("api_keys", "supported_features") if call.version >= 3 else ("api_keys",)
        reported = canonical([sorted(listed(call.response, name), key=canonical) for name in names])
        key = (call.broker, call.listener, call.version)
        if self.offers[key] and self.offers[key][-1][1] != reported:
            for scope in ("default", "setting names", "setting source"):
                self.values.reset((scope,), 0)
            self.values.reset(("setting's kind",), 0)
        self.offers[key].append((call, reported))

    def _other_offers(self) -> Iterator[Fault]:
        """Yield ApiVersions responses that differ from the broker's earlier one on a connection that was still open."""
        for offers in self.offers.values():
            for (before, one), (call, other) in pairwise(offers):
                if one != other and self.last_us[before.connection] > call.end_us:
                    yield Fault(
                        call.id, "answer-contradicted", "other versions or features than the broker offered before"
                    )

    def faults(self) -> Iterator[Fault]:
        yield from self._other_offers()
        yield from self.values.faults()
        for each in self._judges:
            yield from _faults_by(each.faults)
        for call in self.described:
            judge = descriptions if call.api in descriptions.DESCRIPTIONS else group_lists
            yield from _faults_by(judge.faults_of, call, self.groups)


def _places(call: Call) -> list[dict[str, Any]]:
    try:
        return list(rows_of(call))
    except _INCOMPLETE:
        return []


def answer_tables(path: Paths) -> dict[str, pa.Table]:
    """Return, by name, the faults in a journal's responses (`ANSWER_FAULTS`) and the partitions that they contain."""
    return judged(calls_of(read_journal(path, columns=COLUMNS, mode="skip")))


def judged(calls: Iterable[Call], alone: Callable[[Call], list[Fault]] = faults_alone) -> dict[str, pa.Table]:
    """Do the same for the calls of one run and era, in order.

    Args:
        calls: the calls.
        alone: `faults_alone`, or a version of it that caches results when most calls are judged repeatedly.
    """
    lives: dict[tuple[str, int], _Life] = {}
    faults: list[dict[str, Any]] = []
    places: list[dict[str, Any]] = []
    for call in calls:
        life = lives.setdefault((call.run, call.era), _Life())
        faults += ({"run": call.run, **each._asdict()} for each in chain(alone(call), life.note(call)))
        places += _places(call)
    for (run, _), life in lives.items():
        faults += ({"run": run, **each._asdict()} for each in life.faults())
    return {
        "answer_faults": pa.Table.from_pylist(faults, ANSWER_FAULTS),
        "answer_places": pa.Table.from_pylist(places, ANSWER_PLACES),
    }
