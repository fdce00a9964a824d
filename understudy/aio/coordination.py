"""Brokers, coordinators, transactions, producers, groups, and the versions that clients are told."""

from collections.abc import Mapping, Sequence
from typing import Literal, Never

from understudy import results
from understudy.aio.part import AsyncPart
from understudy.shape import build
from understudy.wishes import between, named


class AsyncBroker(AsyncPart):
    """One broker identity."""

    async def kill(self) -> None:
        """Reset its connections and lose its memory; its log is recovered at `start`."""
        await self._ask("brokers kill")

    async def stop(self) -> None:
        """Stop it in good order."""
        await self._ask("brokers stop")

    async def start(self) -> None:
        """Start it again."""
        await self._ask("brokers start")

    async def pause(self) -> None:
        """Let it accept and read nothing more."""
        await self._ask("brokers pause")

    async def resume(self) -> None:
        """End the pause."""
        await self._ask("brokers resume")

    async def remove(self) -> None:
        """Take it out of the cluster for good: it stops in good order and is unregistered."""
        await self._ask("brokers remove")


class AsyncBrokers(AsyncPart):
    """The brokers, by id."""

    async def add(self, *, id: int | None = None, rack: str | None = None, port: int | None = None) -> results.Broker:
        """One more broker, empty; by default with the next id, and its first listener's port counted up as well."""
        said = {"id": id, "rack": rack, "port": port}
        given = {name: value for name, value in said.items() if value is not None}
        return build(results.Broker, await self._ask("brokers add", **given))

    def __getitem__(self, broker: int) -> AsyncBroker:
        """The broker with this id."""
        return AsyncBroker(self._send, broker=broker)


class AsyncCoordinators(AsyncPart):
    """Who coordinates which group and which transactional id."""

    async def move(
        self, *, type: Literal["group", "transaction"], key: str, broker: int, loading_ms: int | None = None
    ) -> None:
        """Give the key another coordinator, which for `loading_ms` answers COORDINATOR_LOAD_IN_PROGRESS."""
        extra = {} if loading_ms is None else {"loading_ms": loading_ms}
        await self._ask("coordinators move", type=type, key=key, broker=broker, **extra)


class AsyncTransaction(AsyncPart):
    """A transactional id."""

    async def show(self) -> results.Transaction:
        """State, epochs, partitions, pending offsets, deadline and timeline."""
        return build(results.Transaction, await self._ask("transactions show"))

    async def why(self) -> results.Refusal:
        """The last refusal told in words."""
        return build(results.Refusal, await self._ask("transactions why"))

    async def hold(self, at: Literal["prepare", "markers", "complete"], *, after_markers: int | None = None) -> None:
        """Stop the next commit or abort at a step; while held the broker answers what Kafka answers there."""
        extra = {} if after_markers is None else {"after_markers": after_markers}
        await self._ask("transactions hold", at=at, **extra)

    async def release(self) -> None:
        """Let it go on."""
        await self._ask("transactions release")

    async def abort(self) -> None:
        """Abort it as its timeout would."""
        await self._ask("transactions abort")

    async def set_epoch(self, epoch: int) -> None:
        """Set the stored epoch, to reach exhaustion."""
        await self._ask("transactions set-epoch", epoch=epoch)


class AsyncTransactions(AsyncPart):
    """The transactional ids."""

    def __getitem__(self, transactional_id: str) -> AsyncTransaction:
        """The one of this name."""
        return AsyncTransaction(self._send, transactional_id=transactional_id)

    async def list(self) -> Sequence[results.Transaction]:
        """All of them."""
        found = (await self._ask("transactions list"))["transactions"]
        return [build(results.Transaction, transaction) for transaction in found]


class AsyncProducer(AsyncPart):
    """A producer id."""

    async def show(self) -> results.ProducerLife:
        """What each partition knows of it, and its timeline."""
        return build(results.ProducerLife, await self._ask("producers show"))

    async def why(self) -> results.Refusal:
        """The last refusal told in words."""
        return build(results.Refusal, await self._ask("producers why"))


class AsyncProducers(AsyncPart):
    """The producer ids, of idempotent and of transactional producers."""

    def __getitem__(self, producer_id: int) -> AsyncProducer:
        """The one with this number."""
        return AsyncProducer(self._send, producer_id=producer_id)

    async def list(self) -> Sequence[results.ProducerLife]:
        """All of them."""
        found = (await self._ask("producers list"))["producers"]
        return [build(results.ProducerLife, producer) for producer in found]


class AsyncGroup(AsyncPart):
    """One group."""

    async def show(self) -> results.Group:
        """Members, assignment, offsets, lag."""
        return build(results.Group, await self._ask("groups show"))

    async def why(self) -> results.Refusal:
        """The last refusal of a member told in words."""
        return build(results.Refusal, await self._ask("groups why"))

    async def rebalance(self) -> None:
        """Rebalance it now."""
        await self._ask("groups rebalance")

    async def evict(self, member: str) -> None:
        """Remove a member as if its session had timed out."""
        await self._ask("groups evict", member=member)


class AsyncGroups(AsyncPart):
    """The groups, by id."""

    def __getitem__(self, group: str) -> AsyncGroup:
        """The group with this id."""
        return AsyncGroup(self._send, group=group)

    async def list(self) -> Sequence[results.Group]:
        """All of them."""
        return [build(results.Group, group) for group in (await self._ask("groups list"))["groups"]]


class AsyncVersions(AsyncPart):
    """The versions of the APIs that new connections are told."""

    async def show(self) -> Mapping[str, results.VersionRange]:
        """By API."""
        apis = (await self._ask("versions show"))["apis"]
        return {name: build(results.VersionRange, limits) for name, limits in apis.items()}

    async def set(self, *said_so: Never, as_version: str | None = None, **apis: tuple[int, int] | None) -> None:
        """Behave like a release, or `InitProducerId=(0, 3)` for single APIs; `None` takes one away."""
        named(said_so, 'versions.set(as_version="2.8")')
        said = {} if as_version is None else {"as_version": as_version}
        told = {name: between(name, limits) for name, limits in apis.items()}
        await self._ask("versions set", **said, apis=told)
