"""The values of options: one of several, pairs, numbers, choices; and the error that all of them raise."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from understudy.control_api.spelling import hint

Given = Mapping[str, Sequence[str]]
"""Option -> its values, those of lowest precedence first."""


class OptionError(Exception):
    """An option that makes no sense; the message is one sentence."""


def last(given: Given, name: str) -> str | None:
    """The strongest voice's value of an option that takes one."""
    values = given.get(name)
    return values[-1] if values else None


def path(given: Given, name: str) -> Path | None:
    """An option that names a file or a folder."""
    value = last(given, name)
    return None if value is None else Path(value)


def pair(text: str, option: str, shape: str) -> tuple[str, str]:
    """KEY=VALUE as its two halves, the value kept as it is."""
    key, mark, value = text.partition("=")
    if not mark or not key.strip():
        raise OptionError(f"{option} needs {shape}, not {text!r}")
    return key.strip(), value


def integer(text: str, option: str, least: int, most: int) -> int:
    """A whole number within bounds."""
    try:
        value = int(text)
    except ValueError:
        raise OptionError(f"{option} needs a whole number, not {text!r}") from None
    if not least <= value <= most:
        raise OptionError(f"{option} needs a number from {least} to {most}, not {value}")
    return value


def one_of(value: str, option: str, choices: Sequence[str]) -> str:
    """Parse a choice, in either case of letters."""
    if value.lower() not in choices:
        raise OptionError(f"{option} is one of {', '.join(choices)}, not {value!r}{hint(value, choices)}")
    return value.lower()
