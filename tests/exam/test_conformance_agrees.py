"""Rules that the exam checks on the wire, and `understudy conformance` in a journal of any size: both find a fault.

The exam has to decide in milliseconds after each of some hundred scenarios, and knows what the application chose;
the invariants are queries, which take seconds to start and read millions of requests of anybody's clients.
"""

from collections.abc import Iterator

import pytest

from tests.exam.reference.driver import InProcess
from understudy.client import Cluster, start
from understudy.exam.runner import OPTIONS, Runner
from understudy.exam.scenario import SCENARIOS
from understudy.exam.verdicts import Verdict

pytestmark = pytest.mark.nightly
TIMEOUT_MS = 3_000
SAME = (
    ("splits-after-error", "idempotence/not-leader", "i04-resend"),
    ("keeps-old-epoch", "transactions/commit", "i17-granted-ignored"),
    ("send RecordBatch.producer_epoch -1", "idempotence/plain", "i08-producer-fields"),
    ('send TxnOffsetCommit.member_id ""', "transactions/exactly-once-copy", "i19-anonymous-offsets"),
    ("send Heartbeat.generation_id other", "groups/plain", "i24-generation"),
    ("read ConsumerGroupHeartbeat.member_epoch other", "consumer-protocol/plain", "i37-member-epoch"),
    ("read ShareGroupHeartbeat.member_epoch other", "share/plain", "i37-member-epoch"),
)
"""A fault, a scenario in which it breaks a rule of the wire, and the invariant that is the same rule."""


@pytest.fixture(scope="module")
def exam_cluster() -> Iterator[Cluster]:
    """The exam's cluster, which each play resets."""
    with start(**OPTIONS) as cluster:
        yield cluster


@pytest.mark.parametrize(("mutation", "name", "invariant"), SAME)
def test_a_rule_of_the_wire_is_an_invariant(exam_cluster: Cluster, mutation: str, name: str, invariant: str) -> None:
    """The request is found by the exam, and by the report on the same journal; neither blames the honest client."""
    verdict, problem, _ = Runner(lambda: InProcess(mutation), timeout_ms=TIMEOUT_MS).play(exam_cluster, SCENARIOS[name])
    assert (verdict in {Verdict.FAIL, Verdict.NON_STRICT}, problem.startswith("request ")) == (True, True), problem
    assert invariant in {each.invariant for each in exam_cluster.conformance().broken}
    assert Runner(InProcess).play(exam_cluster, SCENARIOS[name])[0] is Verdict.PASS
    assert invariant not in {each.invariant for each in exam_cluster.conformance().broken}
