"""Regular expressions that clients send, in RE2's syntax as Kafka reads them (re2j): never slow, whatever they say."""

from collections.abc import Callable
from functools import lru_cache

import re2

from protocol.errors import ErrorCode, KafkaError

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.never_capture = True


@lru_cache(maxsize=256)
def matcher(pattern: str) -> Callable[[str], bool]:
    """Tells of a text whether all of it matches.

    Raises:
        KafkaError: INVALID_REGULAR_EXPRESSION.
    """
    try:
        compiled = re2.compile(pattern, _OPTIONS)
    except re2.error as error:
        why = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {why}.",
        ) from error
    return lambda text: compiled.fullmatch(text) is not None
