"""What a test run sets by itself, however it was started: signal dispositions, file mode, environment.

`make test` in a shell, under nohup, in the background of a script and in CI inherit different ones. Servers,
clients and tools that tests start inherit them from here. And at the end of a file of tests, no thread of it is left.
"""

import gc
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures.thread import _threads_queues
from contextlib import contextmanager

import pytest

DISPOSITIONS: Mapping[signal.Signals, object] = {
    signal.SIGHUP: signal.SIG_DFL,  # nohup ignores it
    signal.SIGINT: signal.default_int_handler,  # a shell ignores it for its background jobs
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGPIPE: signal.SIG_IGN,  # as Python sets it
}
UMASK = 0o022
GRACE_S = 10.0
"""A thread that is ending may take so long on a busy machine."""
_OF_TERMINALS = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE")
_PREFIXES = ("UNDERSTUDY_",)
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


def pytest_configure(config: pytest.Config) -> None:
    """Before anything is started."""
    config.pluginmanager.register(Failures())
    config.pluginmanager.register(Leftovers())
    for number, disposition in DISPOSITIONS.items():
        if signal.getsignal(number) in {signal.SIG_IGN, signal.SIG_DFL, None}:  # pytest has none of its own
            signal.signal(number, disposition)  # type: ignore[arg-type]
    os.umask(UMASK)
    for name in list(os.environ):
        if name in _OF_TERMINALS or name.startswith(_PREFIXES) or name.lower() in _PROXIES:
            del os.environ[name]


class Failures:
    """A test that fails leaves nothing to its neighbours: what it had open is collected at its own end.

    Python keeps the frames of the last unhandled exception, and with them the sockets and files of the test.
    Closed in a later test, they would be its ResourceWarning, which is an error here.
    """

    def __init__(self) -> None:
        self._failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure."""
        self._failed = self._failed or report.failed

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self) -> None:
        """Drop the frames, and collect what only they held."""
        if self._failed:
            self._failed = False
            for name in ("last_type", "last_value", "last_traceback", "last_exc"):
                vars(sys).pop(name, None)
            with _unraisable_ignored(), warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)
                gc.collect()


class Leftovers:
    """A file of tests leaves no thread that would keep the process. Those of a session's fixture are another file's."""

    def __init__(self) -> None:
        self._before: set[str] | None = None
        self._failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """What failed may have left anything: `Failures` collects it."""
        self._failed = self._failed or report.failed

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self) -> Generator[None, None, None]:
        """Before the first test of a file."""
        if self._before is None:
            self._before, self._failed = leftovers(), False
        yield

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
        """Behind the fixtures of the last test of a file."""
        yield
        if nextitem is not None and nextitem.path == item.path:
            return
        before, self._before = self._before or set(), None
        if nextitem is None or self._failed:
            return
        end_s = time.monotonic() + GRACE_S
        while left := leftovers() - before:
            gc.collect()
            if time.monotonic() > end_s:
                pytest.fail(f"{item.path.name} leaves behind: {', '.join(sorted(left))}", pytrace=False)
            threading.Event().wait(0.01)


def leftovers() -> set[str]:
    """The threads that would keep this process: one name each."""
    pooled = set(_threads_queues)  # an idle one ends with its pool, and does not keep the process
    return {f"thread {each.name}" for each in threading.enumerate() if not each.daemon and each not in pooled}


@contextmanager
def _unraisable_ignored() -> Iterator[None]:
    before, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        yield
    finally:
        sys.unraisablehook = before
