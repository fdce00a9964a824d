"""Faults of clients: check -> the requests of a client `c`, of which the last one breaks the rule."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from protocol.log_records.transaction import TransactionState as State
from tests.pipeline.planted_client import Client

Requests = Callable[[Client], tuple[int, ...] | int]
"""Sends the requests of a plant. An audit has to point at the last one, or at the one that is picked with an index."""
_NO_TOPICS: Final[Mapping[str, Any]] = {"topics": []}


PLANTS: Final[Mapping[str, Requests]] = {
    # --- the journal beside the logs
    "acknowledged-absent": lambda c: (c.append(0), c.produce(3, offset=3)),
    "present-unacknowledged": lambda c: (c.append(0), c.append(3, outcome="never answered")),  # and no retry
    "delivered-twice": lambda c: (c.join(), c.fetch(0, (0, 4)), c.commit(5), c.fetch(0, (0, 4))),
    "redelivered": lambda c: (c.join(), c.fetch(0, (0, 4)), c.fetch(0, (0, 4))),
    "committed-beyond-delivered": lambda c: (c.join(), c.fetch(0, (0, 4)), c.commit(9)),
    "aborted-delivered": lambda c: (
        c.coordinator(State.ONGOING), c.write(transactional=True), c.mark(committed=False),
        c.coordinator(State.COMPLETE_ABORT), c.fetch(0, (0, 2), producer=c.producer, committed=True)),
    "offsets-without-end": lambda c: (c.init(), c.commit_in_transaction(5)),
    # --- producers
    "i01-version": lambda c: c.call("Metadata", {}, _NO_TOPICS, 99),
    "i02-first-request": lambda c: c.silent.call("Metadata", {}, _NO_TOPICS),
    "i03-sequence": lambda c: (c.produce(0), c.produce(5, error="OUT_OF_ORDER_SEQUENCE_NUMBER")),
    "i04-resend": lambda c: (c.produce(0, error="NOT_ENOUGH_REPLICAS"), c.produce(0, crc=8)),  # with other bytes
    "i05-first-sequence": lambda c: (c.init(named=False), c.produce(4)),
    "i06-epoch-back": lambda c: (c.produce(0, epoch=1), c.produce(0, error="INVALID_PRODUCER_EPOCH")),
    "i07-epoch-not-granted": lambda c: (c.init(), c.produce(0, epoch=1, named=True)),
    "i08-producer-fields": lambda c: c.produce(0, acks=1),
    "i10-two-connections": lambda c: (c.ready(), c.second.ready(), c.produce(0, took_us=50_000),
                                      c.second.produce(3, step_us=1000)),
    "i11-not-added": lambda c: (c.init(), c.produce(0, named=True, version=11)),
    "i12-added-needlessly": lambda c: (c.init(), c.add(), c.produce(0, named=True))[1],
    "i13-mixed-request": lambda c: c.produce(0, transactional=True),  # and no transactional id
    "i14-outside-transaction": lambda c: (c.init(), c.produce(0, named=True), c.produce(3)),
    "i15-after-end": lambda c: (c.ready(), c.second.ready(), c.init(), c.produce(0, named=True), c.end(took_us=50_000),
                                c.second.produce(3, named=True, step_us=1000)),
    "i16-end-changed": lambda c: (c.init(), c.produce(0, named=True), c.end(error="CONCURRENT_TRANSACTIONS"),
                                  c.end(committed=False)),
    "i17-granted-ignored": lambda c: (c.init(), c.produce(0, named=True), c.end(granted=1),
                                      c.produce(3, named=True, error="INVALID_PRODUCER_EPOCH")),
    "i18-offsets-not-added": lambda c: (c.init(), c.commit_in_transaction(5, version=3), c.end())[1],
    "i19-anonymous-offsets": lambda c: (
        c.other.join(1, "m"), c.other.fetch(0, (0, 4)), c.init(), c.commit_in_transaction(5), c.end())[3],
    "i20-after-fence": lambda c: (c.init(), c.end(error="PRODUCER_FENCED"), c.end(error="PRODUCER_FENCED")),
    "i21-after-unknown": lambda c: (c.produce(0, error="UNKNOWN_PRODUCER_ID"), c.produce(0)),
    "i22-forgotten-identity": lambda c: (c.init(), c.init(1)),
    "i23-timeout-changed": lambda c: (c.init(), c.init(1, had=0, timeout_ms=5000)),
    # --- members
    "i24-generation": lambda c: (c.join(1), c.join(2), c.heartbeat(1, "ILLEGAL_GENERATION")),
    "i25-commit-after-loss": lambda c: (c.join(), c.fetch(0, (0, 4)), c.wait(60), c.heartbeat(1, "UNKNOWN_MEMBER_ID"),
                                        c.commit(5, error="UNKNOWN_MEMBER_ID")),
    "i26-not-assigned": lambda c: (c.join(1), c.sync(1, 0), c.fetch(0, (0, 4)), c.join(2), c.sync(2, 1, other=(0,)),
                                   c.commit(5, generation=2)),
    "i27-commit-back": lambda c: (c.join(), c.fetch(0, (0, 4)), c.commit(5), c.commit(3)),
    "i28-two-owners": lambda c: (c.join(), c.sync(1, 0, other=(0,))),
    "i29-fetch-skips": lambda c: (c.fetch(0, (0, 4)), c.fetch(9, (9, 9))),
    "i30-fetch-session": lambda c: (c.fetch(session=(77, 1)), c.fetch(session=(77, 3))),
    "i31-leader-epoch-back": lambda c: (c.fetch(leader_epoch=4), c.fetch(leader_epoch=3)),
    "i37-member-epoch": lambda c: (c.beat(0, 5), c.beat(4, 5)),
    "i38-no-member-id": lambda c: (c.join(1, "a", sent_id=""), c.join(2, "b", sent_id="")),
    # --- any client
    "i32-no-metadata": lambda c: [c.produce(error="NOT_LEADER_OR_FOLLOWER") for _ in range(2)][-1],
    "i33-no-backoff": lambda c: (c.ready(), c.wait_for_the_next_second(), *(
        c.call("Metadata", {}, {"topics": [{"error_code": "LEADER_NOT_AVAILABLE"}]}, step_us=1000) for _ in range(30))),
    "i34-throttle": lambda c: (
        c.get_a_quota(), c.call("Metadata", {}, {**_NO_TOPICS, "throttle_time_ms": 5000}),
        c.call("Metadata", {}, {**_NO_TOPICS, "throttle_time_ms": 0})),
    "i35-session-expired": lambda c: (
        c.call("SaslAuthenticate", {}, {"error_code": "NONE", "session_lifetime_ms": 1000}),
        c.call("Metadata", {}, _NO_TOPICS, step_us=2_000_000)),
    "i36-correlation": lambda c: [c.call("Metadata", {}, _NO_TOPICS, correlation_id=70) for _ in range(2)][-1],
    "i40-bad-batch": lambda c: c.produce(count=3, last_offset=4),
}  # fmt: skip
