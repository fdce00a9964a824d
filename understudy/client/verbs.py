# Made from understudy/aio/verbs.py by tools/generate_client.py: change it there.
"""The methods of the client that only pass on what their row in `control_api.verbs` has.

Made by tools/generate_client.py. Change the row; or write the method by hand in a class that inherits from these.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from understudy import results
from understudy.client.resource import Part, without_none
from understudy.from_json import build


class ClusterVerbs(Part):
    """The verbs of `kafka`."""

    def health(self) -> results.Health:
        """Whether the server is alive."""
        return build(results.Health, self._ask("health"))

    def info(self) -> results.ClusterInfo:
        """Brokers, controller, features, emulated version, seed."""
        return build(results.ClusterInfo, self._ask("cluster"))

    def overview(self) -> results.Overview:
        """Current activity: rates, errors, clients, groups with lag, open transactions, faults, holds, refusals."""
        return build(results.Overview, self._ask("overview"))

    def apis(self, *, api: str | None = None) -> list[results.ServedApi]:
        """The served APIs with their versions, and the conditions and effects of their faults."""
        result = self._ask("apis", **without_none(api=api))
        return [build(results.ServedApi, each) for each in result["apis"]]

    def report(self, *, since: int | None = None, limit: int | None = None) -> results.Report:
        """What a failed test should print: last requests, refusals and their reasons, unmatched faults, hints."""
        return build(results.Report, self._ask("report", **without_none(since=since, limit=limit)))


class ClockVerbs(Part):
    """The verbs of `kafka.clock`."""

    def show(self) -> results.ClockState:
        """Time of the cluster's clock."""
        return build(results.ClockState, self._ask("clock show"))

    def freeze(self) -> results.ClockState:
        """Freeze the clock."""
        return build(results.ClockState, self._ask("clock freeze"))

    def thaw(self) -> results.ClockState:
        """Unfreeze the clock."""
        return build(results.ClockState, self._ask("clock thaw"))


class RetentionVerbs(Part):
    """The verbs of `kafka.retention`."""

    def run(self) -> None:
        """Apply retention now."""
        self._ask("retention run")


class CompactionVerbs(Part):
    """The verbs of `kafka.compaction`."""

    def run(self) -> None:
        """Run log compaction now."""
        self._ask("compaction run")


class VersionsVerbs(Part):
    """The verbs of `kafka.versions`."""


class SnapshotsVerbs(Part):
    """The verbs of `kafka.snapshots`."""

    def list(self) -> Sequence[results.SnapshotInfo]:
        """All snapshots."""
        result = self._ask("snapshots list")
        return [build(results.SnapshotInfo, each) for each in result["snapshots"]]


class SnapshotVerbs(Part):
    """The verbs of `kafka.snapshots[id]`."""

    def restore(self) -> None:
        """Restore a snapshot."""
        self._ask("snapshots restore")


class ClustersVerbs(Part):
    """The verbs of `kafka.clusters`."""

    def list(self) -> Sequence[results.RunningCluster]:
        """The clusters of this process."""
        result = self._ask("clusters list")
        return [build(results.RunningCluster, each) for each in result["clusters"]]

    def delete(self, id: str) -> None:
        """End a cluster: its connections are closed, its data is gone."""
        self._ask("clusters delete", id=id)


class BrokersVerbs(Part):
    """The verbs of `kafka.brokers`."""

    def add(self, *, id: int | None = None, rack: str | None = None, port: int | None = None) -> results.Broker:
        """Add an empty broker."""
        return build(results.Broker, self._ask("brokers add", **without_none(id=id, rack=rack, port=port)))


class BrokerVerbs(Part):
    """The verbs of `kafka.brokers[broker]`."""

    def remove(self) -> None:
        """Remove a broker permanently: its leaders move, and it is unregistered."""
        self._ask("brokers remove")

    def kill(self) -> None:
        """Kill a broker: connections are reset, memory is lost."""
        self._ask("brokers kill")

    def stop(self) -> None:
        """Stop a broker by a controlled shutdown."""
        self._ask("brokers stop")

    def start(self) -> None:
        """Start a broker again, with log recovery."""
        self._ask("brokers start")

    def pause(self) -> None:
        """Make a broker hang: it accepts connections, but reads no requests."""
        self._ask("brokers pause")

    def fail_log_dir(self, *, directory: str | None = None) -> None:
        """Fail a broker's log directory: KAFKA_STORAGE_ERROR, its leaders move, and the broker goes on."""
        self._ask("brokers fail-log-dir", **without_none(directory=directory))

    def repair_log_dir(self) -> None:
        """Repair failed log directories: as in Kafka, the broker restarts to use them again."""
        self._ask("brokers repair-log-dir")

    def resume(self) -> None:
        """Resume a paused broker."""
        self._ask("brokers resume")


