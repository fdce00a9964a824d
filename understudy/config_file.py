"""Reads `--config FILE`: TOML with the options' own names, or a real broker's server.properties."""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

from control_api.java_properties import properties
from control_api.spelling import hint


class Option(Protocol):
    """What is needed of an option (`understudy.serve.Option`)."""

    @property
    def name(self) -> str:
        """Return the name on the command line, without dashes."""
        ...

    @property
    def metavar(self) -> str | None:
        """Return the placeholder of its value; None for a flag."""
        ...

    @property
    def repeatable(self) -> bool:
        """Return whether it may be given more than once."""
        ...


class ConfigFileError(Exception):
    """The file cannot be read; the message is one sentence that names it."""


def read(path: str, options: Mapping[str, Option]) -> dict[str, list[str]]:
    """Return option name -> values; a server.properties gives the single key `properties` with KEY=VALUE values."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        message = f"--config {path} cannot be read: {reason}"
        raise ConfigFileError(message) from error
    if file.suffix == ".toml":
        return from_toml(path, text, options)
    if file.suffix == ".properties":
        try:
            return {"properties": [f"{key}={value}" for key, value in properties(text).items()]}
        except ValueError as error:
            message = f"--config {path}: behind \\u there are four hexadecimal digits, in any other case write \\\\"
            raise ConfigFileError(message) from error
    raise ConfigFileError(f"--config {path} is neither *.toml nor *.properties")


def from_toml(path: str, text: str, options: Mapping[str, Option]) -> dict[str, list[str]]:
    """Return the options of a TOML file; repeatable ones are an array of strings or, if they have names, a table."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        last = f"at line {len(text.splitlines())}, the last one"
        message = f"--config {path} is not TOML: {str(error).replace('at end of document', last)}"
        raise ConfigFileError(message) from error
    values_by_option: dict[str, list[str]] = {}
    for key, value in document.items():
        option = options.get(key.replace("_", "-"))
        if option is None or option.name in {"config", "lifeline"}:
            raise ConfigFileError(f"--config {path} names an option that does not exist: {key}{hint(key, options)}")
        values = spelled(option.name, value)
        if option.name == "port":
            values = [",".join(values)]
        if len(values) != 1 and not option.repeatable:
            raise ConfigFileError(f"--config {path}: {key} takes one value")
        if option.metavar is None and not isinstance(value, bool):
            raise ConfigFileError(f"--config {path}: {key} is true or false, without quotes")
        if option.metavar is not None or value is True:
            values_by_option[option.name] = values
    return values_by_option


def spelled(name: str, value: object) -> list[str]:
    """Return a TOML value as it would be written on the command line."""
    if isinstance(value, dict):
        mark = ":" if name == "topic" else "="
        return [f"{key}{mark}{lower_case(inner)}" for key, inner in dotted(value)]
    if isinstance(value, list):
        return [lower_case(inner) for inner in value]
    return [lower_case(value)]


def dotted(table: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Return the keys of a table with their values: TOML parses log.retention.ms without quotes as nested tables."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{rest}", inner) for rest, inner in dotted(value))
        else:
            yield key, value


def lower_case(value: object) -> str:
    """Return a scalar as text; booleans in lower case, like Kafka."""
    return str(value).lower() if isinstance(value, bool) else str(value)
