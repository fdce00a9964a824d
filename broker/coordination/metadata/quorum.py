"""Quorum of the metadata log, which has one voter: the controller (KIP-595, KIP-853).

With ``kraft.version`` 0 the voters are configured; with 1 they are records of the log, which requests may change. No
other node can become a voter here, as there is none that responds.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from broker.coordination.metadata.features import KRAFT_VERSION
from protocol.deferred import dataclass
from protocol.errors import ErrorCode, KafkaError
from protocol.java import string_hash, table_capacity, table_order
from protocol.log_records.quorum import Voter
from protocol.types import uuid_text

LISTENER = "CONTROLLER"
"""Default name of the controller's listener (``controller.listener.names``)."""
_NO_DIRECTORY = _NO_INCARNATION = UUID(int=0)
Endpoints = Sequence[tuple[str, str, int]]
"""Listener name, host and port."""


@dataclass(slots=True)
class Quorum:
    """The voter and the level of ``kraft.version``.

    Attributes:
        voter_id: the controller's id.
        directory_id: the id of its data directory.
        incarnation_id: the id of this run of the controller.
        version: the level of ``kraft.version``: 1 if the voters are recorded in the log.
        listener: the name of the controller's listener.
        address: host and port of the controller's listener.
        listens: whether that listener is open; if not, the address is that of the controller's broker.
    """

    voter_id: int
    directory_id: UUID = _NO_DIRECTORY
    incarnation_id: UUID = _NO_INCARNATION
    version: int = 0
    listener: str = LISTENER
    address: tuple[str, int] = ("localhost", 0)
    listens: bool = False

    @property
    def voter(self) -> Voter:
        """The voter in the form of the log's record."""
        return Voter(self.voter_id, self.directory_id, ((self.listener, *self.address),))

    @property
    def shown_directory(self) -> UUID:
        """The voter's directory id for DescribeQuorum: unknown if the voters are configured."""
        return self.directory_id if self.version else _NO_DIRECTORY

    def levels(self, features: Mapping[str, int]) -> dict[str, int]:
        """Return all finalized levels: those of the metadata's features, and ``kraft.version`` if above 0."""
        return {**features, KRAFT_VERSION: self.version} if self.version else dict(features)

    def check_added(self, voter_id: int, directory_id: UUID | None, endpoints: Endpoints) -> None:
        """Refuse a new voter, in the order of ``KafkaRaftClient.handleAddVoterRequest`` and ``AddVoterHandler``.

        Raises:
            KafkaError: INVALID_REQUEST, UNSUPPORTED_VERSION, DUPLICATE_VOTER, or REQUEST_TIMED_OUT for a voter that
                would be valid.
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
        if voter_id == self.voter_id:
            raise KafkaError(
                ErrorCode.DUPLICATE_VOTER,
                f"The voter id for {_key(voter_id, directory_id)} is already part of the set of voters "
                f"[{_key(self.voter_id, self.directory_id)}].",
            )
        raise KafkaError(
            ErrorCode.REQUEST_TIMED_OUT,
            "Aborted add voter operation for since API_VERSIONS returned an error BROKER_NOT_AVAILABLE",
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
        raise KafkaError(
            ErrorCode.VOTER_NOT_FOUND,
            f"Cannot remove voter {_key(voter_id, directory_id)} from the set of voters "
            f"[{_key(self.voter_id, self.directory_id)}]",
        )

    def _check_recorded(self, what: str) -> None:
        if not self.version:
            reason = f"Cluster doesn't support {what} voter because the kraft.version feature is 0"
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, reason)


def check_cluster_id(requested_id: str | None, cluster_id: str) -> None:
    """Refuse a request for another cluster. Raises INCONSISTENT_CLUSTER_ID."""
    if requested_id is not None and requested_id != cluster_id:
        reason = f'The given id "{requested_id}" doesn\'t match the cluster id "{cluster_id}"'
        raise KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID, reason)


def _key(voter_id: int, directory_id: UUID) -> str:
    return f"ReplicaKey(id={voter_id}, directoryId={uuid_text(directory_id)})"


def _endpoints(endpoints: Endpoints) -> str:
    """Return endpoints in the form of Java's ``Endpoints.toString``."""
    known = {name: f"{host}/<unresolved>:{port}" for name, host, port in endpoints}
    names = table_order(list(known), string_hash, table_capacity(len(endpoints)))
    return "Endpoints(endpoints={" + ", ".join(f"ListenerName({name})={known[name]}" for name in names) + "})"
