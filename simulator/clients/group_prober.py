"""A client that breaks rules of groups: old generations, non-members, members that do not rejoin (KIP-62, KIP-848)."""

import asyncio
from collections.abc import Sequence
from typing import Any

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from simulator.clients.client import GROUP, RETRIABLE, Client, Lost, first_error
from simulator.clients.consumer import HEARTBEAT_US, REBALANCE_TIMEOUT_MS, Member
from simulator.clients.prober import PROBER, Prober, Rule
from simulator.clients.producer import TIMEOUT_MS, Membership, Producer

GROUP_PROBER = f"{PROBER}-of-groups"
_OFFSETS = "__consumer_offsets"
_MOST_JOINS = 20  # arbitrary: faults end before
_SLACK_MS = 1_000  # for requests under way; ours, hundreds of round trips
_FORGOTTEN = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND)
"""Errors that a member gets after its session timeout, as a client may whose requests are lost."""


class GroupProber(Prober):
    """Breaks rules of groups. Each round has its own group."""

    given_up_arrives = False

    def rules(self) -> Sequence[Rule]:
        """Return the rules that this client breaks."""
        return (
            self._old_generation,
            self._does_not_join,
            self._pending_offsets,
            self._stranger_commits,
            self._offsets_without_replicas,
        )

    # --- requests ----------------------------------------------------------------------------------------------------

    def _commit_of(self, group: str, epoch: int, member: str) -> OffsetCommitRequest:
        name, index = self._place
        return OffsetCommitRequest(
            group, epoch, member, -1, [OffsetCommitRequestTopic(name, [OffsetCommitRequestPartition(index, 1)])]
        )

    async def _commit(self, group: str, epoch: int, member: str, what: str) -> ErrorCode:
        request = self._commit_of(group, epoch, member)
        answer = await self.ask_coordinator(
            GROUP, group, ApiKey.OFFSET_COMMIT, 9, request, f"{group} {what}", retry=False
        )
        return first_error(answer)

    async def _joined(self, member: Member) -> bool:
        """Join; return whether that succeeded."""
        for _ in range(_MOST_JOINS):
            if await member.keep():
                return True
            await self.pause()
        return False

    # --- groups of the classic protocol ------------------------------------------------------------------------------

    async def _old_generation(self, group: str) -> None:
        """Commit or send a heartbeat with the previous generation, which must be refused."""
        member = Member(self, group, [self._place[0]])
        if not await self._joined(member):
            return
        old, known_as = member.generation, member.member_id
        member.generation = -1  # it joins again, which begins the next generation
        if not await self._joined(member) or member.member_id != known_as or member.generation == old:
            return
        answers = [(await self._commit(group, old, known_as, f"generation {old}"), "OffsetCommit")]
        request = HeartbeatRequest(group, old, known_as)
        answer = await self.ask_coordinator(
            GROUP, group, ApiKey.HEARTBEAT, 4, request, f"{group} generation {old}", retry=False
        )
        answers.append((answer.error_code, "Heartbeat"))
        for code, what in answers:
            self._expect(code, ErrorCode.ILLEGAL_GENERATION, *_FORGOTTEN, what=f"{what} of an old generation")
        await member.leave()

    async def _does_not_join(self, group: str) -> None:
        """Send heartbeats without rejoining, which must end the membership when the next generation begins (KIP-62)."""
        idle = Member(self, group, [self._place[0]])
        if not await self._joined(idle):
            return
        other = Client(self.world, f"{self.name}-second")
        other.resets = True
        second = Member(other, group, [self._place[0]])
        joining = asyncio.get_running_loop().create_task(self._join_within(second))
        try:
            while not joining.done():
                request = HeartbeatRequest(group, idle.generation, idle.member_id)
                what = f"{group} generation {idle.generation}, and does not join"
                await self.ask_coordinator(GROUP, group, ApiKey.HEARTBEAT, 4, request, what, retry=False)
                await asyncio.wait([joining], timeout=HEARTBEAT_US / 1_000_000)
            if await joining:
                described = await self.ask_coordinator(
                    GROUP, group, ApiKey.DESCRIBE_GROUPS, 5, DescribeGroupsRequest([group]), group, retry=False
                )
                members = [each.member_id for each in described.groups[0].members]
                if idle.member_id in members and second.member_id in members:
                    self.history.violate(f"{group}: {idle.member_id} did not rejoin, but is a member: {members}")
        finally:
            joining.cancel()
            await asyncio.wait([joining])
            other.close()

    @staticmethod
    async def _join_within(member: Member) -> bool:
        """Join; JoinGroup may wait for the other members until the rebalance timeout."""
        for _ in range(2):  # the first attempt gets a member id
            if await member.keep():
                return True
        return False

    # --- groups of the consumer protocol -----------------------------------------------------------------------------

    async def _heartbeat(self, group: str, epoch: int) -> Any:
        topics = None if epoch < 0 else [self._place[0]]
        owned: Sequence[Any] | None = None if epoch < 0 else []
        request = ConsumerGroupHeartbeatRequest(
            group, f"{group}-member", epoch, rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            subscribed_topic_names=topics, topic_partitions=owned,
        )  # fmt: skip
        key = ApiKey.CONSUMER_GROUP_HEARTBEAT
        return await self.ask_coordinator(GROUP, group, key, 1, request, f"{group} epoch {epoch}", retry=False)

    async def _stranger_commits(self, group: str) -> None:
        """Commit offsets of a consumer group without being a member, which must be refused (KIP-848)."""
        answer = await self._heartbeat(group, 0)
        if answer.error_code is not ErrorCode.NONE:
            return
        code = await self._commit(group, answer.member_epoch, "a-stranger", "of a stranger")
        self._expect(code, *_FORGOTTEN, what="OffsetCommit of no member")
        await self._heartbeat(group, -1)

    # --- offsets -----------------------------------------------------------------------------------------------------

    async def _fetched(self, group: str, *, wait: bool) -> tuple[ErrorCode, int]:
        """Return the group's stable offset; without ``wait``, there may be an error instead."""
        name, index = self._place
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group, [OffsetFetchRequestTopics(name, [index])])], require_stable=True
        )
        if wait:
            answer = await self.ask_coordinator(GROUP, group, ApiKey.OFFSET_FETCH, 8, request, group)
        else:
            answer = await self.ask(await self.coordinator(GROUP, group), ApiKey.OFFSET_FETCH, 8, request, group)
        partitions = [each for one in answer.groups for topic in one.topics for each in topic.partitions]
        return first_error(answer), partitions[0].committed_offset if partitions else -1

    async def _pending_offsets(self, group: str) -> None:
        """Fetch an offset while a transaction may still commit the next one, which must be refused (KIP-447)."""
        # Producers before and of KIP-890.
        producer = Producer(self, group, group, newer=self.chance.random() < 0.5)
        await producer.initialize()
        transaction, began_ms = producer.begin(), self.world.elapsed_ms()
        await producer.send_offsets(transaction, Membership(group, -1, ""), {self._place: 7})  # any offset
        code, offset = await self._fetched(group, wait=False)
        in_time = self.world.elapsed_ms() - began_ms < TIMEOUT_MS - _SLACK_MS
        if in_time and code not in RETRIABLE:
            self.history.violate(f"{group}: OffsetFetch returned {offset} while a transaction was to commit 7")
        # Both ends must release the offset alike.
        commit = self.chance.random() < 0.5
        await producer.end(transaction, commit=commit)
        code, offset = await self._fetched(group, wait=True)
        if (code, offset) != (ErrorCode.NONE, 7 if commit else -1):
            self.history.violate(
                f"{group}: its offset is {offset}, {code.name}, after 7 was {'committed' if commit else 'aborted'}",
                transaction,
            )

    async def _in_sync(self) -> list[tuple[int, int, int]]:
        """Return leader epoch, ISR size and replica count of the partitions of `__consumer_offsets`. Raises Lost."""
        request = MetadataRequest([MetadataRequestTopic(_OFFSETS)])
        answer = await self.ask_any(ApiKey.METADATA, 12, request, _OFFSETS)
        return [
            (each.leader_epoch, len(each.isr_nodes), len(each.replica_nodes)) for each in answer.topics[0].partitions
        ]

    async def _offsets_without_replicas(self, group: str) -> None:
        """Commit while the coordinator's log has too few in-sync replicas, which must be refused without a wait."""
        broker = await self.coordinator(GROUP, group)
        before, began_us = await self._in_sync(), self.now_us
        if not before or any(in_sync >= 2 for _, in_sync, _ in before):
            return
        request = self._commit_of(group, -1, "")
        what = f"{group} with too few replicas in sync"
        try:
            await self.ask(broker, ApiKey.OFFSET_COMMIT, 9, request, what)
        except Lost as error:
            if "timed out" in str(error) and await self._in_sync() == before and self.world.quiet(broker, began_us):
                self.history.violate(f"{self.name}: OffsetCommit of {what} has no response")
            raise
