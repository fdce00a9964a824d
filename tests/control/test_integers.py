"""Integers in answers: JavaScript, and every reader that takes JSON's numbers for doubles, rounds them beyond 2^53."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from control_api.encoding import SAFE
from control_api.fields import Kind, fields_of, kind_of
from control_api.verbs import VERBS
from tests.control.conftest import ControlPlaneOf
from tests.control.harness import ControlPlane

SEED = 2**63 + 1
SMALL = {
    "int32 or less in Kafka's protocol, or that of its registries": (
        *(
            "broker",
            "controller",
            "coordinator",
            "leader",
            "replicas",
            "isr",
            "held",
            "partition",
            "port",
            "bound_port",
        ),
        *("magic", "schema_id"),
        *("correlation_id", "key", "version", "min", "max", "features", "timeout_ms"),
        *("epoch", "epoch_before", "epoch_after", "leader_epoch", "coordinator_epoch"),
        *("producer_epoch", "last_producer_epoch"),
        *("sequence", "first_sequence", "last_sequence", "known_sequence"),
    ),
    "counted one by one": (
        *(
            "id",
            "oldest",
            "next",
            "connection",
            "hits",
            "batches",
            "count",
            "remaining",
            "forgotten",
            "dropped",
            "kept",
            "removed",
            "topics",
            "brokers",
            "expired",
        ),
        *("logs_cleaned", "segments_deleted", "delivery_count"),
        *("requests", "errors", "series", "error_series", "skipped", "entry", "connections", "open", "members"),
        *("first_entry", "refusals"),
        *("partitions", "left_out", "step", "steps", "subjects", "versions"),
        *("offset", "base_offset", "first_offset", "last_offset", "txn_start_offset", "high_watermark"),
        *("log_start_offset", "log_end_offset", "last_stable_offset"),
    ),
    "bytes that are there": ("size_bytes", "request_bytes", "response_bytes"),
    "the cluster's time, which is pushed by 10^13 ms at most": (
        "at_ms",
        "now_ms",
        "ahead_ms",
        "until_ms",
        "deadline_ms",
        "since_ms",
        "lock_until_ms",
        "last_since_ms",
        "last_ended_ms",
        "began_ms",
        "ended_ms",
        "committed_ms",
    ),
    "a time, of the cluster or the machine, or fixed": ("throttled_ms", "window_ms", "step_ms", "ts_us"),
    "of at most some thousand lines in a drawing": (
        "x",
        "y",
        "x2",
        "y2",
        "width",
        "height",
        "head",
        "source",
        "target",
    ),
    "given by the user, with a bound": (
        "after_markers",
        "loading_ms",
        "skip",
        "times",
        "delay_ms",
        "status",
        "lease_seconds",
    ),
}
"""Why an integer is never beyond 2^53, and those of which that is true."""


def integers(kind: Kind, name: str = "", seen: frozenset[Any] = frozenset()) -> Iterator[str]:
    """The names of an answer's integers that are written as numbers of any size."""
    if kind.is_object:
        for field in fields_of(kind.type).values() if kind.type not in seen else ():
            yield from integers(field.kind, field.name, seen | {kind.type})
    elif kind.is_list or kind.is_pair or kind.is_mapping:
        for inner in kind.inner:
            yield from integers(inner, name, seen)
    elif kind.type is int and not kind.about.wide:
        yield name


def test_every_integer_is_small_or_leaves_as_a_text_where_it_is_not() -> None:
    """A new field is declared ``Int64``, or gets its reason here."""
    fields = {name for verb in VERBS if verb.answer for name in integers(kind_of(verb.answer_type))}
    assert fields == {name for names in SMALL.values() for name in names}


def test_a_seed_is_exact_over_http_in_python_and_in_the_shell(plane_of: ControlPlaneOf) -> None:
    """A text over HTTP, an int in Python, the digits in the shell."""
    plane = plane_of(seed=SEED)
    assert plane.http("GET", "/v1/cluster")["seed"] == str(SEED)
    assert plane.kafka.info().seed == SEED
    assert str(SEED) in plane.ctl_text("cluster")


def test_a_generated_seed_is_a_number(plane: ControlPlane) -> None:
    """A generated seed and a small one are numbers in the result."""
    seed = plane.http("GET", "/v1/cluster")["seed"]
    assert type(seed) is int
    assert abs(seed) <= SAFE


@pytest.mark.parametrize(("offset", "written"), [(SAFE, SAFE), (SAFE + 1, str(SAFE + 1)), (2**62 + 1, str(2**62 + 1))])
def test_what_a_client_chose_is_exact(plane: ControlPlane, offset: int, written: int | str) -> None:
    """In the answer about a group, and in the journal's requests."""
    consumer = Consumer({"bootstrap.servers": plane.bootstrap, "group.id": "g"})
    consumer.commit(offsets=[TopicPartition("t", 0, offset)], asynchronous=False)
    consumer.close()
    assert plane.http("GET", "/v1/groups/g")["offsets"][0]["offset"] == written
    assert plane.kafka.groups["g"].show().offsets[0].offset == offset
    (entry,) = plane.http("GET", "/v1/journal?api=OffsetCommit")["entries"]
    assert entry["request"]["topics"][0]["partitions"][0]["committed_offset"] == written
    assert json.dumps(offset) in plane.ctl_text("groups", "show", "g", "--json")
