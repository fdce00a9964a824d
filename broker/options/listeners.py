"""The brokers' listeners: from `--port`, `--host`, `--advertise` and `--listener`, or from the settings."""

from collections.abc import Mapping, Sequence

from broker.options.values import Arguments, OptionError, last
from broker.settings import endpoints
from broker.settings.endpoints import Endpoint, EndpointError


def count_of(arguments: Arguments) -> str:
    """Return the value of `--brokers`; without it, the number of ports in `--port`."""
    ports = (last(arguments, "port") or "").count(",") + 1
    return (
        str(ports) if ports > 1 and "brokers" not in arguments.get("given", ()) else last(arguments, "brokers") or "1"
    )


def listeners(arguments: Arguments, settings: Mapping[str, str], brokers: int) -> tuple[tuple[Endpoint, ...], ...]:
    """Return each broker's listeners: the setting `listeners` or else `--host` and `--port`, plus `--listener`s."""
    ports = [endpoints.port_number(part.strip(), "--port") for part in (last(arguments, "port") or "9092").split(",")]
    if len(ports) > 1 and len(ports) != brokers:
        raise OptionError(f"--port names {len(ports)} ports for --brokers {brokers}")
    protocols = endpoints.protocol_map(settings.get("listener.security.protocol.map", ""))
    first_broker = endpoints.from_settings(settings, protocols)
    if not first_broker:
        host = last(arguments, "host") or "127.0.0.1"
        protocol = endpoints.protocol_of("PLAINTEXT", protocols)
        first_broker = endpoints.with_advertised((Endpoint("PLAINTEXT", protocol, host, ports[0]),), settings)
    advertise = last(arguments, "advertise")
    advertised = (None, None) if advertise is None else endpoints.address(advertise, "--advertise", port_needed=False)
    first = [main_endpoint(first_broker[0], ports, index, advertised) for index in range(brokers)]
    further = (*first_broker[1:], *(endpoints.listener(text, protocols) for text in arguments.get("listener", ())))
    return endpoints.per_broker(first, further)


def main_endpoint(
    main: Endpoint, ports: Sequence[int], index: int, advertised: tuple[str | None, int | None]
) -> Endpoint:
    """Return a broker's first listener; its port is from `--port` if that lists several, this listener's among them."""
    listed = len(ports) > 1 and main.port == ports[0]
    port = ports[index] if listed else main.of_broker(index).port
    host = main.advertised_host if advertised[0] is None else advertised[0]
    port_for_clients = main.advertised_port if advertised[0] is None else advertised[1]
    if port_for_clients is not None:
        port_for_clients += index
        if port_for_clients > 65535:
            raise EndpointError(f"listener {main.name} of broker {index + 1} would need port {port_for_clients}")
    return Endpoint(main.name, main.protocol, main.host, port, host, port_for_clients)
