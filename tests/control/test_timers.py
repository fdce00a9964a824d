"""Every timer of the house, and the test that pushes the clock to it: a new one without a proof fails here.

That none of them hangs on the machine's time instead is in `test_clock.py`.
"""

import ast
import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from storage.files.memory import MemoryFiles
from tests.conftest import BrokerWith
from tests.scenarios import sasl
from tests.scenarios.limits import limit
from tests.scenarios.transactions.harness import running
from tests.storage.logs import records_batch

ROOT = Path(__file__).resolve().parents[2]
CHECKPOINT_MS = 5_000
"""replica.high.watermark.checkpoint.interval.ms."""

_GROUPS, _TRANSACTIONS = "coordination/group", "coordination/transaction"
TIMERS = {
    "request/authentication.py _finish": "control/test_timers.py::test_who_is_refused_waits_for_it",
    "server/admission.py Admission._is_due": (
        "broker/server/test_admission.py::test_connections_are_accepted_at_the_brokers_rate"
    ),
    "server/connections.py Connections.join": "control/test_timers.py::test_one_connection_too_many_is_closed_in_time",
    "server/connections.py IdleTimeouts._arm": (
        "broker/server/test_server.py::test_idle_connections_are_closed_by_the_clock"
    ),
    f"{_GROUPS}/modern/timers.py MemberTimers.arm": ("scenarios/groups/test_consumers.py::test_KIP848_18_silence"),
    f"{_GROUPS}/modern/timers.py MemberTimers.limit_revocation": (
        "scenarios/groups/test_consumers.py::test_KIP848_15_who_gives_nothing_up_is_out"
    ),
    f"{_GROUPS}/outcome_builder.py OutcomeBuilder.timer": (
        "control/test_groups.py::test_a_session_ends_when_the_clock_is_pushed_past_it"
    ),
    f"{_GROUPS}/outcome_builder.py OutcomeBuilder.round": (
        "scenarios/groups/test_offsets.py::test_OFF_21_offsets_grow_old"
    ),
    f"{_GROUPS}/offsets/expiry.py Expiry.arm": "scenarios/groups/test_offsets.py::test_OFF_21_offsets_grow_old",
    f"{_GROUPS}/classic/rebalance.py Rebalances._arm": (
        "scenarios/groups/test_classic.py::test_CLS_25_a_silent_member_is_out"
    ),
    f"{_GROUPS}/classic/rebalance.py Rebalances._arm_first": (
        "scenarios/groups/test_classic.py::test_CLS_10_members_are_collected_for_a_while"
    ),
    f"{_GROUPS}/classic/rebalance.py Rebalances._arm_join": (
        "scenarios/groups/test_classic.py::test_CLS_19_who_does_not_come_back_is_out"
    ),
    f"{_GROUPS}/classic/rebalance.py Rebalances.complete": (
        "scenarios/groups/test_classic.py::test_CLS_23_CLS_24_who_does_not_sync_is_out"
    ),
    f"{_GROUPS}/modern/streams/heartbeat.py Heartbeats._start_delay": (
        "scenarios/groups/test_streams.py::test_STR_02_an_empty_group_waits_for_further_members"
    ),
    "coordination/share_state/machine.py Rounds.watch": (
        "coordination/share_state/test_share_state.py::test_idle_states_are_repeated_once"
    ),
    "cluster/controllers.py ControllerLifecycle._follow": (
        "control/test_controllers.py::test_a_request_waits_for_the_next_controller"
    ),
    "request/forwarding.py _wait": "control/test_controllers.py::test_without_a_majority_requests_time_out",
    "handlers/delete_records.py _wait_for_replicas": (
        "handlers/test_delete_records.py::test_a_follower_that_goes_on_too_late_is_a_timeout"
    ),
    "handlers/share_fetch.py _idle": "scenarios/groups/test_share_fetch.py::test_SHR_44_the_most_sessions",
    "request/share_state.py SharePersister._ask": (
        "scenarios/groups/test_share_groups.py::test_a_share_coordinator_that_moves"
    ),
    "partitions/share_partition/dead_letters.py DeadLetters._back_off": (
        "broker/partitions/share_partition/test_dead_letters.py::test_a_queue_without_a_leader_is_asked_for_again_after_a_pause"
    ),
    "partitions/share_partition/dead_letters.py DeadLetters._replicated": (
        "broker/partitions/share_partition/test_dead_letters.py::test_a_dead_record_waits_for_the_queues_replicas"
    ),
    "partitions/share_partition/fetch.py ShareFetch._wait": (
        "scenarios/groups/test_share_fetch.py::test_SHR_42_a_group_without_state"
    ),
    "partitions/share_partition/partition.py SharePartition.follow_locks": (
        "scenarios/groups/test_share_fetch.py::test_SHR_16_the_lock_ends"
    ),
    "request/connection.py Connection.wait_throttled": (
        "broker/server/test_server.py::test_an_answer_may_be_followed_by_a_pause"
    ),
    "coordination/runtime.py Runtime._effect": (
        "control/test_transactions.py::test_a_timeout_of_fifteen_minutes_comes_now"
    ),
    f"{_TRANSACTIONS}/completion.py Completions._later": (
        "broker/partitions/transactions/test_markers.py::test_MRK_10_a_silent_leader_is_waited_for"
    ),
    f"{_TRANSACTIONS}/machine.py TransactionMachine.scan_timeouts": (
        "scenarios/transactions/test_end.py::test_TMO_01_02_an_older_producer_does_not"
    ),
    f"{_TRANSACTIONS}/completion.py Scan.watch": (
        "scenarios/transactions/test_end.py::test_EXP_01_02_an_unused_id_expires"
    ),
    "partitions/fetch/read.py Reader.wait": "control/test_clock.py::test_a_long_poll_ends_when_its_time_has_come",
    "cluster/metadata_publisher.py MetadataPublisher.load_coordinator": (
        "control/test_groups.py::test_a_coordinator_takes_its_time_to_load"
    ),
    "cluster/lifecycle.py Lifecycle._fence_later": (
        "broker/cluster/test_lifecycle.py::test_a_killed_broker_is_noticed_after_its_session"
    ),
    "cluster/metadata_publisher.py MetadataPublisher._assign_later": (
        "broker/cluster/test_log_dirs.py::test_the_controller_learns_the_directories_of_new_replicas"
    ),
    "partitions/log_dir_moves.py LogDirMoves._continue_at": (
        "broker/cluster/test_log_dirs.py::test_a_move_is_made_in_pieces_as_its_rate_permits"
    ),
    "cluster/startup.py directory_failed": (
        "control/test_timers.py::test_a_directory_that_fails_is_handed_over_by_the_clock"
    ),
    "coordination/runtime.py DeferredEffects._limit": (
        "control/test_slow_replicas.py::test_a_commit_that_waits_too_long_is_to_be_repeated"
    ),
    "partitions/transactions/markers.py _Replication.wait": (
        "handlers/test_transaction_admin.py::test_LSO_03_the_answer_waits_for_replication"
    ),
    "replication/metadata_snapshots.py MetadataSnapshots._plan": (
        "broker/replication/test_metadata_log.py::test_a_snapshot_is_written_after_so_long"
    ),
    "steering/faults/rules.py Fault.pause": (
        "control/test_faults_of_all_apis.py::test_a_delay_ends_by_the_clusters_clock"
    ),
    "partitions/produce.py await_replication": (
        "control/test_topics.py::test_a_follower_in_sync_that_is_held_holds_the_high_watermark"
    ),
    "request/refusal_log.py RefusalLog.count_reset": (
        "broker/request/test_refusal_log.py::test_connections_that_were_reset_are_one_line_a_minute"
    ),
    "request/refusal_log.py RefusalLog.log_refusal": "broker/request/test_refusal_log.py::test_a_flood_is_summed_up",
    "server/listening.py Listening.wait_for_resumption": (
        "scenarios/transactions/test_verification.py::test_a_coordinator_that_hangs_for_too_long"
    ),
    "server/client_connection.py ClientConnection._send": (
        "control/test_faults.py::test_a_drip_waits_while_the_clock_is_frozen"
    ),
    "cluster/maintenance.py Maintenance._clean_on": (
        "broker/cluster/test_maintenance.py::test_the_cleaner_lets_others_run_in_between"
    ),
    "cluster/maintenance.py Maintenance._every": "control/test_clock.py::test_a_week_of_retention_passes_now",
    "cluster/maintenance.py Maintenance._every.play": "control/test_timers.py::test_every_round_comes_again",
    "cluster/maintenance.py Maintenance.flush_at": (
        "broker/cluster/test_maintenance.py::test_what_waits_for_flush_ms_is_synced_in_time"
    ),
    "partitions/transactions/verification.py verify": (
        "broker/partitions/transactions/test_verification.py::test_VER_05_a_newer_client_waits_a_moment_at_the_broker"
    ),
}
"""Where a timer is armed -> the test in which a pushed clock brings it."""


