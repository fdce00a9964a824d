"""Listeners, as options and settings describe them, and as each broker opens them.

A listener is given once for all brokers: broker 1 takes its port, broker 2 the next one, and so on; with port 0 each
takes a free port. Kafka's own `listeners`, `advertised.listeners` and protocol map are handled as in KafkaConfig.
"""

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from control_api.spelling import host_and_port
from protocol.deferred import dataclass

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

CONTROLLER = "CONTROLLER"
"""The name of the controller's listener, unless `controller.listener.names` gives another."""

_MOST_DIGITS = 9  # so that `int` is not asked about a text of megabytes; a port has five

ANY_ADDRESS = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - recognised, not bound


class EndpointError(Exception):
    """An invalid listener; the message is one sentence."""


class PortTaken(OSError):
    """A listener cannot be bound: ``errno`` shows whether the port is taken or the address is not this machine's."""

    def __init__(self, port: int, error: Exception, host: str = "") -> None:
        super().__init__(getattr(error, "errno", None), f"port {port} cannot be bound: {error}")
        self.port, self.host = port, host

    def __str__(self) -> str:
        return str(self.strerror)


class OpenListener(NamedTuple):
    """An open listener: its advertised address, and the address that it is bound to."""

    name: str
    protocol: str
    host: str
    port: int
    bound_host: str
    bound_port: int

    @property
    def as_listener(self) -> str:
        """Return it as an entry of Kafka's `listeners`."""
        return f"{self.name}://{host_and_port(self.bound_host, self.bound_port)}"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One listener of one broker: where it is bound, and the address that Metadata has for clients on it."""

    name: str
    protocol: str
    host: str
    port: int  # 0: a free port
    advertised_host: str | None = None  # None: as `host_for_clients` decides
    advertised_port: int | None = None  # None: the port that it is bound to

    @property
    def has_sasl(self) -> bool:
        """Whether clients have to authenticate by SASL."""
        return self.protocol.startswith("SASL")

    @property
    def has_tls(self) -> bool:
        """Whether the listener uses TLS."""
        return self.protocol.endswith("SSL")

    @property
    def host_for_clients(self) -> str:
        """The host in Metadata. Clients cannot connect to an any-address, so localhost is advertised for it."""
        if self.advertised_host is not None:
            return self.advertised_host
        return "localhost" if self.host in ANY_ADDRESS else self.host

    def port_for_clients(self, bound: int) -> int:
        """Return the port in Metadata, given the port that the listener is bound to."""
        return bound if self.advertised_port is None else self.advertised_port

    def as_listener(self, bound: int) -> str:
        """Return it as an entry of Kafka's `listeners`, given the port that it is bound to."""
        return self.opened(bound).as_listener

    def as_advertised(self, bound: int) -> str:
        """Return it as an entry of Kafka's `advertised.listeners`, given the port that it is bound to."""
        return f"{self.name}://{host_and_port(self.host_for_clients, self.port_for_clients(bound))}"

    def opened(self, bound: int) -> "OpenListener":
        """Return the listener as users see it, given the port that it is bound to."""
        advertised = self.host_for_clients, self.port_for_clients(bound)
        return OpenListener(self.name, self.protocol, *advertised, self.host, bound)

    def of_broker(self, index: int) -> "Endpoint":
        """Return the same listener for the broker with this index (0 for id 1): fixed ports count up."""
        port = self.port + index if self.port else 0
        advertised = None if self.advertised_port is None else self.advertised_port + index
        for value in (port, advertised):
            if value is not None and value > 65535:
                raise EndpointError(f"listener {self.name} of broker {index + 1} would need port {value}")
        return replace(self, port=port, advertised_port=advertised)


def address(text: str, what: str, *, port_needed: bool = True) -> tuple[str, int | None]:
    """Parse HOST:PORT, [::1]:PORT or, if the port is optional, HOST; `what` names the option in errors."""
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
    """Parse a TCP port, 0 to 65535."""
    if not text.isascii() or not text.isdigit() or len(text) > _MOST_DIGITS or int(text) > 65535:
        raise EndpointError(f"{what} needs a port from 0 to 65535, not {text!r}")
    return int(text)


def listener(text: str, protocols: Mapping[str, str]) -> Endpoint:
    """Parse `NAME://HOST:PORT[,advertised=HOST:PORT][,protocol=P]`, the value of `--listener`."""
    main, *extras = text.split(",")
    name, host, port = named_address(main, "--listener")
    endpoint = Endpoint(name, "", host, port)
    chosen: str | None = None
    for extra in extras:
        key, _, value = extra.partition("=")
        if key == "advertised":
            advertised_host, advertised_port = address(value, f"advertised= of --listener {name}", port_needed=False)
            endpoint = replace(endpoint, advertised_host=advertised_host, advertised_port=advertised_port)
        elif key == "protocol":
            chosen = value.upper()
        else:
            raise EndpointError(f"--listener {name} takes advertised=HOST:PORT and protocol=P, not {extra!r}")
    return replace(endpoint, protocol=protocol_of(name, protocols, chosen))


def named_address(text: str, what: str) -> tuple[str, str, int]:
    """Parse NAME://HOST:PORT into name in upper case, host and port."""
    name, mark, rest = text.strip().partition("://")
    if not mark or not name:
        raise EndpointError(f"{what} needs NAME://HOST:PORT, not {text!r}")
    host, port = address(rest, f"{what} {name}")
    assert port is not None  # address() has checked it
    return name.upper(), host, port


