"""The versions of an API for its tests, from the API itself: no test has a list of its own that ends too early."""

import pytest

from broker.handlers import APIS, CONTROLLER_APIS
from broker.request.api import AnyApi

SERVED = {api.key: api for api in (*APIS, *CONTROLLER_APIS)}
"""Each API with its versions."""


def every_version(
    *apis: AnyApi, since: int | None = None, until: int | None = None, removed: bool = True
) -> pytest.MarkDecorator:
    """Run a test once for each ``version`` that an API serves, also unstable ones; several APIs have to serve the same.

    ``removed``: and for those that only releases before 4.0 served (KIP-896). ``since`` and ``until`` are for what only
    some versions have; `tests/test_house.py` wants a test without them for each API that has several versions.
    """
    (versions,) = {versions_of(api, since=since, until=until, removed=removed) for api in apis}
    return pytest.mark.parametrize("version", versions)


def versions_of(api: AnyApi, *, since: int | None = None, until: int | None = None, removed: bool = True) -> range:
    """The versions that :func:`every_version` runs a test with."""
    served = SERVED[api.key]
    lowest, highest = served.range(unstable=True)
    lowest = served.oldest if removed else lowest
    return range(max(lowest, since or 0), min(highest, highest if until is None else until) + 1)
