"""Describes the machine and the software of a benchmark run, without names of hosts or users."""

import importlib.metadata
import os
import platform
import re
import subprocess
from pathlib import Path

from benchmarks import librdkafka
from benchmarks.targets import KAFKA_VERSION, ROOT


def _first(command: list[str], pattern: str) -> str:
    """Return the first group of the first match in a command's output; a dash if there is no match or no command."""
    try:
        completed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    except OSError:
        return "-"
    match = re.search(pattern, completed.stdout + completed.stderr)
    return match[1] if match else "-"


def _processor() -> str:
    """Return the model as Linux names it, or else the architecture."""
    match = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return re.sub(r"\s+", " ", match[1]) if match else platform.machine()


def _memory_gb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9


def description() -> dict[str, str]:
    """Return what affects the figures: processors, memory, versions, and the load at the start."""
    kfake = re.search(r"kfake (v\S+)", (ROOT / "benchmarks" / "kfake" / "go.mod").read_text())
    java = _first(["java", "-version"], r'version "([^"]+)"')
    go = _first(["go", "version"], r"go(\d\S+)")
    return {
        "processors": f"{os.cpu_count()} x {_processor()}",
        "memory": f"{_memory_gb():.0f} GB",
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "Python": f"{platform.python_version()}, uvloop {importlib.metadata.version('uvloop')}, "
        f"crc32c {importlib.metadata.version('crc32c')}",
        "client": f"librdkafka {librdkafka.version()} of confluent-kafka "
        f"{importlib.metadata.version('confluent-kafka')}, in one process on the same machine",
        "Kafka": f"{KAFKA_VERSION} on Java {java}, heap and collector as its start script sets them",
        "kfake": f"{kfake[1] if kfake else '-'}, Go {go}",
        "Understudy": _first(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], r"(\w+)"),
        "load average at the start": f"{os.getloadavg()[0]:.1f}",
    }
