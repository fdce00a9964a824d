"""Parses ``sasl.jaas.config``: a login module, a flag, options, a semicolon (KIP-85, KIP-103)."""

import re

_SPACE = r"(?:\s|//[^\n]*|/\*[\s\S]*?\*/)*+"
"""Blanks and Java's comments."""
_TOKEN = re.compile(_SPACE + r'(?:"((?:[^"\\]|\\.)*)"|([^\s=;"]+))')
_EQUALS = re.compile(_SPACE + "=")
_END = re.compile(f"{_SPACE};{_SPACE}")
_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})
USER = "user_"
"""The prefix of PLAIN's options with users' passwords."""


class JaasError(ValueError):
    """An invalid JAAS entry; the message is one sentence."""


def options_of(text: str) -> dict[str, str]:
    """Return the options of the one login module in a value.

    Raises:
        JaasError: it is invalid, or has more than one login module.
    """
    _, at = _token(text, 0, "the class of a login module")
    flag, at = _token(text, at, "a flag such as required")
    if flag.lower() not in _FLAGS:
        raise JaasError(f"{flag!r} is not a flag; there are {', '.join(sorted(_FLAGS))}")
    options: dict[str, str] = {}
    while not (end := _END.match(text, at)):
        name, at = _token(text, at, "an option or a semicolon")
        equals = _EQUALS.match(text, at)
        if equals is None:
            raise JaasError(f"option {name} needs =VALUE")
        options[name], at = _token(text, equals.end(), f"a value of {name}")
    if end.end() != len(text):
        raise JaasError("only one login module may be named, and nothing may follow its semicolon")
    return options


def _token(text: str, at: int, what: str) -> tuple[str, int]:
    token = _TOKEN.match(text, at)
    if token is None:
        raise JaasError(f"{what} is missing at character {at}")
    quoted, plain = token.groups()
    return (re.sub(r"\\(.)", r"\1", quoted) if plain is None else plain), token.end()
