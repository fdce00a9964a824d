"""The walks can fail: a refusal without a why, a timer without a test, a fault that meets no request would be found."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.control.explain.group import EXPLAINED, MEANINGS
from broker.handlers import APIS
from protocol.errors import ErrorCode
from tests.conftest import BrokerWith
from tests.control import test_clock, test_explain_group, test_explain_transaction, test_producers, test_timers
from tests.control.test_faults_of_all_apis import Walk

E = ErrorCode
ROOT = Path(__file__).resolve().parents[2]
RAISED = {
    "broker/coordination/transaction": {"Refusal"},
    "broker/coordination/group": {"KafkaError", "Refusal"},
    "storage/producers/state.py": {"_refusal", "RecordsRejectedError"},
}
"""The functions in which a coordinator or a partition refuses, and the calls that do it."""
# No refusals of producers and members, the only ones that are explained.
GROUP_HANDLERS = (
    "join_group", "sync_group", "heartbeat", "leave_group", "offset_commit", "offset_fetch", "offset_delete",
    "txn_offset_commit", "consumer_group_heartbeat", "share_group_heartbeat", "streams_group_heartbeat",
    "describe_groups", "delete_groups", "share_fetch", "share_acknowledge",
)  # fmt: skip
OTHERS = {
    # of administrators
    *(E.TRANSACTIONAL_ID_NOT_FOUND, E.INVALID_REGULAR_EXPRESSION, E.GROUP_ID_NOT_FOUND, E.NON_EMPTY_GROUP),
    E.UNKNOWN_SERVER_ERROR,  # of a log that cannot be written
    E.UNSUPPORTED_VERSION,  # a version without the requested field
    E.TRANSACTION_COORDINATOR_FENCED,  # between brokers
    E.STREAMS_INVALID_TOPOLOGY,  # of streams groups, which have no timeline yet
}


def codes(source: str, calls: set[str]) -> Iterator[ErrorCode]:
    """The codes in the first argument of such calls."""
    for call in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name in calls and call.args:
            for node in ast.walk(call.args[0]):
                if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") in ("ErrorCode", "E"):
                    yield ErrorCode[node.attr]


def test_every_refusal_in_the_code_is_in_a_walk_of_whys() -> None:
    """What machines and partitions raise is tried in test_why.py, test_group_why.py or test_producers.py."""
    raised: set[ErrorCode] = set()
    for place, calls in RAISED.items():
        path = ROOT / place
        for file in path.rglob("*.py") if path.is_dir() else [path]:
            raised |= set(codes(file.read_text(encoding="utf-8"), calls))
    tried = {code for _, code, *_ in test_explain_transaction.REFUSALS} | {
        code for _, code in test_explain_group.REFUSALS
    }
    tried |= {code for _, code, _ in test_producers.REFUSALS}
    assert len(raised) > len(OTHERS)
    assert raised - tried - OTHERS == set()
    assert OTHERS - raised == set()


def test_each_error_of_a_group_is_explained() -> None:
    """All that their coordinators and handlers refuse with; the documentation lists the plain ones."""
    raised: set[ErrorCode] = set()
    for place in ("broker/coordination/group", "broker/request/groups.py", "broker/request/share_groups.py"):
        for file in (ROOT / place).rglob("*.py") if (ROOT / place).is_dir() else [ROOT / place]:
            raised |= set(codes(file.read_text(encoding="utf-8"), {"KafkaError", "Refusal"}))
    for name in GROUP_HANDLERS:
        file = ROOT / "broker" / "handlers" / f"{name}.py"
        raised |= set(codes(file.read_text(encoding="utf-8"), {"KafkaError", "Refusal"}))
    assert len(raised) > 15
    assert raised - EXPLAINED.keys() - MEANINGS.keys() == {E.UNKNOWN_SERVER_ERROR}
    listed = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    assert [code for code, text in MEANINGS.items() if f"| {code.name} | {text} |" not in listed] == []


def test_a_refusal_without_a_why_would_be_seen() -> None:
    """The check finds a refusal without a reason in any form of code."""
    source = "raise Refusal(ErrorCode.FENCED_STATE_EPOCH if a else E.STALE_MEMBER_EPOCH, 'rule')"
    assert set(codes(source, {"Refusal"})) == {E.FENCED_STATE_EPOCH, E.STALE_MEMBER_EPOCH}


@pytest.mark.parametrize(
    "call", ["asyncio.sleep", "anyio.sleep", "loop.call_at", "loop.call_later", "asyncio.wait_for", "anyio.fail_after"]
)
def test_a_timer_of_the_machine_would_be_seen(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check finds a timer of the machine in any function."""
    monkeypatch.setattr(test_clock, "ROOT", tmp_path)
    file = tmp_path / "planted.py"
    file.write_text(f"async def f():\n    await {call}(1)\n", encoding="utf-8")
    assert [timer.partition(" ")[0] for timer in test_clock.timers(file)] == ["planted.py:2"]


def test_a_timer_without_a_proof_would_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the clock, of a coordinator, of a waiter."""
    monkeypatch.setattr(test_timers, "ROOT", tmp_path)
    file = tmp_path / "broker" / "planted.py"
    file.parent.mkdir()
    file.write_text(
        "class A:\n    async def f(self):\n        clock.call_at(1, g)\n        SetTimer('k', 1)\n"
        "        await waiter.wait(clock, 1)\n",
        encoding="utf-8",
    )
    assert list(test_timers.calls(file)) == ["planted.py A.f"] * 3


def test_a_fault_that_an_api_does_not_meet_would_be_seen(broker_with: BrokerWith) -> None:
    """The walk over the APIs counts the hits of each."""
    walk = Walk(broker_with(topics=["t:1"]), next(api for api in APIS if api.key.title == "Metadata"))
    with pytest.raises(AssertionError):
        walk.answer({"error": "UNKNOWN_TOPIC_OR_PARTITION"}, topic="another")
