"""Registration, fencing and shutdown of nodes, and the resulting changes of partitions."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any
from uuid import UUID

from broker.coordination.metadata.controller import Controller
from broker.coordination.metadata.features import (
    CONTROLLER_REGISTRATION_LEVEL,
    CONTROLLER_UNREGISTRATION_LEVEL,
    CORDONED_LEVEL,
    DIRECTORIES_LEVEL,
    METADATA_VERSION,
    SUPPORTED,
    Node,
)
from broker.coordination.metadata.image import Broker, BrokerListener, ClusterImage
from broker.coordination.metadata.replay import PROTOCOLS
from protocol.deferred import dataclass
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.metadata import (
    BROKER_FENCED,
    BROKER_UNFENCED,
    BrokerRegistrationChangeRecord,
    Endpoint,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    SupportedFeature,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
)


@dataclass(frozen=True, slots=True)
class Registration:
    """A node's registration. ``clean``: its last shutdown was clean, with all data on disk (KIP-966)."""

    id: int
    incarnation_id: UUID
    listeners: Mapping[str, BrokerListener]
    directories: Sequence[UUID] = ()
    rack: str | None = None
    features: Mapping[str, tuple[int, int]] = field(default_factory=lambda: SUPPORTED)
    clean: bool = True


def register(controller: Controller, who: Registration) -> list[Any]:
    """Register a broker, fenced; first remove an earlier incarnation from its partitions.

    The broker epoch is the base offset of the batch, as in Kafka.
    """
    records: list[Any] = []
    controller.without_directory.discard(who.id)
    before = controller.image.brokers.get(who.id)
    if before is not None and before.incarnation_id != who.incarnation_id:
        records += controller.without_broker(who.id, unclean=controller.elr and not who.clean)
    records.append(
        RegisterBrokerRecord(
            broker_id=who.id,
            incarnation_id=who.incarnation_id,
            broker_epoch=controller.next_offset(),
            end_points=_endpoints(who),
            features=_features(who),
            rack=who.rack,
            fenced=True,
            log_dirs=tuple(who.directories),
        )
    )
    return records


def amend(controller: Controller, broker_id: int, directories: Sequence[UUID]) -> list[Any]:
    """Register a running broker's log directories after a metadata upgrade (``BrokerRegistrationTracker``)."""
    broker = registered(controller, broker_id)
    who = Registration(broker.id, broker.incarnation_id, broker.listeners, features=broker.features)
    return [
        RegisterBrokerRecord(
            broker_id=broker.id,
            incarnation_id=broker.incarnation_id,
            broker_epoch=broker.epoch,
            end_points=_endpoints(who),
            features=_features(who),
            rack=broker.rack,
            fenced=broker.fenced,
            in_controlled_shutdown=broker.in_controlled_shutdown,
            log_dirs=tuple(directories),
        )
    ]


def _endpoints(who: Registration) -> tuple[Endpoint, ...]:
    return tuple(
        Endpoint(name, listener.host, listener.port, PROTOCOLS.index(listener.protocol))
        for name, listener in who.listeners.items()
    )


def _features(who: Registration) -> tuple[SupportedFeature, ...]:
    return tuple(SupportedFeature(name, low, high) for name, (low, high) in who.features.items())


def report(controller: Controller, broker_id: int, cordoned: Sequence[UUID]) -> list[Any]:
    """Handle a heartbeat, which reports the broker's cordoned log directories (KIP-1066)."""
    broker = registered(controller, broker_id)
    level = controller.image.features.get(METADATA_VERSION, 0)
    if level < CORDONED_LEVEL or (broker.cordoned is not None and set(broker.cordoned) == set(cordoned)):
        return []
    return [BrokerRegistrationChangeRecord(broker_id, broker.epoch, cordoned_log_dirs=tuple(cordoned))]


def unfence(controller: Controller, broker_id: int) -> list[Any]:
    """Unfence a broker, and elect it for leaderless partitions that it may lead."""
    broker = registered(controller, broker_id)
    if not broker.fenced:
        return []

    def may_lead(replica: int) -> bool:
        return replica == broker_id or controller.image.active(replica)

    return [
        BrokerRegistrationChangeRecord(broker_id, broker.epoch, fenced=BROKER_UNFENCED),
        *controller.elect_leaderless(may_lead=may_lead),
    ]


def fence(controller: Controller, broker_id: int, *, unclean: bool = False) -> list[Any]:
    """Fence a broker without heartbeats; its partitions get other leaders, or none."""
    broker = registered(controller, broker_id)
    if broker.fenced:
        return []
    return [
        *controller.without_broker(broker_id, unclean=controller.elr and unclean),
        BrokerRegistrationChangeRecord(broker_id, broker.epoch, fenced=BROKER_FENCED),
    ]


