"""With which settings a broker starts: the same as Kafka's classes, for random sets of related settings."""

import json

import pytest

from tests.differential.starts import RECORDED, asked_of_kafka, differences, sets
from tests.storage.kafka_tools import need_kafka


def test_a_server_starts_with_the_settings_with_which_kafka_starts() -> None:
    """As recorded of Kafka 4.4.0: ``python -m tests.differential.starts 1 600 --record``."""
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    assert differences([each for each, _ in recorded], ["ok" if ok else "refused" for _, ok in recorded]) == []


@pytest.mark.interop
@pytest.mark.timeout(120)
def test_kafka_agrees_about_other_settings() -> None:
    """Two thousand sets that are not recorded."""
    need_kafka()
    questions = list(sets(2, 2000))
    assert differences(questions, asked_of_kafka(questions)) == []