def protocol_map(text: str) -> dict[str, str]:
    """Parse `listener.security.protocol.map`: NAME:PROTOCOL,... with names in upper case; the last entry counts."""
    entries = (part.rpartition(":") for part in text.split(",") if part.strip())
    protocol_of_name = {name.strip().upper(): protocol.strip().upper() for name, _, protocol in entries}
    for name, protocol in protocol_of_name.items():
        if protocol not in PROTOCOLS:
            raise EndpointError(f"listener.security.protocol.map gives {name} the protocol {protocol!r}")
    return protocol_of_name


def protocol_of(name: str, protocols: Mapping[str, str], chosen: str | None = None) -> str:
    """Return a listener's security protocol: as chosen, as mapped, as its name implies, else PLAINTEXT."""
    protocol = chosen or protocols.get(name) or (name if name in PROTOCOLS else "PLAINTEXT")
    if protocol not in PROTOCOLS:
        raise EndpointError(f"listener {name} asks for protocol {protocol!r}; there are {', '.join(PROTOCOLS)}")
    return protocol


def from_settings(settings: Mapping[str, str], protocols: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """Return the listeners of Kafka's own settings, without controller listeners; empty without `listeners`."""
    controllers = controller_names(settings)
    return tuple(endpoint for endpoint in _all_from_settings(settings, protocols) if endpoint.name not in controllers)


def controller_names(settings: Mapping[str, str]) -> list[str]:
    """Return the names of controller listeners in Kafka's own settings, the default one first; empty if unset."""
    names = settings.get("controller.listener.names", "").split(",")
    return [name.strip().upper() for name in names if name.strip()]


def controllers(
    settings: Mapping[str, str], port: str | None, brokers: Sequence[Sequence[Endpoint]], count: int
) -> tuple[Endpoint, ...]:
    """Return the controllers' listeners: on the port of `--controller-port`, else as in Kafka's own settings; or none.

    The ports of several count up.

    Raises:
        EndpointError: the port is invalid or a broker's; the name is that of a broker's listener.
    """
    protocols = protocol_map(settings.get("listener.security.protocol.map", ""))
    name, *_ = (*controller_names(settings), CONTROLLER)
    listener = next((endpoint for endpoint in _all_from_settings(settings, protocols) if endpoint.name == name), None)
    if listener is not None and name not in controller_names(settings):
        listener = None
    if port is not None:
        of_first_broker = brokers[0][0]
        listener = listener or Endpoint(
            name, protocol_of(name, protocols), of_first_broker.host, 0, of_first_broker.advertised_host
        )
        listener = replace(listener, port=port_number(port, "--controller-port"), advertised_port=None)
    if listener is not None:
        for other in (endpoint for endpoints in brokers for endpoint in endpoints):
            if other.name == listener.name:
                raise EndpointError(f"listener {listener.name} is the controller's, and cannot be a broker's too")
            if listener.port and listener.port <= other.port < listener.port + count:
                raise EndpointError(f"port {other.port} is used by {other.name} and by the controller")
    return () if listener is None else tuple(listener.of_broker(index) for index in range(count))


def _all_from_settings(settings: Mapping[str, str], protocols: Mapping[str, str]) -> tuple[Endpoint, ...]:
    endpoints = []
    for part in dict.fromkeys(part.strip() for part in settings.get("listeners", "").split(",") if part.strip()):
        name, host, port = named_address(part, "listeners")
        endpoints.append(Endpoint(name, protocol_of(name, protocols), host, port))
    return with_advertised(endpoints, settings)


def with_advertised(listed: Iterable[Endpoint], settings: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """Return the listeners with the addresses that `advertised.listeners` gives for them."""
    advertised: dict[str, tuple[str, int]] = {}
    for part in filter(None, settings.get("advertised.listeners", "").split(",")):
        name, host, port = named_address(part, "advertised.listeners")
        advertised[name] = (host, port)
    endpoints = []
    for endpoint in listed:
        host_for_clients, port_for_clients = advertised.get(endpoint.name, (None, None))
        # If the advertised port equals the listener's, the bound port is advertised, also with port 0.
        port_for_clients = None if port_for_clients == endpoint.port else port_for_clients
        endpoints.append(replace(endpoint, advertised_host=host_for_clients or None, advertised_port=port_for_clients))
    return tuple(endpoints)


def per_broker(main: Sequence[Endpoint], further: Sequence[Endpoint]) -> tuple[tuple[Endpoint, ...], ...]:
    """Return each broker's listeners: its own first one, then the further ones, given once for all brokers."""
    brokers = tuple((endpoint, *(more.of_broker(index) for more in further)) for index, endpoint in enumerate(main))
    check(brokers)
    return brokers


def check(brokers: Iterable[Iterable[Endpoint]]) -> None:
    """Refuse a listener name given twice on a broker, and a fixed port given twice, except of IPv4 and IPv6."""
    ports: dict[int, dict[int, str]] = {}
    for index, endpoints in enumerate(brokers, start=1):
        names: set[str] = set()
        for endpoint in endpoints:
            if endpoint.name in names:
                raise EndpointError(f"listener {endpoint.name} is given twice")
            names.add(endpoint.name)
            place = f"{endpoint.name} of broker {index}"
            taken, family = ports.setdefault(endpoint.port, {}), _family(endpoint.host)
            # IPv4 and IPv6 may share a port.
            other = next((user for each, user in taken.items() if {each, family} != {4, 6}), None)
            if endpoint.port and other is not None:
                raise EndpointError(f"port {endpoint.port} is used by {other} and by {place}")
            taken[family] = place


def _family(host: str) -> int:
    """Return 4 or 6 for an IP address, and 0 for a name, which may have addresses of both."""
    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return 0
