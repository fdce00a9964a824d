"""The methods of the client that only pass on what their row in `control_api.verbs` has.

Made by tools/generate_client.py. Change the row; or write the method by hand in a class that inherits from these.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from understudy import results
from understudy.aio.resource import AsyncPart, without_none
from understudy.from_json import build


class ClusterVerbs(AsyncPart):
    """The verbs of `kafka`."""

    async def health(self) -> results.Health:
        """Whether the server is alive."""
        return build(results.Health, await self._ask("health"))

    async def info(self) -> results.ClusterInfo:
        """Brokers, controller, features, emulated version, seed."""
        return build(results.ClusterInfo, await self._ask("cluster"))

    async def overview(self) -> results.Overview:
        """Current activity: rates, errors, clients, groups with lag, open transactions, faults, holds, refusals."""
        return build(results.Overview, await self._ask("overview"))

    async def apis(self, *, api: str | None = None) -> list[results.ServedApi]:
        """The served APIs with their versions, and the conditions and effects of their faults."""
        result = await self._ask("apis", **without_none(api=api))
        return [build(results.ServedApi, each) for each in result["apis"]]

    async def report(self, *, since: int | None = None, limit: int | None = None) -> results.Report:
        """What a failed test should print: last requests, refusals and their reasons, unmatched faults, hints."""
        return build(results.Report, await self._ask("report", **without_none(since=since, limit=limit)))


class ClockVerbs(AsyncPart):
    """The verbs of `kafka.clock`."""

    async def show(self) -> results.ClockState:
        """Time of the cluster's clock."""
        return build(results.ClockState, await self._ask("clock show"))

    async def freeze(self) -> results.ClockState:
        """Freeze the clock."""
        return build(results.ClockState, await self._ask("clock freeze"))

    async def thaw(self) -> results.ClockState:
        """Unfreeze the clock."""
        return build(results.ClockState, await self._ask("clock thaw"))


class RetentionVerbs(AsyncPart):
    """The verbs of `kafka.retention`."""

    async def run(self) -> None:
        """Apply retention now."""
        await self._ask("retention run")


class CompactionVerbs(AsyncPart):
    """The verbs of `kafka.compaction`."""

    async def run(self) -> None:
        """Run log compaction now."""
        await self._ask("compaction run")


class VersionsVerbs(AsyncPart):
    """The verbs of `kafka.versions`."""


class SnapshotsVerbs(AsyncPart):
    """The verbs of `kafka.snapshots`."""

    async def list(self) -> Sequence[results.SnapshotInfo]:
        """All snapshots."""
        result = await self._ask("snapshots list")
        return [build(results.SnapshotInfo, each) for each in result["snapshots"]]


class SnapshotVerbs(AsyncPart):
    """The verbs of `kafka.snapshots[id]`."""

    async def restore(self) -> None:
        """Restore a snapshot."""
        await self._ask("snapshots restore")


class ClustersVerbs(AsyncPart):
    """The verbs of `kafka.clusters`."""

    async def list(self) -> Sequence[results.RunningCluster]:
        """The clusters of this process."""
        result = await self._ask("clusters list")
        return [build(results.RunningCluster, each) for each in result["clusters"]]

    async def delete(self, id: str) -> None:
        """End a cluster: its connections are closed, its data is gone."""
        await self._ask("clusters delete", id=id)


class BrokersVerbs(AsyncPart):
    """The verbs of `kafka.brokers`."""

    async def add(self, *, id: int | None = None, rack: str | None = None, port: int | None = None) -> results.Broker:
        """Add an empty broker."""
        return build(results.Broker, await self._ask("brokers add", **without_none(id=id, rack=rack, port=port)))


class BrokerVerbs(AsyncPart):
    """The verbs of `kafka.brokers[broker]`."""

    async def remove(self) -> None:
        """Remove a broker permanently: its leaders move, and it is unregistered."""
        await self._ask("brokers remove")

    async def kill(self) -> None:
        """Kill a broker: connections are reset, memory is lost."""
        await self._ask("brokers kill")

    async def stop(self) -> None:
        """Stop a broker by a controlled shutdown."""
        await self._ask("brokers stop")

    async def start(self) -> None:
        """Start a broker again, with log recovery."""
        await self._ask("brokers start")

    async def pause(self) -> None:
        """Make a broker hang: it accepts connections, but reads no requests."""
        await self._ask("brokers pause")

    async def fail_log_dir(self, *, directory: str | None = None) -> None:
        """Fail a broker's log directory: KAFKA_STORAGE_ERROR, its leaders move, and the broker goes on."""
        await self._ask("brokers fail-log-dir", **without_none(directory=directory))

    async def repair_log_dir(self) -> None:
        """Repair failed log directories: as in Kafka, the broker restarts to use them again."""
        await self._ask("brokers repair-log-dir")

    async def resume(self) -> None:
        """Resume a paused broker."""
        await self._ask("brokers resume")


