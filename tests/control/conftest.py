"""Fixtures of the control plane's tests: a server as just started, and its doors."""

from typing import Any, Protocol

import pytest

from tests.conftest import BrokerWith
from tests.control.doors import Doors


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
