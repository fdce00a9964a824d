"""What `understudy compare` does: histories on a Kafka that runs somewhere and on ours, and a report of both."""

import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element, ElementTree, SubElement

from comparison.connection import Closed
from comparison.exchange import Pair
from comparison.histories.run import Histories, Report, line
from comparison.histories.settle import BELL, Restless
from comparison.side import Side
from protocol.apis import ApiKey
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

BROKER = 4
STATIC = 4
"""The source of a setting that stands in the broker's own file."""
MIRRORED = (
    "auto.create.topics.enable",
    "compression.type",
    "delete.topic.enable",
    "group.coordinator.append.linger.ms",
    "group.initial.rebalance.delay.ms",
    "group.max.session.timeout.ms",
    "group.max.size",
    "group.min.session.timeout.ms",
    "log.cleanup.policy",
    "log.index.interval.bytes",
    "log.message.timestamp.after.max.ms",
    "log.message.timestamp.before.max.ms",
    "log.message.timestamp.type",
    "log.retention.bytes",
    "log.segment.bytes",
    "message.max.bytes",
    "min.insync.replicas",
    "num.partitions",
    "offset.metadata.max.bytes",
    "offsets.topic.num.partitions",
    "offsets.topic.replication.factor",
    "transaction.max.timeout.ms",
    "transaction.state.log.min.isr",
    "transaction.state.log.num.partitions",
    "transaction.state.log.replication.factor",
)
"""Settings that a client can notice: ours is started with the values that the Kafka has."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the command line said. Files that are not wanted are None."""

    kafka: str
    understudy: str | None = None
    histories: int = 100
    length: int = 40
    seed: int = 0
    json_file: str | None = None
    junit_file: str | None = None


class Unfit(Exception):
    """A cluster that cannot be compared with; the sentence says why and what to do."""


def main(wishes: Wishes, start: Callable[[Mapping[str, str]], str]) -> int:
    """Compare and report; 0: nothing unexplained, 1: something differs, 2: it could not be done.

    ``start`` starts a cluster of ours with these settings and returns its address.
    """
    kafka = Side(wishes.kafka)
    try:
        settings = fit(kafka)
        ours = wishes.understudy or start(settings)
        report = compared(kafka, Side(ours), wishes)
    except (Unfit, OSError, Closed, Restless) as error:
        print(f"understudy compare: {str(error) or 'the broker hung up'}", file=sys.stderr)
        return 2
    finally:
        kafka.close()
    rows = table(report)
    print("\n".join(rows))
    if wishes.json_file:
        Path(wishes.json_file).write_text(json.dumps(as_json(report), indent=1) + "\n", encoding="utf-8")
    if wishes.junit_file:
        ElementTree(as_junit(report)).write(wishes.junit_file, encoding="utf-8", xml_declaration=True)
    return 1 if report.steady else 0


def fit(kafka: Side) -> dict[str, str]:
    """The settings that ours needs to be like that Kafka.

    Raises:
        Unfit: it has several brokers: a history talks to one, which must lead everything.
    """
    brokers = kafka.call(ApiKey.DESCRIBE_CLUSTER, 0, DescribeClusterRequest()).brokers
    if len(brokers) != 1:
        raise Unfit(f"{kafka.address} is a cluster of {len(brokers)} brokers; start one of a single broker for this.")
    asked = DescribeConfigsResource(BROKER, str(brokers[0].broker_id), list(MIRRORED))
    (result,) = kafka.call(ApiKey.DESCRIBE_CONFIGS, 1, DescribeConfigsRequest([asked])).results
    return {each.name: each.value for each in result.configs if each.config_source == STATIC and each.value}


def compared(kafka: Side, ours: Side, wishes: Wishes) -> Report:
    """Play the histories, and leave no topic behind."""
    histories = Histories(Pair(kafka, ours), f"compare-{wishes.seed}-{id(wishes) % 100_000}")
    seeds = [f"{wishes.seed}.{number}" for number in range(wishes.histories)]
    try:
        return histories.run(seeds, wishes.length, most_found=20)
    finally:
        for side in (kafka, ours):
            bell = DeleteTopicsRequest(timeout_ms=15_000, topics=[DeleteTopicState(BELL)])
            side.call(ApiKey.DELETE_TOPICS, 6, bell)
            side.close()


# --- reports ---------------------------------------------------------------------------------------------------------


def by_api(report: Report) -> dict[str, tuple[int, Counter[str], list[str]]]:
    """API -> how many answers, their error codes, and what differs."""
    rows: dict[str, tuple[int, Counter[str], list[str]]] = {}
    for (api, _, code), times in sorted(report.pair.coverage.seen.items()):
        asked, codes, told = rows.get(api, (0, Counter(), []))
        codes[code] += times
        rows[api] = (asked + times, codes, told)
    for found in report.steady:
        first = found.differences[0]
        rows.setdefault(first.api, (0, Counter(), []))[2].append(str(found))
    return rows


def table(report: Report) -> list[str]:
    """For people."""
    rows = by_api(report)
    width = max((len(api) for api in rows), default=3)
    lines = [f"{'API':{width}}  answers  differ  error codes"]
    for api, (asked, codes, told) in rows.items():
        names = ", ".join(code for code, _ in codes.most_common(4)) + (", ..." if len(codes) > 4 else "")
        lines.append(f"{api:{width}}  {asked:7}  {len(told):6}  {names}")
    lines += ["", *(str(found) for found in report.found), report.lines()[0]]
    return lines


def as_json(report: Report) -> dict[str, object]:
    """Everything, for programs."""
    return {
        "histories": report.histories,
        "steps": report.steps,
        "answers": [
            {"api": api, "version": version, "error": code, "times": times}
            for (api, version, code), times in sorted(report.pair.coverage.seen.items())
        ],
        "known": dict(report.pair.met),
        "found": [
            {
                "seed": str(found.seed),
                "steady": found.steady,
                "steps": [line(step) for step in found.steps],
                "differences": [
                    {"api": each.api, "field": each.path, "kafka": each.kafka, "understudy": each.understudy}
                    for each in found.differences
                ],
            }
            for found in report.found
        ],
    }


def as_junit(report: Report) -> Element:
    """One test case for each API, which fails with the histories that differ in it."""
    rows = by_api(report)
    suite = Element("testsuite", name="understudy compare", tests=str(len(rows)))
    suite.set("failures", str(sum(bool(told) for _, _, told in rows.values())))
    for api, (asked, _, told) in rows.items():
        case = SubElement(suite, "testcase", classname="understudy.compare", name=api)
        if told:
            SubElement(case, "failure", message=f"{len(told)} histories differ").text = "\n\n".join(told)
        else:
            SubElement(case, "system-out").text = f"{asked} answers alike"
    return suite


def ledger(rows: Sequence[tuple[str, ...]]) -> str:
    """A table in Markdown, the first row its head."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])
