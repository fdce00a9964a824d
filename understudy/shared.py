"""`understudy shared`: one server for all test processes of a machine and user that run at a time.

A keeper process starts the server, and ends both some seconds after its last user is gone. Users find it by a Unix
socket in a folder of their own, and are its users as long as they are connected, so that one that is killed does not
count. If the server crashes, each user learns the signal. A lock file lets one process at a time start or end a keeper.
"""

import json
import os
import select
import selectors
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

try:
    import fcntl
except ImportError:  # Windows; `place` refuses it
    fcntl = None  # type: ignore[assignment]

from understudy import lifeline, serve, server_path
from understudy.argparser import refuse
from understudy.errors import StartError, UnderstudyError
from understudy.launcher import START_PATIENCE_S, ServerProcess, command, command_line, environment, load
from understudy.transport import Address, Transport
from understudy.version import __version__

PROGRAM = "understudy shared"
LINGER_S = 2.0
"""How long a server without users runs on, for the next process of a test run."""
_MESSAGE_BYTES = 65_536  # more than a message has; one read takes it
_DESCRIPTION = (
    "Make a cluster in the server that the test processes of this machine and user share; the first one starts it. "
    "The cluster ends with this process. Options that the shared server does not have start a server, as `serve` does."
)
_SHAREABLE = {"lifeline", "port", "control-port", "brokers", "topic", "set", "for-tests", "as-version", "seed"}
_LONGEST_PATH = 100
"""A Unix socket's path has at most 107 bytes, on macOS 103."""


class Place(NamedTuple):
    """The files by which a server is found."""

    lock: Path
    socket: Path
    log: Path


def place() -> Place:
    """Return the files for this user, version and installation. Raises StartError: the folder is not the user's own."""
    if os.name != "posix":
        raise StartError("a shared server needs a system with Unix sockets; start a server for each process here")
    folder = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()) / f"understudy-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise StartError(f"{folder}, for the lock of the shared server, cannot be made: {error.strerror}") from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise StartError(f"{folder}, for the lock of the shared server, is not a folder of yours alone; remove it")
    # Four bytes distinguish the few installations of a user.
    digest = blake2b(f"{server_path.folder()} {sys.executable}".encode(), digest_size=4).hexdigest()
    name = f"{__version__}-{digest}"
    if len(os.fsencode(folder)) + len(name) > _LONGEST_PATH:
        raise StartError(f"{folder} is too long a path for a socket; set XDG_RUNTIME_DIR to a shorter one")
    return Place(*(folder / f"{name}.{end}" for end in ("lock", "socket", "log")))


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file, which has the keeper's version, process and control URL for people who look."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Shared:
    """This process's use of the shared server: it runs at least until `close`, or the end of this process."""

    def __init__(self) -> None:
        self.place = place()
        self._socket, ready = self._joined()
        self.control_url: str = ready["control_url"]
        self.owner: str = ready["owner"]
        """The `owner` for `POST /v1/clusters`: clusters that have it end with this use."""
        self.pid: int = ready["pid"]
        self._last = ""

    def _joined(self) -> tuple[socket.socket, dict[str, Any]]:
        joined = connected(self.place)
        if joined is not None:
            return joined
        with locked(self.place.lock):
            joined = connected(self.place)  # another process has started it meanwhile
            if joined is None:
                keeper = subprocess.Popen(
                    [*command(), "shared", "--keeper"],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=environment(),
                    start_new_session=True,  # it outlives this process if others use it
                )
                threading.Thread(target=keeper.wait, daemon=True).start()
                deadline = time.monotonic() + START_PATIENCE_S
                while joined is None:
                    if time.monotonic() > deadline or keeper.returncode is not None:
                        raise StartError(f"the shared server was not ready: {_last_lines(_logged(self.place))}")
                    time.sleep(0.005)  # short beside a start
                    joined = connected(self.place)
        return joined

    def end(self) -> str:
        """Return how the server ended, such as `ended by signal 9 (SIGKILL)`; empty while it runs."""
        self._socket.setblocking(False)
        with suppress(BlockingIOError):
            self._receive()
        return self._last.partition("\n")[0]

    def wait(self, signals: socket.socket | None = None) -> str:
        """Block until the server ends, and return how; empty if there is something to read from `signals` before."""
        self._socket.setblocking(True)
        if signals is not None and self._socket not in select.select([self._socket, signals], [], [])[0]:
            return ""
        self._receive()
        return self._last.partition("\n")[0]

    def _receive(self) -> None:
        """Keep the keeper's last message, whose first line has how the server ended; one that was killed sends none."""
        if not self._last:
            message = b""
            while part := self._socket.recv(_MESSAGE_BYTES):
                message += part
            self._last = message.decode(errors="replace") or "ended, because its keeper was killed"

    def log(self, cluster: str = "", lines: int = 30) -> str:
        """Return the last lines of the server's log, or those about a cluster, by default a screen."""
        text = self._last.partition("\n")[2] if self.end() else _logged(self.place)
        return _last_lines(text, cluster, lines)

    def close(self) -> None:
        """End this use, and the clusters that have its `owner`."""
        self._socket.close()


