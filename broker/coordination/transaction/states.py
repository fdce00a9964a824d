"""The tables of the transaction coordinator: which state may follow which, and what becomes of a marker's result.

After Kafka's ``TransactionState`` and ``TransactionMarkerRequestCompletionHandler`` (transactions B.2, B.6). The state
diagram in the documentation is drawn from :data:`VALID_PREVIOUS` by :func:`state_diagram`.
"""

from collections.abc import Mapping
from enum import Enum

from protocol.errors import ErrorCode
from protocol.log_records.transaction import TransactionState

_S = TransactionState

VALID_PREVIOUS: Mapping[TransactionState, frozenset[TransactionState]] = {
    _S.EMPTY: frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.ONGOING: frozenset({_S.ONGOING, _S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.PREPARE_COMMIT: frozenset({_S.ONGOING}),
    # From Empty and Complete*: the abort of a transaction that sent nothing (KIP-890, from 4.0).
    _S.PREPARE_ABORT: frozenset({_S.ONGOING, _S.PREPARE_EPOCH_FENCE, _S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.COMPLETE_COMMIT: frozenset({_S.PREPARE_COMMIT}),
    _S.COMPLETE_ABORT: frozenset({_S.PREPARE_ABORT}),
    _S.DEAD: frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.PREPARE_EPOCH_FENCE: frozenset({_S.ONGOING}),
}
"""State -> the states that it may follow."""

IDLE = frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})
"""No transaction is open; such an id may expire."""

COMPLETED_BY: Mapping[TransactionState, TransactionState] = {
    _S.PREPARE_COMMIT: _S.COMPLETE_COMMIT,
    _S.PREPARE_ABORT: _S.COMPLETE_ABORT,
}
"""What a prepared transaction becomes once all its markers are written."""

BY_TEXT: Mapping[str, TransactionState] = {state.text: state for state in TransactionState}
"""The eight names that state filters accept, as they are spelled."""


class MarkerFate(Enum):
    """What is done about a partition after its marker was sent."""

    WRITTEN = "written"
    AGAIN = "again"
    """Sent again, to the partition's leader at that time."""
    FENCED = "fenced"
    """Another coordinator took over: this one sends no marker of the transaction any more."""
    STUCK = "stuck"
    """Kafka does not expect that and gives up; the transaction stays prepared until the next load."""


_FATES: Mapping[ErrorCode, MarkerFate] = {
    ErrorCode.NONE: MarkerFate.WRITTEN,
    # A partition that cannot hold markers holds none of the transaction's records either.
    ErrorCode.UNSUPPORTED_VERSION: MarkerFate.WRITTEN,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: MarkerFate.WRITTEN,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: MarkerFate.AGAIN,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: MarkerFate.AGAIN,
    ErrorCode.REQUEST_TIMED_OUT: MarkerFate.AGAIN,
    ErrorCode.NETWORK_EXCEPTION: MarkerFate.AGAIN,
    ErrorCode.NOT_ENOUGH_REPLICAS: MarkerFate.AGAIN,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: MarkerFate.AGAIN,
    ErrorCode.KAFKA_STORAGE_ERROR: MarkerFate.AGAIN,
    ErrorCode.INVALID_PRODUCER_EPOCH: MarkerFate.FENCED,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: MarkerFate.FENCED,
}


def marker_fate(result: ErrorCode) -> MarkerFate:
    """What follows from one partition's answer to its marker (transactions B.6)."""
    return _FATES.get(result, MarkerFate.STUCK)


_APPEND_ERRORS: Mapping[ErrorCode, ErrorCode] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def append_error(code: ErrorCode) -> ErrorCode:
    """What a client hears when its transition could not be appended to the log (transactions B.4)."""
    return _APPEND_ERRORS.get(code, code)


def state_diagram() -> str:
    """The states and the steps between them as a Mermaid diagram."""
    steps = [
        f"    {before.text} --> {after.text}"
        for after, befores in VALID_PREVIOUS.items()
        for before in sorted(befores)
        if before is not after
    ]
    return "\n".join(["stateDiagram-v2", f"    [*] --> {_S.EMPTY.text}", *steps, f"    {_S.DEAD.text} --> [*]"])