def calls(path: Path) -> Iterator[str]:
    """Where timers are armed: the module, and the function in it."""

    def walk(node: ast.AST, names: tuple[str, ...]) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            if isinstance(child, ast.Call) and arms(child):
                yield f"{path.relative_to(ROOT / 'broker')} {'.'.join(names)}"
            yield from walk(child, (*names, child.name) if named else names)  # type: ignore[attr-defined]

    yield from walk(ast.parse(path.read_text(encoding="utf-8")), ())


def arms(call: ast.Call) -> bool:
    """A timer of the clock, one that a coordinator asks for, or a wait with a deadline."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    owner = getattr(getattr(call.func, "value", None), "id", "")
    waits = name == "wait" and len(call.args) == 2
    return (
        waits
        or name in {"call_at", "SetTimer", "wait_until"}
        or (owner, name) in {("builder", "timer"), ("builder", "round")}
    )


@pytest.mark.slow
def test_every_timer_has_a_test_that_pushes_the_clock_to_it() -> None:
    """Walks all calls that arm one: each is in the table, and the table has no others."""
    armed = {where for path in (ROOT / "broker").rglob("*.py") if path.name != "clock.py" for where in calls(path)}
    assert armed == set(TIMERS)


@pytest.mark.parametrize("proof", sorted(set(TIMERS.values())))
def test_the_proof_is_there_and_pushes_the_clock(proof: str) -> None:
    """By itself, or by a function of its module."""
    name, _, wanted = proof.partition("::")
    tree = ast.parse((ROOT / "tests" / name).read_text(encoding="utf-8"))
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert wanted in functions
    assert pushes(functions[wanted], functions, set())


def test_who_is_refused_waits_for_it(broker_with: BrokerWith) -> None:
    """connection.failed.authentication.delay.ms: 100 of the cluster's clock."""
    guarded = sasl.guarded(broker_with)
    wire = guarded.stranger()
    sasl.handshake(wire, "PLAIN")
    guarded.server.freeze()
    wire.send(ApiKey.SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(b"\0alice\0wrong"))
    guarded.server.advance(99)
    assert not wire.has_answer()
    guarded.server.advance(1)
    assert wire.answer().error_code is ErrorCode.SASL_AUTHENTICATION_FAILED
    wire.check_closed()


