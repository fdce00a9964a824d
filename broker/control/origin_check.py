"""Who may ask without a token: programs, and pages that came from this server.

A page of any web site can make its visitor's browser send requests to loopback, and, with a name of its own that
resolves to 127.0.0.1, can even read the answers. Browsers send the request's origin and the host name it was sent to;
both are trusted here. A token makes this unnecessary, since no other site has it.
"""

from ipaddress import ip_address

from starlette.requests import Request

from broker.control.problems import Problem


def check(request: Request) -> None:
    """Raises Problem 403 for what a page of another site has sent."""
    host, origin = request.headers.get("host", ""), request.headers.get("origin")
    if host and not is_own_name(name_of(host)):
        raise Problem(403, f"{host!r} is not a name of this machine; use 127.0.0.1, localhost or --control-token")
    if origin is not None and origin.partition("//")[2] != host:
        raise Problem(403, f"a page of {origin} may not steer this cluster; use the console here, or --control-token")


def name_of(host: str) -> str:
    """A Host header without its port; an IPv6 address may come without its brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    name, _, port = host.rpartition(":")
    return name if name and port.isdigit() else host


def is_own_name(name: str) -> bool:
    """Whether no name service is asked for it: an address, or localhost."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
