"""Validation of topic names (core B.1; Kafka's ``Topic``)."""

import re

from protocol.errors import ErrorCode, KafkaError
from protocol.java import utf16_length

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")
_MAX_LENGTH = 249  # Topic.MAX_NAME_LENGTH: 255 of a file name, less a hyphen and five digits


def check_topic_name(name: str) -> None:
    """Check a topic name by Kafka's rules, in their order (core B.1 N1 to N5).

    Raises:
        KafkaError: INVALID_TOPIC_EXCEPTION with Kafka's message.
    """
    complaint = complaint_of(name)
    if complaint is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {complaint}")


def complaint_of(name: str) -> str | None:
    """Return Kafka's reason why a topic name is invalid; None if it is valid."""
    if not name:
        return "the empty string is not allowed"
    if name in {".", ".."}:
        return f"'{name}' is not allowed"
    # Java counts UTF-16 units.
    if utf16_length(name) > _MAX_LENGTH:
        return f"the length of '{name}' is longer than the max allowed length {_MAX_LENGTH}"
    if _LEGAL.fullmatch(name) is None:
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


def may_collide(name: str) -> bool:
    """Whether the name contains '.' or '_', which metric names do not distinguish."""
    return "." in name or "_" in name


def colliding_form(name: str) -> str:
    """Return a form of the name that is equal for names that collide."""
    return name.replace(".", "_")
