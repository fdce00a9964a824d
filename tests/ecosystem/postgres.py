"""A PostgreSQL of Debian's package that decodes its write-ahead log, in a folder of its own."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.ecosystem.programs import fetch, running, until
from tests.ports import free_ports

INSTALLED = Path("/usr/lib/postgresql")


@dataclass(frozen=True, slots=True)
class Postgres:
    """A running server on this machine: user postgres, any password."""

    programs: Path
    port: int

    def psql(self, statement: str) -> None:
        """Run statements."""
        subprocess.run([*self._client("psql"), "-v", "ON_ERROR_STOP=1", "-c", statement], check=True, timeout=60)

    def is_ready(self) -> bool:
        """Whether it accepts connections."""
        return subprocess.run(self._client("pg_isready"), check=False, timeout=60).returncode == 0

    def _client(self, name: str) -> Sequence[str]:
        return [str(self.programs / name), "-q", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres"]


@contextmanager
def postgres() -> Iterator[Postgres]:
    """Start one; it and its data end with the block."""
    fetch("debian", "postgresql")
    server = Postgres(max(INSTALLED.glob("*/bin"), key=lambda path: int(path.parent.name)), *free_ports(1))
    folder = Path(tempfile.mkdtemp(prefix="ecosystem-postgres-"))
    as_postgres = []
    if os.geteuid() == 0:  # as which PostgreSQL refuses to run
        shutil.chown(folder, "postgres", "postgres")
        as_postgres = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    try:
        initdb = [*as_postgres, str(server.programs / "initdb"), "-A", "trust", "-U", "postgres", str(folder / "data")]
        subprocess.run(initdb, check=True, capture_output=True, timeout=120, cwd=folder)
        settings = ["-c", "wal_level=logical", "-c", "fsync=off", "-k", str(folder), "-h", "127.0.0.1"]
        command = [*as_postgres, str(server.programs / "postgres"), "-D", str(folder / "data"), *settings]
        with running([*command, "-p", str(server.port)], folder) as process:
            until(server.is_ready, process, folder)
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)
