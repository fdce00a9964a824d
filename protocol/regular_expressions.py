"""Regular expressions of clients and administrators, in RE2's syntax as re2j reads it: matching takes linear time."""

import re
from functools import lru_cache
from typing import Protocol

_REASONS = {
    "missing )": "missing closing )",
    "unexpected )": "regexp/syntax: internal error",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "trailing \\": "trailing backslash at end of expression",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
}
"""RE2's message for an error -> that of re2j, its Java counterpart, if they differ."""
_ESCAPE = re.compile(r"\\Q.*?(?:\\E|\Z)|(?P<byte>\\C)|\\.", re.DOTALL)
_GROUP_NAME = re.compile(r"\\Q.*?(?:\\E|\Z)|\\.|\(\?P?<(?P<name>\w+)>", re.DOTALL)


class Pattern(Protocol):
    """Compiled pattern."""

    def fullmatch(self, text: str) -> object | None:
        """Return an object, not None, if the whole text matches."""
        ...


class InvalidPattern(Exception):
    """Invalid pattern; the message is re2j's."""


@lru_cache(maxsize=256)  # ours: more patterns than tests use at a time
def compiled(pattern: str) -> Pattern:
    """Compile a pattern.

    Raises:
        InvalidPattern: re2j would reject it.
    """
    if any(token["byte"] for token in _ESCAPE.finditer(pattern)):  # a single byte, which Java's strings do not have
        raise InvalidPattern("invalid escape sequence")
    names = [token["name"] for token in _GROUP_NAME.finditer(pattern) if token["name"]]
    import re2  # noqa: PLC0415 - few clients send a pattern, and each server would import it at its start

    options = re2.Options()
    options.log_errors, options.never_capture = False, True
    try:
        expression: Pattern = re2.compile(pattern, options)
    except re2.error as error:
        why = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
        reason = why.partition(": ")[0]
        raise InvalidPattern(_REASONS.get(reason, reason)) from error
    if len(set(names)) < len(names):
        raise InvalidPattern("duplicate capture group name")
    return expression
