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

PROVIDERS = "config.providers"
"""The setting that Kafka stores without checking it."""
_DEFAULTS: dict[str, Value] = {row.name: row.default for row in BROKER.values()}

# The identity of a broker without other settings: each is also its own controller.
_IDENTITY = {"process.roles": "broker,controller", "controller.listener.names": "CONTROLLER"}

Listener = Callable[[frozenset[str]], None]
"""Called with the names of settings whose effective value changed."""

# The getters below are named after Kafka's types, which hide Python's.
_Int: TypeAlias = int
_Float: TypeAlias = float
_Str: TypeAlias = str


class BrokerSettings:
    """The settings of one broker, with typed getters.

    A getter is one dictionary lookup; every change of a layer rebuilds the dictionary. A name that is in no table
    raises KeyError. Values are those that `broker.settings.values.parse` returns.
    """

    def __init__(self, node_id: _Int, static: Mapping[_Str, _Str] | None = None) -> None:
        """Set the static layer: texts by Kafka's names.

        Raises:
            KafkaError: INVALID_CONFIG with Kafka's message, for the first value with which Kafka would not start.
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
        """Override the static layer with the actual listeners, once they are open."""
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
        """Use the settings of an older release.

        Args:
            tables: the settings of that release.
            bounds_as_ranges: whether the error for a group config outside the broker's bounds has their values.
            refuses_duplicates: whether altering a broker's list to one with duplicates is refused.
            names_unknown_operations: whether the error for an unknown operation on a logger has its number.
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
        """Return the row of a topic config, if the emulated release has it."""
        return self.tables.topic.get(name)

    def broker_row(self, name: _Str) -> Row | None:
        """Return the row of a broker setting, with or without a listener prefix, if the emulated release has it."""
        return broker_row(name, self.tables.broker)

    def set_dynamic(self, cluster_wide: Mapping[_Str, _Str], per_broker: Mapping[_Str, _Str]) -> frozenset[_Str]:
        """Replace both dynamic layers by the configs stored for BROKER "" and BROKER "<id>", and call the listeners.

        Values that may not be set there, or are no longer valid, are ignored, as by Kafka when it reads such a record.
        While `config.providers` is invalid, no value changes (core C.4.8).

        Returns:
            The names of settings whose effective value changed.
        """
        self.cluster_wide = self._acceptable(cluster_wide, per_broker=False)
        self.own = self._acceptable(per_broker, per_broker=True)
        texts = {**self.cluster_wide, **self.own}
        if self.problem_of_providers(texts) is not None:
            return frozenset()
        before = self._values
        self._values = {**self._base, **self._dynamic(texts)}
        self._topic_defaults = None
        if self._values == before:  # compared as a whole, since each reset comes here twice
            return frozenset()
        names = before.keys() | self._values.keys()
        changed = frozenset(name for name in names if before.get(name) != self._values.get(name))
        if changed:
            for listener in tuple(self._listeners):
                listener(changed)
        return changed

    def on_change(self, listener: Listener) -> Callable[[], None]:
        """Call the listener after every change of an effective value; the returned function stops that."""
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
        """Return the effective value, or the emulated release's default if that is only reported."""
        row = self.broker_row(name)
        default = None if row is None else row.described_default
        if default is None or any(name in texts for texts in (self.static, self.cluster_wide, self.own)):
            return self.value(name)
        return default[0]

    @property
    def topic_defaults(self) -> dict[_Str, Value]:
        """The topic defaults: each topic config in its own unit. Do not modify."""
        if self._topic_defaults is None:
            self._topic_defaults = _topic_defaults(self._values, self.tables.topic)
        return self._topic_defaults

    def preview(self, cluster_wide: Mapping[_Str, _Str], per_broker: Mapping[_Str, _Str]) -> dict[_Str, Value]:
        """Return the effective values that result from these dynamic layers, without providers; all must parse."""
        texts = {**cluster_wide, **per_broker}
        texts.pop(PROVIDERS, None)
        return {**self._base, **self._dynamic(texts)}

    def problem_of_providers(self, texts: Mapping[_Str, _Str]) -> _Str | None:
        """Return the problem of `config.providers`, if it is among these texts and the emulated release has it."""
        row = self.broker_row(PROVIDERS)
        if row is None or PROVIDERS not in texts:
            return None
        try:
            parse(row, texts[PROVIDERS])
        except KafkaError as error:
            return error.message
        return None

    def _dynamic(self, texts: Mapping[_Str, _Str]) -> dict[_Str, Value]:
        """Parse the dynamic layers, without settings that the release does not have, or that plugins read only once."""
        ignored = self.tables.missing | PLUGIN_SETTINGS
        readable = {name: text for name, text in texts.items() if base_name(name) not in ignored}
        return _parsed(readable, self.tables.removed)

    def _acceptable(self, texts: Mapping[_Str, _Str], *, per_broker: bool) -> dict[_Str, _Str]:
        """Return the valid part of a stored dynamic layer."""
        acceptable = {}
        for name, text in texts.items():
            row = self.broker_row(name)
            if row is not None:
                if row.mode is UpdateMode.READ_ONLY or (row.mode is UpdateMode.PER_BROKER and not per_broker):
                    continue
                try:
                    parse(row, text)
                except KafkaError:
                    if name != PROVIDERS:
                        continue
            acceptable[name] = text
        return acceptable

    def value(self, name: _Str) -> Value:
        """Return the effective value, of any type."""
        value: Value = self._values[name]
        return value

    def get(self, name: _Str) -> Value:
        """Return the effective value, or None for a name that is neither known nor set."""
        value: Value = self._values.get(name)
        return value

    def of_listener(self, listener: _Str, name: _Str, mechanism: _Str | None = None) -> Value:
        """Return a listener's value: of listener.name.<l>.<mechanism>.<name>, listener.name.<l>.<name>, or <name>."""
        return _of_listener(self._values, listener, name, mechanism)

    def of_listener_alone(self, listener: _Str, name: _Str) -> Value:
        """Return the value of listener.name.<l>.<name>; None if the listener has no own value."""
        return self.get(f"listener.name.{listener.lower()}.{name}")

    def as_opened(self, listener: _Str, name: _Str, mechanism: _Str | None = None) -> Value:
        """Return the value as of the start: open listeners keep their SASL, and SaslChannelBuilder checks no change."""
        return _of_listener(self._base, listener, name, mechanism)

    def boolean(self, name: _Str) -> bool:
        """Return the effective value of a BOOLEAN."""
        value: bool = self._values[name]
        return value

    def int(self, name: _Str) -> _Int:
        """Return the effective value of an INT or SHORT whose default is not null."""
        value: _Int = self._values[name]
        return value

    def long(self, name: _Str) -> _Int:
        """Return the effective value of a LONG whose default is not null."""
        value: _Int = self._values[name]
        return value

    def optional_int(self, name: _Str) -> _Int | None:
        """Return the effective value of an INT or LONG that may be null."""
        value: _Int | None = self._values[name]
        return value

    def double(self, name: _Str) -> _Float:
        """Return the effective value of a DOUBLE."""
        value: _Float = self._values[name]
        return value

    def string(self, name: _Str) -> _Str:
        """Return the effective value of a STRING, CLASS or PASSWORD whose default is not null."""
        value: _Str = self._values[name]
        return value

    def optional_string(self, name: _Str) -> _Str | None:
        """Return the effective value of a STRING, CLASS or PASSWORD that may be null."""
        value: _Str | None = self._values[name]
        return value

    def list(self, name: _Str) -> tuple[_Str, ...]:
        """Return the effective value of a LIST; null is empty."""
        value: tuple[_Str, ...] | None = self._values[name]
        return value or ()


