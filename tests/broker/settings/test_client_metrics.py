"""Settings of client metrics subscriptions (core C.3, CFG-13)."""

import pytest

from broker.settings import client_metrics
from protocol.errors import ErrorCode, KafkaError


@pytest.mark.parametrize(
    ("proposed", "code", "message"),
    [
        (
            {"interval.ms": "50", "match": "bad"},
            ErrorCode.INVALID_REQUEST,
            "Invalid value 50 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        ),
        (
            {"interval.ms": "3600001"},
            ErrorCode.INVALID_REQUEST,
            "Invalid value 3600001 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        ),
        ({"foo": "1", "interval.ms": "50"}, ErrorCode.INVALID_REQUEST, "Unknown client metrics configuration: foo"),
        (
            {"interval.ms": "x"},
            ErrorCode.INVALID_CONFIG,
            "Invalid value x for configuration interval.ms: Not a number of type INT",
        ),
        ({"match": "x=.*"}, ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: x=.*"),
        ({"match": "client_id=["}, ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: client_id=["),
        ({"match": "client_id=a=b"}, ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: client_id=a=b"),
        ({"match": "client_id="}, ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: client_id="),
        ({"match": "=client_id"}, ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: =client_id"),
        ({"match": "=="}, ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: =="),
        ({"match": "client_id"}, ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: client_id"),
        (
            {"match": "x", "interval.ms": "x", "metrics": "a,,b"},
            ErrorCode.INVALID_CONFIG,
            "Configuration 'metrics' values must not be empty.",
        ),
        ({"metrics": "a,,b"}, ErrorCode.INVALID_CONFIG, "Configuration 'metrics' values must not be empty."),
    ],
)
def test_CFG_13_a_subscription_is_refused_what_cannot_be(
    proposed: dict[str, str], code: ErrorCode, message: str
) -> None:
    """Names and intervals with 42, the rest with 40."""
    with pytest.raises(KafkaError) as refusal:
        client_metrics.validate(proposed)
    assert (refusal.value.code, refusal.value.message) == (code, message)


def test_a_good_subscription_is_taken_and_read() -> None:
    """Patterns are compiled, blanks around them dropped, the last of a name wins."""
    stored = {"interval.ms": "100", "metrics": "*", "match": "client_id= a ,client_id=b.*,client_source_port=9"}
    client_metrics.validate(stored)
    values = client_metrics.effective(stored)
    assert (values["interval.ms"], values["metrics"]) == (100, ("*",))
    match = values["match"]
    assert isinstance(match, tuple)
    patterns = client_metrics.patterns(match)
    assert patterns.keys() == {"client_id", "client_source_port"}
    assert [bool(patterns["client_id"].fullmatch(text)) for text in ("b", "bc", "a", "ab")] == [
        True,
        True,
        False,
        False,
    ]
    assert [bool(patterns["client_source_port"].fullmatch(text)) for text in ("9", "99")] == [True, False]


def test_patterns_are_javas() -> None:
    """Equals signs at the end are lost in ``String.split``; groups have names as Java writes them."""
    match = ("client_id=a==", "client_software_name=(?<name>ab+)", "client_source_port=\\(?<a")
    patterns = client_metrics.patterns(match)
    assert patterns["client_id"].fullmatch("a")
    assert patterns["client_software_name"].fullmatch("abb")
    assert not patterns["client_software_name"].fullmatch("abc")
    assert patterns["client_source_port"].fullmatch("<a")


def test_a_subscription_without_settings_has_defaults() -> None:
    """Five minutes, no metrics, every client matches."""
    assert client_metrics.effective({}) == {"interval.ms": 300_000, "match": (), "metrics": ()}


def test_any_client_id_is_matched_at_once() -> None:
    """An engine that goes back, as Python's and Java's, would try 2^40 ways; letters are those of ASCII."""
    pattern = client_metrics.patterns(("client_id=(a+)+b",))["client_id"]
    assert not pattern.fullmatch("a" * 32_000)
    assert pattern.fullmatch("a" * 32_000 + "b")
    assert not client_metrics.patterns(("client_id=\\w",))["client_id"].fullmatch("\u00e9")


@pytest.mark.parametrize("regex", ["(a)\\1", "(?!a)b", "(?<!a)b", "(" * 5000, "((a{900}){900}){900}"])
def test_patterns_that_cannot_be_matched_in_linear_time_are_refused(regex: str) -> None:
    """INVALID_CONFIG, as for all that are none."""
    with pytest.raises(KafkaError) as refusal:
        client_metrics.validate({"match": f"client_id={regex}"})
    assert refusal.value.code is ErrorCode.INVALID_CONFIG
