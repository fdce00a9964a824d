"""Configuration providers (KIP-421): `${provider:path:key}` in server.properties is replaced when the broker starts.

Follows Kafka's ConfigTransformer, AbstractConfig and the three providers that Kafka ships: files, directories and the
environment. Any other class is refused, because no Java class can be loaded here.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from broker.options.values import OptionError, pair
from control_api.java_properties import properties

_VARIABLE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
_PACKAGE = "org.apache.kafka.common.config.provider."

Provider = Callable[[str, str], str | None]
"""Path and key -> the value; None if there is none, so that the variable is left as it is."""


def resolved(lines: Iterable[str], sets: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the settings of server.properties and of `--set`, as KEY=VALUE, with all provider variables replaced.

    Raises:
        OptionError: a provider's class is not one of Kafka's, or a provider refuses a path.
    """
    file = dict(pair(line, "server.properties", "KEY=VALUE") for line in lines)
    command_line = dict(pair(text, "--set", "KEY=VALUE") for text in sets)
    providers = _providers({**file, **command_line})

    def replaced(settings: Mapping[str, str]) -> list[str]:
        return [f"{name}={_replace(name, value, providers)}" for name, value in settings.items()]

    return replaced(file), replaced(command_line)


def _providers(settings: Mapping[str, str]) -> dict[str, Provider]:
    """Return the providers that `config.providers` lists and that have a class."""
    providers: dict[str, Provider] = {}
    for name in filter(None, map(str.strip, settings.get("config.providers", "").split(","))):
        prefix = f"config.providers.{name}."
        class_name = settings.get(f"{prefix}class")
        if class_name is None:
            continue
        make = _CLASSES.get(class_name.removeprefix(_PACKAGE))
        if make is None:
            supported = ", ".join(_PACKAGE + each for each in _CLASSES)
            raise OptionError(f"{prefix}class={class_name} is not supported; supported are {supported}")
        parameters = f"{prefix}param."
        providers[name] = make(
            {key.removeprefix(parameters): value for key, value in settings.items() if key.startswith(parameters)}
        )
    return providers


def _replace(name: str, value: str, providers: Mapping[str, Provider]) -> str:
    def of(match: re.Match[str]) -> str:
        provider, path, key = match.groups()
        if provider not in providers:
            return match[0]
        try:
            text = providers[provider](path or "", key)
        except (OSError, UnicodeDecodeError, ValueError) as error:
            raise OptionError(f"{name}={value}: {error}") from error
        return match[0] if text is None else text

    return _VARIABLE.sub(of, value)


def _allowed(path: Path, parameters: Mapping[str, str]) -> bool:
    """Whether `allowed.paths` contains the path or a parent of it; without the parameter every path is allowed."""
    allowed = parameters.get("allowed.paths")
    if not allowed:
        return True
    normal = Path(os.path.normpath(path))
    return any(normal.is_relative_to(os.path.normpath(directory)) for directory in allowed.split(","))


def _file(parameters: Mapping[str, str]) -> Provider:
    """FileConfigProvider: the path names a properties file, the key a property in it."""

    def value(path: str, key: str) -> str | None:
        if not path or not _allowed(Path(path), parameters):
            return None
        return properties(Path(path).read_text()).get(key)

    return value


def _directory(parameters: Mapping[str, str]) -> Provider:
    """DirectoryConfigProvider: the key is the name of a file in the directory, its content the value."""

    def value(path: str, key: str) -> str | None:
        file = Path(path) / key
        if not path or not _allowed(Path(path), parameters) or not file.is_file():
            return None
        return file.read_text()

    return value


def _environment(parameters: Mapping[str, str]) -> Provider:
    """EnvVarConfigProvider: the key is an environment variable; a path is refused."""
    written = parameters.get("allowlist.pattern", ".*")
    try:
        pattern = re.compile(written)
    except re.error as error:
        raise OptionError(f"allowlist.pattern={written} of a provider is not a regular expression: {error}") from None

    def value(path: str, key: str) -> str | None:
        if path:
            raise ValueError(f"Path is not supported for EnvVarConfigProvider, invalid value '{path}'")
        return os.environ.get(key) if pattern.fullmatch(key) else None

    return value


_CLASSES: dict[str, Callable[[Mapping[str, str]], Provider]] = {
    "FileConfigProvider": _file,
    "DirectoryConfigProvider": _directory,
    "EnvVarConfigProvider": _environment,
}
