"""Listeners as people write them, and as each broker opens them.

A listener is written once and meant for every broker: broker 1 takes its port, broker 2 the next one, and so on; port 0
is a free port for each. Kafka's own `listeners`, `advertised.listeners` and protocol map are obeyed as in KafkaConfig.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from understudy.control_api.spelling import host_and_port

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

CONTROLLER = "CONTROLLER"
"""The name of the controller's listener, unless `controller.listener.names` has another one."""

_MOST_DIGITS = 9

ANY_ADDRESS = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - recognised, not bound


class EndpointError(Exception):
    """A listener that makes no sense; the message is one sentence."""


class PortTaken(OSError):
    """A listener cannot be bound: ``errno`` shows whether its port is taken or its address is not this machine's."""

    def __init__(self, port: int, error: Exception, host: str = "") -> None:
        super().__init__(getattr(error, "errno", None), f"port {port} cannot be bound: {error}")
        self.port, self.host = port, host

    def __str__(self) -> str:
        return str(self.strerror)


class OpenListener(NamedTuple):
    """A listener that is open: where clients find it, and where it listens."""

    name: str
    protocol: str
    host: str
    port: int
    bound_host: str
    bound_port: int

    @property
    def as_listener(self) -> str:
        """As an entry of Kafka's `listeners`."""
        return f"{self.name}://{host_and_port(self.bound_host, self.bound_port)}"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One listener of one broker: where it listens, and what Metadata returns to clients that connect through it."""

    name: str
    protocol: str
    host: str
    port: int  # 0: a free port
    advertised_host: str | None = None  # None: see `host_for_clients`
    advertised_port: int | None = None  # None: the port it got

    @property
    def has_sasl(self) -> bool:
        """Whether clients have to authenticate."""
        return self.protocol.startswith("SASL")

    @property
    def has_tls(self) -> bool:
        """Whether it is encrypted."""
        return self.protocol.endswith("SSL")

    @property
    def host_for_clients(self) -> str:
        """The host for Metadata. An any-address is of no use to clients, so it is advertised as localhost."""
        if self.advertised_host is not None:
            return self.advertised_host
        return "localhost" if self.host in ANY_ADDRESS else self.host

    def port_for_clients(self, bound: int) -> int:
        """The port for Metadata, given the port that the listener was bound to."""
        return bound if self.advertised_port is None else self.advertised_port

    def as_listener(self, bound: int) -> str:
        """As an entry of Kafka's `listeners`, given the port that the listener was bound to."""
        return self.opened(bound).as_listener

    def as_advertised(self, bound: int) -> str:
        """As an entry of Kafka's `advertised.listeners`, given the port that the listener was bound to."""
        return f"{self.name}://{host_and_port(self.host_for_clients, self.port_for_clients(bound))}"

    def opened(self, bound: int) -> "OpenListener":
        """The listener as users see it, given the port that it was bound to."""
        advertised = self.host_for_clients, self.port_for_clients(bound)
        return OpenListener(self.name, self.protocol, *advertised, self.host, bound)

    def of_broker(self, index: int) -> "Endpoint":
        """The same listener on the broker with this index (0 for id 1): fixed ports count up."""
        port = self.port + index if self.port else 0
        advertised = None if self.advertised_port is None else self.advertised_port + index
        for value in (port, advertised):
            if value is not None and value > 65535:
                raise EndpointError(f"listener {self.name} of broker {index + 1} would need port {value}")
        return replace(self, port=port, advertised_port=advertised)


def address(text: str, what: str, *, port_needed: bool = True) -> tuple[str, int | None]:
    """HOST:PORT, [::1]:PORT or, where a port need not be, HOST; `what` names it in the error."""
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        digits = rest.removeprefix(":") if rest else None
    else:
        host, colon, after = text.rpartition(":")
        host, digits = (host, after) if colon else (text, None)
    if digits is None:
        if port_needed:
            raise EndpointError(f"{what} needs HOST:PORT, not {text!r}")
        return host, None
    return host, port_number(digits, what)


def port_number(text: str, what: str) -> int:
    """A TCP port, 0 to 65535."""
    if not text.isascii() or not text.isdigit() or len(text) > _MOST_DIGITS or int(text) > 65535:
        raise EndpointError(f"{what} needs a port from 0 to 65535, not {text!r}")
    return int(text)


def listener(text: str, protocols: Mapping[str, str]) -> Endpoint:
    """Parse `NAME://HOST:PORT[,advertised=HOST:PORT][,protocol=P]`, the value of `--listener`."""
    main, *extras = text.split(",")
    name, host, port = named_address(main, "--listener")
    made = Endpoint(name, "", host, port)
    chosen: str | None = None
    for extra in extras:
        key, _, value = extra.partition("=")
        if key == "advertised":
            advertised_host, advertised_port = address(value, f"advertised= of --listener {name}", port_needed=False)
            made = replace(made, advertised_host=advertised_host, advertised_port=advertised_port)
        elif key == "protocol":
            chosen = value.upper()
        else:
            raise EndpointError(f"--listener {name} takes advertised=HOST:PORT and protocol=P, not {extra!r}")
    return replace(made, protocol=protocol_of(name, protocols, chosen))


