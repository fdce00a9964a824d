"""A forked process is one for all threads of the tests that started it."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from tests.forking import CAN_FORK, ForkedProcess

THREADS = 8


@pytest.mark.skipif(not CAN_FORK, reason="this system cannot wait for a process that is not a child")
def test_threads_wait_for_the_same_process() -> None:
    """Each learns its exit code, and the process that forks goes on."""
    for _ in range(5):
        forked = ForkedProcess(["--version"], dict(os.environ), sys.__stderr__.fileno() if sys.__stderr__ else 2)
        together = Barrier(THREADS)

        def code(forked: ForkedProcess = forked, together: Barrier = together) -> int:
            together.wait(20)
            return forked.wait(20)

        with ThreadPoolExecutor(THREADS) as pool:
            assert list(pool.map(lambda _: code(), range(THREADS))) == [0] * THREADS
        forked.stdin.close()