def test_one_connection_too_many_is_closed_in_time(broker_with: BrokerWith) -> None:
    """A quota of connections (KIP-612): one above it is not served, and closed when its wait is over."""
    server = broker_with(settings={"quota.window.num": 11})
    admin = server.wire()
    server.freeze()
    limit(admin, {"ip": "127.0.0.1"}, connection_creation_rate=1)
    wires = [server.wire() for _ in range(40)]
    wires[-1].send(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
    server.advance(0)
    assert not wires[-1].has_answer()
    for _ in range(100):  # a connection that has only just been taken in waits from then on
        server.advance(1_000)
        if wires[-1].has_answer():
            break
    wires[-1].check_closed()
    server.advance(60_000)
    assert server.wire().call(ApiKey.API_VERSIONS, 0, ApiVersionsRequest()).api_keys


def pushes(node: ast.AST, functions: dict[str, Any], seen: set[str]) -> bool:
    """Whether a function, or one that it calls, moves time."""
    for call in (inner for inner in ast.walk(node) if isinstance(inner, ast.Call)):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name in {"advance", "pass_time", "push"}:
            return True
        if name in functions and name not in seen and pushes(functions[name], functions, seen | {name}):
            return True
    return False


# --- those that had no test of their own -----------------------------------------------------------------------------


async def test_a_directory_that_fails_is_handed_over_by_the_clock() -> None:
    """Not at once, since the failure was met inside another operation; but at this very time of the clock."""
    async with running({"default.replication.factor": 2}, brokers=2, topics={"t": 4}) as stage:
        partitions = [partition for partition in stage.cluster.partitions.values() if partition.topic == "t"]
        broken = next(partition for partition in partitions if partition.state.leader == 2)
        (files,) = stage.cluster.nodes[2].files
        assert isinstance(files, MemoryFiles)
        files.fail_next_write(OSError(errno.EIO, "Input/output error"))
        with pytest.raises(KafkaError):
            broken.append(2, records_batch(b"v"), stage.clock.now_ms())
        assert broken.state.leader == 2
        await stage.pass_time(0)
        assert broken.state.leader == 1


async def test_every_round_comes_again(tmp_path: Path) -> None:
    """The checkpoints, as often as their interval passes; and all rounds are armed again after they ran."""
    async with running(topics={"t": 1}, data_dir=tmp_path) as stage:
        file = tmp_path / "replication-offset-checkpoint"
        for count in (1, 2):
            stage.cluster.partitions["t", 0].append(1, records_batch(b"v"), stage.clock.now_ms())
            await stage.pass_time(CHECKPOINT_MS)
            assert f"t 0 {count}" in file.read_text(encoding="ascii").splitlines()
        timers = dict(stage.cluster.maintenance._timers)
        assert {"_retention_round", "_begin_cleaning", "expire_producers", "_checkpoint_round"} <= set(timers)
        await stage.pass_time(3_600_000)
        assert all(timer.at_ms > stage.clock.now_ms() for timer in stage.cluster.maintenance._timers.values())
        assert all(timer.call is None for timer in timers.values())
