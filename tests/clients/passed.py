"""A cluster for a while; where it is behind a proxy, whether everything has passed it, and passed well."""

import json
import re
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from tests.clients import targets
from tests.clients.targets import Target
from tests.serving import until

_REQUESTS = re.compile(r'^understudy_requests_total\{api="(\w+)"\} (\S+)$', re.MULTILINE)
_SERIOUS = ("error", "critical")


@contextmanager
def running(brokers: int, target: str | None = None, settings: dict[str, str] | None = None) -> Iterator[Target]:
    """Start a target, and end it.

    Raises:
        AssertionError: a client was led past the proxy, or the proxy has logged an error.
    """
    if (target or "").endswith("kafka"):
        targets.prepare_kafka()
    cluster = targets.start(brokers, target, settings)
    try:
        yield cluster
        check(cluster)
    finally:
        cluster.close()


def check(cluster: Target) -> None:
    """Compare what the proxy and its upstream have counted, where there is a proxy, and look into its log."""
    if cluster.upstream is None:
        return
    assert requests(cluster), "no request has passed the proxy"
    assert errors(cluster) == []
    if cluster.upstream.control_url is not None:  # a real Kafka has none
        until(lambda: not past(cluster), f"no request has gone past the proxy: {past(cluster)}")


def requests(cluster: Target) -> Counter[str]:
    """API -> how many requests of it were served; empty without a control plane."""
    if cluster.control_url is None:
        return Counter()
    with urllib.request.urlopen(f"{cluster.control_url}/metrics", timeout=60) as answer:  # noqa: S310 - ours
        counts = _REQUESTS.findall(answer.read().decode())
    return Counter({api: int(float(count)) for api, count in counts})


def past(cluster: Target) -> Counter[str]:
    """The requests that reached the cluster and did not come through its proxy."""
    assert cluster.upstream is not None
    return requests(cluster.upstream) - requests(cluster)


def errors(cluster: Target) -> list[str]:
    """The lines of the log that report a mistake of the program."""
    lines = cluster.log.read_text(encoding="utf-8").splitlines()
    logged = [line for line in lines if line.startswith("{") and json.loads(line).get("level") in _SERIOUS]
    return logged + [line for line in lines if line.startswith("Traceback")]