def _of_listener(values: Mapping[str, Value], listener: str, name: str, mechanism: str | None) -> Value:
    prefix = f"listener.name.{listener.lower()}."
    prefixed = [prefix + name] if mechanism is None else [f"{prefix}{mechanism.lower()}.{name}", prefix + name]
    return values[next((candidate for candidate in prefixed if candidate in values), name)]


def _parsed(texts: Mapping[str, str], removed: Mapping[str, Row]) -> dict[str, Value]:
    """Parse a layer's texts; the value of a name that is in no table stays a text."""
    values: dict[str, Value] = {}
    for name, text in texts.items():
        base = base_name(name)
        row = BROKER.get(base) or removed.get(base)
        values[name] = text if row is None else parse(row, text)
    return values


_default_texts: dict[str, str] = {}


def default_texts() -> Mapping[str, str]:
    """Return the defaults that are not null, as texts."""
    if not _default_texts:
        definitions = (row for row in BROKER.values() if row.visibility is not Visibility.PLUGIN)
        texts = ((row.name, shown(row.default)) for row in definitions)
        _default_texts.update((name, text) for name, text in texts if text is not None)
    return _default_texts


def _texts(tables: Tables) -> Mapping[str, str]:
    """Return the defaults of another release that are not null, as texts."""
    texts = {}
    for row in tables.broker.values():
        default = shown(row.default) if row.described_default is None else row.described_default[0]
        text = tables.defaults.get(row.name, default)
        if row.visibility is not Visibility.PLUGIN and text is not None:
            texts[row.name] = text
    return texts


def _topic_defaults(values: Mapping[str, Any], rows: Mapping[str, Row]) -> dict[str, Value]:
    """Return topic defaults, each from the first broker setting that is not null (KafkaConfig.extractLogConfigMap)."""
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
