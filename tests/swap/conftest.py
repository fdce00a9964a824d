"""A node that changes hands, for one test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.storage.kafka_tools import need_kafka
from tests.swap.nodes import Node


@pytest.fixture
def bare_node(tmp_path: Path) -> Iterator[Node]:
    """A node without contents, which is not running yet."""
    node = Node(tmp_path)
    yield node
    node.stop(clean=False)


@pytest.fixture
def node(bare_node: Node) -> Node:
    """The same where there is an Apache Kafka to run."""
    need_kafka()
    return bare_node
