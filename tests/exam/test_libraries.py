"""Each driver of a released library keeps the driver contract: it passes the scenarios without faults."""

import pytest

from tests.clients.drivers import IN_CI
from tests.exam.libraries import LIBRARIES, Library
from understudy.exam.driver import Driver
from understudy.exam.runner import Runner
from understudy.exam.self_test import self_test

QUICK = ("java-4.4.0", "franz-go", "kafkajs")
"""One of each family is played in each run of the tests, all others at night."""


@pytest.mark.interop
@pytest.mark.parametrize(
    "library",
    [
        pytest.param(each, marks=[] if each.name in QUICK else [pytest.mark.nightly], id=each.name)
        for each in LIBRARIES.values()
    ],
)
def test_the_driver_passes_its_self_test(library: Library) -> None:
    """With the abilities that the library declares."""
    if absent := library.missing():
        text = f"{library.name} needs {', '.join(absent)}: tests/clients/setup.sh toolchains"
        pytest.fail(text) if IN_CI else pytest.skip(text)
    prefix = library.build()
    problems = self_test(Runner(lambda: Driver(prefix)))
    assert problems == []