class ControllersVerbs(Part):
    """The verbs of `kafka.controllers`."""

    def add(self, *, id: int | None = None) -> results.Controller:
        """Add a controller, which observes until AddRaftVoter makes it a voter."""
        return build(results.Controller, self._ask("controllers add", **without_none(id=id)))


class ControllerVerbs(Part):
    """The verbs of `kafka.controllers[controller]`."""

    def remove(self) -> None:
        """End a controller that is not a voter, permanently."""
        self._ask("controllers remove")

    def kill(self) -> None:
        """Kill a controller of several: the others miss it, and elect another, after some seconds."""
        self._ask("controllers kill")

    def stop(self) -> None:
        """Stop a controller of several; if it is the active one, another is elected at once."""
        self._ask("controllers stop")

    def start(self) -> None:
        """Start a controller again; it follows the active one."""
        self._ask("controllers start")

    def pause(self) -> None:
        """Make a controller of several hang: the others miss it, and elect another, after some seconds."""
        self._ask("controllers pause")

    def resume(self) -> None:
        """Resume a paused controller; it follows the active one."""
        self._ask("controllers resume")


class CoordinatorsVerbs(Part):
    """The verbs of `kafka.coordinators`."""

    def move(
        self, *, type: Literal["group", "transaction"], key: str, broker: int, loading_ms: int | None = None
    ) -> None:
        """Move the coordinator of a group or a transactional id."""
        self._ask("coordinators move", type=type, key=key, broker=broker, **without_none(loading_ms=loading_ms))


class TopicsVerbs(Part):
    """The verbs of `kafka.topics`."""

    def list(self) -> Sequence[results.Topic]:
        """All topics."""
        result = self._ask("topics list")
        return [build(results.Topic, each) for each in result["topics"]]

    def create(
        self,
        name: str,
        *,
        partitions: int | None = None,
        replication_factor: int | None = None,
        configs: Mapping[str, str | None] | None = None,
    ) -> results.Topic:
        """Create a topic."""
        return build(
            results.Topic,
            self._ask(
                "topics create",
                name=name,
                **without_none(partitions=partitions, replication_factor=replication_factor, configs=configs),
            ),
        )


class TopicVerbs(Part):
    """The verbs of `kafka.topics[topic]`."""

    def show(self) -> results.Topic:
        """One topic with its partitions."""
        return build(results.Topic, self._ask("topics show"))

    def configure(self, configs: Mapping[str, str | None]) -> results.Topic:
        """Change settings of a topic; null: reset to the default."""
        return build(results.Topic, self._ask("topics configure", configs=configs))

    def delete(self) -> None:
        """Delete a topic with its records."""
        self._ask("topics delete")


class PartitionVerbs(Part):
    """The verbs of `kafka.topics[topic].partitions[partition]`."""

    def show(self) -> results.Partition:
        """Offsets, epochs, segments, producers, open and aborted transactions."""
        return build(results.Partition, self._ask("partitions show"))

    def records(
        self,
        *,
        offset: int | None = None,
        timestamp_ms: int | None = None,
        text: str | None = None,
        limit: int | None = None,
        isolation: Literal["read_uncommitted", "read_committed"] | None = None,
        decode: bool | None = None,
    ) -> list[results.Record]:
        """Read records without a Kafka client."""
        result = self._ask(
            "records read",
            **without_none(
                offset=offset, timestamp_ms=timestamp_ms, text=text, limit=limit, isolation=isolation, decode=decode
            ),
        )
        return [build(results.Record, each) for each in result["records"]]

    def start_at(self, offset: int) -> results.Partition:
        """Remove all records of a partition; its log continues, empty, at this offset."""
        return build(results.Partition, self._ask("partitions start-at", offset=offset))

    def move_leader(self, broker: int | None) -> results.Partition:
        """Move the leader, or remove it (null); the leader epoch increases."""
        return build(results.Partition, self._ask("leader move", broker=broker))

    def set_isr(self, replicas: Sequence[int], *, held: Sequence[int] | None = None) -> results.Partition:
        """Set the in-sync replicas; others, and held ones, do not replicate."""
        return build(results.Partition, self._ask("isr set", replicas=list(replicas), **without_none(held=held)))

    def forget_producer(self, producer_id: int) -> None:
        """Remove a producer's state from a partition; clients recover by KIP-360."""
        self._ask("producers forget", producer_id=producer_id)


