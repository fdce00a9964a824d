"""Share partitions and share sessions of one broker (Kafka's ``SharePartitionManager``)."""

import asyncio
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from typing import Any

from broker.coordination.share_state.persister import Persister, SharePartitionKey
from broker.partitions.share_partition.partition import SharePartition
from broker.partitions.share_partition.sessions import SessionKey, ShareSession, ShareSessions
from broker.replication.partition import known_partition
from broker.request.context import ClusterView
from broker.request.node import Node
from broker.settings import BrokerSettings
from protocol.errors import KafkaError


class SharePartitions:
    """The share partitions in a broker's memory: those that it leads and members fetch from."""

    def __init__(self, cluster: ClusterView, broker_id: int, settings: BrokerSettings, persister: Persister) -> None:
        self._cluster, self._broker_id, self._settings, self.persister = cluster, broker_id, settings, persister
        self._partitions: dict[SharePartitionKey, SharePartition] = {}
        self._closed = self.ending = False
        self._tasks: dict[asyncio.Task[None], None] = {}  # a dict: cancelled in a reproducible order
        self.sessions = ShareSessions(
            lambda: settings.int("group.share.max.share.sessions"), self._release_all, self._forget_group
        )

    def get(self, key: SharePartitionKey) -> SharePartition | None:
        """Return a share partition that is in memory, or ``None``."""
        return self._partitions.get(key)

    def of_group(self, group_id: str) -> list[SharePartition]:
        """Return a group's share partitions that are in memory."""
        return [each for key, each in self._partitions.items() if key.group_id == group_id]

    def get_or_load(self, key: SharePartitionKey, topic: str) -> SharePartition:
        """Return a share partition, and begin to load it if it is not in memory.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR, UNKNOWN_TOPIC_OR_PARTITION.
        """
        share = self._partitions.get(key)
        if share is not None:
            return share
        partition = known_partition(self._cluster.partitions, topic, key.partition)
        partition.led_by(self._broker_id)
        share = self._partitions[key] = SharePartition(
            self._cluster, self._broker_id, self._settings, self.persister, key, partition, self._run, self._dropped
        )
        share.begin_loading()
        return share

    def end_session(self, key: SessionKey) -> None:
        """Close a session, if it still exists, and release its member's acquired records (groups D.7)."""
        session = self.sessions.remove(key)
        if session is not None:
            self._release_all(session)

    def end_sessions(self) -> None:
        """Close all sessions and begin to release what their members acquired, as their connections are to end.

        No member acquires it here again: the requests that wait have no response (seen on 4.4.0).
        """
        self.ending = True
        for key in self.sessions.open:
            self.end_session(key)

    def clear(self) -> None:
        """Drop all of them, as share groups are disabled now (``SharePartitionManager.onShareVersionToggle``)."""
        self.sessions.close()
        self._close(list(self._partitions))

    def close(self) -> None:
        """Drop all sessions and share partitions, and end what is under way, as the broker's process ends.

        Its requests may still wait for their share coordinator: they change nothing any more.
        """
        self.clear()
        self.persister.close()
        self._closed = True
        for task in self._tasks:
            task.cancel()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        if self._closed:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    def _release_all(self, session: ShareSession) -> None:
        group_id, member_id = session.key
        for topic_id, index in session.interests:
            partition = None if topic_id is None else self.get(SharePartitionKey(group_id, topic_id, index))
            if partition is not None:
                partition.run(_release(partition, member_id))

    def _forget_group(self, group_id: str) -> None:
        """Drop the partitions of a group without sessions; the share coordinator keeps the state (groups D.4.4)."""
        self._close([key for key in self._partitions if key.group_id == group_id])

    def _close(self, keys: Iterable[SharePartitionKey]) -> None:
        for key in keys:
            self._partitions.pop(key).close()

    def _dropped(self, partition: SharePartition) -> None:
        if self._partitions.get(partition.key) is partition:
            del self._partitions[partition.key]


async def _release(partition: SharePartition, member_id: str) -> None:
    with suppress(KafkaError):  # no request waits for the result; the locks expire anyway
        await partition.release(member_id)


def led_by(node: Node) -> SharePartitions:
    """Return the share partitions that a broker leads."""
    assert isinstance(node.shares, SharePartitions)
    return node.shares
