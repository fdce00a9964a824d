"""Random schedules: the honest reference client passes, planted faults are found, shrunk, saved and played again."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from protocol import features
from tests.exam.reference.driver import InProcess, ReferenceDriver
from understudy.client import Cluster
from understudy.exam import codes
from understudy.exam.command import main
from understudy.exam.driver import CallError, Driver, LibraryError, NotStarted, Starved
from understudy.exam.random import faults, files, oracle, play, shrink
from understudy.exam.random.draw import CASTS, NEEDS, drawn, needs_of
from understudy.exam.random.faults import FAULTS
from understudy.exam.random.history import History
from understudy.exam.random.runner import RandomRunner
from understudy.exam.random.schedule import FAULT, ROLES, Schedule, ScheduleError, Step, parse, read
from understudy.exam.random.steps import KILL, STEPS
from understudy.exam.verdicts import Result, Verdict

SCHEDULES = Path(__file__).parent / "schedules"
CAPABILITIES = frozenset(ReferenceDriver.capabilities)
HONEST_SEED = 20
"""It takes a second, and has transactions, an idempotent producer, and a member of a group."""
SENT: dict[str, object] = {"topic": "t", "idempotent": True}


@pytest.fixture(scope="module")
def random_cluster() -> Iterator[Cluster]:
    """A cluster with the settings of random schedules, which each play resets."""
    with RandomRunner(InProcess).opened() as cluster:
        yield cluster


def judged(cluster: Cluster, schedule: Schedule, *mutations: str, plays: int = 2) -> tuple[Result, RandomRunner]:
    """The result of a schedule with the reference client, or with a mutation of it."""
    runner = RandomRunner(lambda: InProcess(*mutations), plays=plays)
    return runner.judge(cluster, runner.scenario(schedule, f"random/{schedule.seed}"), CAPABILITIES), runner


def of_seed(seed: int) -> Schedule:
    """A seed's schedule for the reference client."""
    schedule = drawn(seed, CAPABILITIES)
    assert schedule is not None
    return schedule


def copying() -> Schedule:
    """Records are written and copied, without a fault."""
    clients = {
        "idempotent-1": {"role": "idempotent", "topic": "t"},
        "copier-1": {
            "role": "copier", "topic": "t", "output": "u", "transactional_id": "copier-1", "group": "copier",
            "protocol": "classic", "isolation": "read_committed",
        },
    }  # fmt: skip
    steps = [
        Step(0, "send", {"client": "idempotent-1", "partitions": [0, 0]}),
        Step(1, "flush", {"client": "idempotent-1"}),
        Step(2, "copy", {"client": "copier-1"}),
    ]
    return Schedule(0, clients, steps)


# --- plays -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [HONEST_SEED, 31])
def test_the_honest_client_passes(random_cluster: Cluster, seed: int) -> None:
    """The positive control: what a correct client does is no finding. In 31 a member commits that could not join."""
    result, runner = judged(random_cluster, of_seed(seed))
    assert (result.verdict, result.problem, runner.findings) == (Verdict.PASS, "", {})


def test_a_driver_that_does_not_start_is_no_finding(random_cluster: Cluster) -> None:
    """After its name is known, `hello` is late: the schedule is played once more, and then not exercised."""
    starts = count(1)

    class Late(InProcess):
        def hello(self) -> None:
            if next(starts) > 1:
                raise NotStarted("hello was not answered within 40 s")
            super().hello()

    runner = RandomRunner(Late, opened=lambda: nullcontext(random_cluster))
    (result,) = runner.run([runner.scenario(of_seed(HONEST_SEED), "random/20")]).results
    assert (result.verdict, next(starts)) == (Verdict.NOT_EXERCISED, 4)
    assert "hello was not answered" in result.problem


