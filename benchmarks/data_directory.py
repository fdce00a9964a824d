"""Measures a data directory's cost: start after a clean stop and after a kill, and memory while it grows.

    python benchmarks/data_directory.py [--records 1000000] [--gigabytes 5] [--folder DIR]

Times are from the process's start to its ready file, so they include the interpreter's own start, which the start on an
empty directory shows. Memory is the process's resident set, sampled ten times a second.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from confluent_kafka import Consumer, Producer, TopicPartition

from understudy.launcher import ServerProcess, command_line

VALUE = os.urandom(500).hex().encode()  # 1000 bytes


def start(data: Path, topic: str = "") -> tuple[ServerProcess, float]:
    """Start a server on a directory; return it and the seconds until it was ready."""
    begun = time.perf_counter()
    topics = [topic] if topic else []
    server = ServerProcess(command_line(port=0, control_port="off", data_dir=data, topics=topics))
    return server, time.perf_counter() - begun


def kill(server: ServerProcess) -> None:
    """End a server with SIGKILL."""
    server.process.kill()
    server.process.wait()
    server.stop()


def produce(bootstrap: str, topic: str, records: int, per_batch: int = 1000) -> float:
    """Produce records of 1 kB with acks=all and idempotence; return megabytes per second."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "linger.ms": 20,
            "batch.num.messages": per_batch,
            "batch.size": 1_000_000,
            "queue.buffering.max.kbytes": 200_000,
            "queue.buffering.max.messages": 200_000,
        }
    )
    begun = time.perf_counter()
    for _ in range(records):
        while True:
            try:
                producer.produce(topic, VALUE)
                break
            except BufferError:
                producer.poll(0.05)
    assert producer.flush(300) == 0
    return records / 1000 / (time.perf_counter() - begun)


def end_of(bootstrap: str, topic: str) -> int:
    """The end offset of the topic's first partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g"})
    _, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=60)
    consumer.close()
    return int(high)


class Memory(threading.Thread):
    """Samples a process's resident set until `end` is called."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._status, self._over = Path(f"/proc/{pid}/status"), threading.Event()
        self.first, self.most, self.last = self._now(), 0.0, 0.0
        self.start()

    def _now(self) -> float:
        """Return the resident MiB."""
        line = next(line for line in self._status.read_text().splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024

    def run(self) -> None:
        """Sample until the end."""
        while not self._over.wait(0.1):
            self.last = self._now()
            self.most = max(self.most, self.last)

    def end(self) -> dict[str, int]:
        """Stop sampling; return the MiB before, at most, and at the end."""
        self._over.set()
        self.join()
        return {"before_mib": round(self.first), "most_mib": round(self.most), "after_mib": round(self.last)}


def recovery(folder: Path, records: int, per_batch: int) -> dict[str, object]:
    """Time starts: on an empty directory, after a kill, after a clean stop."""
    data = folder / "recovery"
    server, empty_s = start(data, "big:1")
    rate = produce(server.ready.bootstrap_servers[0], "big", records, per_batch)
    kill(server)
    server, killed_s = start(data)
    assert end_of(server.ready.bootstrap_servers[0], "big") == records
    server.stop()
    server, clean_s = start(data)
    assert end_of(server.ready.bootstrap_servers[0], "big") == records
    server.stop()
    shutil.rmtree(data)
    seconds = {"empty": empty_s, "after_kill": killed_s, "after_clean_stop": clean_s}
    written = {"records": records, "per_batch": per_batch, "written_mb_per_s": round(rate)}
    return {**written, **{f"{k}_s": round(v, 2) for k, v in seconds.items()}}


def growth(folder: Path, gigabytes: float) -> dict[str, object]:
    """Measure resident memory while a producer writes."""
    data = folder / "growth"
    server, _ = start(data, "big:4")
    memory = Memory(server.ready.pid)
    rate = produce(server.ready.bootstrap_servers[0], "big", int(gigabytes * 1_000_000))
    seen = memory.end()
    size = sum(path.stat().st_size for path in data.rglob("*.log"))
    server.stop()
    shutil.rmtree(data)
    return {"log_files_gb": round(size / 1e9, 2), "written_mb_per_s": round(rate), "rss": seen}


def main() -> None:
    """Run both measurements and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--gigabytes", type=float, default=5)
    parser.add_argument("--folder", default=None)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="understudy-bench-", dir=options.folder))
    try:
        print(json.dumps({"load": os.getloadavg()}))
        if options.records:
            for per_batch in (1000, 10):
                print(json.dumps({"recovery": recovery(folder, options.records, per_batch)}), flush=True)
        if options.gigabytes:
            print(json.dumps({"growth": growth(folder, options.gigabytes)}), flush=True)
        print(json.dumps({"load": os.getloadavg()}))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
