"""Rules of one answer: what a real broker answers is no fault, and what none answers is one."""

import re
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pipeline.answers.refusals import OF_ANY_REQUEST
from pipeline.answers.rules import _settings
from pipeline.answers.shapes import faults_of
from pipeline.audits.registry import checks
from protocol.api_errors import ERRORS_OF

TOPIC, DYNAMIC_DEFAULT_BROKER, STATIC_BROKER, DEFAULT = 1, 3, 4, 5


@pytest.mark.parametrize(
    ("source", "first", "found"),
    [(TOPIC, TOPIC, 1), (DEFAULT, STATIC_BROKER, 1), (DYNAMIC_DEFAULT_BROKER, DYNAMIC_DEFAULT_BROKER, 0)],
)
def test_a_topics_value_is_that_of_its_first_synonym(source: int, first: int, found: int) -> None:
    """But where the broker's own setting has just changed: Kafka 4.4.0 answered so, once."""
    synonym = {"name": "message.max.bytes", "value": "1048600", "source": first}
    config = {
        "name": "max.message.bytes",
        "value": "1048588",
        "config_source": source,
        "is_sensitive": False,
        "synonyms": [synonym],
    }
    result = {"resource_type": 2, "resource_name": "t", "configs": [config]}
    call = SimpleNamespace(request={"include_synonyms": True}, response={"results": [result]})
    assert len(list(_settings(cast("Any", call)))) == found


@pytest.mark.parametrize(
    ("elements", "found"),
    [
        ([{"name": "a", "parts": [1, 2]}, {"parts": [1, 2], "name": "a"}], 1),
        ([{"name": "a", "parts": [1, 2]}, {"name": "a", "parts": [1, 3]}], 0),
        ([[1, 2], [1, 3]], 0),
        ([[1, 2], [1, 2]], 1),
        ([1, True], 0),
        ([7, 7], 1),
    ],
)
def test_a_list_has_no_element_twice(elements: list[object], found: int) -> None:
    """Objects are equal in any order of their fields; elements that differ deep inside are not."""
    call = SimpleNamespace(id=1, api="DescribeGroups", request={}, response={"items": elements})
    assert [each.what for each in faults_of(cast("Any", call))] == ["items has an element twice"] * found


def test_the_query_has_the_errors_of_produce_and_fetch() -> None:
    """As the table of all APIs has them; and those of any request."""
    sql = checks()["answer-error"].sql
    assert set(re.findall(r"[A-Z_]{3,}", " ".join(re.findall(r"'([^']*)'", sql)))) == {
        *ERRORS_OF["Produce"], *ERRORS_OF["Fetch"], *OF_ANY_REQUEST,
    }  # fmt: skip
