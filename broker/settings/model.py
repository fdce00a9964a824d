"""The type of a setting's row in the tables, and the enums of the config APIs.

A row holds what the broker needs at every start. The documentation, read only by DescribeConfigs with
IncludeDocumentation, is under the same name in `broker.settings.docs`.
"""

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

Value = bool | int | float | str | tuple[str, ...] | None
"""A parsed value: a list is a tuple of strings, passwords and classes are strings, null is None."""

Check = Callable[[str, Value], str | None]
"""Validates a parsed value of the named setting: returns Kafka's error message, or None."""


class ConfigType(IntEnum):
    """A setting's type, as DescribeConfigs reports it (core C.1)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSource(IntEnum):
    """The source of an effective value, as DescribeConfigs reports it (core C.1)."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class ConfigResourceType(IntEnum):
    """The resource types of the config APIs (core C.1)."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Operation(IntEnum):
    """The operations of IncrementalAlterConfigs on one key (core C.1)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class UpdateMode(IntEnum):
    """Whether and where a broker setting may change at run time (core appendix 3, column mode)."""

    READ_ONLY = 0
    CLUSTER_WIDE = 1  # for one broker ("1") or for all ("")
    PER_BROKER = 2  # for one broker only


class Visibility(IntEnum):
    """Whether DescribeConfigs lists a setting."""

    PUBLIC = 0  # always
    WHEN_SET = 1  # Kafka's internal settings, and Understudy's own
    PLUGIN = 2  # settings of Kafka's plugins: when set, with an unknown type


class Synonym(NamedTuple):
    """A broker setting that supplies a topic's default, and the factor that converts it to the topic's unit."""

    name: str
    factor: int = 1


class Row(NamedTuple):
    """One setting."""

    name: str
    type: ConfigType
    default: Value
    check: Check | None = None
    mode: UpdateMode = UpdateMode.READ_ONLY
    visibility: Visibility = Visibility.PUBLIC
    synonyms: tuple[Synonym, ...] = ()
    described_as: ConfigType | None = None
    """The type in the emulated release, if it differs from the current one."""
    described_default: tuple[str | None] | None = None
    """The default in the emulated release, as text, if it differs and has no effect here."""

    @property
    def sensitive(self) -> bool:
        """Whether its value is never returned (core C.2.9)."""
        return self.type is ConfigType.PASSWORD


BOOLEAN = ConfigType.BOOLEAN
STRING = ConfigType.STRING
INT = ConfigType.INT
SHORT = ConfigType.SHORT
LONG = ConfigType.LONG
DOUBLE = ConfigType.DOUBLE
LIST = ConfigType.LIST
CLASS = ConfigType.CLASS
PASSWORD = ConfigType.PASSWORD

CLUSTER = UpdateMode.CLUSTER_WIDE
PER_BROKER = UpdateMode.PER_BROKER
WHEN_SET = Visibility.WHEN_SET
PLUGIN = Visibility.PLUGIN

MAX_INT = 2**31 - 1  # Java's Integer.MAX_VALUE
MAX_LONG = 2**63 - 1  # Java's Long.MAX_VALUE
