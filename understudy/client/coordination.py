# Made from understudy/aio/coordination.py by tools/generate_client.py: change it there.
"""Brokers, transactions, producers and groups by id, and the API versions that clients are offered."""

from collections.abc import Mapping
from typing import Never

from understudy import results
from understudy.client.verbs import (
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


class Broker(BrokerVerbs):
    """One broker, by its id."""


class Brokers(BrokersVerbs):
    """The brokers, by id."""

    def __getitem__(self, broker: int) -> Broker:
        """Return the broker with this id."""
        return Broker(self._send, broker=broker)


class Controller(ControllerVerbs):
    """One controller of several, by its id."""


class Controllers(ControllersVerbs):
    """The controllers, by id, where they are nodes of their own."""

    def __getitem__(self, controller: int) -> Controller:
        """Return the controller with this id."""
        return Controller(self._send, controller=controller)


class Transaction(TransactionVerbs):
    """One transactional id."""


class Transactions(TransactionsVerbs):
    """The transactional ids."""

    def __getitem__(self, transactional_id: str) -> Transaction:
        """Return the object of this transactional id."""
        return Transaction(self._send, transactional_id=transactional_id)


class Producer(ProducerVerbs):
    """One producer id."""


class Producers(ProducersVerbs):
    """The producer ids of idempotent and transactional producers."""

    def __getitem__(self, producer_id: int) -> Producer:
        """Return the object of this producer id."""
        return Producer(self._send, producer_id=producer_id)


class Group(GroupVerbs):
    """One group."""


class Groups(GroupsVerbs):
    """The groups, by id."""

    def __getitem__(self, group: str) -> Group:
        """Return the group with this id."""
        return Group(self._send, group=group)


class Versions(VersionsVerbs):
    """The API versions that new connections are offered."""

    def show(self) -> Mapping[str, results.VersionRange]:
        """Return API -> range of versions, for the APIs that are offered."""
        apis = (self._ask("versions show"))["apis"]
        return {name: build(results.VersionRange, limits) for name, limits in apis.items() if limits}

    def set(self, *positional: Never, as_version: str | None = None, **apis: tuple[int, int] | None) -> None:
        """Offer the versions of a release, or `InitProducerId=(0, 3)` for single APIs; `None` removes an API."""
        named(positional, 'versions.set(as_version="2.8")')
        release = {} if as_version is None else {"as_version": as_version}
        ranges = {name: between(name, limits) for name, limits in apis.items()}
        self._ask("versions set", **release, apis=ranges)


class User(UserVerbs):
    """One SCRAM user."""


class Users(UsersVerbs):
    """The SCRAM users, by name."""

    def __getitem__(self, user: str) -> User:
        """Return the user with this name, which need not exist yet."""
        return User(self._send, user=user)


class Acls(AclsVerbs):
    """The ACLs, by id."""

    def __getitem__(self, acl: str) -> AclVerbs:
        """Return the ACL with this id."""
        return AclVerbs(self._send, acl=acl)
