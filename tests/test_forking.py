"""A forked process is one for all threads of the tests that started it."""

import functools
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest

from tests import forking
from tests.forking import CAN_FORK, ForkedProcess, fork_server_process

THREADS = 8


@pytest.mark.skipif(not CAN_FORK, reason="this system cannot wait for a process that is not a child")
def test_threads_wait_for_the_same_process() -> None:
    """Each learns its exit code, and the process that forks goes on."""
    for _ in range(5):
        forked = ForkedProcess(["--version"], dict(os.environ), sys.__stderr__.fileno() if sys.__stderr__ else 2)
        together = Barrier(THREADS)

        def code(forked: ForkedProcess = forked, together: Barrier = together) -> int:
            together.wait(60)
            return forked.wait(60)

        with ThreadPoolExecutor(THREADS) as pool:
            assert list(pool.map(lambda _: code(), range(THREADS))) == [0] * THREADS
        forked.stdin.close()


def test_threads_share_the_process_that_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that want the first server at the same time: a process is waited for where it was forked."""
    together, never, processes = Barrier(THREADS), Event(), list[object]()

    def slow() -> object:
        never.wait(0.2)  # as long as it takes to start one
        processes.append(object())
        return processes[-1]

    def wanted() -> object:
        together.wait(60)
        return fork_server_process()

    monkeypatch.setattr(forking, "_fork_server", functools.cache(slow))
    with ThreadPoolExecutor(THREADS) as pool:
        assert set(pool.map(lambda _: wanted(), range(THREADS))) == set(processes)
    assert len(processes) == 1
