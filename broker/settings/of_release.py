"""The tables of settings in an older release: the current ones without newer settings, with removed ones.

What releases define differently is recorded data (`broker.settings.releases.definitions`). Settings that Understudy
itself needs have a value even if the release does not know them; they are neither described nor accepted from clients.
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, Protocol

from broker.settings.checks import at_least, between, one_of, version_of_kafka
from broker.settings.model import Check, ConfigType, Row, Synonym, UpdateMode, Visibility
from broker.settings.tables import BROKER, GROUP, TOPIC
from broker.settings.values import parse, shown

_MODES: Final = {"fixed": UpdateMode.READ_ONLY, "cluster": UpdateMode.CLUSTER_WIDE, "broker": UpdateMode.PER_BROKER}
_RANGE = re.compile(r"\[(-?\d+),\.\.\.(?:,(\d+))?\]")
_CHOICE = re.compile(r"\[(\w+(?:, \w+)*)\]")
_VERSIONS = re.compile(r"versions up to (\S+)")
_WITHOUT_EFFECT: Final = (
    "authorizer.class.name",
    "delete.topic.enable",
    "group.consumer.assignors",
    "listener",
    "metric.reporters",
    "node.id",
    "principal.builder.class",
    "process.roles",
    "remote.log.",
    "sasl.oauthbearer.",
    "ssl.",
)
"""Prefixes of settings whose old default is only described: applied, it would break features or name Java classes."""


class Defined(Protocol):
    """A setting as a release defines it (`broker.settings.releases.Definition`)."""

    @property
    def type(self) -> str:
        """The name of its ConfigDef.Type."""

    @property
    def default(self) -> str | None:
        """The default, as text."""

    @property
    def check(self) -> str | None:
        """The text that its validator prints."""

    @property
    def mode(self) -> str:
        """`fixed`, `cluster` or `broker`."""

    @property
    def internal(self) -> bool:
        """Whether DescribeConfigs omits it."""

    @property
    def known(self) -> bool:
        """Whether the release had it."""


class Tables(NamedTuple):
    """The settings of a release.

    Attributes:
        broker, topic, group: name -> row, of those that the release has.
        removed: those of the broker's rows that are not in the current tables.
        missing: names in the current tables that the release does not have.
        defaults: defaults of broker settings that differ and take effect, as texts; for settings that came later, their
            first default, which kept the behaviour unchanged.
    """

    broker: Mapping[str, Row] = BROKER
    topic: Mapping[str, Row] = TOPIC
    group: Mapping[str, Row] = GROUP
    removed: Mapping[str, Row] = {}
    missing: frozenset[str] = frozenset()
    defaults: Mapping[str, str] = {}


TODAY: Final = Tables()


def tables_of(definitions: Mapping[str, Defined], versions: Sequence[str]) -> Tables:
    """Build the tables of a release.

    Args:
        definitions: `broker NAME`, `topic NAME` or `group NAME` -> the definition that differs from the newest
            release's.
        versions: the valid values of message format and protocol settings, oldest first.
    """
    if not definitions:
        return TODAY
    today = {"broker": BROKER, "topic": TOPIC, "group": GROUP}
    tables = {kind: dict(rows) for kind, rows in today.items()}
    missing, defaults = set(), {}
    for setting, definition in definitions.items():
        kind, _, name = setting.partition(" ")
        row = today[kind].get(name)
        if row is None:
            if definition.known and kind != "group":
                tables[kind][name] = _removed(kind, name, definition, versions)
            continue
        tables[kind][name] = _changed(row, definition)
        if kind == "broker" and definition.default not in {None, shown(row.default)} and not _is_described_only(name):
            defaults[name] = definition.default or ""
        if not definition.known:
            del tables[kind][name]
            missing.add(name)
    removed = {name: row for name, row in tables["broker"].items() if name not in BROKER}
    return Tables(tables["broker"], tables["topic"], tables["group"], removed, frozenset(missing), defaults)


def _removed(kind: str, name: str, definition: Defined, versions: Sequence[str]) -> Row:
    """Build the row of a setting that was removed later."""
    synonyms = (Synonym(f"log.{name}"),) if kind == "topic" else ()
    check = _check(definition.check, versions)
    row = Row(name, ConfigType[definition.type], None, check, _MODES[definition.mode], synonyms=synonyms)
    default = None if definition.default is None else parse(row._replace(check=None), definition.default)
    return row._replace(default=default, visibility=_visibility(definition, Visibility.PUBLIC))


def _changed(row: Row, definition: Defined) -> Row:
    """Build the row of a current setting as it was then: type and meaning stay, for the code that reads it."""
    type_then = ConfigType[definition.type]
    changed = row._replace(
        mode=_MODES[definition.mode],
        visibility=_visibility(definition, row.visibility),
        described_as=None if type_then is row.type else type_then,
    )
    if row.type in {ConfigType.SHORT, ConfigType.INT, ConfigType.LONG}:
        changed = changed._replace(check=_check(definition.check, ()) if definition.check else None)
    if definition.default != shown(row.default) and _is_described_only(row.name):
        changed = changed._replace(described_default=(definition.default,))
    return changed


def _is_described_only(name: str) -> bool:
    return name.startswith(_WITHOUT_EFFECT)


def _visibility(definition: Defined, otherwise: Visibility) -> Visibility:
    if definition.internal:
        return Visibility.WHEN_SET
    return Visibility.PUBLIC if otherwise is Visibility.WHEN_SET else otherwise


def _check(printed: str | None, versions: Sequence[str]) -> Check | None:
    """Return the validator that prints this text; ``None`` for those that no removed setting has."""
    if printed is None:
        return None
    if (match := _VERSIONS.fullmatch(printed)) is not None:
        return partial(version_of_kafka, frozenset(versions[: versions.index(match[1]) + 1]))
    if (match := _RANGE.fullmatch(printed)) is not None:
        return at_least(int(match[1])) if match[2] is None else between(int(match[1]), int(match[2]))
    match = _CHOICE.fullmatch(printed)
    return None if match is None else one_of(*match[1].split(", "))
