"""One broker's settings: default < static < dynamic for all brokers < dynamic for this broker (core C.4.6)."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from broker.settings.loggers import Loggers
from broker.settings.model import ConfigSource, Row, UpdateMode, Value, Visibility
from broker.settings.names import PLUGIN_SETTINGS, base_name, broker_row
from broker.settings.of_release import TODAY, Tables
from broker.settings.tables import BROKER, TOPIC
from broker.settings.values import parse, shown
from protocol.errors import KafkaError

_DEFAULTS: dict[str, Value] = {row.name: row.default for row in BROKER.values()}

# What a broker is without other settings: each of ours is its own controller.
_IDENTITY = {"process.roles": "broker,controller", "controller.listener.names": "CONTROLLER"}

Listener = Callable[[frozenset[str]], None]
"""Called with the names whose effective value changed."""

# The getters below are named after Kafka's types, which hide Python's.
_Int: TypeAlias = int
_Float: TypeAlias = float
_Str: TypeAlias = str


class BrokerSettings:
    """The settings of one broker, with typed getters.

    A getter is one dictionary lookup; every change of a layer rebuilds the dictionary. A name that no table knows is a
    KeyError. Values are what `broker.settings.values.parse` makes of the texts.
    """

    def __init__(self, node_id: _Int, static: Mapping[_Str, _Str] | None = None) -> None:
        """Take the static layer, texts by Kafka's own names.

        Raises:
            KafkaError: INVALID_CONFIG with Kafka's message, for the first value that Kafka would refuse to start with.
        """
        self.node_id = node_id
        self.static: Mapping[_Str, _Str] = {**_IDENTITY, **(static or {}), "node.id": str(node_id)}
        self.cluster_wide: Mapping[_Str, _Str] = {}
        self.own: Mapping[_Str, _Str] = {}
        self.loggers = Loggers()
        self.tables = TODAY
        self.bounds_as_ranges = self.refuses_duplicates = self.names_unknown_operations = True
        self._base = self._below_dynamic()
        self._values: dict[_Str, Any] = self._base
        self._topic_defaults: dict[_Str, Value] | None = None
        self._listeners: list[Listener] = []

    def set_listener_settings(self, texts: Mapping[_Str, _Str]) -> None:
        """Override the static layer with the broker's own values once its listeners are open."""
        self.static = {**self.static, **texts}
        self._base = self._below_dynamic()
        self.set_dynamic(self.cluster_wide, self.own)

    def emulate(
        self,
        tables: Tables,
        *,
        bounds_as_ranges: bool = True,
        refuses_duplicates: bool = True,
        names_unknown_operations: bool = True,
    ) -> None:
        """Take over what the settings were in an older release.

        Args:
            tables: its settings.
            bounds_as_ranges: whether a group's setting outside of the broker's bounds is refused with their values.
            refuses_duplicates: whether a broker's list that is altered may have no element twice.
            names_unknown_operations: whether an unknown operation on a logger is refused with its number.
        """
        self.refuses_duplicates, self.names_unknown_operations = refuses_duplicates, names_unknown_operations
        self.tables, self.bounds_as_ranges = tables, bounds_as_ranges
        self._base = self._below_dynamic()
        self.set_dynamic(self.cluster_wide, self.own)

    def _below_dynamic(self) -> dict[_Str, Value]:
        removed = self.tables.removed
        defaults = {**{name: row.default for name, row in removed.items()}, **_parsed(self.tables.defaults, removed)}
        return {**_DEFAULTS, **defaults, **_parsed(self.static, removed)}

    def topic_row(self, name: _Str) -> Row | None:
        """A topic's setting, if there is such a one in the release that is played."""
        return self.tables.topic.get(name)

    def broker_row(self, name: _Str) -> Row | None:
        """A broker's setting, also with a listener's prefix, likewise."""
        return broker_row(name, self.tables.broker)

    def set_dynamic(self, cluster_wide: Mapping[_Str, _Str], own: Mapping[_Str, _Str]) -> frozenset[_Str]:
        """Replace both dynamic layers by what is stored for BROKER "" and BROKER "<id>"; notify the listeners.

        What may not be set there, or has become invalid, is left out, as Kafka does when it meets such a record.

        Returns:
            The names whose effective value changed.
        """
        self.cluster_wide = self._acceptable(cluster_wide, per_broker=False)
        self.own = self._acceptable(own, per_broker=True)
        before = self._values
        self._values = {**self._base, **self._dynamic(self.cluster_wide), **self._dynamic(self.own)}
        self._topic_defaults = None
        if self._values == before:  # some hundred of them: each reset comes here twice
            return frozenset()
        names = before.keys() | self._values.keys()
        changed = frozenset(name for name in names if before.get(name) != self._values.get(name))
        if changed:
            for listener in tuple(self._listeners):
                listener(changed)
        return changed

    def on_change(self, listener: Listener) -> Callable[[], None]:
        """Call the listener after every change of an effective value; the result ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    @property
    def layers(self) -> tuple[tuple[ConfigSource, Mapping[_Str, _Str]], ...]:
        """The texts of each layer, highest precedence first."""
        return (
            (ConfigSource.DYNAMIC_BROKER, self.own),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER, self.cluster_wide),
            (ConfigSource.STATIC_BROKER, self.static),
            (ConfigSource.DEFAULT, self._default_texts()),
        )

    def _default_texts(self) -> Mapping[_Str, _Str]:
        return default_texts() if self.tables is TODAY else _texts(self.tables)

    def described_value(self, name: _Str) -> Value:
        """The effective value, but the release's default where that is only described."""
        row = self.broker_row(name)
        default = None if row is None else row.described_default
        if default is None or any(name in texts for texts in (self.static, self.cluster_wide, self.own)):
            return self.value(name)
        return default[0]

    @property
    def topic_defaults(self) -> dict[_Str, Value]:
        """The defaults of topics: each topic setting, in its own unit. Not to be changed."""
        if self._topic_defaults is None:
            self._topic_defaults = _topic_defaults(self._values, self.tables.topic)
        return self._topic_defaults

    def preview(self, cluster_wide: Mapping[_Str, _Str], own: Mapping[_Str, _Str]) -> dict[_Str, Value]:
        """The effective values, were these the dynamic layers; all of them must parse."""
        return {**self._base, **self._dynamic(cluster_wide), **self._dynamic(own)}

    def _dynamic(self, texts: Mapping[_Str, _Str]) -> dict[_Str, Value]:
        """The values of a dynamic layer, where what the release does not know, and plugins read once, has no effect."""
        ignored = self.tables.missing | PLUGIN_SETTINGS
        known = {name: text for name, text in texts.items() if base_name(name) not in ignored}
        return _parsed(known, self.tables.removed)

    def _acceptable(self, texts: Mapping[_Str, _Str], *, per_broker: bool) -> dict[_Str, _Str]:
        """The valid part of a stored dynamic layer."""
        found = {}
        for name, text in texts.items():
            row = self.broker_row(name)
            if row is not None:
                if row.mode is UpdateMode.READ_ONLY or (row.mode is UpdateMode.PER_BROKER and not per_broker):
                    continue
                try:
                    parse(row, text)
                except KafkaError:
                    continue
            found[name] = text
        return found

    def value(self, name: _Str) -> Value:
        """The effective value, of any type."""
        found: Value = self._values[name]
        return found

    def get(self, name: _Str) -> Value:
        """The effective value, or None for a name that is neither known nor set."""
        found: Value = self._values.get(name)
        return found

    def of_listener(self, listener: _Str, name: _Str, mechanism: _Str | None = None) -> Value:
        """The value for one listener: listener.name.<l>.<mechanism>.<name>, listener.name.<l>.<name>, or <name>."""
        return _of_listener(self._values, listener, name, mechanism)

    def of_listener_alone(self, listener: _Str, name: _Str) -> Value:
        """The value of listener.name.<l>.<name>; None where the listener has none of its own."""
        return self.get(f"listener.name.{listener.lower()}.{name}")

    def as_opened(self, listener: _Str, name: _Str, mechanism: _Str | None = None) -> Value:
        """The same as of the start: an open listener keeps its SASL, and no change is checked (SaslChannelBuilder)."""
        return _of_listener(self._base, listener, name, mechanism)

    def boolean(self, name: _Str) -> bool:
        """The effective value of a BOOLEAN."""
        found: bool = self._values[name]
        return found

    def int(self, name: _Str) -> _Int:
        """The effective value of an INT or SHORT whose default is not null."""
        found: _Int = self._values[name]
        return found

    def long(self, name: _Str) -> _Int:
        """The effective value of a LONG whose default is not null."""
        found: _Int = self._values[name]
        return found

    def optional_int(self, name: _Str) -> _Int | None:
        """The effective value of an INT or LONG that may be null."""
        found: _Int | None = self._values[name]
        return found

    def double(self, name: _Str) -> _Float:
        """The effective value of a DOUBLE."""
        found: _Float = self._values[name]
        return found

    def string(self, name: _Str) -> _Str:
        """The effective value of a STRING, CLASS or PASSWORD whose default is not null."""
        found: _Str = self._values[name]
        return found

    def optional_string(self, name: _Str) -> _Str | None:
        """The effective value of a STRING, CLASS or PASSWORD that may be null."""
        found: _Str | None = self._values[name]
        return found

    def list(self, name: _Str) -> tuple[_Str, ...]:
        """The effective value of a LIST; null is empty."""
        found: tuple[_Str, ...] | None = self._values[name]
        return found or ()


