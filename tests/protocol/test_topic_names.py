"""Legal topic names and names that collide (core B.1)."""

import pytest

from protocol.errors import ErrorCode, KafkaError
from protocol.topic_names import check_topic_name, colliding_form, may_collide

CHARACTERS = "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "x" * 249, "...", "__consumer_offsets"])
def test_legal_names_pass(name: str) -> None:
    """Letters, digits, dots, underscores, dashes, up to 249 of them."""
    assert check_topic_name(name) is None  # type: ignore[func-returns-value]


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, f"the length of '{'x' * 250}' is longer than the max allowed length 249"),
        ("😀" * 125, f"the length of '{'😀' * 125}' is longer than the max allowed length 249"),
        ("a b", f"'a b' {CHARACTERS}"),
        ("ü", f"'ü' {CHARACTERS}"),
        ("😀" * 124, f"'{'😀' * 124}' {CHARACTERS}"),
    ],
)
def test_N1_to_N5_illegal_names_are_refused_with_a_reason(name: str, complaint: str) -> None:
    """The message is that of the first broken rule; length counts UTF-16 units."""
    with pytest.raises(KafkaError) as refused:
        check_topic_name(name)
    assert refused.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert refused.value.message == f"Topic name is invalid: {complaint}"


def test_dots_and_underscores_read_the_same() -> None:
    """Only names with one of them can collide."""
    assert colliding_form("a.b_c") == colliding_form("a_b.c") == "a_b_c"
    assert [may_collide(name) for name in ("a.b", "a_b", "a-b")] == [True, True, False]
