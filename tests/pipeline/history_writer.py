"""A history of a client: the few lines that a program needs (`docs/audit.md`)."""

import json
from pathlib import Path
from typing import Any


class History:
    """One client's file."""

    def __init__(self, folder: Path, client: str) -> None:
        self.client = client
        self._file = (folder / f"{client}.jsonl").open("a", buffering=1)

    def write(self, event: str, **fields: Any) -> None:
        """Write an event."""
        self._file.write(json.dumps({"event": event, "client": self.client, **fields}) + "\n")

    def close(self) -> None:
        """End."""
        self._file.close()