def shut_down(controller: Controller, broker_id: int) -> list[Any]:
    """Shut a broker down in a controlled way: move its leaders, then fence it."""
    broker = registered(controller, broker_id)
    if broker.fenced:
        return []
    leaving = BrokerRegistrationChangeRecord(broker_id, broker.epoch, in_controlled_shutdown=1)
    fenced = BrokerRegistrationChangeRecord(broker_id, broker.epoch, fenced=BROKER_FENCED)
    return [leaving, *controller.without_broker(broker_id), fenced]


def directory_failed(controller: Controller, broker_id: int, directory_id: UUID) -> list[Any]:
    """Handle a failed log directory: its partitions get another leader, or none (KIP-858, handleDirectoriesOffline).

    Kafka halts a broker without any other directory. Here it goes on, and leads nothing.
    """
    broker = registered(controller, broker_id)
    remaining = tuple(each for each in broker.directories if each != directory_id)
    if not remaining:
        controller.without_directory.add(broker_id)
        return [*controller.without_broker(broker_id)]
    changes = controller.without_broker(broker_id, directory_id=directory_id)
    return [*changes, BrokerRegistrationChangeRecord(broker_id, broker.epoch, log_dirs=remaining)]


def assign_directories(
    controller: Controller, broker_id: int, assignments: Mapping[tuple[UUID, int], UUID]
) -> list[Any]:
    """Record in which directories a broker has placed its replicas (AssignReplicasToDirs, KIP-858).

    ``assignments``: topic id and partition -> directory id. Partitions that are gone are left out.
    """
    if controller.image.features.get(METADATA_VERSION, 0) < DIRECTORIES_LEVEL:
        return []
    records = []
    for (topic_id, index), directory_id in assignments.items():
        topic = controller.image.topics_by_id.get(topic_id)
        partition = None if topic is None else topic.partitions.get(index)
        if topic is None or partition is None or broker_id not in partition.replicas:
            continue
        directories = tuple(
            directory_id if replica == broker_id else partition.directory_of(replica) for replica in partition.replicas
        )
        records.append(controller.change(topic, index, directories=directories).record())
    return [record for record in records if record is not None]


def unregister(controller: Controller, broker_id: int) -> list[Any]:
    """Unregister a broker. It stays eligible to lead, in case it comes back (``handleBrokerUnregistered``).

    Raises:
        KafkaError: BROKER_ID_NOT_REGISTERED.
    """
    broker = registered(controller, broker_id)
    changes = controller.without_broker(broker_id, eligible=True)
    return [*changes, UnregisterBrokerRecord(broker_id, broker.epoch)]


def registered(controller: Controller, broker_id: int) -> Broker:
    """Return a broker's registration.

    Raises:
        KafkaError: BROKER_ID_NOT_REGISTERED.
    """
    broker = controller.image.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not currently registered")
    return broker


def register_controller(controller: Controller, who: Registration) -> list[Any]:
    """Register a controller's listeners and features (KIP-919), if the metadata version supports it.

    A registration of the same incarnation is kept (``ControllerRegistrationManager``).
    """
    known = controller.image.controllers.get(who.id)
    if controller.image.features.get(METADATA_VERSION, 0) < CONTROLLER_REGISTRATION_LEVEL or (
        known is not None and known.incarnation_id == who.incarnation_id
    ):
        return []
    return [
        RegisterControllerRecord(
            controller_id=who.id,
            incarnation_id=who.incarnation_id,
            end_points=_endpoints(who),
            features=_features(who),
        )
    ]


def unregister_controller(controller: Controller, controller_id: int, active_id: int) -> list[Any]:
    """Unregister a controller (``QuorumController.unregisterController``), except the active one, ``active_id``.

    Raises:
        KafkaError: INVALID_REQUEST, UNSUPPORTED_VERSION or CONTROLLER_ID_NOT_REGISTERED.
    """
    if controller_id == active_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Controller cannot unregister itself while it is active.")
    if controller.image.features.get(METADATA_VERSION, 0) < CONTROLLER_UNREGISTRATION_LEVEL:
        reason = "The current MetadataVersion is too old to support controller unregistration."
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, reason)
    if controller_id not in controller.image.controllers:
        reason = f"Controller ID {controller_id} is not currently registered."
        raise KafkaError(ErrorCode.CONTROLLER_ID_NOT_REGISTERED, reason)
    return [UnregisterControllerRecord(controller_id)]


def other_controllers(image: ClusterImage, own_id: int) -> list[Node]:
    """Return the registered controllers except the own one; their supported features count like the brokers'."""
    return [
        Node(
            "Controller",
            each.controller_id,
            {f.name: (f.min_supported_version, f.max_supported_version) for f in each.features},
        )
        for each in image.controllers.values()
        if each.controller_id != own_id
    ]
