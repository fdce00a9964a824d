"""Ports for servers whose port has to be known before they start."""

import itertools
import random
import socket
import sys

LOWEST, COUNT = 12_000, 20_000
"""Below the ports that systems give to connections (from 32768 on), any of which may be taken a moment later."""

_reservations: list[socket.socket] = []
"""Linux drops them with this process; other processes see them by their names, which are no files."""
_candidates = itertools.count(random.SystemRandom().randrange(COUNT))
"""Begins somewhere else in each process, and returns to a port last of all."""


def free_ports(count: int) -> list[int]:
    """Ports that are free at this moment, and that no process gets from here again while this one lives (on Linux)."""
    ports: list[int] = []
    while len(ports) < count:
        port = LOWEST + next(_candidates) % COUNT
        if _is_free(port) and _reserve(port):
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


def _reserve(port: int) -> bool:
    if sys.platform != "linux":
        return True
    reservation = socket.socket(socket.AF_UNIX)
    try:
        reservation.bind(f"\0understudy-port-{port}")
    except OSError:
        reservation.close()
        return False
    _reservations.append(reservation)
    return True