def named_address(text: str, what: str) -> tuple[str, str, int]:
    """NAME://HOST:PORT as (name in upper case, host, port)."""
    name, mark, rest = text.strip().partition("://")
    if not mark or not name:
        raise EndpointError(f"{what} needs NAME://HOST:PORT, not {text!r}")
    host, port = address(rest, f"{what} {name}")
    assert port is not None  # address() insists on one
    return name.upper(), host, port


def protocol_map(text: str) -> dict[str, str]:
    """`listener.security.protocol.map`: NAME:PROTOCOL,... with names in upper case."""
    found: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, protocol = part.partition(":")
        if protocol.upper() not in PROTOCOLS:
            raise EndpointError(f"listener.security.protocol.map gives {name} the protocol {protocol!r}")
        found[name.upper()] = protocol.upper()
    return found


def protocol_of(name: str, protocols: Mapping[str, str], chosen: str | None = None) -> str:
    """The security protocol of a listener: as chosen, as mapped, as its name implies, else PLAINTEXT."""
    protocol = chosen or protocols.get(name) or (name if name in PROTOCOLS else "PLAINTEXT")
    if protocol not in PROTOCOLS:
        raise EndpointError(f"listener {name} asks for protocol {protocol!r}; there are {', '.join(PROTOCOLS)}")
    return protocol


def from_settings(settings: Mapping[str, str], protocols: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """The listeners that Kafka's own settings describe, controllers' listeners left out; empty without `listeners`."""
    controllers = controller_names(settings)
    return tuple(each for each in _all_from_settings(settings, protocols) if each.name not in controllers)


def controller_names(settings: Mapping[str, str]) -> list[str]:
    """The names of the controllers' listeners in Kafka's own settings, the default one first; empty if unset."""
    names = settings.get("controller.listener.names", "").split(",")
    return [name.strip().upper() for name in names if name.strip()]


def controller(settings: Mapping[str, str], port: str | None, brokers: Sequence[Sequence[Endpoint]]) -> Endpoint | None:
    """The controller's listener: at `port` of `--controller-port`, else as Kafka's own settings have it; or none.

    Raises:
        EndpointError: the port is none, or is a broker's; the name is that of a broker's listener.
    """
    protocols = protocol_map(settings.get("listener.security.protocol.map", ""))
    name, *_ = (*controller_names(settings), CONTROLLER)
    made = next((each for each in _all_from_settings(settings, protocols) if each.name == name), None)
    if made is not None and name not in controller_names(settings):
        made = None
    if port is not None:
        own = brokers[0][0]
        made = made or Endpoint(name, protocol_of(name, protocols), own.host, 0, own.advertised_host)
        made = replace(made, port=port_number(port, "--controller-port"), advertised_port=None)
    if made is not None:
        for each in (endpoint for own in brokers for endpoint in own):
            if each.name == made.name:
                raise EndpointError(f"listener {made.name} is the controller's, and cannot be a broker's too")
            if made.port and each.port == made.port:
                raise EndpointError(f"port {made.port} is wanted by {each.name} and by the controller")
    return made


def _all_from_settings(settings: Mapping[str, str], protocols: Mapping[str, str]) -> tuple[Endpoint, ...]:
    advertised: dict[str, tuple[str, int]] = {}
    for part in filter(None, settings.get("advertised.listeners", "").split(",")):
        name, host, port = named_address(part, "advertised.listeners")
        advertised[name] = (host, port)
    made = []
    for part in filter(None, settings.get("listeners", "").split(",")):
        name, host, port = named_address(part, "listeners")
        advertised_host, advertised_port = advertised.get(name, (None, None))
        # Advertised with the very port that it listens on: then a free port is advertised as the one it got.
        advertised_port = None if advertised_port == port else advertised_port
        made.append(Endpoint(name, protocol_of(name, protocols), host, port, advertised_host or None, advertised_port))
    return tuple(made)


def per_broker(main: Sequence[Endpoint], further: Sequence[Endpoint]) -> tuple[tuple[Endpoint, ...], ...]:
    """For each broker its endpoints: its own main one, then the further ones, which are written once for all."""
    brokers = tuple((own, *(more.of_broker(index) for more in further)) for index, own in enumerate(main))
    check(brokers)
    return brokers


def check(brokers: Iterable[Iterable[Endpoint]]) -> None:
    """No listener's name twice on one broker, no fixed port twice anywhere."""
    ports: dict[int, str] = {}
    for index, endpoints in enumerate(brokers, start=1):
        names: set[str] = set()
        for endpoint in endpoints:
            if endpoint.name in names:
                raise EndpointError(f"listener {endpoint.name} is given twice")
            names.add(endpoint.name)
            place = f"{endpoint.name} of broker {index}"
            if endpoint.port and endpoint.port in ports:
                raise EndpointError(f"port {endpoint.port} is wanted by {ports[endpoint.port]} and by {place}")
            ports[endpoint.port] = place
