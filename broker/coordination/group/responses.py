"""Responses that several rules share, and the error codes for failed appends."""

from protocol.errors import ErrorCode
from protocol.messages.join_group import JoinGroupResponse

_APPEND_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}


def error_for_clients(code: ErrorCode) -> ErrorCode:
    """Return the error code that clients receive for a failed append (groups 0.6.3)."""
    return _APPEND_ERRORS.get(code, code)


def join_refused(code: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    """Return a JoinGroupResponse with an error: no generation, no protocol, no members (groups A.4)."""
    return JoinGroupResponse(code, protocol_name=None, member_id=member_id)
