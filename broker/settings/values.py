"""Conversion of settings between text and value, as in Kafka's ConfigDef (core C.2.9, C.3)."""

import math
import re
from collections.abc import Callable

from broker.settings.model import ConfigType, Row, Value
from control_api.plugins import PLUGIN_SETTINGS, is_reference
from protocol.errors import ErrorCode, KafkaError

# Java's String.trim: every character up to and including the space.
BLANKS = "".join(map(chr, range(33)))  # what String.trim removes: everything up to the space


def is_blank(text: str) -> bool:
    """Whether Java's String.trim leaves an empty string."""
    return not text.strip(BLANKS)


_INTEGER = re.compile(r"[+-]?\d+")
_DOUBLE = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)[fFdD]?", re.ASCII)
_NAMED_DOUBLES = {"NaN": math.nan, "Infinity": math.inf, "+Infinity": math.inf, "-Infinity": -math.inf}
_AROUND_COMMAS = " \t\n\r\f\v"
"""The characters of ``\\s`` in Java."""
# In Kafka a class must be loadable. Here nothing is loaded; any name with a package is accepted.
_CLASS = re.compile(r"[^\W\d][\w$]*(\.[^\W\d][\w$]*)+")

_BITS = {ConfigType.SHORT: 15, ConfigType.INT: 31, ConfigType.LONG: 63}  # without the sign


def invalid(name: str, value: str, reason: str) -> str:
    """Build the message of Kafka's ConfigException."""
    return f"Invalid value {value} for configuration {name}: {reason}"


def parse(row: Row, text: str) -> Value:
    """Parse a setting's text.

    Raises:
        KafkaError: INVALID_CONFIG with Kafka's message, if the text is malformed or the value is refused.
    """
    value = _READERS[row.type](row, text)
    if row.check is not None:
        complaint = row.check(row.name, value)
        if complaint is not None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, complaint)
    return value


def _refuse(row: Row, text: str, reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, invalid(row.name, text, reason))


def _boolean(row: Row, text: str) -> Value:
    lowered = text.strip(BLANKS).lower()
    if lowered not in {"true", "false"}:
        raise _refuse(row, text, "Expected value to be either true or false")
    return lowered == "true"


def _integer(row: Row, text: str) -> Value:
    trimmed = text.strip(BLANKS)
    bits = _BITS[row.type]
    # Longer ones do not fit, unless they are zeros; of thousands of digits `int` raises another error.
    if _INTEGER.fullmatch(trimmed) and len(trimmed) <= 64:
        number = int(trimmed)
        if -(1 << bits) <= number < 1 << bits:
            return number
    raise _refuse(row, text, f"Not a number of type {row.type.name}")


def _double(row: Row, text: str) -> Value:
    trimmed = text.strip(BLANKS)
    if trimmed in _NAMED_DOUBLES:
        return _NAMED_DOUBLES[trimmed]
    match = _DOUBLE.fullmatch(trimmed)
    if match is None:
        raise _refuse(row, text, "Not a number of type DOUBLE")
    return float(match[1])


def _string(_row: Row, text: str) -> Value:
    return text.strip(BLANKS)


def elements_of(text: str) -> tuple[str, ...]:
    """Return the elements of a list's text, duplicates included."""
    trimmed = text.strip(BLANKS)
    return tuple(element.strip(_AROUND_COMMAS) for element in trimmed.split(",")) if trimmed else ()


def _list(row: Row, text: str) -> Value:
    elements = elements_of(text)
    # Duplicates are dropped with a warning, except if the list has its own validator (throttled replicas).
    return tuple(dict.fromkeys(elements)) if drops_duplicates(row) else elements


def java_class(text: str) -> bool:
    """Whether a text can be the name of a class: it has a package."""
    return _CLASS.fullmatch(text) is not None


def _class(row: Row, text: str) -> Value:
    trimmed = text.strip(BLANKS)
    if not java_class(trimmed) and not (row.name in PLUGIN_SETTINGS and is_reference(trimmed)):
        raise _refuse(row, text, f"Class {text} could not be found.")
    return trimmed


_READERS: dict[ConfigType, Callable[[Row, str], Value]] = {
    ConfigType.BOOLEAN: _boolean,
    ConfigType.SHORT: _integer,
    ConfigType.INT: _integer,
    ConfigType.LONG: _integer,
    ConfigType.DOUBLE: _double,
    ConfigType.STRING: _string,
    ConfigType.PASSWORD: _string,
    ConfigType.LIST: _list,
    ConfigType.CLASS: _class,
}


def drops_duplicates(row: Row) -> bool:
    """Whether a list of this setting keeps each element once (ConfigDef.ValidList)."""
    return getattr(row.check, "drops_duplicates", False)


def shown(value: Value) -> str | None:
    """Format a value like DescribeConfigs: lists joined with ",", booleans in lower case, doubles as in Java."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return java_double(value)
    if isinstance(value, int):
        return str(value)
    return ",".join(value)


def java_double(value: float) -> str:
    """Format a double like Java's Double.toString: "0.5", "1.0E7", "1.7976931348623157E308"."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    # The range in which Double.toString writes no exponent.
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    # The shortest digits that give the same double; seventeen always do.
    for digits in range(1, 17):
        mantissa, exponent = f"{value:.{digits}e}".split("e")
        if float(f"{mantissa}e{exponent}") == value:
            break
    return f"{mantissa}E{int(exponent)}"
