"""Members of share groups (KIP-932): they accept, release, reject or renew records, or let their locks expire."""

from collections.abc import Sequence
from typing import Any

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from simulator.clients.client import GROUP, RETRIABLE, Client, Lost
from simulator.clients.consumer import HEARTBEAT_US
from simulator.clients.share_sessions import ACCEPT, GAP, REJECT, RELEASE, RENEW, Answers, Session
from simulator.history import PATIENCE_MS, Place

SHARE_GROUP = "shared"
_CHANNEL = "heartbeats"
_GROUP_RESOURCE, _SET = 32, 0  # ConfigResource.Type.GROUP, AlterConfigOp.OpType.SET
_FENCED = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND})


class ShareMember(Client):
    """A member; ``settings`` are its group's, which it sets before it joins. A ``greedy`` one accepts all records."""

    def __init__(
        self, *arguments: Any, group: str, topics: Sequence[str], settings: dict[str, str], greedy: bool = False
    ) -> None:
        super().__init__(*arguments)
        self.group, self.topics, self.settings, self.greedy = group, topics, settings, greedy
        self.resetting = {_CHANNEL}
        self.epoch = 0
        self.assigned: frozenset[Place] = frozenset()
        self._heartbeat_at_us = self._kept_ms = 0
        self.sessions: dict[int, Session] = {}
        self._version = self.chance.choice((1, 2))
        # Half of the members limit records strictly (KIP-1206).
        self._limited = self.chance.random() < 0.5
        # Few records of a fetch let several members share a batch; an auditor only empties the log.
        self._most = 50 if greedy else self.chance.choice((1, 3, 10))

    async def run(self) -> None:
        """Consume until the client is stopped, then close its sessions and leave."""
        await self.set_up()
        while not self.stopping:
            if not await self.keep():
                await self.pause()
                continue
            await self.consume()
            self.history.progress[self.name] += 1
            await self.pause(400)
        await self.leave()

    async def set_up(self) -> None:
        """Set the group's settings."""
        configs = [AlterableConfig(name, _SET, value) for name, value in sorted(self.settings.items())]
        request = IncrementalAlterConfigsRequest([AlterConfigsResource(_GROUP_RESOURCE, self.group, configs)])
        while True:
            answer = await self.ask_any(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request, self.group)
            (code,) = [each.error_code for each in answer.responses]
            if code is ErrorCode.NONE:
                return
            if code not in RETRIABLE:
                self.history.violate(f"{self.name}: the settings of {self.group} got {code.name}")
                return
            await self.pause()

    # --- membership --------------------------------------------------------------------------------------------------

    async def keep(self) -> bool:
        """Send a heartbeat if one is due; return whether it is a member now."""
        if self.now_us < self._heartbeat_at_us:
            return self.epoch > 0
        self._heartbeat_at_us = self.now_us + HEARTBEAT_US
        names, sent_ms = list(self.topics) if self.epoch == 0 else None, self.world.elapsed_ms()
        request = ShareGroupHeartbeatRequest(self.group, self.name, self.epoch, None, names)
        try:
            answer = await self._ask(request, f"epoch {self.epoch}")
        except Lost:
            self._heartbeat_at_us = 0
            return False
        code = answer.error_code
        if code is not ErrorCode.NONE:
            # A member that waits for a response of a leader sends no heartbeats meanwhile.
            lasts = self.world.elapsed_ms() - self._kept_ms < PATIENCE_MS
            if code not in _FENCED or (self.world.calm and lasts):
                self.history.violate(f"{self.name}: a heartbeat of {self.group} got {code.name}")
            self.epoch, self._heartbeat_at_us = 0, 0
            return False
        self.epoch, self._kept_ms = answer.member_epoch, sent_ms
        if answer.assignment is not None:
            known = await self.topic_names(self.topics)
            self.assigned = frozenset(
                (known[each.topic_id], index)
                for each in answer.assignment.topic_partitions
                for index in each.partitions
            )
            shown = ", ".join(f"{topic}-{index}" for topic, index in sorted(self.assigned))
            self.note(f"   has {shown or 'nothing'} in epoch {self.epoch} of {self.group}")
        return True

    async def _ask(self, request: ShareGroupHeartbeatRequest, what: str) -> Any:
        key = ApiKey.SHARE_GROUP_HEARTBEAT
        what = f"{self.group} {what}"
        return await self.ask_coordinator(GROUP, self.group, key, 1, request, what, channel=_CHANNEL, retry=False)

    async def leave(self) -> None:
        """Close all sessions, and leave the group."""
        for session in list(self.sessions.values()):
            await session.close(self._decide(session))
        if self.epoch > 0:
            try:
                await self._ask(ShareGroupHeartbeatRequest(self.group, self.name, -1), "leaves")
            except Lost:
                return

    # --- records -----------------------------------------------------------------------------------------------------

    async def consume(self) -> None:
        """Fetch once from each leader, with acknowledgements in the same request or in one before it."""
        for broker, places in sorted((await self._by_leader()).items()):
            session = self.sessions.get(broker)
            if session is None:
                session = self.sessions[broker] = Session(self, self.group, broker, self._version)
            answers = self._decide(session)
            if not places:
                await session.close(answers)
                del self.sessions[broker]
                continue
            # Acknowledgements go alone as often as with the next fetch.
            if answers and (self.chance.random() < 0.5 or _renews(answers)):
                if not await session.acknowledge(answers):
                    self._lose(places)
                    continue
                answers = {}
            if not await session.fetch(places, answers, self._most, limited=self._limited):
                self._lose(places)
            for place in places:
                if session.locks.get(place) is None and session.epoch and place not in session.known:
                    self.forget_leader(place)

    async def _by_leader(self) -> dict[int, set[Place]]:
        """Return each leader, and each broker with a session, with the partitions to fetch from it."""
        for place in sorted(self.assigned):
            await self.leader(place)
        # Once more, without waiting: metadata that was read for one may have named another leader for those before it.
        wanted: dict[int, set[Place]] = {broker: set() for broker in self.sessions}
        for place in sorted(self.assigned):
            wanted.setdefault(await self.leader(place), set()).add(place)
        return wanted

    def _lose(self, places: set[Place]) -> None:
        for place in places:
            self.forget_leader(place)

    def _decide(self, session: Session) -> Answers:
        """Choose acknowledgements for locked records; some get none, so that their locks expire."""
        answers: Answers = {}
        for place, locks in sorted(session.locks.items()):
            gaps = session.gaps.get(place, set())
            own: dict[int, int] = {}
            for offset, lock in sorted(locks.items()):
                if not lock.open or self.world.elapsed_ms() >= lock.lasts_until_ms:
                    lock.open = False
                    continue
                kind = GAP if offset in gaps else ACCEPT if self.greedy else self._kind()
                if kind is not None:
                    own[offset] = kind
            for offset in [each for each, lock in locks.items() if not lock.open]:
                del locks[offset]
            if own:
                answers[place] = own
        return answers

    def _kind(self) -> int | None:
        # Most records are accepted, or the group would not move on; each other kind happens in most runs.
        draw = self.chance.random()
        if draw < 0.7:
            return ACCEPT
        if draw < 0.82:
            return RELEASE
        if draw < 0.89:
            return REJECT
        if draw < 0.93 and self._version >= 2:
            return RENEW
        return None


def _renews(answers: Answers) -> bool:
    return any(kind == RENEW for own in answers.values() for kind in own.values())
