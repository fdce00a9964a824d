"""What the simulator's history calls a broken promise."""

import pytest

from protocol.apis import ApiKey
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from simulator.clients.client import may_find_epochs_exhausted
from simulator.deliveries import Lock
from simulator.history import LATEST_US, History

PLACE = ("t", 0)


def history() -> tuple[History, list[int]]:
    """A history, and its clock."""
    now = [0]
    return History(lambda: now[0]), now


@pytest.mark.parametrize("overtaken", [True, False])
def test_an_instance_acts_until_it_is_fenced(overtaken: bool) -> None:
    """By a later epoch, not by a later answer: that to the older epoch may arrive behind that to the newer one."""
    trace, now = history()
    epochs = [(7, "second"), (6, "first")] if overtaken else [(6, "first"), (7, "second")]
    for epoch, instance in epochs:
        now[0] += 10
        trace.note_producer_epoch("id", instance, 1000, epoch, 5)
    trace.acted("id", "second", 30, "Produce")
    assert not trace.violations
    trace.acted("id", "first", 15, "Produce")
    assert bool(trace.violations) is overtaken  # the second one fenced it at 10, or only at 20
    trace.acted("id", "first", 30, "Produce")
    assert trace.violations[-1] == "Produce of first succeeded though second had fenced it before"


@pytest.mark.parametrize("overtaken", [True, False])
def test_a_rotated_producer_id_fences_the_one_before(overtaken: bool) -> None:
    """Even if its answer arrives first, when both were under way together; the older id is not given again later."""
    trace, now = history()
    trace.note_producer_epoch("id", "before", 1000, 5, 0)
    epochs = [(1000, 32_766, "first"), (1001, 0, "second"), (1001, 1, "third")]
    for producer_id, epoch, instance in [*epochs[1:], epochs[0]] if overtaken else epochs:
        now[0] += 10
        trace.note_producer_epoch("id", instance, producer_id, epoch, 5)
    assert [each.instance for each in trace.epochs["id"]] == ["before", "first", "second", "third"]
    trace.acted("id", "third", 40, "Produce")
    trace.unmapped("id", "first", 1000, 32_766)
    trace.ended("first", "id", "fenced", calm=True)
    assert not trace.violations
    trace.acted("id", "second", 40, "Produce")
    trace.acted("id", "first", 40, "Produce")
    assert trace.violations == [
        f"Produce of {instance} succeeded though third had fenced it before" for instance in ("second", "first")
    ]
    trace.note_producer_epoch("id", "fourth", 1000, 32_766, 40)
    trace.acted("id", "third", 50, "EndTxn")
    assert trace.violations[-1] == "EndTxn of third succeeded though fourth had fenced it before"


def test_what_was_known_at_a_snapshot_is_known_again() -> None:
    """What came later is not; a promise that was broken in between stays one."""
    trace, now = history()
    trace.note_producer_epoch("id", "first", 1000, 6, 5)
    kept = trace.kept()
    now[0] = 10
    trace.note_producer_epoch("id", "second", 1000, 7, 5)
    trace.note_producer_epoch("other", "third", 1000, 8, 5)
    assert [each.epoch for each in kept.epochs["id"]] == [6]
    kept.note_producer_epoch("id", "fourth", 1000, 7, 15)
    assert kept.violations is trace.violations
    assert kept.violations == ["producer id 1000 was given to id and to other"]
    kept.note_producer_epoch("id", "fifth", 1000, 7, 15)
    assert kept.violations[1] == "id: epoch 7 of 1000 was given to fourth and to fifth"


def test_requests_for_producer_ids_have_no_answer_in_a_state_that_is_gone_back_to() -> None:
    """They may have been handled before it; what is refused long after it is a mistake."""
    trace, now = history()
    with trace.initializing("id"):
        kept = trace.kept()
    kept.note_producer_epoch("id", "first", 1000, 0, 0)
    kept.unmapped("id", "first", 1000, 0)
    assert kept.violations == []
    now[0] = LATEST_US
    kept.note_producer_epoch("id", "second", 1000, 1, 0)
    kept.unmapped("id", "second", 1000, 1)
    assert kept.violations == ["second: id has another producer id than 1000, which it was given"]


def test_requests_of_share_groups_have_no_answer_in_a_state_that_is_gone_back_to() -> None:
    """A fetch may have acquired a record, an acknowledgement may count, and no member has a lock any more."""
    trace, _ = history()
    trace.deliveries.note_delivery("g", PLACE, 3, Lock("m", 1, 0, 1, 60_000, lambda: True), 1)
    with trace.deliveries.under_way("g", [PLACE], {PLACE: [3]}):
        kept = trace.kept().deliveries
    assert (len(kept.lost_us["g", PLACE]), kept.records["g", PLACE][3].maybe) == (1, True)
    last = kept.records["g", PLACE][3].last
    assert last is not None
    assert not last.alive()
    later = trace.kept().deliveries
    assert (len(later.lost_us["g", PLACE]), later.records["g", PLACE][3].maybe) == (0, False)
    forgotten = trace.forgotten().deliveries
    assert not forgotten.records


@pytest.mark.parametrize("doubt", ["", "another instance", "a lost request", "a request under way"])
def test_a_producer_id_stays_that_of_its_transactional_id(doubt: str) -> None:
    """Unless another instance has got another one, or may have."""
    trace, now = history()
    now[0] = 50_000_000
    trace.note_producer_epoch("id", "first", 1000, 0, 0)
    if doubt == "another instance":
        trace.note_producer_epoch("id", "second", 1001, 0, 0)
    if doubt == "a lost request":
        trace.doubt_id("id")
    with trace.initializing("id" if doubt == "a request under way" else "other"):
        trace.unmapped("id", "first", 1000, 0)
    assert trace.violations == ([] if doubt else ["first: id has another producer id than 1000, which it was given"])


@pytest.mark.parametrize(("exhausted", "allowed"), [(1, [0, 32_764, 32_765, 32_766]), (2, [32_765])])
def test_only_a_producer_with_another_epoch_than_the_last_may_find_an_illegal_state(
    exhausted: int, allowed: list[int]
) -> None:
    """One that repeats the bump to the last epoch, or a stale one of an id that has it; with InitProducerId only."""
    epochs = [
        epoch
        for epoch in (-1, 0, 32_764, 32_765, 32_766)
        if may_find_epochs_exhausted(*_bump(epoch), lambda *known: known == ("tx", exhausted))
    ]
    assert epochs == allowed
    end = EndTxnRequest("tx", 1, 32_765, committed=True)
    assert not may_find_epochs_exhausted(ApiKey.END_TXN, end, lambda *_: True)


def _bump(epoch: int) -> tuple[ApiKey, InitProducerIdRequest]:
    return ApiKey.INIT_PRODUCER_ID, InitProducerIdRequest("tx", 1000, 1, epoch)
