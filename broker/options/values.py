"""Parsers of option values (pairs, numbers, choices, paths), and the error that they raise."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from control_api.spelling import hint

Arguments = Mapping[str, Sequence[str]]
"""Option -> its values, lowest precedence first."""


class OptionError(Exception):
    """An invalid option; the message is one sentence."""


def last(arguments: Arguments, name: str) -> str | None:
    """Return the value of highest precedence, of an option that takes one value."""
    values = arguments.get(name)
    return values[-1] if values else None


def path(arguments: Arguments, name: str) -> Path | None:
    """Return the path of an option that names a file or a folder."""
    value = last(arguments, name)
    return None if value is None else Path(value)


def pair(text: str, option: str, shape: str) -> tuple[str, str]:
    """Split KEY=VALUE; the value is kept unchanged."""
    key, mark, value = text.partition("=")
    if not mark or not key.strip():
        raise OptionError(f"{option} needs {shape}, not {text!r}")
    return key.strip(), value


def integer(text: str, option: str, least: int, most: int) -> int:
    """Parse an integer within bounds."""
    try:
        value = int(text)
    except ValueError:
        raise OptionError(f"{option} needs a whole number, not {text!r}") from None
    if not least <= value <= most:
        raise OptionError(f"{option} needs a number from {least} to {most}, not {value}")
    return value


def one_of(value: str, option: str, choices: Sequence[str]) -> str:
    """Parse one of several choices, ignoring case."""
    if value.lower() not in choices:
        raise OptionError(f"{option} is one of {', '.join(choices)}, not {value!r}{hint(value, choices)}")
    return value.lower()
