"""Protection against requests from other web sites (CSRF, DNS rebinding), for servers without a token.

Any web page can make the browser send requests to loopback, and with a host name of its own that resolves to 127.0.0.1
it can even read the responses. Browsers send the origin of the page and the host name of the request; both are checked
here. With a token this is unnecessary, since no other site has it.
"""

from ipaddress import ip_address

from starlette.requests import Request

from broker.control.problems import Problem


def check(request: Request) -> None:
    """Raise Problem 403 for a request from a page of another site."""
    host, origin = request.headers.get("host", ""), request.headers.get("origin")
    if host and not is_own_name(name_of(host)):
        raise Problem(403, f"{host!r} is not a name of this machine; use 127.0.0.1, localhost or --control-token")
    if origin is not None and origin.partition("//")[2] != host:
        raise Problem(
            403, f"a page of {origin} may not control this cluster; use this server's console, or --control-token"
        )


def name_of(host: str) -> str:
    """Return a Host header without its port, and an IPv6 address without its brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    name, _, port = host.rpartition(":")
    return name if name and port.isdigit() else host


def is_own_name(name: str) -> bool:
    """Return whether a name needs no name service: an IP address, or localhost."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
