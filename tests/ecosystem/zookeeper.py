"""A ZooKeeper, from Debian's package, for Burrow, which needs one."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.clients.targets import accepts
from tests.ecosystem.programs import JVM, fetch, running, until
from tests.ports import free_ports

CLASS_PATH = "/etc/zookeeper/conf:/usr/share/java/*"
MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


@contextmanager
def zookeeper() -> Iterator[str]:
    """Start a ZooKeeper and yield its address, HOST:PORT; at the end of the block, stop it and delete its data."""
    fetch("debian", "zookeeper")
    (port,) = free_ports(1)
    folder = Path(tempfile.mkdtemp(prefix="ecosystem-zookeeper-"))
    settings = folder / "zoo.cfg"
    settings.write_text(
        f"tickTime=2000\ndataDir={folder / 'data'}\nclientPort={port}\nclientPortAddress=127.0.0.1\n"
        "admin.enableServer=false\n"
    )
    try:
        with running(["java", *JVM, "-cp", CLASS_PATH, MAIN, str(settings)], folder) as process:
            until(lambda: accepts(port), process, folder)
            yield f"127.0.0.1:{port}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
