"""An archive of the classes of a Kafka broker, with which its JVM starts on a third less of processor time.

The JVM maps classes from the archive instead of reading and verifying them from the jars (class data sharing). It uses
an archive only with the same jars in the same folder and the JVM that wrote it, and otherwise starts as without one.
"""

import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from tests.clients.targets import CACHE, CLUSTER_ID, JVM, START_S, accepts, kafka_libs, place_properties, wait_until
from tests.ports import free_ports

ENDING_S = 600


@cache
def archive_flags(libs: Path) -> tuple[str, ...]:
    """Return the JVM's flags for the archive of a folder of jars; a broker is run to write one that is missing."""
    archive = CACHE / "java" / "archives" / f"{_identity(libs)}.jsa"
    if not archive.exists():
        archive.parent.mkdir(parents=True, exist_ok=True)
        with archive.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not archive.exists():
                _write(archive, libs)
    return (f"-XX:SharedArchiveFile={archive}", "-Xlog:disable")


def _write(archive: Path, libs: Path) -> None:
    """Format a directory, start a broker on it and stop it in good order: the JVM writes the archive as it ends."""
    unfinished = archive.with_suffix(f".{os.getpid()}")
    with tempfile.TemporaryDirectory(prefix="class-archive-") as place:
        folder = Path(place)
        port, controller = free_ports(2)
        settings, log = folder / "server.properties", folder / "log"
        lines = place_properties(1, port, controller, folder / "data")
        settings.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        java = ["java", *JVM, "-cp", f"{libs}/*"]
        tool = [*java, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(settings)]
        subprocess.run(tool, check=True, capture_output=True)
        server = [
            java[0],
            f"-XX:ArchiveClassesAtExit={unfinished}",
            "-Xlog:disable",
            *java[1:],
            "kafka.Kafka",
            str(settings),
        ]
        with log.open("wb") as output, subprocess.Popen(server, stdout=output, stderr=output) as broker:
            wait_until(lambda: accepts(port), START_S, broker, log)
            broker.send_signal(signal.SIGTERM)
            broker.wait(ENDING_S)
    unfinished.rename(archive)


def _identity(libs: Path) -> str:
    """Name the JVM and the jars with their sizes and times: the JVM refuses the archive of others."""
    java = Path(shutil.which("java") or "java").resolve()
    jars = sorted((each.name, each.stat().st_size, each.stat().st_mtime_ns) for each in libs.glob("*.jar"))
    return hashlib.sha256(repr((str(java), str(libs.resolve()), jars)).encode()).hexdigest()[:16]


def kafka_java(heap_mb: int, log_level: str) -> list[str]:
    """Return the command that runs a class of Kafka, up to the name of that class."""
    flags = [f"-Xmx{heap_mb}m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *archive_flags(kafka_libs())]
    return ["java", *flags, f"-Dorg.slf4j.simpleLogger.defaultLogLevel={log_level}", "-cp", f"{kafka_libs()}/*"]
