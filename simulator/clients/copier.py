"""A copier: consumes a topic, produces to another one, and commits both in one transaction (KIP-98, KIP-447)."""

from collections.abc import Sequence

from simulator.clients.client import Client
from simulator.clients.consumer import Member, Records
from simulator.clients.producer import Membership, Producer, Refused
from simulator.history import Place

REJOIN = frozenset({"ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS"})


class Copier(Client):
    """Copies exactly once: each committed record of the source is in the target once, and its offset is committed."""

    def __init__(
        self, *arguments: object, group: str, source: str, target: str, transactional_id: str, newer: bool
    ) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self._member = Member(self, group, [source])
        self._target = target
        self._producer = Producer(self, self.name, transactional_id, newer=newer)
        self.resets = not newer

    async def run(self) -> None:
        """Copy until the client is stopped or fenced."""
        member = self._member
        try:
            await self._producer.initialize()
            while not self.stopping:
                if not await member.keep():
                    continue
                batches = {place: await member.fetcher.fetch(place) for place in sorted(member.assigned)}
                # Few, so that a run has many transactions.
                batches = {place: records[:4] for place, records in batches.items() if records}
                if batches:
                    await self._copy(batches)
                self.history.progress[self.name] += 1
                await self.pause(400)
        except Refused as error:
            self.note(f"   ends: {error}")
        await member.leave()

    async def _copy(self, batches: dict[Place, Records]) -> None:
        """Run one transaction; if it is aborted, read again from the committed offsets. Raises Refused."""
        member, producer, transaction = self._member, self._producer, self._producer.begin()
        offsets = {place: records[-1][0] + 1 for place, records in batches.items()}
        by = Membership(member.group, member.generation, member.member_id)
        # Most commit: an abort copies the same records again.
        commit = self.chance.random() < 0.85
        try:
            for place, records in batches.items():
                target = self._target, place[1] % self.world.topics[self._target]
                values: Sequence[bytes] = [b"%s/%d" % (_name(place), offset) for offset, _ in records]
                await producer.send(target, len(values), transaction, values)
            await producer.send_offsets(transaction, by, offsets)
        except Refused as error:
            self.note(f"   aborts: {error}")
            await producer.end(transaction, commit=False)
            if error.code.name in REJOIN:
                member.go_on(error.code)
            elif not producer.newer:
                await producer.initialize(come_back=True)
            await self._rewind()
            return
        await producer.end(transaction, commit=commit)
        if commit:
            member.fetcher.positions.update(offsets)
        else:
            await self._rewind()

    async def _rewind(self) -> None:
        if self._member.generation >= 0:
            await self._member.load_positions()


def _name(place: Place) -> bytes:
    return b"%s-%d" % (place[0].encode(), place[1])
