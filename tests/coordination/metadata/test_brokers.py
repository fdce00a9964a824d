"""Brokers come and go: the very records that Apache Kafka 4.3.1 writes, and leader epochs that follow (core B.2)."""

from dataclasses import replace
from uuid import UUID

import pytest

from broker.coordination.metadata.brokers import Registration
from broker.coordination.metadata.effects import BrokerChanged
from broker.coordination.metadata.features import SUPPORTED
from broker.coordination.metadata.image import BrokerListener
from broker.coordination.metadata.snapshot import records_of
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.metadata import (
    BrokerRegistrationChangeRecord,
    Endpoint,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    SupportedFeature,
    UnregisterBrokerRecord,
)
from tests.coordination.metadata.harness import TOKEN, Bench, answer, changes, directory

NO_ELR = {"eligible.leader.replicas.version": 0}
T = UUID(int=1000)


def test_a_registration_is_fenced_and_its_epoch_is_its_offset() -> None:
    """All that clients and other brokers need to know of it."""
    bench = Bench(0)
    listeners = {"PLAINTEXT": BrokerListener("a", 1), "SECURE": BrokerListener("b", 2, "SASL_SSL")}
    who = Registration(7, UUID(int=5), listeners, [directory(7)], "rack")
    outcome = bench.machine.register_broker(who, TOKEN)
    end = len(bench.log)
    assert outcome.records == (
        RegisterBrokerRecord(
            broker_id=7,
            incarnation_id=UUID(int=5),
            broker_epoch=end,
            end_points=(Endpoint("PLAINTEXT", "a", 1, 0), Endpoint("SECURE", "b", 2, 3)),
            features=tuple(SupportedFeature(name, low, high) for name, (low, high) in SUPPORTED.items()),
            rack="rack",
            fenced=True,
            log_dirs=(directory(7),),
        ),
    )
    assert (answer(outcome), changes(outcome)) == (end, [BrokerChanged(7)])
    bench.do(outcome)
    broker = bench.image.brokers[7]
    assert (broker.listeners, broker.rack, broker.directories, broker.epoch) == (
        listeners,
        "rack",
        (directory(7),),
        end,
    )
    assert (bench.image.alive(7), bench.image.listener(7, "PLAINTEXT")) == (False, None)
    bench.do(bench.machine.unfence_broker(7))
    assert (bench.image.alive(7), bench.image.listener(7, "SECURE")) == (True, BrokerListener("b", 2, "SASL_SSL"))


def test_a_restart_without_elr_keeps_the_last_in_sync_replica_on_record() -> None:
    """As before KIP-966: only the leader changes, to none and back."""
    bench = Bench(levels=NO_ELR)
    bench.create("t", [1])
    _, lost, _ = bench.do(bench.machine.broker_stopped(1))
    assert lost == PartitionChangeRecord(0, T, leader=-1)
    assert bench.arrive(1)[-1] == PartitionChangeRecord(0, T, leader=1)
    assert bench.partition("t").leader_epoch == 2


def test_an_unclean_restart_makes_the_last_known_leader_recover() -> None:
    """What it had not flushed is lost, so it is not eligible; it leads again as the last known leader (KIP-966)."""
    bench = Bench()
    bench.create("t", [1])
    bench.do(bench.machine.fence_broker(1))
    lost, _ = bench.register(1, clean=False)
    assert lost == PartitionChangeRecord(0, T, eligible_leader_replicas=())
    _, elected = bench.do(bench.machine.unfence_broker(1))
    assert elected == PartitionChangeRecord(0, T, (1,), 1, leader_recovery_state=1, last_known_elr=())
    assert bench.partition("t").recovering
    (recovered,) = bench.do(bench.machine.change_isr("t", 0, [1]))
    assert recovered == PartitionChangeRecord(0, T, leader_recovery_state=0)


def test_a_broker_that_comes_back_unnoticed_is_settled_first() -> None:
    """Killed and started within the session timeout: its partitions lose it in the batch that registers it."""
    bench = Bench(2)
    bench.create("t", [1, 2])
    change, registered = bench.register(1)
    assert change == PartitionChangeRecord(0, T, (2,), 2)
    assert registered.broker_epoch == len(bench.log) - 2
    assert bench.do(bench.machine.unfence_broker(1)) == (
        BrokerRegistrationChangeRecord(1, registered.broker_epoch, fenced=-1),
    )


