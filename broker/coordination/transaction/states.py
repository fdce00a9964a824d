"""Tables of the transaction coordinator: valid transitions, results of markers, errors of appends.

After Kafka's ``TransactionState`` and ``TransactionMarkerRequestCompletionHandler`` (transactions B.2, B.6). The state
diagram in the documentation is drawn from :data:`VALID_PREVIOUS` by :func:`state_diagram`.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from protocol.errors import ErrorCode
from protocol.log_records.transaction import TransactionState

_S = TransactionState

KIP_98, KIP_360, KIP_890 = "KIP-98", "KIP-360", "KIP-890"
"""Sources of the rules: transactions, retries of InitProducerId, an epoch per transaction."""

VALID_PREVIOUS: Mapping[TransactionState, frozenset[TransactionState]] = {
    _S.EMPTY: frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.ONGOING: frozenset({_S.ONGOING, _S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.PREPARE_COMMIT: frozenset({_S.ONGOING}),
    # From Empty and Complete*: an abort without a transaction (KIP-890, since 4.0).
    _S.PREPARE_ABORT: frozenset({_S.ONGOING, _S.PREPARE_EPOCH_FENCE, _S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.COMPLETE_COMMIT: frozenset({_S.PREPARE_COMMIT}),
    _S.COMPLETE_ABORT: frozenset({_S.PREPARE_ABORT}),
    _S.DEAD: frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.PREPARE_EPOCH_FENCE: frozenset({_S.ONGOING}),
}
"""State -> the states from which it is entered."""

IDLE: Final = frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})
"""States without an open transaction; such an id may expire."""

COMPLETED_BY: Mapping[TransactionState, TransactionState] = {
    _S.PREPARE_COMMIT: _S.COMPLETE_COMMIT,
    _S.PREPARE_ABORT: _S.COMPLETE_ABORT,
}
"""Prepared state -> the state after all its markers are written."""

BY_TEXT: Mapping[str, TransactionState] = {state.text: state for state in TransactionState}
"""State name -> state, as ListTransactions filters spell them."""


class MarkerFate(Enum):
    """The consequence of a marker's result for a partition."""

    WRITTEN = "written"
    RETRY = "retry"
    """Sent again, to the leader at that time."""
    FENCED = "fenced"
    """Another coordinator took over: this one sends no more markers of the transaction."""
    STUCK = "stuck"
    """Unexpected by Kafka, which does not retry; the transaction stays prepared until the next load."""


_FATES: Mapping[ErrorCode, MarkerFate] = {
    ErrorCode.NONE: MarkerFate.WRITTEN,
    # A partition that cannot have markers has no records of the transaction either.
    ErrorCode.UNSUPPORTED_VERSION: MarkerFate.WRITTEN,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: MarkerFate.WRITTEN,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: MarkerFate.RETRY,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: MarkerFate.RETRY,
    ErrorCode.REQUEST_TIMED_OUT: MarkerFate.RETRY,
    ErrorCode.NETWORK_EXCEPTION: MarkerFate.RETRY,  # the connection to the leader was lost
    ErrorCode.NOT_ENOUGH_REPLICAS: MarkerFate.RETRY,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: MarkerFate.RETRY,
    ErrorCode.KAFKA_STORAGE_ERROR: MarkerFate.RETRY,
    ErrorCode.INVALID_PRODUCER_EPOCH: MarkerFate.FENCED,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: MarkerFate.FENCED,
}


def marker_fate(result: ErrorCode) -> MarkerFate:
    """Return the consequence of one partition's marker result (transactions B.6)."""
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
    """Return the error code that a client receives if its transition could not be appended (transactions B.4)."""
    return _APPEND_ERRORS.get(code, code)


def state_diagram() -> str:
    """Return the states and transitions as a Mermaid diagram."""
    steps = [
        f"    {before.text} --> {after.text}"
        for after, befores in VALID_PREVIOUS.items()
        for before in sorted(befores)
        if before is not after
    ]
    return "\n".join(["stateDiagram-v2", f"    [*] --> {_S.EMPTY.text}", *steps, f"    {_S.DEAD.text} --> [*]"])
