"""Builds the scenario of a recorded run: the initial state, the failures, and what cannot be played back."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

from control_api.scenario_file import VERSION
from understudy.replay.journal import Line
from understudy.replay.logs import Failure, Log
from understudy.replay.occasions import Fault, Occasions
from understudy.replay.start import Start
from understudy.replay.verdict import ENDED

_RECORDS_PER_STEP = 1000  # arbitrary: a step is one body of the control plane, of 8 MB at most
_KEPT = {"retention.ms": "-1"}
"""For all topics: records keep their timestamps, which may be old."""
_INTERNAL = {"group": "__consumer_offsets", "transactional_id": "__transaction_state"}
"""Topics of a cluster in use: without them, coordinators would not be available immediately."""
_UNKNOWN_TOPIC = "UNKNOWN_TOPIC_OR_PARTITION"
Step = dict[str, Any]


class Selection(NamedTuple):
    """What to play back. ``clients``: ids; empty: all. ``records``: maximum per partition.

    The defaults are ours: a second, which no request takes that waits for nothing; records that a test can go through.
    """

    clients: tuple[str, ...] = ()
    late_ms: int = 1000
    records: int = 1000


def text_of(scenario: dict[str, Any]) -> str:
    """Return the scenario as JSON with a line for each step."""
    steps = ",\n".join(f"    {json.dumps(step, ensure_ascii=False)}" for step in scenario["steps"])
    about = json.dumps(scenario["about"], ensure_ascii=False)
    return f'{{\n  "scenario": {scenario["scenario"]},\n  "about": {about},\n  "steps": [\n{steps}\n  ]\n}}\n'


class Replay:
    """Reads the requests of a run, and builds the scenario."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self.start = Start(selection.clients, selection.late_ms)
        self.occasions = Occasions(selection.late_ms)
        self.requests = self._lost = 0
        self._clients: set[str | None] = set()
        self._first_us = self._last_us = 0

    def see(self, line: Line) -> None:
        """Process a request."""
        self._lost += line["lost"]
        self._last_us = line["ts_us"]
        self._first_us = self._first_us or line["ts_us"]
        self.start.see(line)
        if self.start.plays(line):
            self.requests += 1
            self._clients.add(line["client_id"])
            self.occasions.see(line)

    # --- steps -------------------------------------------------------------------------------------------------------

    def scenario(self, about: str) -> dict[str, Any]:
        """Return the scenario, as `understudy serve --scenario` reads it."""
        steps = [*self._topics(), *self._logs(), *self._offsets(), *self._faults()]
        return {"scenario": VERSION, "about": about, "steps": steps}

    @property
    def brokers(self) -> list[int]:
        """Return the ids of the brokers that the scenario needs."""
        return sorted(self.start.brokers) or [1]

    def _topics(self) -> Iterator[Step]:
        for name in sorted({_INTERNAL[kind] for kind in self.occasions.coordinated}):
            yield _step("topics create", {"name": name})
        several = len(self.brokers) > 1
        for name, topic in sorted(self.start.topics.items()):
            arguments: dict[str, Any] = {"name": name, "partitions": len(topic.leaders)}
            if several:
                arguments["replication_factor"] = min(topic.replication_factor, len(self.brokers))
            arguments["configs"] = {**(topic.configs or {}), **_KEPT}
            yield _step("topics create", arguments)
            for partition, leader in sorted(topic.leaders.items()) if several else ():
                if leader in self.start.brokers:
                    yield _step("leader move", {"topic": name, "partition": partition, "broker": leader})

    def _logs(self) -> Iterator[Step]:
        for log in self.start.known_logs:
            place = {"topic": log.topic, "partition": log.index}
            records = list(log.records(self._selection.records))
            begins = log.begins_at
            start = min(log.log_start if log.log_start is not None else begins, records[0][0] if records else begins)
            if start < begins and (not records or records[-1][0] < begins - 1):
                records.append((begins - 1, self._first_us // 1000))  # so that the next one gets its offset
            if start:
                yield _step("partitions start-at", {**place, "offset": start})
            for at in range(0, len(records), _RECORDS_PER_STEP):
                rows = [_record(log, *each) for each in records[at : at + _RECORDS_PER_STEP]]
                yield _step("records write", {"topic": log.topic, "records": rows})

    def _offsets(self) -> Iterator[Step]:
        for (group, topic, partition), offset in sorted(self.start.committed.items()):
            if topic in self.start.topics and partition in self.start.topics[topic].leaders:
                arguments = {"group": group, "topic": topic, "partition": partition, "offset": offset}
                yield _step("groups reset-offsets", arguments)

    def _faults(self) -> Iterator[Step]:
        faults = [*self.occasions.faults(), *self._by_offset()]
        for fault in sorted(faults, key=lambda each: (each.rank, each.number)):
            arguments = fault.arguments
            if arguments.get("error") == _UNKNOWN_TOPIC and self._is_never_there(arguments):
                arguments = {**arguments, "times": None}
            yield _step("faults add", arguments)

    def _is_never_there(self, arguments: dict[str, Any]) -> bool:
        topic = arguments.get("topic")
        return arguments["api"] == "Metadata" and topic not in self.start.topics and topic not in self.start.created

    def _by_offset(self) -> Iterator[Fault]:
        """Return errors, cut-offs and delays of Produce and Fetch, identified by the record's offset."""
        for log in self.start.logs.values():
            for (api, client, verdict, offset, applied), alike in groupby(filter(self._is_played, log.failures), _fate):
                failures = list(alike)
                match = {"api": api, **({} if client is None else {"client_id": client}), "topic": log.topic,
                         "partition": log.index, "offset": offset or 0}  # fmt: skip
                number, times = failures[0].number, {"times": len(failures)} if len(failures) > 1 else {}
                if verdict.late_ms:
                    where = {} if verdict.code or verdict.cut or api == "Fetch" else {"where": "after"}
                    yield Fault(0, number, {**match, **times, "delay_ms": verdict.late_ms, **where})
                if verdict.code or verdict.cut:
                    effect = verdict.effect
                    if applied and verdict.cut is not None:
                        effect = {"apply_then": effect}
                    # In their own order, cut off or refused: several failures of one record take turns at its offset.
                    yield Fault(2, number, {**match, **times, **effect})

    def _is_played(self, failure: Failure) -> bool:
        """Return whether a failure is played back, which excludes requests cut off by the end of the recording."""
        return failure.verdict.cut != ENDED or self.occasions.came_back(failure.client_id, failure.ended_us)

    # --- what is reported --------------------------------------------------------------------------------------------

    def summary(self, scenario: dict[str, Any]) -> str:
        """Summarize the scenario in one line."""
        verbs = Counter(step["verb"] for step in scenario["steps"])
        records = sum(len(step["arguments"].get("records", ())) for step in scenario["steps"])
        return (
            f"{self.requests} requests of {len(self._clients)} client(s): {len(self.start.topics)} topic(s), "
            f"{records} record(s), {verbs['groups reset-offsets']} committed offset(s), {verbs['faults add']} fault(s)"
        )

    def not_reproduced(self) -> Iterator[str]:
        """Return what the scenario does not reproduce of the run, one line each."""
        start, occasions = self.start, self.occasions
        if self._lost:
            yield f"{self._lost} requests are missing in the journal, whose disk was full or slow"
        if start.topics:
            yield "keys and values: journals have none; records are named after their offsets"
        unknown = sorted(name for name, topic in start.topics.items() if topic.configs is None)
        if unknown:
            yield f"settings of {_some(unknown)}: no client asked for them (DescribeConfigs); they are the defaults"
        cut = [f"{log.topic}-{log.index}" for log in start.known_logs if log.known > self._selection.records]
        if cut:
            yield f"records of {_some(cut)}: only the last {self._selection.records} of each (--records)"
        late = [f"{log.topic}-{log.index}" for log in start.known_logs if log.has_others]
        if late:
            yield f"records of {_some(late)} that other clients wrote during the run"
        if start.moved:
            moved = sorted(f"{topic}-{partition}" for topic, partition in start.moved)
            yield f"changes of leaders: {_some(moved)}; their errors are played back, the leaders stay"
        for (api, code), times in sorted(occasions.by_itself.items()):
            yield f"{times} x {code} of {api}: the server answers this by itself where it has reason to"
        for api, times in sorted(occasions.unplayed.items()):
            if times:
                yield f"{times} x {api} that failed or was abandoned: authentication is not played back"
        yield "producer ids, epochs, member ids and generations: the server assigns new ones"


def _step(verb: str, arguments: dict[str, Any]) -> Step:
    return {"verb": verb, "arguments": arguments}


def _record(log: Log, offset: int, timestamp_ms: int) -> dict[str, Any]:
    record = {"partition": log.index, "offset": offset, "value": f"{log.topic}-{log.index}@{offset}"}
    return record if timestamp_ms < 0 else {**record, "timestamp_ms": timestamp_ms}


def _fate(failure: Failure) -> tuple[Any, ...]:
    return failure.api, failure.client_id, failure.verdict, failure.offset, failure.was_applied


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    # What fits on a line.
    return ", ".join(listed[:5]) + (f" and {len(listed) - 5} more" if len(listed) > 5 else "")
