"""Which rights each API needs (core G.8): a client without rights requests it, and again after each right given.

The responses were recorded from Apache Kafka 4.3.1: ``TARGET=kafka RECORD=1 pytest`` of this file records them again.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from protocol.apis import ApiKey
from protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.scenarios.core.asked_by_right import CASES, Case, Right, pair
from tests.scenarios.core.asking import RANDOM_ID, metadata
from tests.scenarios.guarded import Guarded
from tests.scenarios.on_kafka import TARGET
from tests.scenarios.responses import summary
from tests.wire import Wire
from tools.compact_json import dumps

pytestmark = pytest.mark.also_over_sockets("it has a request of each API")
RECORD = Path(__file__).with_name("authorization.json")
EXPECTED = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}


def label(right: Right) -> str:
    """Such as ``READ TOPIC foo``."""
    operation, kind, name = right
    return f"{operation.name} {kind.name} {name}"


def coordinated(wire: Wire, kind: int, *keys: str) -> None:
    """Wait until the coordinators of these keys are available."""
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=keys)
    while any(each.error_code for each in wire.call(ApiKey.FIND_COORDINATOR, 4, request).coordinators):
        pass


def prepared(stage: Guarded) -> dict[str, Any]:
    """Groups g and h with offsets of foo and bar; transactions T, which has begun with both, and V."""
    wire = stage.admin
    known: dict[str, Any] = {str(each.name): each.topic_id for each in metadata(wire, "foo", "bar")}
    known["random"] = RANDOM_ID
    coordinated(wire, 0, "g", "h")
    coordinated(wire, 1, "T", "U", "V")
    offsets = [OffsetCommitRequestTopic(name, [OffsetCommitRequestPartition(0, 1)]) for name in ("foo", "bar")]
    for group in ("g", "h"):
        wire.call(ApiKey.OFFSET_COMMIT, 8, OffsetCommitRequest(group, -1, "", topics=offsets))
    for name in ("T", "V"):
        producer = wire.call(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(name, 60_000))
        known[name] = producer.producer_id, producer.producer_epoch
    both = [AddPartitionsToTxnTopic(name, [0]) for name in ("foo", "bar")]
    wire.call(ApiKey.ADD_PARTITIONS_TO_TXN, 3, AddPartitionsToTxnRequest("T", *pair(known), both))
    return known


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_right_opens_what_it_is_for(guarded: Guarded, case: Case) -> None:
    """And nothing else; the admin has all rights all the time, and is not asked."""
    known = prepared(guarded)
    ids = {known[name]: name for name in ("foo", "bar")}

    def answer() -> str:
        return summary(guarded.client.call(case.api, case.version, case.request(known)), ids)

    answers = {"nothing": answer()}
    for right in case.rights:
        guarded.allow(right)
        answers[f"and {label(right)}"] = answer()
    if TARGET == "kafka" and os.environ.get("RECORD"):
        EXPECTED[case.name] = answers
        RECORD.write_text(dumps(EXPECTED), encoding="utf-8")
    assert answers == EXPECTED[case.name]
