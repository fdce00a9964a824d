"""Internal topics of streams groups that could not be created, and that Kafka does not try to create again.

A heartbeat asks for each missing topic once for each configuration of the topology (groups E.5). If too few brokers run
just then, the group has no tasks until an operator creates the topic, as :mod:`simulator` does after all faults. One
that is missing for any other reason breaks a promise.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from broker.coordination.group.modern.streams.group import StreamsGroup
from broker.coordination.metadata.topics import CreatedTopic
from broker.request import streams_topics
from broker.request.context import RequestContext
from protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig
from simulator.cluster import Servers
from simulator.process import replaced


class InternalTopics:
    """The internal topics whose last creation failed."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self.failed: set[str] = set()

    @contextmanager
    def observed(self) -> Iterator[None]:
        """Note which creations fail within the block."""
        original = streams_topics._note_failures  # noqa: SLF001 - called for each creation, with its result

        def note(created: Sequence[CreatedTopic], group_id: str, ctx: RequestContext) -> None:
            self.failed -= {each.name for each in created}
            self.failed |= {each.name for each in created if each.error is not None}
            original(created, group_id, ctx)

        with replaced(streams_topics, "_note_failures", note):
            yield

    def missing(self) -> list[CreatableTopic]:
        """Return the topics that groups still need and that failed to be created, as the groups ask for them."""
        nodes = self._servers.cluster.nodes.values()
        shards = (shard for node in nodes for shard in node.coordinators.groups.values() if shard.active)
        groups = (shard.machine.groups[group_id] for shard in shards for group_id in shard.machine.groups)
        needed = {
            each.name: each
            for group in groups
            if isinstance(group, StreamsGroup) and group.configuration.current is not None
            for each in group.configuration.current.missing
            if each.name in self.failed
        }
        return [
            CreatableTopic(each.name, each.partitions, each.replication_factor, (), _configs(each.configs))
            for each in needed.values()
        ]


def _configs(configs: Mapping[str, str]) -> list[CreatableTopicConfig]:
    return [CreatableTopicConfig(name, value) for name, value in configs.items()]