def _logged(at: Place) -> str:
    """Return what the server has logged so far."""
    try:
        return at.log.read_text(errors="replace")
    except FileNotFoundError:
        return ""


def _last_lines(text: str, cluster: str = "", lines: int = 30) -> str:
    """Return the last lines of a log, or the last of those about a cluster, by default a screen."""
    about = [line for line in text.splitlines() if not cluster or f"cluster={cluster}" in line.split()]
    return "\n".join(about[-lines:])


def connected(at: Place) -> tuple[socket.socket, dict[str, Any]] | None:
    """Return a connection to the keeper and its first message; None if there is no keeper, or it is ending."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(START_PATIENCE_S)
    try:
        connection.connect(str(at.socket))
        line = connection.makefile("rb").readline()
    except TimeoutError:
        connection.close()
        raise StartError(f"the shared server was not ready after {START_PATIENCE_S:.0f} s{load()}") from None
    except OSError:
        line = b""
    if not line.endswith(b"\n") or not line.startswith(b"{"):
        connection.close()
        return None
    return connection, json.loads(line)


class Keeper:
    """Starts the server, counts its users, removes what they leave, and ends with the last of them."""

    def __init__(self, at: Place, server: ServerProcess, listener: socket.socket) -> None:
        self._at, self._server, self._listener = at, server, listener
        self._control = Transport(Address(server.ready.control_url or ""))
        self._users: dict[socket.socket, str] = {}
        self._count = 0
        self._events = selectors.DefaultSelector()
        self._ended, ends = socket.socketpair()
        self._events.register(listener, selectors.EVENT_READ)
        self._events.register(self._ended, selectors.EVENT_READ)
        threading.Thread(target=self._wait, args=(ends,), daemon=True).start()

    def _wait(self, ends: socket.socket) -> None:
        """Close a socket when the server ends, which the selector sees."""
        self._server.process.wait()
        ends.close()

    def run(self) -> None:
        """Serve until no process uses the server any more, or it has ended."""
        while True:
            events = self._events.select(None if self._users else LINGER_S)
            for key, _ in events:
                if key.fileobj is self._listener:
                    self._join(self._listener.accept()[0])
                elif key.fileobj is self._ended:
                    self._report()
                    return
                elif isinstance(key.fileobj, socket.socket):
                    self._leave(key.fileobj)
            if not events and self._may_end():
                return

    def _join(self, user: socket.socket) -> None:
        self._count += 1
        self._users[user] = str(self._count)
        ready = {
            "control_url": self._server.ready.control_url,
            "owner": str(self._count),
            "pid": self._server.ready.pid,
        }
        with suppress(OSError):  # it has gone again, which the next event shows
            user.sendall(json.dumps(ready).encode() + b"\n")
        self._events.register(user, selectors.EVENT_READ)

    def _leave(self, user: socket.socket) -> None:
        self._events.unregister(user)
        user.close()
        owner = self._users.pop(user)
        with suppress(UnderstudyError):  # the server has ended
            for cluster in self._control.ask("clusters list", {})["clusters"]:
                if cluster["owner"] == owner:
                    self._control.ask("clusters delete", {"id": cluster["id"]})

    def _report(self) -> None:
        """Inform the users of the server's end."""
        self._at.socket.unlink(missing_ok=True)
        code = self._server.process.returncode
        text = f"ended by signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"ended with code {code}"
        message = f"{text}\n{self._server.log()}".encode()[:_MESSAGE_BYTES]
        for user in self._users:
            with suppress(OSError):
                user.sendall(message)

    def _may_end(self) -> bool:
        """Return whether no process is about to join; then none can any more."""
        with self._at.lock.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            if self._events.select(0):
                return False
            self._at.socket.unlink(missing_ok=True)
            self._listener.close()
            return True


