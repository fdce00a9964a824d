"""Reconstructs the cluster when the run began: brokers, topics, leaders, logs, committed offsets."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from understudy.replay.items import errors_of
from understudy.replay.journal import Line
from understudy.replay.logs import Failure, Log, sequence_of
from understudy.replay.verdict import BY_ITSELF, Verdict, cut_of, ended_us, is_gone, late_of

_EARLIEST, _LATEST = -2, -1
_TOPIC_SETTING = 1
_TOPIC = 2


@dataclass
class Topic:
    """A topic as in the first response about it. ``leaders``: by partition, -1 for none."""

    replication_factor: int
    leaders: dict[int, int]
    configs: dict[str, str | None] | None = None


@dataclass
class Start:
    """Reads the requests of a run. ``clients``: those that are played back; empty: all."""

    clients: Collection[str]
    late_ms: int
    brokers: set[int] = field(default_factory=set)
    topics: dict[str, Topic] = field(default_factory=dict)
    created: set[str] = field(default_factory=set)
    logs: dict[tuple[str, int], Log] = field(default_factory=dict)
    committed: dict[tuple[str, str, int], int] = field(default_factory=dict)
    moved: set[tuple[str, int]] = field(default_factory=set)
    _sessions: dict[tuple[int, int], dict[tuple[str, int], int]] = field(default_factory=dict)
    _commits: set[tuple[str, str, int]] = field(default_factory=set)

    def plays(self, line: Line) -> bool:
        """Return whether the client of a request is played back."""
        return not self.clients or line["client_id"] in self.clients

    def log(self, topic: str, index: int) -> Log:
        """Return what is known of a partition."""
        log = self.logs.get((topic, index))
        if log is None:
            log = self.logs[topic, index] = Log(topic, index)
        return log

    def see(self, line: Line) -> None:
        """Process a request and its response."""
        reader = getattr(self, f"_{line['api'].lower()}", None)
        if reader is not None and line["request"] is not None and not is_gone(line):
            reader(line, line["request"], line["response"])

    # --- topics ------------------------------------------------------------------------------------------------------

    def _metadata(self, _line: Line, _request: Any, response: Any) -> None:
        if response is None:
            return
        self.brokers.update(broker["node_id"] for broker in response["brokers"])
        for topic in response["topics"]:
            name = topic["name"]
            if topic["error_code"] != "NONE" or topic["is_internal"] or not topic["partitions"] or not name:
                continue
            leaders = {partition["partition_index"]: partition["leader_id"] for partition in topic["partitions"]}
            if name in self.topics or name in self.created:
                leaders_before = self.topics[name].leaders if name in self.topics else {}
                self.moved.update(
                    (name, at) for at, leader in leaders.items() if leaders_before.get(at, leader) != leader
                )
                continue
            factor = max(len(partition["replica_nodes"]) for partition in topic["partitions"])
            self.topics[name] = Topic(factor, leaders)

    def _createtopics(self, line: Line, _request: Any, response: Any) -> None:
        if response is not None and self.plays(line):
            done = {topic["name"] for topic in response["topics"] if topic["error_code"] == "NONE"}
            self.created |= done - self.topics.keys()

    def _describeconfigs(self, _line: Line, _request: Any, response: Any) -> None:
        for each in (response or {}).get("results", ()):
            topic = self.topics.get(each["resource_name"])
            if each["resource_type"] == _TOPIC and each["error_code"] == "NONE" and topic and topic.configs is None:
                topic.configs = {
                    config["name"]: config["value"]
                    for config in each["configs"]
                    if config["config_source"] == _TOPIC_SETTING and not config["is_sensitive"]
                }

    # --- offsets -----------------------------------------------------------------------------------------------------

    def _listoffsets(self, _line: Line, request: Any, response: Any) -> None:
        timestamps = {
            (topic["name"], partition["partition_index"]): partition["timestamp"]
            for topic in request["topics"]
            for partition in topic["partitions"]
        }
        for topic in (response or {}).get("topics", ()):
            for partition in topic["partitions"]:
                place = topic["name"], partition["partition_index"]
                if partition["error_code"] == "NONE" and timestamps.get(place) == _EARLIEST:
                    self.log(*place).starts_at(partition["offset"])
                elif partition["error_code"] == "NONE" and timestamps.get(place) == _LATEST:
                    self.log(*place).ends_at(partition["offset"])

    def _offsetfetch(self, _line: Line, _request: Any, response: Any) -> None:
        for group in (response or {}).get("groups", ()):
            for topic in group["topics"]:
                for partition in topic["partitions"]:
                    place = group["group_id"], topic["name"], partition["partition_index"]
                    if (
                        partition["error_code"] == "NONE"
                        and partition["committed_offset"] >= 0
                        and place not in self._commits
                    ):
                        self.committed.setdefault(place, partition["committed_offset"])
                        log = self.log(topic["name"], partition["partition_index"])
                        log.committed = max(log.committed, partition["committed_offset"])

    def _offsetcommit(self, line: Line, request: Any, _response: Any) -> None:
        for topic in request["topics"] if self.plays(line) else ():
            for partition in topic["partitions"]:
                self._commits.add((request["group_id"], topic["name"], partition["partition_index"]))

    # --- records -----------------------------------------------------------------------------------------------------

    def _produce(self, line: Line, request: Any, response: Any) -> None:
        if not self.plays(line):
            return
        answers = {
            (topic["name"], partition["index"]): partition
            for topic in (response or {}).get("responses", ())
            for partition in topic["partition_responses"]
        }
        cut, late_ms = cut_of(line), late_of(line, self.late_ms)
        for number, (topic, each) in enumerate(_partitions(request["topic_data"], "partition_data")):
            place, records = (topic["name"], each["index"]), each["records"]
            answer, log = answers.get(place), self.log(topic["name"], each["index"])
            count, sequence = (records or {}).get("count") or 1, sequence_of(records)
            code = None if answer is None or answer["error_code"] == "NONE" else answer["error_code"]
            base = -1 if answer is None or code is not None else int(answer["base_offset"])
            if cut is not None and number:
                continue  # one fault cuts off the request, at its first partition
            if answer is not None and base >= 0:
                log.starts_at(answer["log_start_offset"])
                log.appended(base, count, sequence)
            verdict = Verdict(code, cut, late_ms if not number else 0)
            if (code is not None or cut is not None or verdict.late_ms) and code not in BY_ITSELF:
                offset = base if base >= 0 else None
                failure = Failure(line["id"], "Produce", line["client_id"], verdict, offset, count, sequence)
                failure.ended_us = ended_us(line)
                log.failed(failure)

    def _fetch(self, line: Line, request: Any, response: Any) -> None:
        offsets = self._fetched(line, request, response)
        errors = errors_of(line) if self.plays(line) else []
        for topic in (response or {}).get("responses", ()):
            for partition in topic["partitions"]:
                log = self.log(topic["topic"], partition["partition_index"])
                if partition["error_code"] == "NONE":
                    log.starts_at(partition["log_start_offset"])
                    log.ends_at(partition["high_watermark"])
                    aborted = [
                        (one["producer_id"], one["first_offset"]) for one in partition["aborted_transactions"] or ()
                    ]
                    log.read(partition["records"] or {}, aborted)
        if not self.plays(line):
            return
        for about, code in errors:
            place = about.get("topic", ""), about.get("partition", -1)
            if place in offsets:
                self._fetch_failed(line, place, Verdict(code), offsets[place])
        verdict = Verdict(None, cut_of(line), late_of(line, self.late_ms))
        if offsets and (verdict.cut is not None or verdict.late_ms):
            place = next(iter(offsets))
            self._fetch_failed(line, place, verdict, offsets[place])

    def _fetch_failed(self, line: Line, place: tuple[str, int], verdict: Verdict, offset: int) -> None:
        failure = Failure(line["id"], "Fetch", line["client_id"], verdict, offset, ended_us=ended_us(line))
        self.log(*place).failures.append(failure)

    def _fetched(self, line: Line, request: Any, response: Any) -> dict[tuple[str, int], int]:
        """Return the start offsets of a fetch, including those of its session (KIP-227)."""
        session_id, epoch = request["session_id"], request["session_epoch"]
        session = self._sessions.get((line["broker"], session_id), {}) if epoch > 0 else {}
        for topic, each in _partitions(request["forgotten_topics_data"] or (), "partitions"):
            session.pop((topic["topic"], each), None)
        for topic, each in _partitions(request["topics"], "partitions"):
            session[topic["topic"], each["partition"]] = each["fetch_offset"]
        if response is not None and response["session_id"]:
            self._sessions[line["broker"], response["session_id"]] = session
        return session

    # --- what is there -----------------------------------------------------------------------------------------------

    @property
    def known_logs(self) -> Iterator[Log]:
        """Return the partitions of topics that existed when the run began."""
        for (topic, index), log in sorted(self.logs.items()):
            if topic in self.topics and index in self.topics[topic].leaders:
                yield log


def _partitions(topics: Any, name: str) -> Iterator[tuple[Any, Any]]:
    for topic in topics:
        for each in topic[name]:
            yield topic, each
