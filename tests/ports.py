"""Ports for servers whose port has to be known before they start."""

import itertools
import random
import socket

LOWEST, COUNT = 12_000, 20_000
"""Below the ports that systems give to connections (from 32768 on), any of which may be taken a moment later."""

_candidates = itertools.count(random.SystemRandom().randrange(COUNT))
"""Begins somewhere else in each process, and returns to a port last of all."""


def free_ports(count: int) -> list[int]:
    """Ports that are free at this moment, and that were not returned to this process before."""
    ports: list[int] = []
    while len(ports) < count:
        port = LOWEST + next(_candidates) % COUNT
        if _is_free(port):
            ports.append(port)
    return ports


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
