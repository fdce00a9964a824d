"""Plays the seeds of a simulated program, each in a process of its own, some at a time."""

import gc
import os
import pickle
import selectors
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from understudy.simulation import Outcome, warm_up

_PIECE = 1 << 16  # what a pipe of Linux holds
Play = Callable[[int], Outcome]


class ChildFailed(Exception):
    """A process that played a seed ended without a result."""


@dataclass
class _Child:
    seed: int
    pid: int
    read: int
    received: bytearray


def can_fork() -> bool:
    """Return whether each seed can have a process of its own, with the state of this one."""
    return hasattr(os, "fork") and sys.platform != "darwin"


def outcomes(play: Play, seeds: Sequence[int], jobs: int) -> Iterator[Outcome]:
    """Play seeds in forked processes, ``jobs`` at a time, and yield their outcomes as they arrive.

    Each begins with the state of this process: what one run leaves in the program's modules does not reach another.
    Where a process cannot be forked, all are played in this one.

    Raises:
        ChildFailed: a process ended without a result, such as by a crash of compiled code.
    """
    if not can_fork():
        yield from map(play, seeds)
        return
    if len(seeds) > 1:
        warm_up()
    gc.collect()
    gc.freeze()  # so that the collections of the children do not copy what they share
    waiting, running = iter(seeds), dict[int, _Child]()
    with selectors.DefaultSelector() as selector:
        try:
            while True:
                while len(running) < jobs and (seed := next(waiting, None)) is not None:
                    child = _fork(play, seed)
                    running[child.read] = child
                    selector.register(child.read, selectors.EVENT_READ)
                if not running:
                    return
                for key, _ in selector.select():
                    child = running[key.fd]
                    piece = os.read(child.read, _PIECE)
                    child.received += piece
                    if not piece:
                        selector.unregister(child.read)
                        del running[key.fd]
                        yield _result(child)
        finally:
            gc.unfreeze()
            for child in running.values():
                os.kill(child.pid, signal.SIGKILL)
                _end(child)


def _fork(play: Play, seed: int) -> _Child:
    sys.stdout.flush()
    sys.stderr.flush()
    read, write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write)
        return _Child(seed, pid, read, bytearray())
    code = 1
    try:
        os.close(read)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # many programs print, and the lines of many runs are no story
        data = memoryview(pickle.dumps(play(seed)))
        while data:
            data = data[os.write(write, data) :]
        code = 0
    except KeyboardInterrupt:
        pass
    except BaseException:  # noqa: BLE001 - the traceback is printed, as that of an ordinary process
        sys.excepthook(*sys.exc_info())
    finally:
        with suppress(Exception):
            sys.stderr.flush()
        os._exit(code)  # no cleanup of the parent's objects


def _end(child: _Child) -> int:
    os.close(child.read)
    return os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])


def _result(child: _Child) -> Outcome:
    code = _end(child)
    if code:
        raise ChildFailed(f"the process that played seed {child.seed} ended with {code}")
    outcome: Outcome = pickle.loads(child.received)  # noqa: S301 - of our own child
    return outcome
