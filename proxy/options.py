"""The options of `understudy proxy`, parsed and checked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from broker.options import (
    LOG_LEVELS,
    Arguments,
    OptionError,
    check_secrets,
    check_security,
    control,
    from_sets,
    integer,
    last,
    one_of,
    path,
)
from broker.settings import endpoints
from broker.settings.endpoints import Endpoint, EndpointError
from pipeline.transfer.security import Security, SecurityError, read_security

_PROTOCOLS = ("plaintext", "ssl")


@dataclass(frozen=True, slots=True)
class ProxyOptions:
    """Options of `understudy proxy`. ``listener`` is that of the first broker; the others have the next ports."""

    upstream: tuple[tuple[str, int], ...]
    security: Security = field(default_factory=Security)
    # 19092: ours, beside a Kafka at 9092.
    listener: Endpoint = field(default_factory=lambda: Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 19092))
    settings: Mapping[str, str] = field(default_factory=dict)
    control_host: str = "127.0.0.1"
    control_port: int | None = 9099  # as of `understudy serve`
    control_token: str | None = None
    ready_file: Path | None = None
    journal_dir: Path | None = None
    otlp_endpoint: str | None = None
    scenario: Path | None = None  # of `understudy serve` only
    seed: int | None = None
    log_format: str = "console"
    log_level: str = "info"
    data_dirs: tuple[()] = ()  # a proxy stores nothing
    notes: tuple[str, ...] = ()

    def option_of_port(self, port: int) -> str:
        """Return the option that names this port, for the message that the port is in use."""
        return "--control-port" if port == self.control_port else "--port"

    def option_of_host(self, host: str) -> str:
        """Return the option that names this address, for the message that the machine does not have it."""
        return "--host" if host == self.listener.host else "--control-host"


def parse(arguments: Arguments) -> ProxyOptions:
    """Parse the options. Raises OptionError for the first invalid one."""
    check_secrets(arguments.get("typed", ()))
    settings, _ = from_sets(arguments.get("set", ()), strict=True)
    protocol = one_of(last(arguments, "protocol") or "plaintext", "--protocol", _PROTOCOLS).upper()
    try:
        upstream = _addresses(arguments.get("upstream", ()))
        listener = _listener(arguments, protocol)
        listener.of_broker(len(upstream) - 1)  # each upstream address needs its own port
    except EndpointError as error:
        raise OptionError(str(error)) from error
    check_security((listener,), settings)
    control_host, control_port, control_token = control(arguments)
    seed = last(arguments, "seed")
    return ProxyOptions(
        upstream=upstream,
        security=_security(last(arguments, "client-config")),
        listener=listener,
        settings=settings,
        control_host=control_host,
        control_port=control_port,
        control_token=control_token,
        ready_file=path(arguments, "ready-file"),
        journal_dir=path(arguments, "journal"),
        otlp_endpoint=last(arguments, "otlp-endpoint"),
        seed=None if seed is None else integer(seed, "--seed", -(2**63), 2**64 - 1),  # 64 bits, signed or not
        log_format=one_of(last(arguments, "log-format") or "console", "--log-format", ("console", "json")),
        log_level=one_of(last(arguments, "log-level") or "info", "--log-level", LOG_LEVELS),
    )


def _addresses(values: Sequence[str]) -> tuple[tuple[str, int], ...]:
    addresses = []
    for part in (part.strip() for value in values for part in value.split(",")):
        if part:
            host, port = endpoints.address(part, "--upstream")
            if not port or not host:
                raise OptionError(f"--upstream needs HOST:PORT, not {part!r}")
            addresses.append((host, port))
    if not addresses:
        raise OptionError("--upstream HOST:PORT is missing: the address of a broker of the cluster")
    return tuple(dict.fromkeys(addresses))


def _listener(arguments: Arguments, protocol: str) -> Endpoint:
    port = endpoints.port_number(last(arguments, "port") or "19092", "--port")
    advertise = last(arguments, "advertise")
    host, advertised = (
        (None, None) if advertise is None else endpoints.address(advertise, "--advertise", port_needed=False)
    )
    return Endpoint(protocol, protocol, last(arguments, "host") or "127.0.0.1", port, host, advertised)


def _security(file: str | None) -> Security:
    try:
        security = read_security(file)
        if security.has_tls:
            security.context()
    except SecurityError as error:
        raise OptionError(str(error)) from error
    return security
