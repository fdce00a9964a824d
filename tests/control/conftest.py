"""Fixtures of the control plane's tests: a server as just started, and its control plane."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from control_api.verbs import VERBS
from tests.conftest import BrokerWith
from tests.control.harness import ControlPlane
from tests.serving import Server
from understudy.transport import Transport

if TYPE_CHECKING:
    from tests.control.chromium import Page


class ControlPlaneOf(Protocol):
    """``plane_of(brokers=3, ...)``: the options of a server."""

    def __call__(self, **options: Any) -> ControlPlane:
        """The control plane of a server with these options, as just started."""
        ...


QUICK = {"group.initial.rebalance.delay.ms": 0}


@pytest.fixture
def plane_of(broker_with: BrokerWith) -> ControlPlaneOf:
    """A factory of them."""

    def control_plane(**options: Any) -> ControlPlane:
        return ControlPlane(broker_with(**{"settings": QUICK, **options}))

    return control_plane


@pytest.fixture
def plane(plane_of: ControlPlaneOf) -> ControlPlane:
    """Those of one broker with the topics t (two partitions) and u (one)."""
    return plane_of(topics=["t:2", "u:1"])


@pytest.fixture(autouse=True)
def verbs_are_used(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A test that is marked with verbs has to use them: over HTTP, in Python or in the shell."""
    wanted = {verb for mark in request.node.iter_markers("verb") for verb in mark.args}
    used: set[str] = set()
    ask, control = Transport.ask, Server.control

    def by_client(self: Transport, verb: str, arguments: Any) -> Any:
        used.add(verb)
        return ask(self, verb, arguments)

    def over_http(self: Server, method: str, path: str, body: Any = None) -> Any:
        used.update(
            verb.name
            for verb in VERBS
            if verb.method == method and re.fullmatch(re.sub(r"{\w+}", "[^/]+", verb.path), path.partition("?")[0])
        )
        return control(self, method, path, body)

    if wanted:
        monkeypatch.setattr(Transport, "ask", by_client)
        monkeypatch.setattr(Server, "control", over_http)
    yield
    assert wanted - used == set()


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Page]":
    """One for all tests of the console."""
    from tests.control.chromium import TOOLS, chromium  # noqa: PLC0415 - most tests here want no browser
    from tests.examples.running import needs  # noqa: PLC0415

    needs(*TOOLS)
    with chromium(tmp_path_factory.mktemp("chromium")) as page:
        yield page


@pytest.fixture
def page(browser: "Page") -> "Iterator[Page]":
    """The browser with a desktop window; any complaint of its console fails the test."""
    browser.look(1280, 900)
    yield browser
    answer = ("the server responded with a status of", "net::ERR_CONNECTION_REFUSED")  # the page shows them itself
    complaints = [line for line in browser.complaints() if not any(each in line for each in answer)]
    browser.driver.get("about:blank")
    assert complaints == []
