"""The entries of DescribeConfigs: effective values, sources and synonyms (core C.2)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from broker.settings import client_metrics, groups, topics
from broker.settings.broker_settings import BrokerSettings
from broker.settings.model import ConfigResourceType, ConfigSource, ConfigType, Row, Value, Visibility
from broker.settings.names import base_name, broker_row, broker_synonyms, is_dynamic
from broker.settings.tables import CLIENT_METRICS
from broker.settings.values import shown
from protocol.java import parse_integer


class Layer(NamedTuple):
    """A value of a setting in one layer; the first of a list is the effective one."""

    name: str
    value: str | None
    source: ConfigSource


class Entry(NamedTuple):
    """One setting of a resource. `synonyms` are always set; the handler drops them unless requested."""

    name: str
    value: str | None
    type: ConfigType
    sensitive: bool
    read_only: bool
    synonyms: Sequence[Layer]
    default_source: ConfigSource = ConfigSource.DEFAULT

    @property
    def source(self) -> ConfigSource:
        """The source of the effective value (core C.2.10)."""
        return self.synonyms[0].source if self.synonyms else self.default_source


def broker_entries(settings: BrokerSettings, keys: Iterable[str] | None = None) -> Iterator[Entry]:
    """Yield all public settings of a broker and any others set on it; with ``keys``, those of them that exist."""
    rows = settings.tables.broker
    for name in _wanted(keys, rows, *(texts for _, texts in settings.layers[:-1])):
        row = broker_row(name, rows)
        synonyms = _chain(settings, name, broker_synonyms(name), sensitive=row is None or row.sensitive)
        value: Value = None
        if row is not None:
            value = synonyms[0].value if _is_as_written(row) and synonyms else settings.described_value(name)
        yield _entry(name, row, value, synonyms, read_only=not is_dynamic(name, rows))


def cluster_wide_entries(settings: BrokerSettings, keys: Iterable[str] | None = None) -> Iterator[Entry]:
    """Yield the configs for all brokers (BROKER ""), as stored."""
    for name in _wanted(keys, {}, settings.cluster_wide):
        row = settings.broker_row(name)
        sensitive = row is None or row.sensitive
        text = None if sensitive else settings.cluster_wide[name]
        synonyms = (Layer(name, text, ConfigSource.DYNAMIC_DEFAULT_BROKER),)
        yield _entry(name, row, text, synonyms, read_only=not is_dynamic(name, settings.tables.broker))


def topic_entries(
    overrides: Mapping[str, str], settings: BrokerSettings, keys: Iterable[str] | None = None
) -> Iterator[Entry]:
    """Yield all public configs of a topic and any others set on it."""
    values = topics.stated(overrides, settings)
    yield from _derived(settings.tables.topic, values, overrides, settings, source=ConfigSource.TOPIC, keys=keys)


def created_topic_entries(overrides: Mapping[str, str], settings: BrokerSettings) -> Iterator[Entry]:
    """Yield a new topic's public configs as its controller reports them: values are as written, not normalized.

    Each has one layer at most, the first that has any of its synonyms (KafkaConfigSchema.resolveEffectiveTopicConfig).
    """
    for entry in topic_entries(overrides, settings):
        row = settings.tables.topic.get(entry.name)
        layer = _written(entry.name, row, overrides, settings)
        if layer is None:
            yield entry._replace(synonyms=())
        else:
            yield entry._replace(value=layer.value, synonyms=(layer,))


def _written(name: str, row: Row | None, overrides: Mapping[str, str], settings: BrokerSettings) -> Layer | None:
    if name in overrides:
        return Layer(name, overrides[name], ConfigSource.TOPIC)
    for source, texts in settings.layers[:-1]:
        for synonym in () if row is None else row.synonyms:
            if (text := texts.get(synonym.name)) is not None:
                value = text if synonym.factor == 1 else str(parse_integer(text) * synonym.factor)
                return Layer(synonym.name, value, source)
    return None


def group_entries(
    stored: Mapping[str, str], settings: BrokerSettings, keys: Iterable[str] | None = None
) -> Iterator[Entry]:
    """Yield all configs of a group, whether it exists or not."""
    values = groups.stated(stored, settings)
    for entry in _derived(settings.tables.group, values, stored, settings, source=ConfigSource.GROUP, keys=keys):
        row = settings.tables.group.get(entry.name)
        if row is None or row.synonyms:
            yield entry
        else:
            own_default = Layer(entry.name, shown(row.default), ConfigSource.DEFAULT)
            yield entry._replace(synonyms=(*entry.synonyms, own_default))


def client_metrics_entries(stored: Mapping[str, str], keys: Iterable[str] | None = None) -> Iterator[Entry]:
    """Yield the three configs of a client metrics subscription, whether it exists or not."""
    values = client_metrics.effective(stored)
    yield from _derived(CLIENT_METRICS, values, stored, None, source=ConfigSource.CLIENT_METRICS, keys=keys)


def logger_entries(levels: Mapping[str, str], keys: Iterable[str] | None = None) -> Iterator[Entry]:
    """Yield a broker's loggers with their effective levels."""
    source = ConfigSource.DYNAMIC_BROKER_LOGGER
    for name in _wanted(keys, {}, levels):
        unknown = ConfigType.UNKNOWN
        yield Entry(name, levels[name], unknown, False, read_only=False, synonyms=(), default_source=source)