@pytest.mark.parametrize(("starved", "verdict", "starts"), [(2, Verdict.PASS, 3), (9, Verdict.NOT_EXERCISED, 3)])
def test_a_play_without_time_for_it_is_repeated(
    random_cluster: Cluster, starved: int, verdict: Verdict, starts: int
) -> None:
    """A call that does not return on a starved machine is no finding; three such plays prove nothing."""
    started = count(1)

    class Slow(InProcess):
        def __init__(self) -> None:
            super().__init__()
            self.is_slow = next(started) <= starved

        def call(self, command: str, **fields: Any) -> Mapping[str, Any]:
            if self.is_slow and command == "flush":
                raise Starved("flush was not answered within 14 s")
            return super().call(command, **fields)

    schedule = steps({"idempotent-1": {"role": "idempotent", "topic": "t"}}, SENT_WITH_KEY)
    runner = RandomRunner(Slow, plays=1)
    result = runner.judge(random_cluster, runner.scenario(schedule, "random/0"), CAPABILITIES)
    assert (result.verdict, next(started) - 1, runner.findings) == (verdict, starts, {})
    assert ("flush was not answered" in result.problem) is (verdict is not Verdict.PASS)


def test_a_planted_fault_is_found_saved_and_played_again(
    random_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits that are never sent: in each play; the file has what `scenario run` and the exam play."""
    monkeypatch.setattr(play, "PATIENCE_S", 0.1)  # copies that never come are not waited for
    monkeypatch.setattr(play, "LEAST_POLLS", 2)
    result, runner = judged(random_cluster, copying(), "commit-is-not-sent")
    assert result.verdict is Verdict.FAIL
    assert result.problem.startswith("in 2 of 2 plays: history-")
    assert "copier-1 copy" in result.evidence
    (path,) = files.save(str(tmp_path), "a library", runner.findings)
    assert Path(path).name == "a-library-0.json"
    document = json.loads(Path(path).read_text(encoding="utf-8"))
    assert any("EndTxn" in line or "Produce" in line for line in document["diagram"])
    assert read(path) == copying()
    assert judged(random_cluster, read(path))[0].verdict is Verdict.PASS


def sharing() -> Schedule:
    """Records are written and shared; the first ones open the group, which begins at the end of the log."""
    clients = {
        "idempotent-1": {"role": "idempotent", "topic": "t", "security": "tls"},
        "sharer-1": {"role": "sharer", "topic": "t", "group": "s", "protocol": "share"},
    }
    share = ("share", {"client": "sharer-1", "commit": True, "type": "accept"})
    send = ("send", {"client": "idempotent-1", "partitions": [0, 0, 0], "flush": True})
    reject = ("share", {**share[1], "type": "reject"})
    plan = [*[share] * 6, send, *[share] * 3, send, *[reject] * 3]
    steps = [Step(number, *each) for number, each in enumerate(plan)]
    return Schedule(0, clients, steps)


def creating() -> Schedule:
    """A topic is created twice."""
    steps = [
        Step(number, "create topic", {"client": "admin-1", "new_topic": "made-0", "partitions": number + 2})
        for number in range(2)
    ]
    return Schedule(0, {"admin-1": {"role": "admin", "topic": "t"}}, steps)


@pytest.mark.parametrize(
    ("schedule", "mutation", "check"),
    [
        (sharing(), "acknowledges-nothing", "share-not-acknowledged"),
        (sharing(), "releases-rejected", "share-not-acknowledged"),
        (sharing(), "delivers-nothing", "share-undelivered"),
        (creating(), "creates-nothing", "admin-not-created"),
        (creating(), "refusal-is-success", "admin-created-twice"),
    ],
)
def test_a_fault_of_a_share_consumer_or_an_administrator_is_found(
    random_cluster: Cluster, monkeypatch: pytest.MonkeyPatch, schedule: Schedule, mutation: str, check: str
) -> None:
    """Records that were reported as accepted or rejected come again, or none come; topics are not what was reported."""
    monkeypatch.setattr(play, "PATIENCE_S", 1.0)
    monkeypatch.setattr(play, "LEAST_POLLS", 2)
    assert RandomRunner(lambda: InProcess(mutation)).played(random_cluster, schedule).has(check)
    assert RandomRunner(InProcess).played(random_cluster, schedule).findings == []


def steps(clients: dict[str, dict[str, Any]], *plan: tuple[str, dict[str, Any]]) -> Schedule:
    """A schedule of these steps."""
    return Schedule(0, clients, [Step(number, *each) for number, each in enumerate(plan)])


def fault(**arguments: object) -> tuple[str, dict[str, Any]]:
    """A fault of requests."""
    verbs = [{"verb": "faults add", "arguments": arguments}]
    return FAULT, {"name": "x", "steps": verbs, "lasts_ms": 2_000}


def polled(client: str, times: int, **more: object) -> tuple[str, dict[str, Any]]:
    """A number of polls."""
    return "poll", {"client": client, "times": times, **more}


MEMBER = {"role": "member", "topic": "t", "group": "g", "protocol": "classic", "isolation": "read_committed"}
READER = {"reader-1": {"role": "reader", "topic": "t", "isolation": "read_committed"}}
TRANSACTIONAL = {"transactional-1": {"role": "transactional", "topic": "t", "transactional_id": "transactional-1"}}
TWO = {name: {**MEMBER, "topic": "many"} for name in ("member-1", "member-2")}
SENT_WITH_KEY = "send", {"client": "idempotent-1", "partitions": [0], "flush": True, "key": "k"}
EVICTED = {"verb": "groups evict", "arguments": {"group": "g", "member": 0}}
IDLE = "idle", {"client": "member-1", "ms": 400}
LEFT = "share and close", {"client": "sharer-1"}
AFTER_HEALING = {
    "send CreateTopics.timeout_ms 0": ("not-created-after-healing", creating()),
    'send OffsetCommit.topics.name ""': (
        "not-committed-after-healing", steps({"member-1": MEMBER}, polled("member-1", 3))
    ),
    "send ShareAcknowledge.topics.topic_id other": ("not-acknowledged-after-healing", sharing()),
    "send EndTxn.transactional_id other": (
        "not-written-after-healing", steps(TRANSACTIONAL, ("restart", {"client": "transactional-1", "close": True}))
    ),
}  # fmt: skip
"""A mutation -> what must work after all faults, and does not."""
BROKEN = {
    "take TxnOffsetCommit GROUP_AUTHORIZATION_FAILED as NONE": (
        "refusal-as-success",
        Schedule(
            0,
            copying().clients,
            [
                Step(0, *fault(api="TxnOffsetCommit", error="GROUP_AUTHORIZATION_FAILED")),
                *(Step(number, "copy", {"client": "copier-1"}) for number in range(1, 6)),
            ],
        ),
    ),
    "restarts-when-lost": (
        "history-poll-back",
        steps(READER, polled("reader-1", 2), fault(api="Fetch", disconnect="close"), polled("reader-1", 2)),
    ),
    "read OffsetFetch.groups.topics.name other": (
        "wire-resumed",
        steps(
            {"member-1": MEMBER},
            polled("member-1", 3),
            ("commit offsets", {"client": "member-1"}),
            ("restart", {"client": "member-1", "close": True}),
            polled("member-1", 2),
        ),
    ),
    "keeps-dead-member-id": (
        "history-undelivered",
        steps(
            {"member-1": MEMBER, "idempotent-1": {"role": "idempotent", "topic": "t"}},
            polled("member-1", 2),
            (FAULT, {"name": "x", "lasts_ms": 100, "steps": [EVICTED]}),
            polled("member-1", 2),
            SENT_WITH_KEY,
        ),
    ),
    "forgets-keys": (
        "history-key",
        steps({**READER, "idempotent-1": {"role": "idempotent", "topic": "t"}}, SENT_WITH_KEY, polled("reader-1", 3)),
    ),
    "keeps-revoked-records": (
        "history-revoked",
        steps(
            TWO,
            *[polled("member-1", 1, max_records=1)] * 3,
            *[polled("member-2", 1, max_records=1), IDLE, polled("member-1", 1, max_records=1)] * 2,
            *[polled("member-1", 1, max_records=1)] * 8,
        ),
    ),
    "accepts-the-rest-when-closed": (
        "share-taken",
        steps(
            {name: dict(each) for name, each in sharing().clients.items()},
            *[(each.kind, dict(each.fields)) for each in sharing().steps[:11]],
            LEFT,
        ),
    ),
}
"""A mutation -> what is found, and a schedule."""


@pytest.mark.parametrize("mutation", [*BROKEN, *AFTER_HEALING])
def test_a_broken_promise_is_found(random_cluster: Cluster, monkeypatch: pytest.MonkeyPatch, mutation: str) -> None:
    """A refusal that is reported as success, records that changed, went back, or were taken; what fails for ever."""
    monkeypatch.setattr(play, "PATIENCE_S", 1.0)
    monkeypatch.setattr(play, "LEAST_POLLS", 2)
    check, schedule = (BROKEN | AFTER_HEALING)[mutation]
    assert RandomRunner(lambda: InProcess(mutation)).played(random_cluster, schedule).has(check)
    assert RandomRunner(InProcess).played(random_cluster, schedule).findings == []


@pytest.mark.parametrize(("commits", "checks"), [(1, set()), (0, {"not-committed-after-healing"})])
def test_a_library_may_have_nothing_to_commit(
    random_cluster: Cluster, monkeypatch: pytest.MonkeyPatch, commits: int, checks: set[str]
) -> None:
    """As librdkafka, which then reports an error and sends nothing; it is a finding if nothing was committed before."""
    left = [commits]

    class Committed(InProcess):
        def call(self, command: str, **fields: Any) -> Mapping[str, Any]:
            if command == "commit_offsets":
                left[0] -= 1
                if left[0] < 0:
                    raise CallError(command, LibraryError("other", "_NO_OFFSET", "no offset stored"))
            return super().call(command, **fields)

    monkeypatch.setattr(play, "PATIENCE_S", 0.5)
    schedule = steps({"member-1": MEMBER}, polled("member-1", 5), ("commit offsets", {"client": "member-1"}))
    findings = RandomRunner(Committed).played(random_cluster, schedule).findings
    assert {each.check for each in findings} == checks


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "check"), [("aiokafka-stop", "driver-ended"), ("aiokafka-no-brokers", "history-undelivered")]
)
def test_a_kept_schedule_is_a_scripted_scenario(random_cluster: Cluster, name: str, check: str) -> None:
    """The findings of docs/inside/random-exam.md: with the library, and not with the honest client."""
    schedule = read(str(SCHEDULES / f"{name}.json"))
    runner = RandomRunner(lambda: Driver([sys.executable, "-m", "tests.exam.drivers.aio"], patience=0.5), plays=2)
    assert runner.played(random_cluster, schedule).has(check)
    assert judged(random_cluster, schedule)[0].verdict is Verdict.PASS


def test_the_faults_of_a_file_are_steps_of_a_scenario(random_cluster: Cluster) -> None:
    """Each kind that needs no member and no transaction; brokers that are killed start again."""
    seen = set()
    for seed in range(40):
        steps = files.steps_of(of_seed(seed))
        random_cluster.reset()
        assert random_cluster.scenario.run(steps) == len(steps)
        seen |= {step.get("about") for step in steps}
    assert len(seen) > len(FAULTS) * 0.7


# --- schedules -------------------------------------------------------------------------------------------------------


def test_a_seed_is_a_schedule() -> None:
    """Always the same, and of all that the tables have; a library gets only what it supports."""
    schedules = [of_seed(seed) for seed in range(400)]
    assert schedules[:20] == [of_seed(seed) for seed in range(20)]
    kinds = {step.kind for each in schedules for step in each.steps}
    assert kinds == {FAULT, KILL, *(line.name for line in STEPS)}
    named = {step.fields["name"] for each in schedules for step in each.steps if step.kind == FAULT}
    assert named == {line.name for line in FAULTS}
    assert {about["role"] for each in schedules for about in each.clients.values()} == ROLES.keys()
    assert {role for cast in CASTS for role in cast} == NEEDS.keys()
    few = [drawn(seed, {"producer", "consumer"}) for seed in range(50)]
    assert {about["role"] for each in few if each for about in each.clients.values()} == {"plain", "reader"}
    assert drawn(1, {"admin"}) is None


@pytest.mark.parametrize(
    ("option", "need", "value"),
    [
        ("auto_commit", "auto_commit", True), ("compression", "compression", "gzip"), ("security", "tls", "tls"),
        ("protocol", "consumer_protocol", "consumer"), ("isolation", "read_committed", "read_committed"),
        ("instance_id", "static_members", "member-1"),
    ],
)  # fmt: skip
def test_a_library_gets_no_option_that_it_does_not_declare(option: str, need: str, value: object) -> None:
    """Automatic commits and compression were drawn for all, and what a driver did with them was taken for findings."""

    def having(capabilities: frozenset[str]) -> list[Schedule]:
        schedules = [schedule for seed in range(300) if (schedule := drawn(seed, capabilities))]
        return [each for each in schedules if any(about.get(option) == value for about in each.used().values())]

    others = CAPABILITIES - {need, "transactions"}  # a copier reads what is committed
    assert all(need in needs_of(each) for each in having(others | {need}))
    assert having(others | {need}) != []
    assert having(others) == []


KNOWS = {
    ("Produce", "TRANSACTION_ABORTABLE"): features.produce_knows_abortable,
    ("InitProducerId", "PRODUCER_FENCED"): features.init_producer_id_knows_fencing,
    ("EndTxn", "PRODUCER_FENCED"): features.end_txn_knows_fencing,
    ("TxnOffsetCommit", "TRANSACTION_ABORTABLE"): features.txn_offset_commit_knows_abortable,
    ("TxnOffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS"): features.txn_offset_commit_knows_loading,
    ("Fetch", "OFFSET_NOT_AVAILABLE"): features.fetch_may_ask_any_replica,
    ("ListOffsets", "OFFSET_NOT_AVAILABLE"): features.list_offsets_knows_not_available,
}
"""API and code -> whether the broker answers with it in a version."""


def test_a_code_is_returned_only_in_versions_that_have_it() -> None:
    """The process of rust-rdkafka, which sends EndTxn 1, ended at a code that no broker answers in that version."""
    about = faults.About(sorted(faults.CODES), {"t": 1}, (), ("transactional-1",))
    refusing = [line for line in FAULTS if "refused" in line.name]
    drawn_versions = {
        (verb["arguments"]["api"], verb["arguments"].get("error")): verb["arguments"].get("versions")
        for seed in range(2_000)
        for line in refusing
        for verb in line.draw(Random(seed), about) or ()
    }
    assert {each: versions for each, versions in drawn_versions.items() if versions} == {
        each: [since, codes.NEWEST] for each, since in codes.SINCE.items() if each in drawn_versions
    }
    assert ("EndTxn", "TRANSACTION_ABORTABLE") in drawn_versions
    for each, knows in KNOWS.items():
        first = codes.SINCE[each]
        assert (knows(first), knows(first - 1)) == (True, False), each
    assert codes.BEFORE.keys() <= KNOWS.keys()


def test_a_schedule_is_read_back() -> None:
    """With lines for people: one for each client and step."""
    for seed in range(30):
        schedule = of_seed(seed)
        document = json.loads(json.dumps({"exam": schedule.as_json()}))
        again = parse(document, "it")
        assert (again.steps, again.clients) == (schedule.steps, schedule.used())
        assert len(schedule.lines()) == len(schedule.used()) + len(schedule.steps)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "has no schedule"),
        ('{"exam": {"seed": 1, "clients": {}, "play": [{}]}}', "is no schedule"),
        ('{"exam": {"seed": 1, "clients": {"a": {"role": "x"}}, "play": []}}', "is no schedule"),
        ('{"exam": {"seed": 1, "clients": {}, "play": [{"step": "send", "client": "a"}]}}', "is no schedule"),
    ],
)
def test_what_is_no_schedule_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """In one sentence that names the file."""
    file = tmp_path / "file.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ScheduleError, match=message):
        read(str(file))


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (("--seeds", "1-2"), "--seeds needs --random or --schedule"),
        (("--shrink",), "--shrink needs --random or --schedule"),
        (("--random", "--seeds", "2-1"), "--seeds needs A-B"),
        (("--random", "--only", "produce/*"), "--only is an option for scenarios"),
        (("--random", "--schedule", "x"), "use one of them"),
        (("--schedule", "/does/not/exist"), "cannot be read"),
    ],
)
def test_bad_arguments_get_one_sentence(capsys: pytest.CaptureFixture[str], argv: Sequence[str], sentence: str) -> None:
    """Bad arguments are refused in one sentence before anything is played."""
    with pytest.raises(SystemExit) as ended:
        main([*argv, "--", "x"])
    assert (ended.value.code, sentence in capsys.readouterr().err) == (2, True)


# --- shrinking -------------------------------------------------------------------------------------------------------


def shrink_to(needed: set[int], every: int, rate: float, limit_s: float = 1e9) -> tuple[set[int], int]:
    """Shrink a schedule in which some steps lead to a finding in every n-th play; the steps, and the plays."""
    clients = {"p": {"role": "plain", "topic": "t"}}
    schedule = Schedule(1, clients, [Step(at, "flush", {"client": "p"}) for at in range(20)])
    plays = 0

    def finds(part: Schedule) -> bool:
        nonlocal plays
        plays += 1
        return needed <= {each.number for each in part.steps} and plays % every == 0

    left = shrink.shrunk(schedule, rate, finds, clock_s=lambda: float(plays), limit_s=limit_s)
    return {each.number for each in left.steps}, plays


def test_a_stable_finding_is_shrunk_to_its_steps() -> None:
    """One play decides, if each play of the whole schedule led to the finding."""
    assert shrink_to({3, 11, 17}, every=1, rate=1.0)[0] == {3, 11, 17}


def test_a_finding_that_occurs_sometimes_is_shrunk_by_its_rate() -> None:
    """A part is played until the finding would have occurred: with one play it would seem to need all steps."""
    assert [shrink.plays_of(rate) for rate in (1.0, 0.8, 0.6, 0.4, 0.2)] == [1, 2, 3, 5, 8]
    assert shrink_to({3, 11}, every=3, rate=0.4)[0] == {3, 11}
    assert len(shrink_to({3, 11}, every=3, rate=1.0)[0]) > 2


def test_shrinking_ends_in_time() -> None:
    """With the steps that are left by then."""
    left, plays = shrink_to({3, 11}, every=1, rate=1.0, limit_s=5)
    assert {3, 11} < left
    assert plays <= 7


# --- the oracle ------------------------------------------------------------------------------------------------------


def found_in(history: History, *values: str) -> set[str]:
    """The checks that fail, if the log has these records."""
    log = {("t", 0): list(enumerate(values))}
    return {each.check for each in oracle.findings(oracle.completed(history, log))}


def sent(*outcomes: int | None, transaction: str | None = None) -> History:
    """A history: records r0, r1, ... with their offsets; -1: acknowledged without one, None: no outcome."""
    history = History()
    for at, offset in enumerate(outcomes):
        history.write("sent", "p", id=f"r{at}", transaction=transaction, **SENT)
        if offset is not None:
            history.write("acknowledged", "p", id=f"r{at}", topic="t", partition=0, offset=offset)
    return history


def test_the_log_shows_what_was_lost_doubled_or_reordered() -> None:
    """Also at its end, and if the library reports no offsets."""
    assert found_in(sent(0, 1, None), "r0", "r1") == set()
    assert found_in(sent(0, 1, None), "r0", "r1", "r2") == set()
    assert found_in(sent(0, 1), "r0") == {"history-lost"}
    assert found_in(sent(-1, -1), "r0") == {"history-lost"}
    assert found_in(sent(0, 1), "r0", "r1", "r1") == {"history-duplicate"}
    assert found_in(sent(-1, -1), "r1", "r0") == {"history-reordered"}
    assert found_in(sent(0), "r0", "r9") == {"history-unknown"}


def test_the_log_decides_on_transactions_of_unknown_outcome() -> None:
    """All of it, or nothing; what was reported as aborted must not be visible."""
    assert found_in(sent(0, 1, transaction="x"), "r0", "r1") == set()
    assert found_in(sent(0, 1, transaction="x")) == set()
    assert found_in(sent(0, 1, transaction="x"), "r0") == {"history-lost"}
    aborted = sent(0, 1, transaction="x")
    aborted.write("ended", "p", transaction="x", outcome="aborted")
    assert found_in(aborted) == set()
    assert found_in(aborted, "r0", "r1") == {"history-dirty-read"}


def test_what_the_player_saw_itself_comes_first() -> None:
    """A driver that ended, a producer that reports no outcome."""
    history = sent(0)
    history.problems.append(("driver-ended", "p send: it ended"))
    history.write("hung", "p", call="close")
    assert [each.check for each in oracle.findings(oracle.completed(history, {("t", 0): [(0, "r0")]}))] == [
        "driver-ended", "history-hang",
    ]  # fmt: skip
