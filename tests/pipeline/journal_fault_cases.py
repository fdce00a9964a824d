"""Plants: the journal against the logs, and what members and consumers do on the wire (invariants 24 to 40)."""

from protocol.log_records.transaction import TransactionState as State
from tests.pipeline.journal_faults import plant
from tests.pipeline.journal_lines import Wiring, assignment

# --- the journal against the logs -----------------------------------------------------------------------------------


@plant("acknowledged-absent")
def absent(wiring: Wiring, name: str) -> int:
    """Produce answered with offsets at which there are no records."""
    log, wire = wiring.where.shelf(name), wiring.connect(name)
    wire.append(log, who=(500, 0))
    return wire.produce(name, who=(500, 0), sequence=3, offset=3)


@plant("present-unacknowledged")
def unacknowledged(wiring: Wiring, name: str) -> int:
    """The answer was lost, and the producer did not retry."""
    log, wire = wiring.where.shelf(name), wiring.connect(name)
    wire.append(log, who=(501, 0))
    wire.append(log, who=(501, 0), sequence=3, outcome="never answered")
    return len(wiring.lines)


@plant("delivered-twice")
def twice(wiring: Wiring, name: str) -> int:
    """A group goes back behind what it has committed."""
    wire = wiring.connect(name)
    wire.join(name, name, 1)
    wire.fetch(name, 0, [(0, 4)])
    wire.commit(name, name, 1, name, 5)
    return wire.fetch(name, 0, [(0, 4)])


@plant("redelivered")
def redelivered(wiring: Wiring, name: str) -> int:
    """A group reads again what it has not committed."""
    wire = wiring.connect(name)
    wire.join(name, name, 1)
    wire.fetch(name, 0, [(0, 4)])
    return wire.fetch(name, 0, [(0, 4)])


@plant("committed-beyond-delivered")
def beyond(wiring: Wiring, name: str) -> int:
    """A member commits what it has never seen."""
    wire = wiring.connect(name)
    wire.join(name, name, 1)
    wire.fetch(name, 0, [(0, 4)])
    return wire.commit(name, name, 1, name, 9)


@plant("aborted-delivered")
def aborted(wiring: Wiring, name: str) -> int:
    """The broker leaves an aborted transaction out of its list."""
    log, wire = wiring.where.shelf(name), wiring.connect(name)
    wiring.where.transaction(name, 502, 0, State.ONGOING, [(name, 0)])
    first = log.data(3, producer=502, transactional=True)
    log.marker(502, 0, committed=False)
    wiring.where.transaction(name, 502, 0, State.COMPLETE_ABORT)
    return wire.fetch(name, first, [(first, first + 2)], producer=502, committed=True)


@plant("offsets-without-end")
def offsets_without_end(wiring: Wiring, name: str) -> int:
    """Offsets in a transaction, and then silence."""
    wire = wiring.connect(name)
    wire.init(name, (503, 0))
    return wire.commit_in_transaction(name, (503, 0), name, "", -1, name, 5)


@plant("i24-generation")
def generation(wiring: Wiring, name: str) -> int:
    """A heartbeat of the generation before."""
    wire = wiring.connect(name)
    wire.join(name, name, 1)
    wire.join(name, name, 2)
    return wire.heartbeat(name, name, 1, "ILLEGAL_GENERATION")


@plant("i25-commit-after-loss")
def commit_after_loss(wiring: Wiring, name: str) -> int:
    """The member commits after an answer that it is not a member any more."""
    wire = wiring.connect(name)
    wire.join(name, name, 1)
    wire.fetch(name, 0, [(0, 4)])
    wiring.now_us += 60_000_000  # its session ends
    wire.heartbeat(name, name, 1, "UNKNOWN_MEMBER_ID")
    return wire.commit(name, name, 1, name, 5, "UNKNOWN_MEMBER_ID")


@plant("i26-not-assigned")
def not_assigned(wiring: Wiring, name: str) -> int:
    """It commits for a partition that it had, and that another member has now."""
    wire = wiring.connect(name)
    wire.join(name, name, 1)
    wire.sync(name, name, 1, {name: assignment(name, 0)})
    wire.fetch(name, 0, [(0, 4)])
    wire.join(name, name, 2)
    wire.sync(name, name, 2, {name: assignment(name, 1), "other": assignment(name, 0)})
    return wire.commit(name, name, 2, name, 5)


