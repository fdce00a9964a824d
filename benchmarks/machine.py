"""The machine that a run was made on, described without saying whose it is."""

import importlib.metadata
import mmap
import os
import platform
import re
import subprocess
import time
from pathlib import Path

from benchmarks import librdkafka
from benchmarks.targets import KAFKA_VERSION, ROOT


def _first(command: list[str], pattern: str) -> str:
    """The first match in what a command prints, or a dash."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    except OSError:
        return "-"
    found = re.search(pattern, done.stdout + done.stderr)
    return found[1] if found else "-"


def _processor() -> str:
    found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return re.sub(r"\s+", " ", found[1]) if found else platform.machine()


def _memory_gb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9


def _page_cost() -> str:
    """What a megabyte of memory costs when it is touched for the first time, and when it is written to again, in us."""
    pieces, piece = 256, bytes(1 << 20)
    with mmap.mmap(-1, pieces << 20) as room:
        took = []
        for _ in range(2):
            begun = time.process_time()
            for at in range(pieces):
                room[at << 20 : (at + 1) << 20] = piece
            took.append((time.process_time() - begun) / pieces * 1e6)
    return f"{took[0]:.0f} us for new pages, {took[1]:.0f} us for known ones"


def description() -> dict[str, str]:
    """What counts for the figures: processors, memory, versions, and how busy the machine was at the start."""
    kfake = re.search(r"kfake (v\S+)", (ROOT / "benchmarks" / "kfake" / "go.mod").read_text())
    java = _first(["java", "-version"], r'version "([^"]+)"')
    go = _first(["go", "version"], r"go(\d\S+)")
    return {
        "processors": f"{os.cpu_count()} x {_processor()}",
        "memory": f"{_memory_gb():.0f} GB",
        "writing a megabyte of memory": _page_cost(),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "Python": f"{platform.python_version()}, uvloop {importlib.metadata.version('uvloop')}, "
        f"kio {importlib.metadata.version('kio')}, crc32c {importlib.metadata.version('crc32c')}",
        "client": f"librdkafka {librdkafka.version()} of confluent-kafka "
        f"{importlib.metadata.version('confluent-kafka')}, in one process on the same machine",
        "Kafka": f"{KAFKA_VERSION} on Java {java}, heap and collector as its start script sets them",
        "kfake": f"{kfake[1] if kfake else '-'}, Go {go}",
        "Understudy": _first(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], r"(\w+)"),
        "load average at the start": f"{os.getloadavg()[0]:.1f}",
    }
