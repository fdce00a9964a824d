"""Names of settings: listener and plugin prefixes, synonyms, and suggestions for misspelt names."""

import re
from collections.abc import Mapping

from broker.settings.model import Row, UpdateMode, Visibility
from broker.settings.tables import BROKER
from broker.settings.values import parse
from control_api.spelling import closest
from protocol.errors import KafkaError
from protocol.java import parse_integer

# DynamicBrokerConfig.ListenerConfigRegex: a setting of a single listener.
_OF_LISTENER = r"listener\.name\.[^.]*\.(.+)"

# The settings that a listener may have per SASL mechanism: listener.name.<l>.<mechanism>.<setting>.
_OF_MECHANISM = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)

# Prefixes of plugins' settings, which are not validated.
PLUGIN_PREFIXES = (
    "listener.name.",
    "config.providers.",
    "rsm.config.",
    "rlmm.config.",
    "metrics.jmx.",
    "client.quota.callback.",
    "ssl.engine.factory.",
    "plugin.",
)

PLUGIN_SETTINGS = frozenset(row.name for row in BROKER.values() if row.visibility is Visibility.PLUGIN)
"""Settings of the authorizer plugin, not in Kafka's definitions: any value can be set, without effect."""

SYNONYMS_OF_A_BROKER = {
    name: family
    for family in (
        ("log.roll.ms", "log.roll.hours"),
        ("log.roll.jitter.ms", "log.roll.jitter.hours"),
        ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
        ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    )
    for name in family
    if name != "log.flush.scheduler.interval.ms"
}
"""Broker settings that are synonyms, in order of precedence (DynamicBrokerConfig.brokerConfigSynonyms)."""


def base_name(name: str) -> str:
    """Return the setting in `listener.name.<listener>.[<mechanism>.]<setting>`; any other name is its own base."""
    match = re.fullmatch(_OF_LISTENER, name) if name.startswith("listener.name.") else None
    if match is None:
        return name
    return next((base for base in _OF_MECHANISM if match[1].endswith(base)), match[1])


def broker_row(name: str, rows: Mapping[str, Row] = BROKER) -> Row | None:
    """Return the row of a broker setting, with or without a listener prefix; None for unknown names."""
    row = rows.get(name)
    if row is None and name.startswith("listener.name."):
        row = rows.get(base_name(name))
    return None if row is None or row.visibility is Visibility.PLUGIN else row


def broker_synonyms(name: str) -> tuple[str, ...]:
    """Return the names under which a broker setting's value is looked up, highest precedence first."""
    base = base_name(name)
    return SYNONYMS_OF_A_BROKER.get(name, (name,)) if base == name else (name, base)


def as_broker_id(text: str) -> int | None:
    """Return the broker id in a resource name, or None if it is not a 32-bit integer."""
    try:
        return parse_integer(text)
    except ValueError:
        return None


def is_dynamic(name: str, rows: Mapping[str, Row] = BROKER) -> bool:
    """Whether a broker setting of exactly this name may change at run time."""
    row = rows.get(name)
    return row is not None and row.mode is not UpdateMode.READ_ONLY


def is_setting(name: str, rows: Mapping[str, Row] = BROKER) -> bool:
    """Whether Kafka has a broker setting of that name, or leaves the name to a plugin."""
    return base_name(name) in rows or name.startswith(PLUGIN_PREFIXES)


def static_problem(name: str, text: str, rows: Mapping[str, Row] = BROKER) -> str | None:
    """Return the problem with `--set name=text` in one sentence, or None.

    Unlike in Kafka, which keeps unknown settings for plugins, an unknown name without a plugin prefix is an error: no
    plugin can be loaded here.
    """
    if not is_setting(name, rows):
        meant = closest(name, rows)
        return "Kafka has no such broker setting" + (f"; did you mean {meant}?" if meant else "")
    row = rows.get(base_name(name))
    if row is not None:
        try:
            parse(row, text)
        except KafkaError as error:
            return error.message
    return None