def keep() -> int:
    """Be the keeper, in a process of its own; the process that starts it holds the lock."""
    at = place()
    at.log.unlink(missing_ok=True)
    try:
        server = ServerProcess(command_line(port=0, control_port=0, for_tests=True))
    except StartError as error:
        at.log.write_text(str(error), encoding="utf-8")
        return 1
    try:
        at.log.symlink_to(server.log_file)
        at.socket.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(at.socket))
        listener.listen(128)  # more test processes than a machine starts at a time
        about = {"version": __version__, "pid": server.ready.pid, "control_url": server.ready.control_url}
        at.lock.write_text(json.dumps(about) + "\n", encoding="utf-8")
        Keeper(at, server, listener).run()
    finally:
        at.log.unlink(missing_ok=True)
        server.stop()
    return 0


def cluster_of(options: Mapping[str, Sequence[str]]) -> dict[str, Any] | None:
    """Return options of `understudy serve` as the body of `POST /v1/clusters`; None if they need a server."""
    option_names = set(options["given"])
    if not option_names <= _SHAREABLE or any(
        options[name] != ["0"] for name in ("port", "control-port") if name in option_names
    ):
        return None
    topics = [text.split(":") for text in options.get("topic", ())]
    settings = [text.partition("=") for text in options.get("set", ())]
    numbers = [*(parts[1] for parts in topics if len(parts) == 2), *options["brokers"], *options.get("seed", ())]
    if any(len(parts) != 2 for parts in topics) or not all(each.isdecimal() for each in numbers):
        return None  # a topic with settings, broker ids, or something that `serve` refuses with its own sentence
    return {
        "brokers": int(options["brokers"][-1]),
        "topics": {name: int(count) for name, count in topics},
        "settings": {name: value for name, _, value in settings},
        "for_tests": "for-tests" in options,
        **{name.replace("-", "_"): options[name][-1] for name in ("as-version",) if name in options},
        **{name: int(options[name][-1]) for name in ("seed",) if name in options},
    }


def main(argv: Sequence[str]) -> int:
    """Make a cluster in the shared server, as `understudy serve` would in a process, until standard input closes.

    Prints the body of its `POST /v1/clusters`, too: clusters that are made with it have the same options, and end with
    this process. Returns 1 if the server ends first, with its signal and the end of its log on stderr.
    """
    if list(argv) == ["--keeper"]:
        return keep()
    options = serve.gather(argv, os.environ, serve.Command(PROGRAM, _DESCRIPTION, serve.OPTIONS))
    body = cluster_of(options)
    if body is None or os.name != "posix":
        return serve.main(argv)
    signals, wakes = socket.socketpair()  # a signal may interrupt the thread of the lifeline, and not this one's wait
    wakes.setblocking(False)
    signal.set_wakeup_fd(wakes.fileno())
    signal.signal(signal.SIGTERM, lambda *_: None)
    if "lifeline" in options:
        lifeline.hold()
    try:
        shared = Shared()
        # The bound of NewCluster.name.
        body |= {"owner": shared.owner, "name": f"{Path.cwd().name}, process {os.getppid()}"[:250]}
        control = Transport(Address(shared.control_url))
        created = control.ask("clusters create", body)
    except UnderstudyError as error:
        refuse(PROGRAM, str(error), 1)
    print(f"understudy is ready: a cluster in the shared server, process {shared.pid}")
    print(f"bootstrap.servers={','.join(created['bootstrap_servers'])}")
    print(f"cluster={json.dumps(body)}")
    print(f"control={created['control_url']}", flush=True)
    end = shared.wait(signals)
    if not end:  # the cluster is gone before this process is
        with suppress(UnderstudyError):
            control.ask("clusters delete", {"id": created["id"]})
        return 0
    print(f"the shared server, process {shared.pid}, {end}", shared.log(), sep="\n", file=sys.stderr)
    return 1
