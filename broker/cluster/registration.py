"""Registration of brokers and of the controller in the metadata."""

import os
from collections.abc import Sequence
from functools import partial
from uuid import UUID

from broker.access.quotas import BrokerQuotas
from broker.cluster.base import ClusterBase
from broker.cluster.data_directories import note_owner
from broker.cluster.emulation import supported_features
from broker.coordination.metadata.brokers import Registration
from broker.coordination.metadata.effects import MetadataOutcome
from broker.coordination.metadata.features import CORDONED_LEVEL, DIRECTORIES_LEVEL, METADATA_VERSION
from broker.coordination.metadata.image import INTERNAL_TOPICS, BrokerListener
from broker.coordination.metadata.machine import MetadataMachine
from broker.request.node import Node


def join(cluster: ClusterBase, node: Node, *, same_life: bool = False) -> None:
    """Register a broker that is up and unfence it: :func:`register`, then :func:`unfence`."""
    register(cluster, node, same_life=same_life)
    unfence(cluster, node)


def register(cluster: ClusterBase, node: Node, *, same_life: bool = False) -> None:
    """Register a broker that is up; it stays fenced and leads nothing yet.

    ``same_life``: keep the registered incarnation, as after a restore: the broker leads what it led.
    """
    machine = cluster.metadata.machine
    topics = cluster.image.topics
    node.internal_counts = {name: len(topics[name].partitions) for name in INTERNAL_TOPICS if name in topics}
    registration = cluster.image.brokers.get(node.id)
    node.incarnation_id = registration.incarnation_id if same_life and registration is not None else cluster.new_uuid()
    note_owner(cluster, node)
    who = Registration(
        node.id,
        node.incarnation_id,
        {
            name: BrokerListener(endpoint.host_for_clients, endpoint.port_for_clients(port), endpoint.protocol)
            for name, (endpoint, port) in node.bound.items()
        },
        directories=_directories(node),
        rack=node.rack,
        features=supported_features(cluster.release),
        clean=all(log_dir.was_clean for log_dir in node.log_dirs),
    )
    cluster.metadata.submit(lambda _now_ms: machine.register_broker(who))
    node.epoch = cluster.image.brokers[node.id].epoch
    report(cluster, node)


def report(cluster: ClusterBase, node: Node) -> None:
    """Report a broker's cordoned log directories to the controller, as its heartbeats do (KIP-1066)."""
    machine, cordoned = cluster.metadata.machine, node.settings.list("cordoned.log.dirs")
    ids = [
        log_dir.directory_id
        for path, log_dir in zip(node.log_dir_paths, node.log_dirs, strict=True)
        if log_dir.directory_id is not None and ("*" in cordoned or path in map(os.path.abspath, cordoned))
    ]
    cluster.metadata.submit(lambda _now_ms: machine.broker_reported(node.id, cordoned=ids))


def _directories(node: Node) -> tuple[UUID, ...]:
    """Return the ids of the log directories that a broker registers: those that are not offline."""
    return tuple(each.directory_id for each in node.log_dirs if each.directory_id is not None and not each.is_offline)


def unfence(cluster: ClusterBase, node: Node) -> None:
    """Unfence a registered broker, so that it can lead."""
    machine = cluster.metadata.machine
    cluster.metadata.submit(lambda _now_ms: machine.unfence_broker(node.id))
    node.meters = BrokerQuotas(node.settings)  # quotas of a restarted broker have no samples yet
    follow_quotas(cluster, node)


def register_controller(cluster: ClusterBase, controller_id: int, *, same_life: bool = False) -> None:
    """Register a controller's process; metadata before 3.7 cannot record it (``ControllerRegistrationManager``).

    ``same_life``: keep the registered incarnation, as after a restore.
    """
    quorum, controller = cluster.quorum, cluster.quorum.controllers[controller_id]
    registration = cluster.image.controllers.get(controller_id)
    if same_life and registration is not None:
        controller.incarnation_id = registration.incarnation_id
    protocol = cluster.options.controllers[0].protocol if quorum.listens else "PLAINTEXT"
    who = Registration(
        controller_id,
        controller.incarnation_id,
        {quorum.listener: BrokerListener(*controller.address, protocol)},
        features=supported_features(cluster.release),
    )
    cluster.metadata.submit(lambda _now_ms: cluster.metadata.machine.register_controller(who))


def _amended(machine: MetadataMachine, broker_id: int, directories: Sequence[UUID], _now_ms: int) -> MetadataOutcome:
    return machine.amend_broker(broker_id, directories)


def upgraded(cluster: ClusterBase, before: int) -> None:
    """Register what the new ``metadata.version`` can record; ``before`` is the previous level."""
    for controller_id in cluster.quorum.controllers:
        register_controller(cluster, controller_id)
    machine = cluster.metadata.machine
    level = cluster.image.features.get(METADATA_VERSION, 0)
    for node in cluster.nodes.values():
        if not node.up or node.id not in cluster.image.brokers:
            continue
        if before < DIRECTORIES_LEVEL <= level and (directories := _directories(node)):
            cluster.metadata.submit(partial(_amended, machine, node.id, directories))
        if before < CORDONED_LEVEL <= level:
            report(cluster, node)


def fence_the_absent(cluster: ClusterBase) -> None:
    """Fence brokers that only the metadata has: the directory is from a cluster with more brokers."""
    machine = cluster.metadata.machine
    for broker_id in [absent_id for absent_id in cluster.image.brokers if absent_id not in cluster.nodes]:
        cluster.metadata.submit(lambda _now_ms, absent=broker_id: machine.fence_broker(absent))  # type: ignore[misc]


def follow_quotas(cluster: ClusterBase, node: Node) -> None:
    """Apply the client quotas in the metadata at a broker."""
    quotas = cluster.image.quotas
    node.meters.follow(quotas)
    charged = node.meters if quotas or node.meters.has_callback else None
    if charged is not node.quotas:
        node.quotas = charged
        cluster.build_handlers(node)
