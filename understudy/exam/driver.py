"""Runs a driver as a process: sends commands and reads answers, each with a deadline."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Protocol, Self

from understudy.exam.answers import problem_of
from understudy.exam.driver_api import CAPABILITIES, VERSION

PATIENCE_S: Final = 20.0
"""Time that a command may take beyond its own `timeout_ms`."""
UNTIMED_S: Final = 40.0
"""Limit for a command without `timeout_ms`: a library may try to connect for 30 s before it reports a failure."""
PIPE_CHARACTERS: Final = 1_000
"""Length of a command that fits every system's pipes without a reader, in any encoding."""
LAST_LINES, SHOWN_LINES, SHOWN_CHARACTERS = 20, 6, 200
"""Of a driver's output: lines that are kept, lines in a message, and characters of an answer that is wrong.

Ours: what identifies an error, and fits below a verdict.
"""
BEAT_S: Final = 0.05
"""The beat of a wait for an answer: ours, short beside STARVED_S, and costs nothing."""
STARVED_S: Final = 1.0
"""By how much the beats of a wait are late in sum, from which a hang proves nothing: ours; 0.1 s on an idle machine."""
ENDED_S: Final = 1.0
"""How long to read after the driver's end. A child outside its process group may keep the pipe open."""


class DriverProblem(Exception):
    """The driver broke the contract: it ended, hung, or wrote an invalid answer. The message is for its author."""


class DriverHang(DriverProblem):
    """No answer arrived in time."""


class Starved(DriverHang):
    """No answer arrived in time, and the machine had no time for the exam either: it may not be the library."""


class NotStarted(DriverProblem):
    """`hello` was not answered in time: the process has not started yet, which is no verdict on its library."""


class NotSupported(Exception):
    """The library does not support the command."""


@dataclass(frozen=True)
class LibraryError:
    """An error that the library reported."""

    kind: str
    code: str | None
    message: str

    def __str__(self) -> str:
        return f"{self.kind} {self.code or ''} {self.message}".replace("  ", " ")


class CallError(Exception):
    """The answer to a command is an error of the library."""

    def __init__(self, command: str, error: LibraryError) -> None:
        super().__init__(f"{command}: {error}")
        self.error = error


def library_error(error: Any) -> LibraryError:
    """Parse the error object of an answer. Raises DriverProblem if it is invalid."""
    if not isinstance(error, Mapping) or not isinstance(error.get("class"), str):
        raise DriverProblem(f"an error needs class, code and message, not {error!r}")
    code = error.get("code")
    return LibraryError(error["class"], None if code is None else str(code), str(error.get("message", "")))


class AnyDriver(Protocol):
    """The interface of drivers that scenarios use."""

    library: str
    version: str
    capabilities: frozenset[str]

    def hello(self) -> None:
        """Return the library's name, version and capabilities."""
        ...

    def call(self, command: str, **fields: Any) -> Mapping[str, Any]:
        """Send a command and return its result."""
        ...

    def __enter__(self) -> Self:
        """Return the driver."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the driver."""
        ...


