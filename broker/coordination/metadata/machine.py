"""State machine of the controller: each operation returns records, effects and a reply.

State: the image (``image.ClusterImage``), built from one log, ``__cluster_metadata-0``, in Kafka's own records.

Rules:

1. Only :meth:`MetadataMachine.replay` changes the image; ``replay.apply`` has one function per kind of record.
2. Every operation is decided on the current image. An operation that raises has changed nothing. Of a request with
   several items, each is decided separately, and the reply has a result for each.
3. The effects depend only on the records (``effects.effects_of``), so a replayed log and a live one lead to the same
   logs, leaders and settings.
4. No request is parked, and there are no timers: ``cluster.lifecycle`` fences brokers without heartbeats.

Exceptions:

* Records of a metadata transaction (KIP-868) wait in ``_pending`` for its end: soft state, lost with the machine.
* The control plane may set how long coordinators take to load at a new leader: an effect without a record.

After Kafka's ``QuorumController`` and its control managers (core B).
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from broker.coordination.metadata import acls, brokers, configs, features, quotas, reassignments
from broker.coordination.metadata.controller import BROKER_RESOURCE, MIN_ISR, Controller
from broker.coordination.metadata.effects import KraftVersionChanged, MetadataOutcome, effects_of, loading
from broker.coordination.metadata.elections import Election
from broker.coordination.metadata.features import FeatureUpdate
from broker.coordination.metadata.image import ClusterImage, Topic
from broker.coordination.metadata.replay import apply
from broker.coordination.metadata.topics import (
    MOST_PARTITIONS,
    Charge,
    CheckConfigs,
    CreatedTopic,
    MorePartitions,
    NewTopic,
    add_partitions,
    create_topic,
    internal_topic,
)
from broker.coordination.outcome import Outcome, RepliesInOrder, Reply, TransactionalAppend
from broker.coordination.settings import Settings
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.metadata import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
)

PRODUCER_IDS_BLOCK = 1000
"""ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE (KIP-730)."""

Result = tuple[Any, KafkaError | None]
"""An item of a request, and its error or ``None``."""


def _any_configs(_configs: Mapping[str, str | None]) -> None:
    """Accept settings that are validated elsewhere, or that the broker chose itself."""


def _any_number(_count: int) -> None:
    """Accept any number of changes."""


def bootstrap_records(levels: Mapping[str, int] | None = None) -> list[Any]:
    """Return the bootstrap records of a new cluster: its features, with ``levels`` as overrides."""
    return [FeatureLevelRecord(name, level) for name, level in features.fresh_levels(levels).items()]


class MetadataMachine(RepliesInOrder):
    """The brokers, topics, partitions, settings and features of the cluster.

    ``new_uuid`` and ``below`` (n -> 0..n-1) are the cluster's random source. ``bootstrap`` are the first records of a
    new cluster (default: the features of a fresh one). ``next_offset`` returns the log end offset, for broker epochs
    (default: the offset after the last replayed record).
    """

    def __init__(
        self,
        settings: Settings,
        *,
        new_uuid: Callable[[], UUID],
        below: Callable[[int], int],
        next_offset: Callable[[], int] | None = None,
        bootstrap: Sequence[Any] | None = None,
    ) -> None:
        self.image = ClusterImage()
        self.bootstrap = bootstrap_records() if bootstrap is None else bootstrap
        self._controller = Controller(
            self.image, settings, new_uuid, below, next_offset or (lambda: self.image.offset + 1)
        )
        self._pending: list[Any] | None = None

    # --- the machine ---------------------------------------------------------------------------------------------

    def replay(self, record: Any, offset: int, transaction: TransactionalAppend | None = None) -> None:  # noqa: ARG002
        """Apply one record; those of a metadata transaction (KIP-868) wait for its end."""
        self.image.offset = offset
        match record:
            case BeginTransactionRecord():
                self._pending = []
            case AbortTransactionRecord():
                self._pending = None
            case EndTransactionRecord():
                for each in self._pending or ():
                    apply(self.image, each)
                self._pending = None
            case _ if self._pending is not None:
                self._pending.append(record)
            case _:
                apply(self.image, record)

    def replay_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """Do nothing: the metadata log has no producers."""

    def loaded(self, now_ms: int) -> MetadataOutcome:  # noqa: ARG002
        """Write the bootstrap records if the log is empty."""
        self._pending = None
        return Outcome() if self.image.features else self._done(self._beginning())

    def unloaded(self) -> MetadataOutcome:
        """Do nothing: no request is parked."""
        return Outcome()

    def _beginning(self) -> list[Any]:
        records: list[Any] = list(self.bootstrap)
        if any(isinstance(each, FeatureLevelRecord) and each.name == features.ELR_VERSION for each in records):
            least = str(self._controller.settings.int(MIN_ISR))
            records.append(ConfigRecord(BROKER_RESOURCE, "", MIN_ISR, least))
        levels = {each.name: each.feature_level for each in records if isinstance(each, FeatureLevelRecord)}
        if levels.get(features.METADATA_VERSION, 0) < features.TRANSACTIONS_LEVEL:
            return records
        return [BeginTransactionRecord("Bootstrap records"), *records, EndTransactionRecord()]

    def _done(self, records: Iterable[Any], token: Hashable = None, answer: Any = None) -> MetadataOutcome:
        """Return the outcome of records, with their effects and the reply to the request."""
        records = tuple(records)
        reply = () if token is None else (Reply(token, answer),)
        return Outcome(records, (*effects_of(self.image, records), *reply))

    def _topic(self, name: str, index: int) -> Topic:
        topic = self.image.topics.get(name)
        if topic is None or index not in topic.partitions:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return topic

    # --- brokers -------------------------------------------------------------------------------------------------

    def register_broker(self, who: brokers.Registration, token: Hashable = None) -> MetadataOutcome:
        """Register a broker, fenced; the reply is its epoch."""
        return self._done(brokers.register(self._controller, who), token, self._controller.next_offset())

    def broker_reported(
        self, broker_id: int, token: Hashable = None, *, cordoned: Sequence[UUID] = ()
    ) -> MetadataOutcome:
        """Handle a heartbeat with the ids of cordoned log directories. Raises BROKER_ID_NOT_REGISTERED."""
        return self._done(brokers.report(self._controller, broker_id, cordoned), token)

    def unfence_broker(self, broker_id: int, token: Hashable = None) -> MetadataOutcome:
        """Unfence a broker, and elect it where needed. Raises BROKER_ID_NOT_REGISTERED."""
        return self._done(brokers.unfence(self._controller, broker_id), token)

    def fence_broker(self, broker_id: int, token: Hashable = None, *, unclean: bool = False) -> MetadataOutcome:
        """Fence a broker without heartbeats. Raises BROKER_ID_NOT_REGISTERED."""
        return self._done(brokers.fence(self._controller, broker_id, unclean=unclean), token)

    def broker_stopped(self, broker_id: int, token: Hashable = None) -> MetadataOutcome:
        """Shut a broker down in a controlled way, then fence it. Raises BROKER_ID_NOT_REGISTERED."""
        return self._done(brokers.shut_down(self._controller, broker_id), token)

    def directory_failed(self, broker_id: int, directory_id: UUID, token: Hashable = None) -> MetadataOutcome:
        """Handle a broker's failed log directory: its partitions remove the broker from their ISR."""
        return self._done(brokers.directory_failed(self._controller, broker_id, directory_id), token)

    def assign_directories(
        self, broker_id: int, assignments: Mapping[tuple[UUID, int], UUID], token: Hashable = None
    ) -> MetadataOutcome:
        """Record the directories of a broker's replicas: topic id and partition -> directory id."""
        return self._done(brokers.assign_directories(self._controller, broker_id, assignments), token)

    def unregister_broker(self, broker_id: int, token: Hashable = None) -> MetadataOutcome:
        """Unregister a broker. Raises BROKER_ID_NOT_REGISTERED."""
        return self._done(brokers.unregister(self._controller, broker_id), token)

    def amend_broker(self, broker_id: int, directories: Sequence[UUID]) -> MetadataOutcome:
        """Register a running broker's log directories. Raises BROKER_ID_NOT_REGISTERED."""
        return self._done(brokers.amend(self._controller, broker_id, directories))

    def register_controller(self, who: brokers.Registration) -> MetadataOutcome:
        """Register a controller, unless its incarnation is registered already."""
        return self._done(brokers.register_controller(self._controller, who))

    def unregister_controller(self, controller_id: int, active_id: int, token: Hashable = None) -> MetadataOutcome:
        """Unregister a controller. Raises INVALID_REQUEST, UNSUPPORTED_VERSION, CONTROLLER_ID_NOT_REGISTERED."""
        return self._done(brokers.unregister_controller(self._controller, controller_id, active_id), token)

    # --- topics --------------------------------------------------------------------------------------------------

    def create_topics(
        self,
        topics: Sequence[NewTopic],
        token: Hashable = None,
        *,
        check_configs: CheckConfigs = _any_configs,
        charge: Charge = _any_number,
        check_records: Callable[[int], None] = _any_number,
        validate_only: bool = False,
    ) -> MetadataOutcome:
        """Create topics separately; replies with a list of :class:`CreatedTopic`. ``check_records`` may refuse all."""
        answers: list[CreatedTopic] = []
        records: list[Any] = []
        for topic in topics:
            created, topic_records = create_topic(self._controller, topic, check_configs, charge)
            answers.append(created)
            records += topic_records
        check_records(len(records))
        return self._done(() if validate_only else records, token, answers)

    def create_internal_topic(self, name: str, token: Hashable = None) -> MetadataOutcome:
        """Create an internal topic if it is missing; replies with a :class:`CreatedTopic`."""
        existing = self.image.topics.get(name)
        if existing is not None:
            return self._done((), token, CreatedTopic(name, topic_id=existing.id))
        created, records = create_topic(
            self._controller, internal_topic(self._controller, name), _any_configs, _any_number
        )
        return self._done(records, token, created)

    def create_partitions(
        self,
        topics: Sequence[MorePartitions],
        token: Hashable = None,
        *,
        charge: Charge = _any_number,
        validate_only: bool = False,
    ) -> MetadataOutcome:
        """Add partitions; replies with a list of (name, error or None). Raises UNKNOWN_SERVER_ERROR for too many."""
        answers: list[Result] = []
        records: list[Any] = []
        for topic in topics:
            try:
                records += add_partitions(self._controller, topic, MOST_PARTITIONS - len(records), charge)
                answers.append((topic.name, None))
            except KafkaError as error:
                if error.code is ErrorCode.UNKNOWN_SERVER_ERROR:
                    raise
                answers.append((topic.name, error))
        return self._done(() if validate_only else records, token, answers)

    def delete_topics(
        self, ids: Iterable[UUID], token: Hashable = None, *, charge: Charge = _any_number
    ) -> MetadataOutcome:
        """Delete topics with their partitions and settings (core B.9); unknown ids are skipped.

        The reply is a dict of errors by id, for topics that are not deleted.
        """
        refused: dict[UUID, KafkaError] = {}
        records = []
        for topic_id in dict.fromkeys(ids):
            topic = self.image.topics_by_id.get(topic_id)
            if topic is None:
                continue
            try:
                charge(len(topic.partitions))
                records.append(RemoveTopicRecord(topic_id))
            except KafkaError as error:
                refused[topic_id] = error
        return self._done(records, token, refused)

    # --- partitions ----------------------------------------------------------------------------------------------

    def elect_leaders(
        self, partitions: Iterable[tuple[str, int]], election: Election, token: Hashable = None
    ) -> MetadataOutcome:
        """Elect leaders; replies with a list of ((topic, index), error or None), in order."""
        answers: list[Result] = []
        records: list[Any] = []
        for name, index in partitions:
            try:
                records.append(reassignments.elect(self._controller, name, index, election))
                answers.append(((name, index), None))
            except KafkaError as error:
                answers.append(((name, index), error))
        return self._done(records, token, answers)

    def alter_partition_reassignments(
        self,
        targets: Iterable[tuple[str, int, Sequence[int] | None]],
        token: Hashable = None,
        *,
        factor_may_change: bool = True,
    ) -> MetadataOutcome:
        """Reassign partitions; replies with a list of ((topic, index), error or None). A null target cancels."""
        answers: list[Result] = []
        records: list[Any] = []
        for name, index, target in targets:
            try:
                record = reassignments.reassign(
                    self._controller, name, index, target, factor_may_change=factor_may_change
                )
                records += () if record is None else (record,)
                answers.append(((name, index), None))
            except KafkaError as error:
                answers.append(((name, index), error))
        return self._done(records, token, answers)

    def change_isr(self, name: str, index: int, isr: Sequence[int], token: Hashable = None) -> MetadataOutcome:
        """Set the ISR that a leader requests; may complete a reassignment. Raises INELIGIBLE_REPLICA."""
        record = reassignments.change_isr(self._controller, self._topic(name, index), index, isr)
        return self._done(() if record is None else (record,), token)

    def move_leader(
        self, name: str, index: int, broker_id: int | None, token: Hashable = None, *, loading_ms: int = 0
    ) -> MetadataOutcome:
        """Control plane: set a leader, or none, without an election. Raises INELIGIBLE_REPLICA.

        ``loading_ms`` is how long the partition's coordinator, if it has one, takes to load at the new leader.
        """
        topic = self._topic(name, index)
        records = reassignments.move_leader(self._controller, topic, index, broker_id)
        return loading(self._done(records, token), loading_ms)

    def periodic(self, decide: Callable[[Controller], list[Any]]) -> MetadataOutcome:
        """Append the records of a periodic task, decided on the current image."""
        return self._done(decide(self._controller))

    # --- settings, features, producer ids ------------------------------------------------------------------------

    def alter_configs(self, wanted: Sequence[configs.NewConfigs], token: Hashable = None) -> MetadataOutcome:
        """Replace all settings of these resources atomically; the caller has validated them."""
        return self._done(configs.alter_configs(self._controller, wanted), token)

    def update_features(
        self,
        updates: Sequence[FeatureUpdate],
        token: Hashable = None,
        *,
        kraft_version: int = 0,
        supported: Mapping[str, tuple[int, int]] = features.SUPPORTED,
        validate_only: bool = False,
    ) -> MetadataOutcome:
        """Update features, all or none. Raises INVALID_UPDATE_VERSION.

        ``supported`` are the levels that the controller supports, ``kraft_version`` is its current level.
        """
        known = sorted(self.image.brokers.values(), key=lambda broker: broker.id)
        nodes = [features.Node("Local controller", known[0].id if known else 1, supported)]
        nodes += [features.Node("Broker", broker.id, broker.features) for broker in known]
        nodes += brokers.other_controllers(self.image, nodes[0].id)
        levels = {**self.image.features, features.KRAFT_VERSION: kraft_version}
        decided = features.decide(updates, levels, nodes)
        if validate_only:
            return self._done((), token, decided)
        kraft = decided.get(features.KRAFT_VERSION, kraft_version)
        safety = configs.before_elr(self._controller) if decided.get(features.ELR_VERSION) else []
        kept = [FeatureLevelRecord(name, level) for name, level in decided.items() if name != features.KRAFT_VERSION]
        outcome = self._done([*safety, *kept], token, decided)
        if kraft == kraft_version:
            return outcome
        return replace(outcome, effects=(KraftVersionChanged(kraft), *outcome.effects))

    def allocate_producer_ids(self, now_ms: int = 0, token: Hashable = None) -> MetadataOutcome:  # noqa: ARG002
        """Allocate a block of producer ids; the reply is its ``range``."""
        start = self.image.next_producer_id
        broker = min(self.image.alive_brokers(), key=lambda each: each.id, default=None)
        owner = (-1, -1) if broker is None else (broker.id, broker.epoch)
        block = range(start, start + PRODUCER_IDS_BLOCK)
        return self._done([ProducerIdsRecord(*owner, block.stop)], token, block)

    # --- ACLs ----------------------------------------------------------------------------------------------------

    def create_acls(
        self, wanted: Iterable[acls.Acl], token: Hashable = None, *, check_hosts: bool = True
    ) -> MetadataOutcome:
        """Create ACLs; replies with a list of errors or None, in order. Raises UNKNOWN_SERVER_ERROR."""
        answers, records = acls.create(self.image, self._controller.new_uuid, wanted, check_hosts=check_hosts)
        return self._done(records, token, answers)

    def delete_acls(self, filters: Sequence[acls.AclFilter], token: Hashable = None) -> MetadataOutcome:
        """Delete ACLs; replies with a list of each filter's matches or error, in order. Raises INVALID_REQUEST."""
        answers, records = acls.delete(self.image, filters)
        return self._done(records, token, answers)

    # --- quotas --------------------------------------------------------------------------------------------------

    def alter_client_quotas(
        self,
        wanted: Sequence[quotas.Alteration],
        token: Hashable = None,
        *,
        resolves: Callable[[str], bool],
        finite: bool = True,
        validate_only: bool = False,
    ) -> MetadataOutcome:
        """Alter quotas; replies with a list of (entity, error or None), each entity once. See :func:`quotas.alter`."""
        answers, records = quotas.alter(self.image, wanted, resolves, finite=finite)
        return self._done(() if validate_only else records, token, answers)

    def remember(self, records: Iterable[Any], token: Hashable = None, answer: Any = None) -> MetadataOutcome:
        """Append records decided by the caller (credentials, tokens); the reply is ``answer``."""
        return self._done(records, token, answer)