class ControllersVerbs(AsyncPart):
    """The verbs of `kafka.controllers`."""

    async def add(self, *, id: int | None = None) -> results.Controller:
        """Add a controller, which observes until AddRaftVoter makes it a voter."""
        return build(results.Controller, await self._ask("controllers add", **without_none(id=id)))


class ControllerVerbs(AsyncPart):
    """The verbs of `kafka.controllers[controller]`."""

    async def remove(self) -> None:
        """End a controller that is not a voter, permanently."""
        await self._ask("controllers remove")

    async def kill(self) -> None:
        """Kill a controller of several: the others miss it, and elect another, after some seconds."""
        await self._ask("controllers kill")

    async def stop(self) -> None:
        """Stop a controller of several; if it is the active one, another is elected at once."""
        await self._ask("controllers stop")

    async def start(self) -> None:
        """Start a controller again; it follows the active one."""
        await self._ask("controllers start")

    async def pause(self) -> None:
        """Make a controller of several hang: the others miss it, and elect another, after some seconds."""
        await self._ask("controllers pause")

    async def resume(self) -> None:
        """Resume a paused controller; it follows the active one."""
        await self._ask("controllers resume")


class CoordinatorsVerbs(AsyncPart):
    """The verbs of `kafka.coordinators`."""

    async def move(
        self, *, type: Literal["group", "transaction"], key: str, broker: int, loading_ms: int | None = None
    ) -> None:
        """Move the coordinator of a group or a transactional id."""
        await self._ask("coordinators move", type=type, key=key, broker=broker, **without_none(loading_ms=loading_ms))


class TopicsVerbs(AsyncPart):
    """The verbs of `kafka.topics`."""

    async def list(self) -> Sequence[results.Topic]:
        """All topics."""
        result = await self._ask("topics list")
        return [build(results.Topic, each) for each in result["topics"]]

    async def create(
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
            await self._ask(
                "topics create",
                name=name,
                **without_none(partitions=partitions, replication_factor=replication_factor, configs=configs),
            ),
        )


class TopicVerbs(AsyncPart):
    """The verbs of `kafka.topics[topic]`."""

    async def show(self) -> results.Topic:
        """One topic with its partitions."""
        return build(results.Topic, await self._ask("topics show"))

    async def configure(self, configs: Mapping[str, str | None]) -> results.Topic:
        """Change settings of a topic; null: reset to the default."""
        return build(results.Topic, await self._ask("topics configure", configs=configs))

    async def delete(self) -> None:
        """Delete a topic with its records."""
        await self._ask("topics delete")