def _of_listener(values: Mapping[str, Value], listener: str, name: str, mechanism: str | None) -> Value:
    prefix = f"listener.name.{listener.lower()}."
    own = [prefix + name] if mechanism is None else [f"{prefix}{mechanism.lower()}.{name}", prefix + name]
    return values[next((each for each in own if each in values), name)]


def _parsed(texts: Mapping[str, str], removed: Mapping[str, Row]) -> dict[str, Value]:
    """The values of a layer's texts; what no table knows stays the text that it is."""
    values: dict[str, Value] = {}
    for name, text in texts.items():
        base = base_name(name)
        row = BROKER.get(base) or removed.get(base)
        values[name] = text if row is None else parse(row, text)
    return values


_default_texts: dict[str, str] = {}


def default_texts() -> Mapping[str, str]:
    """The defaults that are not null, as texts."""
    if not _default_texts:
        known = (row for row in BROKER.values() if row.visibility is not Visibility.PLUGIN)
        texts = ((row.name, shown(row.default)) for row in known)
        _default_texts.update((name, text) for name, text in texts if text is not None)
    return _default_texts


def _texts(tables: Tables) -> Mapping[str, str]:
    """The same of another release."""
    texts = {}
    for row in tables.broker.values():
        default = shown(row.default) if row.described_default is None else row.described_default[0]
        text = tables.defaults.get(row.name, default)
        if row.visibility is not Visibility.PLUGIN and text is not None:
            texts[row.name] = text
    return texts


def _topic_defaults(values: Mapping[str, Any], rows: Mapping[str, Row]) -> dict[str, Value]:
    """Each topic setting from the first of its broker settings that is not null (KafkaConfig.extractLogConfigMap)."""
    defaults: dict[str, Value] = {}
    for row in (*TOPIC.values(), *(row for name, row in rows.items() if name not in TOPIC)):
        defaults[row.name] = row.default
        for synonym in row.synonyms:
            value = values[synonym.name]
            if value is not None:
                defaults[row.name] = value if synonym.factor == 1 else value * synonym.factor
                break
    retention_ms = defaults["retention.ms"]
    assert isinstance(retention_ms, int)  # log.retention.hours is never null
    # Any negative broker value means forever.
    defaults["retention.ms"] = max(retention_ms, -1)
    return defaults