class Driver:
    """A running driver. Leaving it as a context manager ends the process and its children."""

    def __init__(
        self, command: Sequence[str], patience: float = 1.0, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        """Start it. `patience`: how long to wait for answers, in multiples of the usual time."""
        self._clock_s = clock_s
        self.command, self.patience = list(command), patience
        self.log: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._number = 0
        try:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise DriverProblem(f"{command[0]} cannot be started: {error.strerror}") from error
        self.readers = [threading.Thread(target=target, daemon=True) for target in (self._read_answers, self._read_log)]
        for reader in self.readers:
            reader.start()
        self.library, self.version, self.capabilities = "", "", frozenset[str]()

    def hello(self) -> None:
        """Return the library's name, version and capabilities. Raises DriverProblem, NotStarted."""
        try:
            hello = self.call("hello", protocol=VERSION)
        except DriverHang as error:
            raise NotStarted(str(error)) from error
        except (CallError, NotSupported) as error:
            raise DriverProblem(f"hello has to be answered with a result: {error}") from error
        if hello.get("protocol") != VERSION:
            raise DriverProblem(f"the driver speaks version {hello.get('protocol')!r} of the contract, not {VERSION}")
        self.library, self.version = str(hello.get("library", "unknown")), str(hello.get("version", ""))
        self.capabilities = frozenset(map(str, hello.get("capabilities", ())))
        unknown = sorted(self.capabilities - CAPABILITIES.keys())
        if unknown:
            raise DriverProblem(f"no such capability: {', '.join(unknown)}; there are {', '.join(CAPABILITIES)}")

    def call(self, command: str, **fields: Any) -> Mapping[str, Any]:
        """Send a command and return its result.

        Raises:
            CallError: the library reported an error.
            NotSupported: the library does not support it.
            DriverProblem: the driver has ended, or wrote something other than an answer.
            DriverHang: the command was not read, or no answer arrived, within PATIENCE_S beyond its timeout, or
                UNTIMED_S if it has none; Starved, if the machine had no time for the exam meanwhile.
        """
        self._number += 1
        line = json.dumps({"id": self._number, "command": command, **fields}, ensure_ascii=False)
        limit_s = patience_s(fields, self.patience)
        self._send(command, line, limit_s)
        answer = self._answer(command, limit_s)
        if "unsupported" in answer:
            raise NotSupported(str(answer["unsupported"]))
        if "error" in answer:
            raise CallError(command, library_error(answer["error"]))
        result = answer.get("result")
        if not isinstance(result, Mapping):
            raise DriverProblem(f"the answer to {command} has no result: {json.dumps(answer)[:SHOWN_CHARACTERS]}")
        problem = problem_of(command, result)
        if problem is not None:
            raise DriverProblem(f"the answer to {command} is wrong: {problem}")
        return result

    def _send(self, command: str, line: str, limit_s: float) -> None:
        """Write a command.

        If it is larger than a pipe, wait for the driver to read it, and kill a driver that does not.
        """
        assert self.process.stdin is not None
        hung = threading.Event()

        def give_up() -> None:
            hung.set()
            kill_group(self.process)

        late = threading.Timer(limit_s, give_up)
        if len(line) > PIPE_CHARACTERS:
            late.start()
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except (OSError, ValueError) as error:
            if hung.is_set():
                raise DriverHang(f"{command} was not read within {limit_s:g} s") from error
            raise DriverProblem(f"the driver ended before {command}{self._end_of_log()}") from error
        finally:
            late.cancel()

    def _line(self, command: str, limit_s: float) -> str | None:
        """Return the next line on stdout, None at its end.

        The wait is cut into beats: how late each of them ends is how long the machine had no time for the exam.
        """
        began = beat = self._clock_s()
        late_s = 0.0
        while (left_s := began + limit_s - beat) > 0:
            wait_s = min(BEAT_S, left_s)
            with contextlib.suppress(queue.Empty):
                return self._lines.get(timeout=wait_s)
            now = self._clock_s()
            late_s += max(now - beat - wait_s, 0)
            beat = now
        text = f"{command} was not answered within {limit_s:g} s"
        if late_s > STARVED_S:
            raise Starved(f"{text}, in which the exam itself was late by {late_s:.1f} s")
        raise DriverHang(text)

    def _answer(self, command: str, limit_s: float) -> Mapping[str, Any]:
        line = self._line(command, limit_s)
        if line is None:
            raise DriverProblem(f"the driver ended during {command}{self._end_of_log()}")
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):  # RecursionError for a line with thousands of brackets
            raise DriverProblem(f"stdout is for answers in JSON only, not {line[:SHOWN_CHARACTERS]!r}") from None
        if not isinstance(answer, Mapping) or answer.get("id") != self._number:
            raise DriverProblem(f"the answer to command {self._number} needs this id: {line[:SHOWN_CHARACTERS]}")
        return answer

    def _read_answers(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line.rstrip("\n"))
            del self.log[:-LAST_LINES]

    def _end_of_log(self) -> str:
        self.readers[1].join(ENDED_S)  # stdout may end before the last lines on stderr are read
        return "".join(f"\n    {line}" for line in ["", *self.log][-SHOWN_LINES:])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if (
            self.process.returncode is None
        ):  # it may have ended, but not its children: they still have its process group
            kill_group(self.process)
        self.process.wait()
        for reader in self.readers:
            reader.join(ENDED_S)
        if self.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
        for reader, stream in zip(self.readers, (self.process.stdout, self.process.stderr), strict=True):
            if stream is not None and not reader.is_alive():
                stream.close()


def patience_s(fields: Mapping[str, Any], patience: float = 1.0) -> float:
    """Return how long to wait for the answer to a command with these fields; `patience`: in multiples of the usual."""
    if "timeout_ms" not in fields:
        return UNTIMED_S * patience
    return float(fields["timeout_ms"] / 1000 + PATIENCE_S * patience)


def kill_group(process: "subprocess.Popen[str]") -> None:
    """Kill the process and its children."""
    with contextlib.suppress(
        ProcessLookupError, PermissionError
    ):  # PermissionError on macOS, if all of them have ended
        os.killpg(process.pid, signal.SIGKILL)
