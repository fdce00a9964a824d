"""Serve the proxy: one process, one loop, one upstream cluster."""

from functools import partial

from broker.control.verbs import Function
from broker.start.runner import Announcement, run
from proxy.options import ProxyOptions
from proxy.proxy import Proxy


def serve(options: ProxyOptions) -> int:
    """Run a proxy until it is stopped; return the exit code, as :func:`broker.start.runner.run`."""
    return run("proxy", options, partial(Proxy, function_of=_function_of), _announcement)


def _function_of(verb: str) -> Function | None:
    from proxy.verbs import VERBS  # noqa: PLC0415 - imported for the first request to the control plane

    return VERBS.get(verb)


def _announcement(proxy: Proxy) -> Announcement:
    brokers = [{"id": upstream.id, "host": upstream.host, "port": upstream.port} for upstream in proxy.upstreams]
    return Announcement(proxy.description, brokers)