@pytest.mark.parametrize("how", ["fence_broker", "broker_stopped"])
def test_another_in_sync_replica_takes_over(how: str) -> None:
    """The first one in the order of the assignment; who does not lead only leaves the in-sync replicas."""
    bench = Bench(3)
    bench.create("t", [2, 3, 1], [1, 2, 3])
    bench.do(getattr(bench.machine, how)(2))
    led, held = bench.partition("t", 0), bench.partition("t", 1)
    assert (led.leader, led.leader_epoch, led.isr) == (3, 1, (3, 1))
    assert (held.leader, held.leader_epoch, held.isr) == (1, 0, (1, 3))
    assert not bench.image.alive(2)


def test_a_broker_whose_directory_failed_leads_nothing() -> None:
    """It lives on; what no other replica holds has no leader until it registers again (KIP-858, seen on 4.4.0)."""
    bench = Bench(3)
    bench.create("t", [2, 3], [1, 2])
    bench.create("alone", [2])
    bench.do(bench.machine.directory_failed(2, directory(2)))
    led, held, alone = bench.partition("t", 0), bench.partition("t", 1), bench.partition("alone", 0)
    assert [(each.leader, each.isr) for each in (led, held, alone)] == [(3, (3,)), (1, (1,)), (-1, ())]
    assert (alone.elr, alone.leader_epoch) == ((2,), 1)
    assert bench.image.alive(2)
    assert bench.machine.directory_failed(2, directory(2)).records == ()


def test_fencing_twice_or_unfencing_twice_is_nothing() -> None:
    """No record is written, so followers of the log see nothing."""
    bench = Bench()
    assert bench.machine.unfence_broker(1).effects == ()
    bench.do(bench.machine.fence_broker(1))
    assert [o.records for o in (bench.machine.fence_broker(1), bench.machine.broker_stopped(1))] == [(), ()]


def test_an_unregistered_broker_is_forgotten() -> None:
    """Its partitions lose it, though it stays eligible in case it comes back (seen on 4.4.0)."""
    bench = Bench()
    bench.create("t", [1])
    epoch = bench.image.brokers[1].epoch
    assert bench.do(bench.machine.unregister_broker(1)) == (
        PartitionChangeRecord(0, T, (), -1, eligible_leader_replicas=(1,), last_known_elr=(1,)),
        UnregisterBrokerRecord(1, epoch),
    )
    assert bench.image.brokers == {}


@pytest.mark.parametrize("how", ["unfence_broker", "fence_broker", "broker_stopped", "unregister_broker"])
def test_an_unknown_broker_is_refused(how: str) -> None:
    """BROKER_ID_NOT_REGISTERED with Kafka's sentence."""
    with pytest.raises(KafkaError) as refused:
        getattr(Bench().machine, how)(4711)
    assert refused.value.code is ErrorCode.BROKER_ID_NOT_REGISTERED
    assert refused.value.message == "Broker ID 4711 is not currently registered"


def test_a_controller_registers_once_in_each_life() -> None:
    """Where the metadata can keep it (3.7); it counts for features, and one that is gone can be forgotten (4.4)."""
    bench = Bench()
    who = Registration(1, UUID(int=7), {"CONTROLLER": BrokerListener("h", 9, "SASL_SSL")}, features={"x": (0, 2)})
    (record,) = bench.do(bench.machine.register_controller(who))
    assert (record.end_points, record.features) == (
        (Endpoint("CONTROLLER", "h", 9, 3),),
        (SupportedFeature("x", 0, 2),),
    )
    assert bench.do(bench.machine.register_controller(who)) == ()
    assert bench.do(bench.machine.register_controller(replace(who, incarnation_id=UUID(int=8))))
    bench.do(bench.machine.register_controller(replace(who, id=9)))
    assert bench.reloaded().image.controllers == bench.image.controllers
    for controller_id, code in ((1, ErrorCode.INVALID_REQUEST), (5, ErrorCode.CONTROLLER_ID_NOT_REGISTERED)):
        with pytest.raises(KafkaError) as refused:
            bench.machine.unregister_controller(controller_id, 1)
        assert refused.value.code is code
    bench.do(bench.machine.unregister_controller(9, 1))
    assert list(bench.reloaded().image.controllers) == [1]
    assert [each for each in records_of(bench.image) if isinstance(each, RegisterControllerRecord)]
    old = Bench(0, levels={"metadata.version": 14})
    assert old.do(old.machine.register_controller(who)) == ()
