"""Servers and proxies that are forks of one process which has imported everything (``tests/fork_server.py``)."""

import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from tests import fork_server
from understudy.launcher import ServerProcess, environment

CAN_FORK = hasattr(os, "pidfd_open")
"""Whether the system lets a process wait for one that is not its child: Linux does."""


class ForkServer:
    """The process that forks, and the socket by which it is asked. It ends with this process."""

    def __init__(self) -> None:
        self._asking = threading.Lock()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", fork_server.__file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env=environment(),
            )

    def ask(self, request: dict[str, Any], descriptors: Sequence[int] = ()) -> Any:
        """Its answer; the process that it forks gets duplicates of the descriptors."""
        with self._asking:
            socket.send_fds(self._socket, [json.dumps(request).encode()], list(descriptors))
            answer = self._socket.recv(fork_server.MOST_BYTES)
        assert answer, "the process that forks servers has ended; its output is above"
        return json.loads(answer)


_starting = threading.Lock()


def fork_server_process() -> ForkServer:
    """One for the session and all of its threads, started when the first server is wanted."""
    with _starting:
        return _fork_server()


@functools.cache
def _fork_server() -> ForkServer:
    return ForkServer()


class ForkedProcess:
    """A process that was forked for us, with the part of ``Popen`` that tests use."""

    def __init__(self, argv: Sequence[str], environ: Mapping[str, str], stderr: int) -> None:
        stdin, lifeline = os.pipe()
        self.stdin = os.fdopen(lifeline, "wb")
        try:
            request = {"argv": list(argv), "env": dict(environ), "cwd": str(Path.cwd())}
            self._parent = fork_server_process()
            self.pid: int = self._parent.ask(request, [stdin, stderr])["pid"]
        finally:
            os.close(stdin)
        self._ended = os.pidfd_open(self.pid)
        weakref.finalize(self, os.close, self._ended)  # no sooner: another thread may be waiting for it
        self.returncode: int | None = None
        self._reaping = threading.Lock()
        """A process can be waited for once, and threads may see its end at the same time."""

    def poll(self) -> int | None:
        """Its exit code, or None while it runs."""
        return self.returncode if self._ends_within(0) else None

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code; raises TimeoutExpired if it still runs after so many seconds."""
        if not self._ends_within(timeout):
            raise subprocess.TimeoutExpired("understudy serve", timeout or 0)
        assert self.returncode is not None
        return self.returncode

    def _ends_within(self, timeout: float | None) -> bool:
        if self.returncode is None:
            if not select.select([self._ended], [], [], timeout)[0]:
                return False
            with self._reaping:
                if self.returncode is None:
                    self.returncode = self._parent.ask({"wait": self.pid})["code"]
        return True

    def send_signal(self, number: int) -> None:
        """As the shell's kill; nothing if it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)


def parent_of(pid: int) -> int:
    """The id of a process's parent."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("PPid:"))


def forked(arguments: Sequence[str], environ: Mapping[str, str], log: IO[bytes]) -> "subprocess.Popen[bytes]":
    """As ``ServerProcess.launched``, but forked."""
    return ForkedProcess(arguments, environ, log.fileno())  # type: ignore[return-value]  # has what is used of a Popen


class ForkedServer(ServerProcess):
    """A server, or a proxy, as ``ServerProcess`` starts it, but forked."""

    launched = staticmethod(forked)


Started = ForkedServer if CAN_FORK else ServerProcess
"""What tests start that are not about the start itself: it takes a second of a core less than ``ServerProcess``."""
