"""Readers and writers that a server imports before they are asked for."""

import gc
from collections.abc import Callable

import pytest

from broker.cluster import warm_up
from broker.handlers import APIS
from protocol import codec
from protocol.apis import ApiKey


def test_what_is_made_early_is_what_a_request_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """One API in each step, and each of them is served; memory is set up before and after."""
    steps: list[Callable[[], None]] = []
    made: list[ApiKey] = []
    settings: list[tuple[str, int]] = []
    monkeypatch.setattr(warm_up, "keep_freed_memory", lambda: settings.append(("heap", len(made))))
    monkeypatch.setattr(gc, "freeze", lambda: settings.append(("freeze", len(made))))
    monkeypatch.setattr(warm_up, "soon", lambda _ms, step: steps.append(step))
    monkeypatch.setattr(warm_up, "prepare", made.extend)
    warm_up.warm_up()
    while steps:
        before = len(made)
        steps.pop()()
        assert len(made) - before == bool(steps)
    assert made == list(warm_up.COMMON)
    assert settings == [("heap", 0), ("freeze", len(made))]
    assert {api.key for api in APIS} >= set(made)


def test_a_server_needs_no_other_module_for_a_prepared_api() -> None:
    """The first request finds its reader and its writer."""
    codec.prepare(warm_up.COMMON)
    before = codec._module.cache_info().misses
    for key in warm_up.COMMON:
        low, high = codec.known_versions(key) or (0, -1)
        for version in range(low, high + 1):
            codec.request_reader(key, version)
            codec.response_writer(key, version)
    assert codec._module.cache_info().misses == before