class ProducersVerbs(Part):
    """The verbs of `kafka.producers`."""

    def list(self) -> Sequence[results.ProducerLife]:
        """All producer ids, idempotent and transactional."""
        result = self._ask("producers list")
        return [build(results.ProducerLife, each) for each in result["producers"]]


class ProducerVerbs(Part):
    """The verbs of `kafka.producers[id]`."""

    def show(self) -> results.ProducerLife:
        """State of a producer id in each partition, and its timeline."""
        return build(results.ProducerLife, self._ask("producers show"))

    def why(self) -> results.Refusal:
        """Explanation of the last refusal."""
        return build(results.Refusal, self._ask("producers why"))


class TransactionsVerbs(Part):
    """The verbs of `kafka.transactions`."""

    def list(self) -> Sequence[results.Transaction]:
        """All transactional ids."""
        result = self._ask("transactions list")
        return [build(results.Transaction, each) for each in result["transactions"]]


class TransactionVerbs(Part):
    """The verbs of `kafka.transactions[id]`."""

    def show(self) -> results.Transaction:
        """State, epochs, partitions, deadline and timeline."""
        return build(results.Transaction, self._ask("transactions show"))

    def history(self) -> list[results.PastTransaction]:
        """Transactions of an id, one by one: begin, end, outcome, partitions."""
        result = self._ask("transactions history")
        return [build(results.PastTransaction, each) for each in result["transactions"]]

    def why(self) -> results.Refusal:
        """Explanation of the last refusal."""
        return build(results.Refusal, self._ask("transactions why"))

    def hold(self, at: Literal["prepare", "markers", "complete"], *, after_markers: int | None = None) -> None:
        """Hold commits and aborts at a step."""
        self._ask("transactions hold", at=at, **without_none(after_markers=after_markers))

    def release(self) -> None:
        """Continue a held commit or abort."""
        self._ask("transactions release")

    def abort(self) -> results.Transaction:
        """Abort a transaction as its timeout would."""
        return build(results.Transaction, self._ask("transactions abort"))

    def set_epoch(self, epoch: int) -> results.Transaction:
        """Set the stored epoch, for example to exhaust it."""
        return build(results.Transaction, self._ask("transactions set-epoch", epoch=epoch))


class GroupsVerbs(Part):
    """The verbs of `kafka.groups`."""

    def list(self) -> Sequence[results.Group]:
        """All groups."""
        result = self._ask("groups list")
        return [build(results.Group, each) for each in result["groups"]]


class GroupVerbs(Part):
    """The verbs of `kafka.groups[id]`."""

    def show(self) -> results.Group:
        """Members, assignment, offsets, lag."""
        return build(results.Group, self._ask("groups show"))

    def why(self) -> results.Refusal:
        """Explanation of the last refusal of a member."""
        return build(results.Refusal, self._ask("groups why"))

    def rebalance(self) -> results.Group:
        """Start a rebalance now."""
        return build(results.Group, self._ask("groups rebalance"))

    def evict(self, member: str) -> results.Group:
        """Remove a member as if its session had timed out."""
        return build(results.Group, self._ask("groups evict", member=member))

    def reset_offsets(
        self,
        topic: str,
        *,
        partition: int | None = None,
        to: Literal["earliest", "latest"] | None = None,
        offset: int | None = None,
        timestamp_ms: int | None = None,
    ) -> results.Group:
        """Reset the committed offsets of a group without members."""
        return build(
            results.Group,
            self._ask(
                "groups reset-offsets",
                topic=topic,
                **without_none(partition=partition, to=to, offset=offset, timestamp_ms=timestamp_ms),
            ),
        )


class RegistryVerbs(Part):
    """The verbs of `kafka.registry`."""


class FaultsVerbs(Part):
    """The verbs of `kafka.faults`."""


class FaultVerbs(Part):
    """The verbs of `kafka.faults[id]`."""


class ScenarioVerbs(Part):
    """The verbs of `kafka.scenario`."""


class JournalVerbs(Part):
    """The verbs of `kafka.journal`."""

    def clear(self) -> None:
        """Remove all requests."""
        self._ask("journal clear")


