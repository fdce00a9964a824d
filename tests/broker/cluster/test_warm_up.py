"""Readers and writers that a server makes before they are asked for."""

import gc
from collections.abc import Callable

import pytest

from broker.cluster import warm_up
from broker.handlers import APIS
from protocol import codec


def test_what_is_made_early_is_what_a_request_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """One version in each step, and each of them is served; memory is set up before and after."""
    steps: list[Callable[[], None]] = []
    made: list[tuple[int, int]] = []
    settings: list[tuple[str, int]] = []
    monkeypatch.setattr(warm_up, "keep_freed_memory", lambda: settings.append(("heap", len(made))))
    monkeypatch.setattr(gc, "freeze", lambda: settings.append(("freeze", len(made))))
    monkeypatch.setattr(warm_up, "soon", lambda _ms, step: steps.append(step))
    monkeypatch.setattr(warm_up, "prepare", lambda key, version: made.append((key, version)))
    warm_up.warm_up()
    while steps:
        before = len(made)
        steps.pop()()
        assert len(made) - before == bool(steps)
    assert made == list(warm_up.common_versions())
    assert settings == [("heap", 0), ("freeze", len(made))]
    served = {api.key: api.versions for api in APIS}
    assert all(served[key][0] <= version <= served[key][1] for key, version in warm_up.common_versions())


def test_a_prepared_version_is_not_made_again() -> None:
    """The first request finds its reader and its writer."""
    key, version = next(warm_up.common_versions())
    codec.prepare(key, version)
    before = codec._request_reader.cache_info().misses, codec._response_writer.cache_info().misses
    codec.prepare(key, version)
    assert (codec._request_reader.cache_info().misses, codec._response_writer.cache_info().misses) == before
