"""The batch headers of what coordinators write to their own topics."""

from tests.scenarios.core.asking import batches_of, created, fetch
from tests.scenarios.groups.members import commit, coordinated
from tests.scenarios.transactions.test_authorization import begun
from tests.server import Server
from tests.wire import Wire


def base_sequences(wire: Wire, topic: str, partitions: int) -> set[int]:
    """Those of all batches of an internal topic, whose batches belong to no producer."""
    batches = [each for index in range(partitions) for each in batches_of(fetch(wire, topic, partition=index))]
    assert {each.producer_id for each in batches} == {-1}
    return {each.base_sequence for each in batches}


def test_the_base_sequence_of_batches_without_a_producer(server: Server) -> None:
    """0 in ``__consumer_offsets``, -1 in ``__transaction_state``: so write real 4.3.1 and 4.4.0 brokers."""
    wire = coordinated(server)
    created(wire, "foo")
    assert commit(wire, "foo", 5) == 0
    begun(wire, "T")
    assert base_sequences(wire, "__consumer_offsets", 4) == {0}
    assert base_sequences(wire, "__transaction_state", 50) == {-1}
