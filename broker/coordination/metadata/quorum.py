"""Quorum of the metadata log: its controllers, which of them vote, and which leads (KIP-595, KIP-853).

With ``kraft.version`` 0 the voters are configured; with 1 they are records of the log, which requests change. A
controller that is no voter is an observer, as all brokers are.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple
from uuid import UUID

from broker.coordination.metadata.features import KRAFT_VERSION
from protocol.deferred import dataclass
from protocol.errors import ErrorCode, KafkaError
from protocol.java import string_hash, table_capacity, table_order
from protocol.log_records.quorum import Voter
from protocol.types import uuid_text

LISTENER = "CONTROLLER"
"""Default name of the controllers' listener (``controller.listener.names``)."""
NO_LEADER = -1
_NO_DIRECTORY = _NO_INCARNATION = UUID(int=0)
_NEVER = -1
_SET_CAPACITY = 16
"""Of a new ``HashSet``."""
Endpoints = Sequence[tuple[str, str, int]]
"""Listener name, host and port."""


class Fetched(NamedTuple):
    """What a leader knows of a replica that does not fetch now: its end offset, and times in ms since 1970."""

    end_offset: int = _NEVER
    last_fetch_ms: int = _NEVER
    last_caught_up_ms: int = _NEVER


@dataclass(slots=True)
class QuorumController:
    """One controller.

    Attributes:
        id: its id.
        directory_id: the id of its data directory.
        incarnation_id: the id of this run.
        address: host and port of its listener.
        last: what the leader knows of it while it does not follow; ``None``: it follows, or leads.
    """

    id: int
    directory_id: UUID = _NO_DIRECTORY
    incarnation_id: UUID = _NO_INCARNATION
    address: tuple[str, int] = ("localhost", 0)
    last: Fetched | None = None