@plant("i27-commit-back")
def commit_back(wiring: Wiring, name: str) -> int:
    """Commit offset 5, then 3."""
    wire = wiring.connect(name)
    wire.join(name, name, 1)
    wire.fetch(name, 0, [(0, 4)])
    wire.commit(name, name, 1, name, 5)
    return wire.commit(name, name, 1, name, 3)


@plant("i28-two-owners")
def two_owners(wiring: Wiring, name: str) -> int:
    """A leader that gives everything to everybody."""
    wire = wiring.connect(name)
    wire.join(name, name, 1)
    return wire.sync(name, name, 1, {name: assignment(name, 0), "other": assignment(name, 0)})


@plant("i29-fetch-skips")
def fetch_skips(wiring: Wiring, name: str) -> int:
    """From 4 to 9."""
    wire = wiring.connect(name)
    wire.fetch(name, 0, [(0, 4)])
    return wire.fetch(name, 9, [(9, 9)])


@plant("i30-fetch-session")
def fetch_session(wiring: Wiring, name: str) -> int:
    """Epochs 1, 3."""
    wire = wiring.connect(name)
    wire.fetch(name, 0, session=(77, 1))
    return wire.fetch(name, 0, session=(77, 3))


@plant("i31-leader-epoch-back")
def leader_epoch_back(wiring: Wiring, name: str) -> int:
    """It knew epoch 4."""
    wire = wiring.connect(name)
    wire.fetch(name, 0, leader_epoch=4)
    return wire.fetch(name, 0, leader_epoch=3)


@plant("i32-no-metadata")
def no_metadata(wiring: Wiring, name: str) -> int:
    """The same broker again."""
    wire = wiring.connect(name)
    wire.produce(name, error="NOT_LEADER_OR_FOLLOWER")
    return wire.produce(name, error="NOT_LEADER_OR_FOLLOWER")


@plant("i33-no-backoff")
def no_backoff(wiring: Wiring, name: str) -> int:
    """Thirty times in a thirtieth of a second."""
    wire = wiring.connect(name)
    wiring.now_us += 1_000_000 - wiring.now_us % 1_000_000
    for _ in range(30):
        wire.call("Metadata", {}, {"topics": [{"error_code": "LEADER_NOT_AVAILABLE"}]}, step_us=1000)
    return len(wiring.lines)


@plant("i34-throttle")
def throttle(wiring: Wiring, name: str) -> int:
    """Five seconds of silence were asked for."""
    wire = wiring.connect(name)
    wiring.where.throttled.append(name)
    wire.call("Metadata", {}, {"topics": [], "throttle_time_ms": 5000})
    return wire.call("Metadata", {}, {"topics": [], "throttle_time_ms": 0})


@plant("i35-session-expired")
def session_expired(wiring: Wiring, name: str) -> int:
    """A session of a second, and a request after two."""
    wire = wiring.connect(name)
    wire.call("SaslAuthenticate", {}, {"error_code": "NONE", "session_lifetime_ms": 1000})
    return wire.call("Metadata", {}, {"topics": []}, step_us=2_000_000)


@plant("i36-correlation")
def correlation(wiring: Wiring, name: str) -> int:
    """The same number twice."""
    wire = wiring.connect(name)
    wire.call("Metadata", {}, {"topics": []}, correlation_id=70)
    return wire.call("Metadata", {}, {"topics": []}, correlation_id=70)


@plant("i37-member-epoch")
def member_epoch(wiring: Wiring, name: str) -> int:
    """The member was given epoch 5, and sends 4."""
    wire = wiring.connect(name)
    request = {"group_id": name, "member_id": name, "member_epoch": 0}
    wire.call("ConsumerGroupHeartbeat", request, {"error_code": "NONE", "member_epoch": 5})
    return wire.call("ConsumerGroupHeartbeat", request | {"member_epoch": 4}, {"error_code": "NONE", "member_epoch": 5})


@plant("i38-no-member-id")
def joined_again_without_its_id(wiring: Wiring, name: str) -> int:
    """The member has an id, and joins again without it."""
    wire = wiring.connect(name)
    wire.join(name, "a", 1, sent_id="")
    return wire.join(name, "b", 2, sent_id="")


@plant("i40-bad-batch")
def bad_batch(wiring: Wiring, name: str) -> int:
    """Three records in the range of five offsets."""
    return wiring.connect(name).produce(name, count=3, last_offset=4)
