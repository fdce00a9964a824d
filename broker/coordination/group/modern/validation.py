"""Checks of heartbeats to modern groups that do not depend on the group; each kind has its own order of them."""

from collections.abc import Mapping

from broker.coordination.group.rules import Rule
from broker.coordination.reasons import Refusal
from broker.settings.values import is_blank
from protocol.errors import ErrorCode


def require(rule: Rule, holds: bool, message: str) -> None:
    """Raise INVALID_REQUEST with Kafka's message unless the condition holds."""
    if not holds:
        raise Refusal(ErrorCode.INVALID_REQUEST, *rule, message)


def check_not_blank(rule: Rule, fields: Mapping[str, str | None]) -> None:
    """Raise INVALID_REQUEST for the first field whose text is blank; a null field is accepted."""
    for name, text in fields.items():
        require(rule, text is None or not is_blank(text), f"{name} can't be empty.")
