"""What a test run sets by itself, however it was started: signal dispositions, file mode, environment.

`make test` in a shell, under nohup, in the background of a script and in CI inherit different ones. Servers,
clients and tools that tests start inherit them from here.
"""

import gc
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

DISPOSITIONS: Mapping[signal.Signals, object] = {
    signal.SIGHUP: signal.SIG_DFL,  # nohup ignores it
    signal.SIGINT: signal.default_int_handler,  # a shell ignores it for its background jobs
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGPIPE: signal.SIG_IGN,  # as Python sets it
}
UMASK = 0o022
_OF_TERMINALS = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE")
_PREFIXES = ("UNDERSTUDY_",)
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


def pytest_configure(config: pytest.Config) -> None:
    """Before anything is started."""
    config.pluginmanager.register(Failures())
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


@contextmanager
def _unraisable_ignored() -> Iterator[None]:
    before, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        yield
    finally:
        sys.unraisablehook = before
