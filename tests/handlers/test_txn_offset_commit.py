"""TxnOffsetCommit at the handler: transactions C.4, by version. Verification itself has its own tests."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from broker.coordination.outcome import TransactionalAppend
from broker.coordination.transaction.transitions import ProducerIdAndEpoch
from broker.handlers import txn_offset_commit
from broker.handlers.txn_offset_commit import API
from broker.request.context import AclOperation, RequestContext
from broker.settings.releases import release as named
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.group import OffsetCommit, decode
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.handlers.group_harness import START_MS, Stage
from tests.versions import every_version


class Verification:
    """Replaces the verification of the producer's transaction."""

    def __init__(self) -> None:
        self.verified: list[tuple[str, ProducerIdAndEpoch, str]] = []
        self.guard = object()
        self.refuse: ErrorCode | None = None

    async def __call__(
        self, transactional_id: str, producer: ProducerIdAndEpoch, group_id: str, ctx: RequestContext
    ) -> object:
        """As :func:`broker.partitions.transactions.verification.verify_offsets`."""
        assert ctx.api is API
        self.verified.append((transactional_id, producer, group_id))
        if self.refuse is not None:
            raise KafkaError(self.refuse)
        return self.guard


@pytest.fixture
def verification(monkeypatch: pytest.MonkeyPatch) -> Verification:
    """In place of the real one."""
    verification = Verification()
    monkeypatch.setattr(txn_offset_commit, "verify_offsets", verification)
    return verification


def request(
    group_id: str = "g", generation: int = -1, *, ids: Mapping[str, UUID] | None = None, **topics: list[int]
) -> TxnOffsetCommitRequest:
    """Offset 5 for partitions by topic; with ``ids`` each topic has its id, too, which a version 6 sends alone."""
    return TxnOffsetCommitRequest(
        "txn",
        group_id,
        1000,
        2,
        [
            TxnOffsetCommitRequestTopic(name, [TxnOffsetCommitRequestPartition(p, 5) for p in partitions], topic_id)
            for name, partitions in topics.items()
            for topic_id in ((ids or {}).get(name),)
        ],
        generation,
    )


def codes(answer: Any) -> dict[str, dict[int, int]]:
    """By topic and partition."""
    return {t.name: {p.partition_index: int(p.error_code) for p in t.partitions} for t in answer.topics}


@every_version(API)
async def test_offsets_join_the_transaction(version: int, verification: Verification) -> None:
    """Verified, then appended under the guard; with the topic's id since 4.4."""
    stage = Stage()
    answer = await stage.ask(API, request(ids={"foo": stage.foo}, foo=[0, 1]), version)
    assert codes(answer) == {"" if version >= 6 else "foo": {0: 0, 1: 0}}
    assert answer.topics[0].topic_id == (stage.foo if version >= 6 else None)
    assert verification.verified == [("txn", ProducerIdAndEpoch(1000, 2), "g")]
    (transaction,) = stage.log_of("g").transactions
    assert transaction == TransactionalAppend(1000, 2, "txn")
    assert transaction.guard is verification.guard
    records = [decode(*raw) for raw in stage.log_of("g").records]
    topic_id = stage.image.topics["foo"].id
    assert records == [OffsetCommit("g", "foo", p, 5, -1, "", START_MS, topic_id=topic_id) for p in (0, 1)]


@every_version(API)
@pytest.mark.parametrize(("release", "code"), [("4.4", 22), ("4.0", 22), ("3.9", 25)])
@pytest.mark.usefixtures("verification")
async def test_a_generation_of_an_absent_group_gets_the_error_of_version_and_release(
    version: int, release: str, code: int
) -> None:
    """GROUP_ID_NOT_FOUND from version 6 on, ILLEGAL_GENERATION before, UNKNOWN_MEMBER_ID in releases before 4.0."""
    stage = Stage()
    stage.release = named(release)
    answer = await stage.ask(API, request(generation=3, ids={"foo": stage.foo}, foo=[0]), version)
    if version < 3:  # without generations: a commit of no member creates the group
        code = 0
    assert codes(answer) == {"" if version >= 6 else "foo": {0: 69 if version >= 6 else code}}


async def test_GRP_11_a_fenced_commit_has_been_verified() -> None:
    """Quirk: the partition has joined the transaction before the group refuses."""
    stage = Stage()
    verification = Verification()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(txn_offset_commit, "verify_offsets", verification)
        assert codes(await stage.ask(API, request(generation=0, foo=[0]), 5)) == {"foo": {0: 22}}
    assert len(verification.verified) == 1


@pytest.mark.parametrize("code", [ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_PRODUCER_EPOCH])
async def test_GRP_12_GRP_13_a_refused_verification_is_answered(code: ErrorCode, verification: Verification) -> None:
    """On every partition; nothing is written."""
    stage = Stage()
    verification.refuse = code
    assert codes(await stage.ask(API, request(foo=[0, 9], bar=[0]), 5)) == {
        "foo": {9: 3, 0: int(code)},
        "bar": {0: int(code)},
    }
    assert stage.log_of("g").records == []


async def test_the_gate_comes_before_verification(verification: Verification) -> None:
    """Denied ids and groups fail everything, topics fail alone; the group and its coordinator come after that."""
    stage = Stage()
    commit = request(foo=[0], none=[0])
    denied = await stage.ask(API, commit, 5, {(AclOperation.WRITE, "txn"), (AclOperation.READ, "g")})
    assert codes(denied) == {"foo": {0: 53}, "none": {0: 53}}
    denied = await stage.ask(API, commit, 5, {(AclOperation.READ, "g")})
    assert codes(denied) == {"foo": {0: 30}, "none": {0: 30}}
    assert codes(await stage.ask(API, commit, 5, {(AclOperation.READ, "foo")})) == {"foo": {0: 29}, "none": {0: 3}}
    assert codes(await stage.ask(API, request("", foo=[0], none=[0]), 5)) == {"foo": {0: 24}, "none": {0: 3}}
    stage.coordinators.groups.clear()
    assert codes(await stage.ask(API, commit, 5)) == {"foo": {0: 16}, "none": {0: 3}}
    assert verification.verified == []


@pytest.mark.parametrize(("version", "code"), [(0, 15), (1, 15), (2, 14), (5, 14)])
async def test_a_loading_coordinator_is_answered_with_the_versions_error(
    version: int, code: int, verification: Verification
) -> None:
    """COORDINATOR_NOT_AVAILABLE up to version 1, COORDINATOR_LOAD_IN_PROGRESS since 2, after the verification."""
    stage = Stage()
    for index in range(2):
        stage.coordinate(index, load=False)
    assert codes(await stage.ask(API, request(foo=[0]), version)) == {"foo": {0: code}}
    assert len(verification.verified) == 1
