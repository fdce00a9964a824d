"""Rules about listeners with which a Kafka broker does not start (KafkaConfig, AbstractKafkaConfig).

Brokers and the controller communicate inside the process, so that neither needs a listener: rules about the listener
between brokers apply only if it is given, and those about the controller's only to what the settings name.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from broker.settings import BrokerSettings
from broker.settings.crosschecks import pairs
from broker.settings.endpoints import Endpoint, controller_names

_ENDPOINT = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")
_BETWEEN, _PROTOCOL_BETWEEN = "inter.broker.listener.name", "security.inter.broker.protocol"
_MAP, _ADVERTISED = "listener.security.protocol.map", "advertised.listeners"
_MECHANISM = "sasl.mechanism.inter.broker.protocol"
_SECURE = frozenset({"SSL", "SASL_PLAINTEXT", "SASL_SSL"})


class _Named(NamedTuple):
    name: str
    host: str


def listener_problem(settings: Mapping[str, str], opened: Collection[Endpoint], *, advertise: bool) -> str | None:
    """Return the first rule that the settings violate, in one sentence, or None.

    Args:
        settings: those given, by Kafka's names.
        opened: the listeners of the first broker.
        advertise: whether an option gives the address that the first listener advertises.
    """
    return next(_problems(settings, opened, advertise), None)


def _problems(settings: Mapping[str, str], opened: Collection[Endpoint], advertise: bool) -> Iterator[str]:
    duplicate = _named_twice(settings.get(_MAP, ""))
    if duplicate is not None:
        yield f"{_MAP} names listener {duplicate} twice"
    broker_settings = BrokerSettings(1, settings)
    controllers = {
        *controller_names(settings),
        *(name.upper() for name in broker_settings.list("controller.listener.names")),
    }
    listed = (
        [_parsed(each, "listeners") for each in broker_settings.list("listeners")] if "listeners" in settings else []
    )
    advertised = [_parsed(each, _ADVERTISED) for each in broker_settings.list(_ADVERTISED)]
    for setting, parsed in (("listeners", listed), (_ADVERTISED, advertised)):
        yield from (each for each in parsed if isinstance(each, str))
        names = [each.name for each in parsed if isinstance(each, _Named)]
        protocols = _effective_map(settings, broker_settings, controllers)
        missing = next((name for name in names if name not in protocols), None)
        if missing is not None:
            yield f"no security protocol is defined for listener {missing} of {setting}: add it to {_MAP}"
        if len(set(names)) < len(names):
            yield f"each listener in {setting} must have a different name"
    names_open = {each.name for each in opened}
    named = [each for each in advertised or listed if isinstance(each, _Named) and each.name not in controllers]
    if advertised and (wrong := next((each.name for each in named if each.name not in names_open), None)):
        yield f"{_ADVERTISED} names {wrong}, which is not in listeners: {', '.join(sorted(names_open))}"
    if advertised and not named:
        yield f"{_ADVERTISED} must contain at least one listener that is not in controller.listener.names"
    checked = advertised or (named[1:] if advertise else named)
    if any(each.host == "0.0.0.0" for each in checked if isinstance(each, _Named)):  # noqa: S104 - recognised, not bound
        yield f"clients cannot connect to 0.0.0.0: set {_ADVERTISED} to addresses that they can connect to"
    yield from _early(broker_settings, names_open | controllers)
    names_advertised = {each.name for each in named} if advertised else names_open
    yield from _between_brokers(
        settings, broker_settings, names_advertised, _effective_map(settings, broker_settings, controllers)
    )


def _parsed(text: str, setting: str) -> "_Named | str":
    """Return the name and the host of a listener, or the problem with it."""
    match = _ENDPOINT.fullmatch(text)
    if match is None:
        return f"{setting} needs NAME://HOST:PORT, not {text!r}"
    return _Named(match[1].upper(), match[2])


def _named_twice(text: str) -> str | None:
    """Return a listener that the protocol map names in different cases; of equal names the last is used."""
    names = {part.rpartition(":")[0].strip() for part in pairs(text)}
    seen: set[str] = set()
    for name in sorted(names):
        if name.upper() in seen:
            return name.upper()
        seen.add(name.upper())
    return None


def _effective_map(
    settings: Mapping[str, str], broker_settings: BrokerSettings, controllers: Collection[str]
) -> dict[str, str]:
    """Return each listener's protocol; unless the map is given, controllers use PLAINTEXT beside insecure listeners."""
    parts = (part.rpartition(":") for part in pairs(broker_settings.string(_MAP)))
    protocols = {name.strip().upper(): protocol.strip().upper() for name, _, protocol in parts}
    used = {*controllers, *(each.partition(":")[0].upper() for each in broker_settings.list("listeners"))}
    if _MAP not in settings and used.isdisjoint(_SECURE):
        protocols.update((name, "PLAINTEXT") for name in controllers)
    return protocols


def _early(broker_settings: BrokerSettings, names: Collection[str]) -> Iterator[str]:
    for name in broker_settings.list("early.start.listeners"):
        if name and name not in names:
            yield f"early.start.listeners has {name}, which is neither in listeners nor in controller.listener.names"


def _between_brokers(
    settings: Mapping[str, str], broker_settings: BrokerSettings, names: Collection[str], protocols: Mapping[str, str]
) -> Iterator[str]:
    """Yield the problems of the listener between brokers, if it is given."""
    if _BETWEEN in settings:
        if _PROTOCOL_BETWEEN in settings:
            yield f"only one of {_BETWEEN} and {_PROTOCOL_BETWEEN} should be set"
        name = broker_settings.string(_BETWEEN).upper()
        if name not in protocols and name not in names:
            yield f"{_BETWEEN} is {name or 'empty'}, which is not in {_MAP}"
    elif _PROTOCOL_BETWEEN in settings:
        name = broker_settings.string(_PROTOCOL_BETWEEN)
    else:
        return
    if name not in names:
        setting = _BETWEEN if _BETWEEN in settings else _PROTOCOL_BETWEEN
        yield f"{setting} is {name}, which is not among the advertised listeners: {', '.join(sorted(names))}"
    protocol = protocols.get(name, name) if _BETWEEN in settings else name
    offered = broker_settings.as_opened(name, "sasl.enabled.mechanisms")
    used = broker_settings.string(_MECHANISM)
    if protocol.startswith("SASL") and isinstance(offered, tuple) and used not in offered:
        yield f"{_MECHANISM} is {used}, which is not in sasl.enabled.mechanisms of listener {name}"
