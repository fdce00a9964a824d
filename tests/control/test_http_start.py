"""When a server imports what serves HTTP, and what else can wait."""

import asyncio
import gc
import socket
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks.inside import until
from broker.control import server
from broker.handlers import APIS
from broker.start import server as start
from broker.time.clock import turns

ROOT = Path(__file__).resolve().parents[2]


class Built(Exception):
    """The application is built: the HTTP stack is imported."""


def build() -> Any:
    """Fail, so that nothing is served."""
    raise Built


@pytest.mark.parametrize("client_comes", [True, False])
async def test_http_is_imported_for_its_first_client_or_a_moment_later(
    monkeypatch: pytest.MonkeyPatch, client_comes: bool
) -> None:
    """So that a Kafka client that comes earlier does not wait for it."""
    monkeypatch.setattr(server, "_MOMENT_S", 3600 if client_comes else 0)
    listener = server.listen("127.0.0.1", 0)
    with listener:
        serving = asyncio.ensure_future(server.serve_app(build, cast("Any", None), listener))
        if client_comes:
            await turns(10)
            assert not serving.done()
            with socket.create_connection(listener.getsockname()):
                await until(serving.done)
        with pytest.raises(Built):
            await serving


async def test_a_server_that_ends_before_http_is_imported_closes_the_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else has it yet, so that the port would stay taken while the process lives."""
    monkeypatch.setattr(server, "_MOMENT_S", 3600)
    listener = server.listen("127.0.0.1", 0)
    serving = asyncio.ensure_future(server.serve_app(build, cast("Any", None), listener))
    await turns(10)
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving
    assert listener.fileno() == -1


def test_a_server_imports_at_its_start_only_what_each_server_needs() -> None:
    """Commands, HTTP, structlog and RE2 come later: each would delay the first answer by a percent or more.

    So do the handlers, with the first request of their API, and what a group coordinator is made of.
    """
    late = ("control_api.verbs", "starlette", "uvicorn", "structlog", "re2", "broker.coordination.group.machine")
    names = ("broker.handlers", *late, *(f"broker.handlers.{api.key.name.lower()}" for api in APIS))
    script = f"import sys, broker.start.server; print([each for each in {names} if each in sys.modules])"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "['broker.handlers']\n"


def test_what_usual_clients_need_is_imported_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each in a turn of the loop of its own; the group coordinator is among them."""
    later: list[Callable[[], object]] = []
    names: list[str] = []
    monkeypatch.setattr(start, "soon", lambda _delay_ms, call: later.append(call))
    monkeypatch.setattr(start, "import_module", lambda name: names.append(import_module(name).__name__))
    monkeypatch.setattr(gc, "freeze", lambda: None)
    start.import_next(iter(start._USUAL))
    while later:
        assert len(later) == 1
        later.pop()()
    assert names == list(start._USUAL)
    assert "broker.coordination.group.machine" in names
