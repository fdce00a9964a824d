"""The random id that a server draws next is another cluster's: what follows from the order of ids is alike on both.

The test writes the id into a file, whose name a server that is forked finds in its environment.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from uuid import UUID

VARIABLE = "NEXT_ID_FILE"
Draws = Callable[[UUID | None], AbstractContextManager[None]]


class NextId:
    """The id in a file. A sender of a request for which an id is drawn enters :meth:`drawn`, one at a time."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._turn = threading.Lock()

    @contextmanager
    def drawn(self, value: UUID | None) -> Iterator[None]:
        """The server draws this id, once; None: it draws by chance."""
        with self._turn:
            if value is not None:
                self._file.write_text(str(value), encoding="ascii")
            try:
                yield
            finally:
                self._file.unlink(missing_ok=True)

    @contextmanager
    def of_a_server(self) -> Iterator[None]:
        """Servers that start meanwhile read the file."""
        os.environ[VARIABLE] = str(self._file)
        try:
            yield
        finally:
            del os.environ[VARIABLE]


def read_by_servers() -> None:
    """Let this process, which becomes a server, draw the id in the file that its environment names, if it names one."""
    name = os.environ.get(VARIABLE)
    if name is None:
        return
    from broker.cluster.base import ClusterBase  # noqa: PLC0415 - the test's side has no server in its process

    by_chance = ClusterBase.new_uuid

    def new_uuid(self: ClusterBase) -> UUID:
        try:
            text = Path(name).read_text(encoding="ascii")
        except FileNotFoundError:
            return by_chance(self)
        Path(name).unlink(missing_ok=True)
        return UUID(text) if text else by_chance(self)

    ClusterBase.new_uuid = new_uuid  # type: ignore[method-assign]