class PartitionVerbs(AsyncPart):
    """The verbs of `kafka.topics[topic].partitions[partition]`."""

    async def show(self) -> results.Partition:
        """Offsets, epochs, segments, producers, open and aborted transactions."""
        return build(results.Partition, await self._ask("partitions show"))

    async def records(
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
        result = await self._ask(
            "records read",
            **without_none(
                offset=offset, timestamp_ms=timestamp_ms, text=text, limit=limit, isolation=isolation, decode=decode
            ),
        )
        return [build(results.Record, each) for each in result["records"]]

    async def start_at(self, offset: int) -> results.Partition:
        """Remove all records of a partition; its log continues, empty, at this offset."""
        return build(results.Partition, await self._ask("partitions start-at", offset=offset))

    async def move_leader(self, broker: int | None) -> results.Partition:
        """Move the leader, or remove it (null); the leader epoch increases."""
        return build(results.Partition, await self._ask("leader move", broker=broker))

    async def set_isr(self, replicas: Sequence[int], *, held: Sequence[int] | None = None) -> results.Partition:
        """Set the in-sync replicas; others, and held ones, do not replicate."""
        return build(results.Partition, await self._ask("isr set", replicas=list(replicas), **without_none(held=held)))

    async def forget_producer(self, producer_id: int) -> None:
        """Remove a producer's state from a partition; clients recover by KIP-360."""
        await self._ask("producers forget", producer_id=producer_id)


class ProducersVerbs(AsyncPart):
    """The verbs of `kafka.producers`."""

    async def list(self) -> Sequence[results.ProducerLife]:
        """All producer ids, idempotent and transactional."""
        result = await self._ask("producers list")
        return [build(results.ProducerLife, each) for each in result["producers"]]


class ProducerVerbs(AsyncPart):
    """The verbs of `kafka.producers[id]`."""

    async def show(self) -> results.ProducerLife:
        """State of a producer id in each partition, and its timeline."""
        return build(results.ProducerLife, await self._ask("producers show"))

    async def why(self) -> results.Refusal:
        """Explanation of the last refusal."""
        return build(results.Refusal, await self._ask("producers why"))


class TransactionsVerbs(AsyncPart):
    """The verbs of `kafka.transactions`."""

    async def list(self) -> Sequence[results.Transaction]:
        """All transactional ids."""
        result = await self._ask("transactions list")
        return [build(results.Transaction, each) for each in result["transactions"]]


class TransactionVerbs(AsyncPart):
    """The verbs of `kafka.transactions[id]`."""

    async def show(self) -> results.Transaction:
        """State, epochs, partitions, deadline and timeline."""
        return build(results.Transaction, await self._ask("transactions show"))

    async def history(self) -> list[results.PastTransaction]:
        """Transactions of an id, one by one: begin, end, outcome, partitions."""
        result = await self._ask("transactions history")
        return [build(results.PastTransaction, each) for each in result["transactions"]]

    async def why(self) -> results.Refusal:
        """Explanation of the last refusal."""
        return build(results.Refusal, await self._ask("transactions why"))

    async def hold(self, at: Literal["prepare", "markers", "complete"], *, after_markers: int | None = None) -> None:
        """Hold commits and aborts at a step."""
        await self._ask("transactions hold", at=at, **without_none(after_markers=after_markers))

    async def release(self) -> None:
        """Continue a held commit or abort."""
        await self._ask("transactions release")

    async def abort(self) -> results.Transaction:
        """Abort a transaction as its timeout would."""
        return build(results.Transaction, await self._ask("transactions abort"))

    async def set_epoch(self, epoch: int) -> results.Transaction:
        """Set the stored epoch, for example to exhaust it."""
        return build(results.Transaction, await self._ask("transactions set-epoch", epoch=epoch))


class GroupsVerbs(AsyncPart):
    """The verbs of `kafka.groups`."""

    async def list(self) -> Sequence[results.Group]:
        """All groups."""
        result = await self._ask("groups list")
        return [build(results.Group, each) for each in result["groups"]]


class GroupVerbs(AsyncPart):
    """The verbs of `kafka.groups[id]`."""

    async def show(self) -> results.Group:
        """Members, assignment, offsets, lag."""
        return build(results.Group, await self._ask("groups show"))

    async def why(self) -> results.Refusal:
        """Explanation of the last refusal of a member."""
        return build(results.Refusal, await self._ask("groups why"))

    async def rebalance(self) -> results.Group:
        """Start a rebalance now."""
        return build(results.Group, await self._ask("groups rebalance"))

    async def evict(self, member: str) -> results.Group:
        """Remove a member as if its session had timed out."""
        return build(results.Group, await self._ask("groups evict", member=member))

    async def reset_offsets(
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
            await self._ask(
                "groups reset-offsets",
                topic=topic,
                **without_none(partition=partition, to=to, offset=offset, timestamp_ms=timestamp_ms),
            ),
        )


class RegistryVerbs(AsyncPart):
    """The verbs of `kafka.registry`."""


class FaultsVerbs(AsyncPart):
    """The verbs of `kafka.faults`."""


class FaultVerbs(AsyncPart):
    """The verbs of `kafka.faults[id]`."""


class ScenarioVerbs(AsyncPart):
    """The verbs of `kafka.scenario`."""


class JournalVerbs(AsyncPart):
    """The verbs of `kafka.journal`."""

    async def clear(self) -> None:
        """Remove all requests."""
        await self._ask("journal clear")


class DiagramsVerbs(AsyncPart):
    """The verbs of `kafka.diagrams`."""

    async def show(
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
            await self._ask(
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

    async def svg(
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
        content: bytes = await self._ask(
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


class UsersVerbs(AsyncPart):
    """The verbs of `kafka.users`."""

    async def list(self) -> Sequence[results.User]:
        """SCRAM users and their mechanisms."""
        result = await self._ask("users list")
        return [build(results.User, each) for each in result["users"]]


class UserVerbs(AsyncPart):
    """The verbs of `kafka.users[user]`."""

    async def set(
        self,
        password: str,
        *,
        mechanism: Literal["SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None,
        iterations: int | None = None,
    ) -> results.User:
        """Set the SCRAM password of a user, who need not exist."""
        return build(
            results.User,
            await self._ask("users set", password=password, **without_none(mechanism=mechanism, iterations=iterations)),
        )

    async def delete(self, *, mechanism: Literal["SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None) -> results.User:
        """Delete a SCRAM user, or one of its passwords."""
        return build(results.User, await self._ask("users delete", **without_none(mechanism=mechanism)))


class AclsVerbs(AsyncPart):
    """The verbs of `kafka.acls`."""

    async def list(self) -> Sequence[results.Acl]:
        """ACLs, in the order of their creation."""
        result = await self._ask("acls list")
        return [build(results.Acl, each) for each in result["acls"]]

    async def add(
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
            await self._ask(
                "acls add",
                principal=principal,
                operation=operation,
                resource_type=resource_type,
                resource_name=resource_name,
                **without_none(pattern=pattern, permission=permission, host=host),
            ),
        )


class AclVerbs(AsyncPart):
    """The verbs of `kafka.acls[acl]`."""

    async def remove(self) -> None:
        """Remove an ACL."""
        await self._ask("acls remove")


class QuotasVerbs(AsyncPart):
    """The verbs of `kafka.quotas`."""

    async def list(self) -> Sequence[results.Quota]:
        """Client quotas by entity."""
        result = await self._ask("quotas list")
        return [build(results.Quota, each) for each in result["quotas"]]

    async def set(
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
            await self._ask("quotas set", quotas=quotas, **without_none(user=user, client_id=client_id, ip=ip)),
        )
