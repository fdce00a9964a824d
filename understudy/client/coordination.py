# Made from understudy/aio/coordination.py by tools/generate_client.py: change it there.
"""Brokers, coordinators, transactions, producers, groups, and the versions that clients are told."""

from collections.abc import Mapping, Sequence
from typing import Literal, Never

from understudy import results
from understudy.client.part import Part
from understudy.shape import build
from understudy.wishes import between, named


class Broker(Part):
    """One broker identity."""

    def kill(self) -> None:
        """Reset its connections and lose its memory; its log is recovered at `start`."""
        self._ask("brokers kill")

    def stop(self) -> None:
        """Stop it in good order."""
        self._ask("brokers stop")

    def start(self) -> None:
        """Start it again."""
        self._ask("brokers start")

    def pause(self) -> None:
        """Let it accept and read nothing more."""
        self._ask("brokers pause")

    def resume(self) -> None:
        """End the pause."""
        self._ask("brokers resume")

    def remove(self) -> None:
        """Take it out of the cluster for good: it stops in good order and is unregistered."""
        self._ask("brokers remove")


class Brokers(Part):
    """The brokers, by id."""

    def add(self, *, id: int | None = None, rack: str | None = None, port: int | None = None) -> results.Broker:
        """One more broker, empty; by default with the next id, and its first listener's port counted up as well."""
        said = {"id": id, "rack": rack, "port": port}
        given = {name: value for name, value in said.items() if value is not None}
        return build(results.Broker, self._ask("brokers add", **given))

    def __getitem__(self, broker: int) -> Broker:
        """The broker with this id."""
        return Broker(self._send, broker=broker)


class Coordinators(Part):
    """Who coordinates which group and which transactional id."""

    def move(
        self, *, type: Literal["group", "transaction"], key: str, broker: int, loading_ms: int | None = None
    ) -> None:
        """Give the key another coordinator, which for `loading_ms` answers COORDINATOR_LOAD_IN_PROGRESS."""
        extra = {} if loading_ms is None else {"loading_ms": loading_ms}
        self._ask("coordinators move", type=type, key=key, broker=broker, **extra)


class Transaction(Part):
    """A transactional id."""

    def show(self) -> results.Transaction:
        """State, epochs, partitions, pending offsets, deadline and timeline."""
        return build(results.Transaction, self._ask("transactions show"))

    def why(self) -> results.Refusal:
        """The last refusal told in words."""
        return build(results.Refusal, self._ask("transactions why"))

    def hold(self, at: Literal["prepare", "markers", "complete"], *, after_markers: int | None = None) -> None:
        """Stop the next commit or abort at a step; while held the broker answers what Kafka answers there."""
        extra = {} if after_markers is None else {"after_markers": after_markers}
        self._ask("transactions hold", at=at, **extra)

    def release(self) -> None:
        """Let it go on."""
        self._ask("transactions release")

    def abort(self) -> None:
        """Abort it as its timeout would."""
        self._ask("transactions abort")

    def set_epoch(self, epoch: int) -> None:
        """Set the stored epoch, to reach exhaustion."""
        self._ask("transactions set-epoch", epoch=epoch)


class Transactions(Part):
    """The transactional ids."""

    def __getitem__(self, transactional_id: str) -> Transaction:
        """The one of this name."""
        return Transaction(self._send, transactional_id=transactional_id)

    def list(self) -> Sequence[results.Transaction]:
        """All of them."""
        found = (self._ask("transactions list"))["transactions"]
        return [build(results.Transaction, transaction) for transaction in found]


class Producer(Part):
    """A producer id."""

    def show(self) -> results.ProducerLife:
        """What each partition knows of it, and its timeline."""
        return build(results.ProducerLife, self._ask("producers show"))

    def why(self) -> results.Refusal:
        """The last refusal told in words."""
        return build(results.Refusal, self._ask("producers why"))


class Producers(Part):
    """The producer ids, of idempotent and of transactional producers."""

    def __getitem__(self, producer_id: int) -> Producer:
        """The one with this number."""
        return Producer(self._send, producer_id=producer_id)

    def list(self) -> Sequence[results.ProducerLife]:
        """All of them."""
        found = (self._ask("producers list"))["producers"]
        return [build(results.ProducerLife, producer) for producer in found]


class Group(Part):
    """One group."""

    def show(self) -> results.Group:
        """Members, assignment, offsets, lag."""
        return build(results.Group, self._ask("groups show"))

    def why(self) -> results.Refusal:
        """The last refusal of a member told in words."""
        return build(results.Refusal, self._ask("groups why"))

    def rebalance(self) -> None:
        """Rebalance it now."""
        self._ask("groups rebalance")

    def evict(self, member: str) -> None:
        """Remove a member as if its session had timed out."""
        self._ask("groups evict", member=member)


class Groups(Part):
    """The groups, by id."""

    def __getitem__(self, group: str) -> Group:
        """The group with this id."""
        return Group(self._send, group=group)

    def list(self) -> Sequence[results.Group]:
        """All of them."""
        return [build(results.Group, group) for group in (self._ask("groups list"))["groups"]]


class Versions(Part):
    """The versions of the APIs that new connections are told."""

    def show(self) -> Mapping[str, results.VersionRange]:
        """By API."""
        apis = (self._ask("versions show"))["apis"]
        return {name: build(results.VersionRange, limits) for name, limits in apis.items()}

    def set(self, *said_so: Never, as_version: str | None = None, **apis: tuple[int, int] | None) -> None:
        """Behave like a release, or `InitProducerId=(0, 3)` for single APIs; `None` takes one away."""
        named(said_so, 'versions.set(as_version="2.8")')
        said = {} if as_version is None else {"as_version": as_version}
        told = {name: between(name, limits) for name, limits in apis.items()}
        self._ask("versions set", **said, apis=told)
