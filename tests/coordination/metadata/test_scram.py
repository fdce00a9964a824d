"""SCRAM credentials in the metadata: what is described of many users."""

import pytest

from broker.coordination.metadata import scram
from broker.coordination.metadata.image import ClusterImage
from protocol.errors import ErrorCode, KafkaError


@pytest.mark.slow
def test_a_hundred_thousand_users_are_described_in_one_pass() -> None:
    """Each name was counted in the whole list; one that is there twice is refused."""
    names = [f"user{number}" for number in range(100_000)]
    descriptions = scram.describe(ClusterImage(), [*names, "user7"])
    assert len(descriptions) == 100_000
    codes = {name: each.code for name, each in descriptions.items() if isinstance(each, KafkaError)}
    assert codes.pop("user7") is ErrorCode.DUPLICATE_RESOURCE
    assert set(codes.values()) == {ErrorCode.RESOURCE_NOT_FOUND}
