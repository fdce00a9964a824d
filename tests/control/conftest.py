"""Fixtures of the control plane's tests: a server as just started, and its doors."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from tests.conftest import BrokerWith
from tests.control.doors import Doors
from tests.serving import Server
from understudy.transport import Transport
from understudy.verbs import VERBS

if TYPE_CHECKING:
    from tests.control.chromium import Page


class DoorsOf(Protocol):
    """``doors_of(brokers=3, ...)``: the options of a server."""

    def __call__(self, **options: Any) -> Doors:
        """The doors of a server with these options, as just started."""
        ...


QUICK = {"group.initial.rebalance.delay.ms": 0}


@pytest.fixture
def doors_of(broker_with: BrokerWith) -> DoorsOf:
    """A factory of doors."""

    def made(**options: Any) -> Doors:
        return Doors(broker_with(**{"settings": QUICK, **options}))

    return made


@pytest.fixture
def doors(doors_of: DoorsOf) -> Doors:
    """Those of one broker with the topics t (two partitions) and u (one)."""
    return doors_of(topics=["t:2", "u:1"])


@pytest.fixture(autouse=True)
def said(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A test that is marked as one about verbs has to say them, at whichever door."""
    wanted = {words for mark in request.node.iter_markers("verb") for words in mark.args}
    heard: set[str] = set()
    ask, control = Transport.ask, Server.control

    def by_client(self: Transport, words: str, arguments: Any) -> Any:
        heard.add(words)
        return ask(self, words, arguments)

    def over_http(self: Server, method: str, path: str, body: Any = None) -> Any:
        heard.update(
            verb.words
            for verb in VERBS
            if verb.method == method and re.fullmatch(re.sub(r"{\w+}", "[^/]+", verb.path), path.partition("?")[0])
        )
        return control(self, method, path, body)

    if wanted:
        monkeypatch.setattr(Transport, "ask", by_client)
        monkeypatch.setattr(Server, "control", over_http)
    yield
    assert wanted - heard == set()


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
    """The browser at a desk's width; whatever its console complains of fails the test."""
    browser.look(1280, 900)
    yield browser
    told = ("the server responded with a status of", "net::ERR_CONNECTION_REFUSED")  # the page tells them itself
    said = [line for line in browser.complaints() if not any(each in line for each in told)]
    browser.driver.get("about:blank")
    assert said == []
