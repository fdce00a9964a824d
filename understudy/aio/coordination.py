"""Brokers, transactions, producers and groups by id, and the API versions that clients are offered."""

from collections.abc import Mapping
from typing import Never

from understudy import results
from understudy.aio.verbs import (
    AclsVerbs,
    AclVerbs,
    BrokersVerbs,
    BrokerVerbs,
    ControllersVerbs,
    ControllerVerbs,
    GroupsVerbs,
    GroupVerbs,
    ProducersVerbs,
    ProducerVerbs,
    TransactionsVerbs,
    TransactionVerbs,
    UsersVerbs,
    UserVerbs,
    VersionsVerbs,
)
from understudy.from_json import build
from understudy.options import between, named


class AsyncBroker(BrokerVerbs):
    """One broker, by its id."""


class AsyncBrokers(BrokersVerbs):
    """The brokers, by id."""

    def __getitem__(self, broker: int) -> AsyncBroker:
        """Return the broker with this id."""
        return AsyncBroker(self._send, broker=broker)


class AsyncController(ControllerVerbs):
    """One controller of several, by its id."""


class AsyncControllers(ControllersVerbs):
    """The controllers, by id, where they are nodes of their own."""

    def __getitem__(self, controller: int) -> AsyncController:
        """Return the controller with this id."""
        return AsyncController(self._send, controller=controller)


class AsyncTransaction(TransactionVerbs):
    """One transactional id."""


class AsyncTransactions(TransactionsVerbs):
    """The transactional ids."""

    def __getitem__(self, transactional_id: str) -> AsyncTransaction:
        """Return the object of this transactional id."""
        return AsyncTransaction(self._send, transactional_id=transactional_id)


class AsyncProducer(ProducerVerbs):
    """One producer id."""


class AsyncProducers(ProducersVerbs):
    """The producer ids of idempotent and transactional producers."""

    def __getitem__(self, producer_id: int) -> AsyncProducer:
        """Return the object of this producer id."""
        return AsyncProducer(self._send, producer_id=producer_id)


class AsyncGroup(GroupVerbs):
    """One group."""


class AsyncGroups(GroupsVerbs):
    """The groups, by id."""

    def __getitem__(self, group: str) -> AsyncGroup:
        """Return the group with this id."""
        return AsyncGroup(self._send, group=group)


class AsyncVersions(VersionsVerbs):
    """The API versions that new connections are offered."""

    async def show(self) -> Mapping[str, results.VersionRange]:
        """Return API -> range of versions, for the APIs that are offered."""
        apis = (await self._ask("versions show"))["apis"]
        return {name: build(results.VersionRange, limits) for name, limits in apis.items() if limits}

    async def set(self, *positional: Never, as_version: str | None = None, **apis: tuple[int, int] | None) -> None:
        """Offer the versions of a release, or `InitProducerId=(0, 3)` for single APIs; `None` removes an API."""
        named(positional, 'versions.set(as_version="2.8")')
        release = {} if as_version is None else {"as_version": as_version}
        ranges = {name: between(name, limits) for name, limits in apis.items()}
        await self._ask("versions set", **release, apis=ranges)


class AsyncUser(UserVerbs):
    """One SCRAM user."""


class AsyncUsers(UsersVerbs):
    """The SCRAM users, by name."""

    def __getitem__(self, user: str) -> AsyncUser:
        """Return the user with this name, which need not exist yet."""
        return AsyncUser(self._send, user=user)


class AsyncAcls(AclsVerbs):
    """The ACLs, by id."""

    def __getitem__(self, acl: str) -> AclVerbs:
        """Return the ACL with this id."""
        return AclVerbs(self._send, acl=acl)