@dataclass(slots=True)
class Quorum:
    """The controllers and the level of ``kraft.version``.

    Attributes:
        controllers: all of them, by id.
        voters: the ids of those that vote.
        leader_id: the active controller; -1 while there is none.
        version: the level of ``kraft.version``: 1 if the voters are recorded in the log.
        listener: the name of the controllers' listeners.
        listens: whether those listeners are open; if not, an address is that of the controller's broker.
    """

    controllers: dict[int, QuorumController]
    voters: list[int] = field(default_factory=list)
    leader_id: int = NO_LEADER
    version: int = 0
    listener: str = LISTENER
    listens: bool = False

    def voter_records(self) -> tuple[Voter, ...]:
        """Return the voters in the form of the log's record."""
        voters = (self.controllers[each] for each in self.voters)
        return tuple(Voter(each.id, each.directory_id, ((self.listener, *each.address),)) for each in voters)

    def shown_directory(self, controller_id: int) -> UUID:
        """Return a voter's directory id for DescribeQuorum: unknown if the voters are configured."""
        return self.controllers[controller_id].directory_id if self.version else _NO_DIRECTORY

    @property
    def observers(self) -> list[int]:
        """The ids of controllers that do not vote."""
        return [each for each in self.controllers if each not in self.voters]

    def following(self, ids: Iterable[int]) -> list[int]:
        """Return those of these controllers that are up and follow, or lead."""
        return [each for each in ids if self.controllers[each].last is None]

    def misses(self, controller_id: int) -> bool:
        """Whether a controller does not follow, since it is down or hangs."""
        return self.controllers[controller_id].last is not None

    @property
    def has_majority(self) -> bool:
        """Whether enough voters are up to elect a leader and to commit records."""
        return 2 * len(self.following(self.voters)) > len(self.voters)

    def fetched(self, controller_id: int, end_offset: int, now_ms: int) -> Fetched:
        """Return what the leader knows of a replica; ``end_offset`` is that of the leader."""
        return self.controllers[controller_id].last or Fetched(end_offset, now_ms, now_ms)

    def levels(self, features: Mapping[str, int]) -> dict[str, int]:
        """Return all finalized levels: those of the metadata's features, and ``kraft.version`` if above 0."""
        return {**features, KRAFT_VERSION: self.version} if self.version else dict(features)

    # --- changes of the voters ---------------------------------------------------------------------------------------

    def check_added(self, voter_id: int, directory_id: UUID | None, endpoints: Endpoints) -> None:
        """Refuse a new voter, in the order of ``KafkaRaftClient.handleAddVoterRequest`` and ``AddVoterHandler``.

        Raises:
            KafkaError: INVALID_REQUEST, UNSUPPORTED_VERSION, DUPLICATE_VOTER; REQUEST_TIMED_OUT for a controller that
                does not answer, or has another directory.
        """
        directory_id = directory_id or _NO_DIRECTORY
        if voter_id < 0 or directory_id == _NO_DIRECTORY:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Add voter request didn't include a valid voter")
        endpoints = [(name.upper(), host, port) for name, host, port in endpoints]
        if all(name != self.listener for name, _host, _port in endpoints):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Add voter request didn't include the endpoint ({_endpoints(endpoints)}) for the default listener "
                f"ListenerName({self.listener})",
            )
        self._check_recorded("adding")
        if voter_id in self.voters:
            raise KafkaError(
                ErrorCode.DUPLICATE_VOTER,
                f"The voter id for {_key(voter_id, directory_id)} is already part of the set of voters "
                f"{self._voter_keys()}.",
            )
        controller = self.controllers.get(voter_id)
        if controller is None or controller.last is not None:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                "Aborted add voter operation for since API_VERSIONS returned an error BROKER_NOT_AVAILABLE",
            )
        if controller.directory_id != directory_id:
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"Aborted add voter operation for {_key(voter_id, directory_id)} since it is lagging behind",
            )

    def check_removed(self, voter_id: int, directory_id: UUID | None) -> None:
        """Refuse to remove a voter, in the order of ``KafkaRaftClient.handleRemoveVoterRequest``; the last one stays.

        Raises:
            KafkaError: INVALID_REQUEST, UNSUPPORTED_VERSION or VOTER_NOT_FOUND.
        """
        directory_id = directory_id or _NO_DIRECTORY
        if voter_id < 0 or directory_id == _NO_DIRECTORY:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Remove voter request didn't include a valid voter")
        self._check_recorded("removing")
        known = voter_id in self.voters and self.controllers[voter_id].directory_id == directory_id
        if not known or len(self.voters) == 1:
            raise KafkaError(
                ErrorCode.VOTER_NOT_FOUND,
                f"Cannot remove voter {_key(voter_id, directory_id)} from the set of voters {self._voter_keys()}",
            )

    def check_updated(
        self, voter_id: int, directory_id: UUID | None, endpoints: Endpoints, supported: tuple[int, int]
    ) -> None:
        """Refuse an update of a voter, in the order of ``handleUpdateVoterRequest`` and ``UpdateVoterHandler``.

        ``supported`` are the lowest and highest ``kraft.version`` of the voter. A directory is compared only where the
        voters are recorded.

        Raises:
            KafkaError: INVALID_REQUEST or VOTER_NOT_FOUND; REQUEST_TIMED_OUT while the leader cannot commit.
        """
        low, high = supported
        is_voter = voter_id >= 0 and (directory_id or _NO_DIRECTORY) != _NO_DIRECTORY
        if not is_voter or not self._at_listener(endpoints) or not 0 <= low <= high:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "")
        if not self.has_majority:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "")
        if not low <= self.version <= high:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "")
        known = voter_id in self.voters
        if not known or (self.version and self.controllers[voter_id].directory_id != directory_id):
            raise KafkaError(ErrorCode.VOTER_NOT_FOUND, "")

    def _at_listener(self, endpoints: Endpoints) -> list[tuple[str, int]]:
        return [(host, port) for name, host, port in endpoints if name.upper() == self.listener]

    def address_of(self, endpoints: Endpoints) -> tuple[str, int]:
        """Return host and port of a controller's listener, of which there is one."""
        return self._at_listener(endpoints)[-1]

    def _check_recorded(self, what: str) -> None:
        if not self.version:
            reason = f"Cluster doesn't support {what} voter because the kraft.version feature is 0"
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, reason)

    def _voter_keys(self) -> str:
        """Return the voters in the form of a Java ``HashSet`` of ``ReplicaKey``."""
        keys = [(each, self.controllers[each].directory_id) for each in self.voters]
        return "[" + ", ".join(_key(*key) for key in table_order(keys, _hash, _SET_CAPACITY)) + "]"


def check_cluster_id(requested_id: str | None, cluster_id: str) -> None:
    """Refuse a request for another cluster. Raises INCONSISTENT_CLUSTER_ID."""
    if requested_id is not None and requested_id != cluster_id:
        reason = f'The given id "{requested_id}" doesn\'t match the cluster id "{cluster_id}"'
        raise KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID, reason)


def _key(voter_id: int, directory_id: UUID) -> str:
    return f"ReplicaKey(id={voter_id}, directoryId={uuid_text(directory_id)})"


def _hash(key: tuple[int, UUID]) -> int:
    """Return ``ReplicaKey.hashCode``: of the id, and of the directory's id (``Uuid.hashCode``)."""
    voter_id, directory_id = key
    halves = (directory_id.int >> 64) ^ directory_id.int & 0xFFFFFFFFFFFFFFFF
    return (31 * (31 + voter_id) + ((halves >> 32) ^ halves & 0xFFFFFFFF)) & 0xFFFFFFFF


def _endpoints(endpoints: Endpoints) -> str:
    """Return endpoints in the form of Java's ``Endpoints.toString``."""
    known = {name: f"{host}/<unresolved>:{port}" for name, host, port in endpoints}
    names = table_order(list(known), string_hash, table_capacity(len(endpoints)))
    return "Endpoints(endpoints={" + ", ".join(f"ListenerName({name})={known[name]}" for name in names) + "})"
