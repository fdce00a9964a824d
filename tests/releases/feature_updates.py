"""UpdateFeatures on real brokers of 4.4: each feature, to each level and beyond, up, down safely and down unsafely.

    python -m tests.releases.feature_updates JARS

puts the requests to brokers of the jars in that folder, formatted with each of `STARTS`, and writes down the answers
(`feature_updates.json`). First all requests with ValidateOnly; then those of `WALK` one after another, in earnest.
"""

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from protocol.apis import ApiKey
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.differential.cluster import KafkaCluster
from tests.wire import Wire
from tools.compact_json import dumps

RECORDED = Path(__file__).with_suffix(".json")
METADATA, KRAFT = "metadata.version", "kraft.version"
LEVELS: Mapping[str, range] = {
    METADATA: range(-1, 36),
    KRAFT: range(-1, 3),
    "transaction.version": range(-1, 4),
    "group.version": range(-1, 3),
    "eligible.leader.replicas.version": range(-1, 3),
    "share.version": range(-1, 4),
    "streams.version": range(-1, 3),
    "unheard.of": range(-1, 2),
    "": range(2),
}
"""Feature -> the levels that are asked for: those of 4.4, and what is beyond them."""
KINDS = range(5)
"""Upgrade types: 1 to 3 have a meaning."""
STARTS = (7, 22, 29, 33)
"""metadata.version of the fresh brokers: 3.3, 4.0 before its eligible replicas, 4.2, and 4.4's own."""
UP, SAFE, UNSAFE = 1, 2, 3
WALK = (
    ("transaction.version", 1, UNSAFE), ("transaction.version", 2, UP), ("transaction.version", 0, SAFE),
    ("group.version", 0, SAFE), ("group.version", 1, UP), ("share.version", 1, SAFE), ("share.version", 0, UNSAFE),
    ("share.version", 2, UP), ("streams.version", 0, UNSAFE), ("streams.version", 1, UP),
    ("eligible.leader.replicas.version", 0, SAFE), ("eligible.leader.replicas.version", 1, UP), (METADATA, 13, UP),
    (METADATA, 23, UP), ("eligible.leader.replicas.version", 1, UP), (METADATA, 24, UP), (METADATA, 23, SAFE),
    (METADATA, 31, UP), (METADATA, 30, UNSAFE), (METADATA, 33, UP), (METADATA, 32, SAFE),
    ("transaction.version", 2, UP), (KRAFT, 1, UP), (KRAFT, 0, UNSAFE),
)  # fmt: skip
BEGINS = "begins"
Answers = dict[str, str]


def ask(wire: Wire, feature: str, level: int, kind: int, *, validate_only: bool) -> str:
    """The code, and the reason if there is one."""
    update = FeatureUpdateKey(feature, level, upgrade_type=kind)
    request = UpdateFeaturesRequest(60_000, [update], validate_only=validate_only)
    answer = wire.call(ApiKey.UPDATE_FEATURES, 2, request)
    return f"{int(answer.error_code)} {answer.error_message or ''}".rstrip()


def finalized(wire: Wire) -> dict[str, int]:
    """The levels that clients see."""
    answer = wire.call(ApiKey.API_VERSIONS, 4, ApiVersionsRequest("test", "1.0"))
    return {each.name: each.max_version_level for each in sorted(answer.finalized_features, key=lambda each: each.name)}


def table(wire: Wire) -> Iterator[tuple[str, str]]:
    """Every request that is only looked at, and its answer."""
    for feature, levels in LEVELS.items():
        for level in levels:
            for kind in KINDS:
                yield f"{feature} {level} {kind}", ask(wire, feature, level, kind, validate_only=True)


def walked(wire: Wire) -> Iterator[tuple[str, str]]:
    """Every step, its answer, and what is finalized then: the client that asks stays connected."""
    for step, (feature, level, kind) in enumerate(WALK):
        answer = ask(wire, feature, level, kind, validate_only=False)
        levels = finalized(wire) if answer != "0" else _reached(wire, feature, level)
        yield f"step {step}: {feature} {level} {kind}", f"{answer}; {json.dumps(levels)}"


def _reached(wire: Wire, feature: str, level: int) -> dict[str, int]:
    """Brokers follow their controller a moment later."""
    for _ in range(500):
        levels = finalized(wire)
        if levels.get(feature, 0) == level:
            return levels
    raise TimeoutError(f"{feature} does not become {level}")


def ask_all(wire: Wire) -> Answers:
    """Both."""
    return {BEGINS: json.dumps(finalized(wire)), **dict(table(wire)), **dict(walked(wire))}


def load() -> dict[int, Answers]:
    """metadata.version of the beginning -> question -> answer."""
    rows: dict[str, dict[str, str]] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return {
        int(start): {
            question: _filled(answer, question) for answer, questions in by.items() for question in questions.split("|")
        }
        for start, by in rows.items()
    }


def save(answers: Mapping[int, Answers]) -> None:
    """By the answer, since many are alike but for the level and the feature that they repeat."""
    rows: dict[str, dict[str, str]] = {}
    for start, of_start in answers.items():
        row = rows.setdefault(str(start), {})
        for question, answer in of_start.items():
            form = _emptied(answer, question)
            row[form] = f"{row[form]}|{question}" if form in row else question
    RECORDED.write_text(dumps(rows, depth=2), encoding="utf-8")


INVALID, TO = "Invalid update version {} for feature {}.", " to {}. "


def _repeated(question: str) -> tuple[str, str]:
    """What an answer repeats of a request: the refused version and feature, and where it would have gone."""
    feature, level, _ = question.rpartition(": ")[2].rsplit(" ", 2)
    return INVALID.format(level, feature), f" to {level}. "


def _emptied(answer: str, question: str) -> str:
    if question == BEGINS:
        return answer
    invalid, to = _repeated(question)
    return answer.replace(invalid, INVALID).replace(to, TO)


def _filled(answer: str, question: str) -> str:
    if question == BEGINS:
        return answer
    invalid, to = _repeated(question)
    return answer.replace(INVALID, invalid).replace(TO, to)


def main() -> None:
    """Ask the real brokers."""
    os.environ["KAFKA_LIBS"] = sys.argv[1]
    answers: dict[int, Answers] = {}
    for start in STARTS:
        with tempfile.TemporaryDirectory() as folder:
            cluster = KafkaCluster(Path(folder), features={METADATA: start})
            cluster.start()
            try:
                with Wire(cluster.addresses[0], "test") as wire:
                    answers[start] = ask_all(wire)
            finally:
                cluster.stop(clean=False)
        sys.stderr.write(f"{start}: {len(answers[start])} answers\n")
        save(answers)


if __name__ == "__main__":
    main()
