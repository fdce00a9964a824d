"""`understudy compare`: plays histories on a running Kafka and on an Understudy, and reports the differences."""

import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element, ElementTree, SubElement

from comparison.connection import Closed
from comparison.exchange import Pair
from comparison.histories.quiescence import Restless
from comparison.histories.run import Histories, Report, line
from comparison.histories.step_request import PATIENCE_MS
from comparison.recompressed import CODECS
from comparison.target import Target
from protocol.apis import ApiKey
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

BROKER = 4  # ConfigResource.Type.BROKER
STATIC = 4
"""Config source of DescribeConfigs: the broker's properties file (STATIC_BROKER_CONFIG)."""
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
"""Broker configs with effects that a client can observe: the Understudy is started with Kafka's values."""


@dataclass(frozen=True, slots=True)
class Options:
    """Command line options; None for files that are not written."""

    kafka: str
    understudy: str | None = None
    histories: int = 100
    length: int = 40  # as LENGTH
    seed: int = 0
    json_file: str | None = None
    junit_file: str | None = None


class Unfit(Exception):
    """Cluster that cannot be compared; the message names the reason and the remedy."""


def main(options: Options, start: Callable[[Mapping[str, str]], str]) -> int:
    """Compare and report; return 0: no unexplained difference, 1: differences, 2: the comparison failed.

    ``start`` starts an Understudy with these settings and returns its address.
    """
    targets = [Target(options.kafka)]
    try:
        settings = fit(targets[0])
        targets.append(Target(options.understudy or start(settings)))
        only_broker(targets[1])
        report = compare(targets[0], targets[1], options, recompresses=settings.get("compression.type") in CODECS)
    except (Unfit, OSError, Closed, Restless) as error:
        print(f"understudy compare: {str(error) or 'the broker hung up'}", file=sys.stderr)
        return 2
    finally:
        for target in targets:
            target.close()
    rows = table(report)
    print("\n".join(rows))
    try:
        write_files(report, options)
    except OSError as error:
        print(f"understudy compare: {error.filename} cannot be written: {error.strerror}", file=sys.stderr)
        return 2
    return 1 if report.steady else 0


def write_files(report: Report, options: Options) -> None:
    """Write the files of `--json` and `--junit`. Raises OSError."""
    if options.json_file:
        Path(options.json_file).write_text(json.dumps(as_json(report), indent=1) + "\n", encoding="utf-8")
    if options.junit_file:
        ElementTree(as_junit(report)).write(options.junit_file, encoding="utf-8", xml_declaration=True)


def fit(kafka: Target) -> dict[str, str]:
    """Return the configs with which the Understudy behaves like that Kafka. Raises Unfit."""
    broker = only_broker(kafka)
    resource = DescribeConfigsResource(BROKER, str(broker), list(MIRRORED))
    (result,) = kafka.call(ApiKey.DESCRIBE_CONFIGS, 1, DescribeConfigsRequest([resource])).results
    return {config.name: config.value for config in result.configs if config.config_source == STATIC and config.value}


def only_broker(target: Target) -> int:
    """Return the id of a cluster's broker.

    Raises:
        Unfit: it has several brokers; a history uses one, which must lead all partitions.
    """
    brokers = target.call(ApiKey.DESCRIBE_CLUSTER, 0, DescribeClusterRequest()).brokers
    if len(brokers) != 1:
        raise Unfit(f"{target.address} is a cluster of {len(brokers)} brokers; start one of a single broker for this.")
    return int(brokers[0].broker_id)


def compare(kafka: Target, ours: Target, options: Options, *, recompresses: bool = False) -> Report:
    """Play the histories, and delete their topics. `recompresses`: Kafka's brokers compress all records again."""
    histories = Histories(
        # The number: a run has topics of its own.
        Pair(kafka, ours, recompresses=recompresses),
        f"compare-{options.seed}-{id(options) % 100_000}",
    )
    seeds = [f"{options.seed}.{number}" for number in range(options.histories)]
    try:
        return histories.run(seeds, options.length, most_found=20)  # ours: more are not read
    finally:
        for target in (kafka, ours):
            request = DeleteTopicsRequest(timeout_ms=PATIENCE_MS, topics=[DeleteTopicState(target.probe)])
            target.call(ApiKey.DELETE_TOPICS, 6, request)
            target.close()


# --- reports ---------------------------------------------------------------------------------------------------------


def by_api(report: Report) -> dict[str, tuple[int, Counter[str], list[str]]]:
    """Return API -> number of responses, their error codes, and the histories that differ."""
    rows: dict[str, tuple[int, Counter[str], list[str]]] = {}
    for (api, _, code), times in sorted(report.pair.coverage.seen.items()):
        count, codes, texts = rows.get(api, (0, Counter(), []))
        codes[code] += times
        rows[api] = (count + times, codes, texts)
    for differing in report.steady:
        first = differing.differences[0]
        rows.setdefault(first.api, (0, Counter(), []))[2].append(str(differing))
    return rows


def table(report: Report) -> list[str]:
    """Render the report as a text table."""
    rows = by_api(report)
    width = max((len(api) for api in rows), default=len("API"))
    lines = [f"{'API':{width}}  answers  differ  error codes"]
    for api, (count, codes, texts) in rows.items():
        # Four fit on a line.
        names = ", ".join(code for code, _ in codes.most_common(4)) + (", ..." if len(codes) > 4 else "")
        lines.append(f"{api:{width}}  {count:7}  {len(texts):6}  {names}")
    lines += ["", *(str(differing) for differing in report.differing), report.lines()[0]]
    return lines


def as_json(report: Report) -> dict[str, object]:
    """Return the complete report as JSON."""
    return {
        "generator": "understudy compare",
        "histories": report.histories,
        "steps": report.steps,
        "answers": [
            {"api": api, "version": version, "error": code, "times": times}
            for (api, version, code), times in sorted(report.pair.coverage.seen.items())
        ],
        "known": dict(report.pair.met),
        "found": [
            {
                "seed": str(differing.seed),
                "steady": differing.steady,
                "steps": [line(step) for step in differing.steps],
                "differences": [
                    {
                        "api": difference.api,
                        "field": difference.path,
                        "kafka": difference.kafka,
                        "understudy": difference.understudy,
                    }
                    for difference in differing.differences
                ],
            }
            for differing in report.differing
        ],
    }


def as_junit(report: Report) -> Element:
    """Return one test case per API, which fails with the histories that differ in it."""
    rows = by_api(report)
    suite = Element("testsuite", name="understudy compare", tests=str(len(rows)))
    suite.set("failures", str(sum(bool(texts) for _, _, texts in rows.values())))
    for api, (count, _, texts) in rows.items():
        case = SubElement(suite, "testcase", classname="understudy.compare", name=api)
        if texts:
            SubElement(case, "failure", message=f"{len(texts)} histories differ").text = "\n\n".join(texts)
        else:
            SubElement(case, "system-out").text = f"{count} answers alike"
    return suite


def ledger(rows: Sequence[tuple[str, ...]]) -> str:
    """Render a Markdown table; the first row is the header."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])
