"""The versions of an API for its tests, from the API itself: no test has a list of its own that ends too early."""

from typing import Any

import pytest

from broker.request.api import AnyApi


def every_version(
    api: AnyApi, *, since: int | None = None, until: int | None = None, removed: bool = True
) -> pytest.MarkDecorator:
    """Run a test once for each ``version`` that the API serves, also unstable ones.

    ``removed``: and for those that only releases before 4.0 served (KIP-896). ``since`` and ``until`` are for what only
    some versions have; `tests/test_house.py` wants a test without them for each API that has several versions.
    """
    return pytest.mark.parametrize("version", versions_of(api, since=since, until=until, removed=removed))


def versions_of(api: AnyApi, *, since: int | None = None, until: int | None = None, removed: bool = True) -> range:
    """The versions that :func:`every_version` runs a test with."""
    lowest, highest = api.range(unstable=True)
    if removed:
        lowest = api.oldest
    return range(max(lowest, since or 0), min(highest, highest if until is None else until) + 1)


def each_version(*apis: Any) -> pytest.MarkDecorator:
    """Run a test once for each ``api`` and ``version`` of these APIs that is served today."""
    pairs = [(api, version) for api in apis for version in versions_of(api, removed=False)]
    return pytest.mark.parametrize(("api", "version"), pairs, ids=[f"{api.key.title}-{v}" for api, v in pairs])
