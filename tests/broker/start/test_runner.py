"""The process around a cluster."""

import subprocess
import sys

STARTED = """
import gc, os, signal
from broker.start import server
from broker.options import parse

def serving():
    print("serving", gc.get_freeze_count(), len(gc.get_objects()))
    os.kill(os.getpid(), signal.SIGTERM)

server.afterwards = serving
print("before", gc.get_freeze_count(), len(gc.get_objects()))
server.serve(parse({"port": ["0"], "control-port": ["off"]}))
"""


def test_what_the_start_has_made_is_never_collected() -> None:
    """All objects of a server that serves are frozen: the collector looks at those that come later."""
    printed = subprocess.run([sys.executable, "-c", STARTED], capture_output=True, text=True, check=True).stdout
    lines = {line.split()[0]: line.split()[1:] for line in printed.splitlines()}
    frozen, tracked = map(int, lines["before"])
    assert frozen == 0
    assert tracked > 10_000
    frozen, tracked = map(int, lines["serving"])
    assert frozen > 10_000
    assert tracked < 1000