class DiagramsVerbs(Part):
    """The verbs of `kafka.diagrams`."""

    def show(
        self,
        *,
        transactional_id: str | None = None,
        producer_id: int | None = None,
        transaction: int | None = None,
        group: str | None = None,
        generation: int | None = None,
        connection: int | None = None,
        since: int | None = None,
        until: int | None = None,
        limit: int | None = None,
        errors: bool | None = None,
        polls: bool | None = None,
    ) -> results.Diagram:
        """Sequence diagram of a transactional id, a producer, a group or a connection: steps, text, Mermaid."""
        return build(
            results.Diagram,
            self._ask(
                "diagrams show",
                **without_none(
                    transactional_id=transactional_id,
                    producer_id=producer_id,
                    transaction=transaction,
                    group=group,
                    generation=generation,
                    connection=connection,
                    since=since,
                    until=until,
                    limit=limit,
                    errors=errors,
                    polls=polls,
                ),
            ),
        )

    def svg(
        self,
        *,
        transactional_id: str | None = None,
        producer_id: int | None = None,
        transaction: int | None = None,
        group: str | None = None,
        generation: int | None = None,
        connection: int | None = None,
        since: int | None = None,
        until: int | None = None,
        limit: int | None = None,
        errors: bool | None = None,
        polls: bool | None = None,
    ) -> bytes:
        """The same diagram as an SVG image."""
        content: bytes = self._ask(
            "diagrams svg",
            **without_none(
                transactional_id=transactional_id,
                producer_id=producer_id,
                transaction=transaction,
                group=group,
                generation=generation,
                connection=connection,
                since=since,
                until=until,
                limit=limit,
                errors=errors,
                polls=polls,
            ),
        )
        return content


class UsersVerbs(Part):
    """The verbs of `kafka.users`."""

    def list(self) -> Sequence[results.User]:
        """SCRAM users and their mechanisms."""
        result = self._ask("users list")
        return [build(results.User, each) for each in result["users"]]


class UserVerbs(Part):
    """The verbs of `kafka.users[user]`."""

    def set(
        self,
        password: str,
        *,
        mechanism: Literal["SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None,
        iterations: int | None = None,
    ) -> results.User:
        """Set the SCRAM password of a user, who need not exist."""
        return build(
            results.User,
            self._ask("users set", password=password, **without_none(mechanism=mechanism, iterations=iterations)),
        )

    def delete(self, *, mechanism: Literal["SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None) -> results.User:
        """Delete a SCRAM user, or one of its passwords."""
        return build(results.User, self._ask("users delete", **without_none(mechanism=mechanism)))


class AclsVerbs(Part):
    """The verbs of `kafka.acls`."""

    def list(self) -> Sequence[results.Acl]:
        """ACLs, in the order of their creation."""
        result = self._ask("acls list")
        return [build(results.Acl, each) for each in result["acls"]]

    def add(
        self,
        principal: str,
        operation: Literal[
            "ALL",
            "READ",
            "WRITE",
            "CREATE",
            "DELETE",
            "ALTER",
            "DESCRIBE",
            "CLUSTER_ACTION",
            "DESCRIBE_CONFIGS",
            "ALTER_CONFIGS",
            "IDEMPOTENT_WRITE",
            "CREATE_TOKENS",
            "DESCRIBE_TOKENS",
            "TWO_PHASE_COMMIT",
        ],
        resource_type: Literal["TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"],
        resource_name: str,
        *,
        pattern: Literal["LITERAL", "PREFIXED"] | None = None,
        permission: Literal["ALLOW", "DENY"] | None = None,
        host: str | None = None,
    ) -> results.Acl:
        """Add an ACL, as CreateAcls does."""
        return build(
            results.Acl,
            self._ask(
                "acls add",
                principal=principal,
                operation=operation,
                resource_type=resource_type,
                resource_name=resource_name,
                **without_none(pattern=pattern, permission=permission, host=host),
            ),
        )


class AclVerbs(Part):
    """The verbs of `kafka.acls[acl]`."""

    def remove(self) -> None:
        """Remove an ACL."""
        self._ask("acls remove")


class QuotasVerbs(Part):
    """The verbs of `kafka.quotas`."""

    def list(self) -> Sequence[results.Quota]:
        """Client quotas by entity."""
        result = self._ask("quotas list")
        return [build(results.Quota, each) for each in result["quotas"]]

    def set(
        self,
        quotas: Mapping[str, float | None],
        *,
        user: str | None = None,
        client_id: str | None = None,
        ip: str | None = None,
    ) -> results.Quota:
        """Set or remove client quotas of one entity, as AlterClientQuotas does."""
        return build(
            results.Quota,
            self._ask("quotas set", quotas=quotas, **without_none(user=user, client_id=client_id, ip=ip)),
        )
