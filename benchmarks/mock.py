"""Runs librdkafka's own mock cluster as a process: one broker on 127.0.0.1, on a port of its choice.

python -m benchmarks.mock --port-file FILE
"""

import argparse
import signal
from pathlib import Path

from benchmarks.librdkafka import Mock


def main() -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--port-file", type=Path, required=True)
    file: Path = parser.parse_args().port_file
    with Mock() as mock:
        partial = file.with_suffix(".partial")
        partial.write_text(mock.bootstrap.rpartition(":")[2])
        partial.rename(file)
        signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    main()
