"""Fixtures of all tests that talk to a server: one process per set-up, as just started for each test."""

import atexit
import gc
import importlib
import os
import re
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import pytest
from hypothesis import settings

from tests.forking import CAN_FORK, forked
from tests.serving import Server, Servers
from tests.through_proxy import ProxiedServers
from tests.wire import PATIENCE_S
from understudy import launcher, shared, transport
from understudy.launcher import ServerProcess

# A machine that does other things too is slow at times; pytest-timeout ends what hangs.
settings.register_profile("house", deadline=None)
settings.load_profile("house")

# Where sniffio is installed (trio brings it), anyio asks it which loop runs, and it knows it of tasks only. anyio.run,
# by which the server is started, sets it for callbacks too. For a cluster in a test, this line does.
if find_spec("sniffio") is not None:
    importlib.import_module("sniffio").thread_local.name = "asyncio"


STARTERS = {
    "tests.forking",
    "tests.hostile.attack",
    "subprocess",
    "tests.server",
    "tests.serving",
    "tests.understudy.serving",
    "understudy",
    "understudy.launcher",
    "understudy.client.cluster",
    "understudy.exam.runner",
}
"""Modules with what starts a process."""
STARTING_FIXTURES = {"servers", "spark", "pytester", "kafka", "kafka_cluster", "kafka_module", "kafka_session"}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Pass over files that do not have the marker that every test of this run has: each worker imports all others.

    Only an expression that begins with the marker is known to need it: ``-m "interop and not nightly"``.
    """
    wanted = required_marker(config.getoption("markexpr"))
    if wanted is None or collection_path.suffix != ".py":
        return None
    return None if re.search(rf"\b{wanted}\b", collection_path.read_text(encoding="utf-8")) else True


def required_marker(expression: str) -> str | None:
    """The marker without which no test fits the expression of ``-m``; None where none is known."""
    pattern_match = re.fullmatch(r"(interop|nightly)( and (not )?\w+)*", expression)
    return pattern_match[1] if pattern_match else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without the garbage collector, which would look through ten thousand tests again and again.

    What is collected lives until the end. Afterwards it works more rarely than by default: tests parse and decode much
    that lives as long as they do. To parse every file of the house took three times as long with the default.
    """
    gc.set_threshold(50_000, 20, 100)
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        atexit.register(gc.unfreeze)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, object, object]:
    """Mark tests that start a process, or whose module has the means to: `make quick` leaves them out.

    For several workers, put in order what is left.
    """
    modules: dict[str, bool] = {}
    for item in items:
        if isinstance(item, pytest.Function):
            name = item.module.__name__
            if name not in modules:
                modules[name] = module_starts(item.module)
            if modules[name] or STARTING_FIXTURES & set(item.fixturenames):
                item.add_marker("processes")
    result = yield
    if config.getoption("loadgroup", default=False):
        longest_first(items)
    usual_s = float(config.getini("timeout"))
    for item in items:  # a machine that does other things too is slow: no limit is below the usual one
        limits = [mark.args[0] for mark in item.iter_markers("timeout")]
        if limits and limits[0] < usual_s:
            item.add_marker(pytest.mark.timeout(usual_s), append=False)
    return result


def longest_first(items: list[pytest.Item]) -> None:
    """Put files first that give a test more time than usual, then those that start processes.

    Where several workers share the tests, none of them is left alone with a long file at the end.
    """
    limits: dict[Path, tuple[float, bool]] = {}
    for item in items:
        limit_s = max((mark.args[0] for mark in item.iter_markers("timeout")), default=0)
        longest_s, starts = limits.get(item.path, (0, False))
        starts = starts or item.get_closest_marker("processes") is not None
        limits[item.path] = max(longest_s, limit_s), starts
    items.sort(key=lambda item: limits[item.path], reverse=True)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadgroup`: one worker takes all tests of a file that are in no other group, in the order above.

    They share fixtures, servers and what is read once. And pytest-xdist counts the groups at the end of each test.
    """
    if config.getoption("dist") != "loadgroup":
        return None
    config.option.loadscopereorder = False
    return importlib.import_module("tests.scheduling").FileScheduling(config, log)


def module_starts(module: ModuleType) -> bool:
    """Whether a module has the means to start a process; a server of tests/scenarios is in process by itself."""
    own = (value for value in vars(module).values() if getattr(value, "__module__", None) != "tests.server")
    in_process = module.__name__.startswith("tests.scenarios.")
    return any(map(is_starter, own if in_process else vars(module).values()))


def is_starter(value: object) -> bool:
    """Whether a name of a module is, or comes from, something that starts processes."""
    return {getattr(value, "__module__", None), getattr(value, "__name__", None)} & STARTERS != set()


@pytest.fixture(scope="session", autouse=True)
def patient_starts() -> Iterator[None]:
    """A process that ends is seen at once; one that is slow to start, to stop or to answer is waited for."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in (
            (launcher, "START_PATIENCE_S"),
            (launcher, "STOP_PATIENCE_S"),
            (shared, "START_PATIENCE_S"),
        ):
            patch.setattr(module, name, PATIENCE_S)
        patch.setattr(transport, "PATIENCE_MS", round(PATIENCE_S * 1000))
        yield


@pytest.fixture(scope="module", autouse=True)
def forked_starts() -> Iterator[None]:
    """`understudy.start`, and commands that start servers or proxies, fork them. Tests of the start override this."""
    with pytest.MonkeyPatch.context() as patch:
        if CAN_FORK:
            patch.setattr(ServerProcess, "launched", staticmethod(forked))
        yield


class BrokerWith(Protocol):
    """``broker_with(settings={...}, brokers=3, ...)``: the options of ``understudy.launcher.command_line``."""

    def __call__(self, **options: Any) -> Server:
        """A server with these options, as just started."""
        ...


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """The session's server processes; all are stopped at its end. ``TARGET=proxy``: each is behind a proxy."""
    running = ProxiedServers() if os.environ.get("TARGET") == "proxy" else Servers()
    yield running
    running.close()


@pytest.fixture
def broker_with(servers: Servers) -> Iterator[BrokerWith]:
    """A factory of servers with options; connections are closed after the test."""
    yield servers.fresh
    servers.finish_test()


@pytest.fixture
def broker(broker_with: BrokerWith) -> Server:
    """One broker with Kafka's own defaults, as just started."""
    return broker_with()