def documentation(resource_type: ConfigResourceType, name: str) -> str | None:
    """Return a setting's documentation, in a sentence or two; None for names in no table."""
    from broker.settings import docs as texts  # noqa: PLC0415 - long, and asked for rarely

    if resource_type is ConfigResourceType.BROKER:
        return texts.BROKER.get(base_name(name))
    return {
        ConfigResourceType.TOPIC: texts.TOPIC,
        ConfigResourceType.GROUP: texts.GROUP,
        ConfigResourceType.CLIENT_METRICS: texts.CLIENT_METRICS,
    }[resource_type].get(name)


def _wanted(keys: Iterable[str] | None, table: Mapping[str, Row], *layers: Mapping[str, str]) -> Iterator[str]:
    """Yield the names to describe: all, or those of the given ones that exist, each once (core C.2.3)."""
    public = Visibility.PUBLIC
    if keys is None:
        listed = [name for name, row in table.items() if row.visibility is public]
        yield from dict.fromkeys((*listed, *(name for texts in layers for name in texts)))
        return
    for name in dict.fromkeys(keys):
        row = table.get(name)
        if (row is not None and row.visibility is public) or any(name in texts for texts in layers):
            yield name


def _chain(settings: BrokerSettings, name: str, synonyms: Sequence[str], *, sensitive: bool) -> list[Layer]:
    """Return the values of a broker setting, highest precedence first.

    Quirk (core C.2.11): entries before the first one of exactly that name are dropped, so with only
    `log.retention.hours` set, `log.retention.ms` has no entry at all.
    """
    layers = [
        Layer(synonym, None if sensitive else texts[synonym], source)
        for source, texts in settings.layers
        for synonym in synonyms
        if synonym in texts
    ]
    first = next((index for index, layer in enumerate(layers) if layer.name == name), len(layers))
    return layers[first:]


def _derived(
    table: Mapping[str, Row],
    values: Mapping[str, Value],
    overrides: Mapping[str, str],
    settings: BrokerSettings | None,
    *,
    source: ConfigSource,
    keys: Iterable[str] | None,
) -> Iterator[Entry]:
    """Yield the settings of a resource whose defaults are the broker's."""
    inherited = {} if settings is None else _inherited_internal(table, settings)
    for name in _wanted(keys, table, overrides, inherited):
        row = table.get(name)
        value = values.get(name)
        synonyms: list[Layer] = []
        if name in overrides:
            if row is not None and _is_as_written(row):
                value = overrides[name]
            synonyms.append(Layer(name, None if row is None else shown(value), source))
        if row is not None and row.synonyms and settings is not None:
            first = row.synonyms[0].name
            synonyms += _chain(settings, first, broker_synonyms(first), sensitive=False)
        yield _entry(name, row, value, synonyms, read_only=False)


def _is_as_written(row: Row) -> bool:
    """Whether a value is described as it was written, not normalized.

    Kafka lists internal settings from the original texts, the others from the parsed values (ConfigHelper.allConfigs).
    """
    return row.visibility is Visibility.WHEN_SET


def _inherited_internal(table: Mapping[str, Row], settings: BrokerSettings) -> dict[str, str]:
    """Return the internal settings that are set at the broker: their resources list them as if set there."""
    return {
        name: text
        for name, row in table.items()
        if row.visibility is Visibility.WHEN_SET and row.synonyms
        for _, texts in settings.layers[:-1]
        if (text := texts.get(row.synonyms[0].name)) is not None
    }


def _entry(name: str, row: Row | None, value: Value, synonyms: Sequence[Layer], *, read_only: bool) -> Entry:
    if row is None:  # of unknown type, so possibly a secret
        return Entry(name, None, ConfigType.UNKNOWN, True, read_only, synonyms)
    shown_type = row.described_as or row.type
    return Entry(name, None if row.sensitive else shown(value), shown_type, row.sensitive, read_only, synonyms)
