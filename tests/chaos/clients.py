"""The clients of a chaos run, each a process of its own: copiers, a feeder of the source, a reader of the sink."""

import random
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue

COPIER = Path(__file__).with_name("copier.py")
ENDS = Path(__file__).with_name("ends.py")
PARTITIONS = 9


@dataclass
class Copiers:
    """Three copiers that are started again whenever they end."""

    bootstrap: str
    batch: int
    log: Path
    chance: random.Random
    running: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    starts: int = 0
    kills: int = 0

    def keep_up(self) -> None:
        """Start those that are not there."""
        for number in range(3):
            process = self.running.get(number)
            if process is None or process.poll() is not None:
                self.starts += 1
                arguments = (self.bootstrap, "source", "sink", "copiers", f"copier-{number}", self.batch, self.starts)
                with self.log.open("ab") as log:
                    self.running[number] = subprocess.Popen(
                        [sys.executable, str(COPIER), *map(str, arguments)], stdout=log, stderr=log
                    )

    def kill_one(self) -> None:
        """SIGKILL, in the middle of its work."""
        self.running[self.chance.randrange(3)].kill()
        self.kills += 1

    def close(self) -> None:
        """End them all."""
        for process in self.running.values():
            process.kill()
            process.wait()


class Feeder:
    """Puts records 0 to count - 1 into the source, a share at a time."""

    def __init__(self, bootstrap: str, count: int, shares: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(ENDS), "feed", bootstrap, "source", str(PARTITIONS)], stdin=subprocess.PIPE, text=True
        )
        self._fed, self._count, self._share = 0, count, -(-count // shares)

    def feed(self) -> None:
        """Write the next share."""
        last = min(self._fed + self._share, self._count)
        if self._process.stdin is not None and self._fed < last:
            self._process.stdin.write(f"{self._fed} {last}\n")
            self._process.stdin.flush()
        self._fed = last

    def close(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()


class Reader:
    """What a read_committed reader finds in the sink."""

    def __init__(self, bootstrap: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(ENDS), "read", bootstrap, "sink", str(PARTITIONS)], stdout=subprocess.PIPE, text=True
        )
        self._values: SimpleQueue[str] = SimpleQueue()
        self._thread = threading.Thread(target=self._pump, daemon=True)
        self._thread.start()

    def _pump(self) -> None:
        for line in self._process.stdout or ():
            self._values.put(line.rstrip())

    def values(self) -> list[str]:
        """Return what came since the last call, after waiting for it for at most 0.2 s."""
        received: list[str] = []
        try:
            received.append(self._values.get(timeout=0.2))
            while True:
                received.append(self._values.get_nowait())
        except Empty:
            return received

    def close(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.wait()
        self._thread.join()
        if self._process.stdout is not None:
            self._process.stdout.close()
