"""Directories of real brokers of five releases, each with a life of its own: an audit finds nothing in any of them."""

from pathlib import Path

import pytest

from tests.pipeline.audited import reported
from tests.pipeline.sound_lives import ALL, live
from tests.storage.kafka_tools import need_kafka

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3600)]


@pytest.mark.parametrize(("release", "name"), ALL)
def test_a_real_brokers_directory_has_no_finding(tmp_path: Path, release: str, name: str) -> None:
    """As it was at each stop or kill of all brokers."""
    need_kafka()
    directories = live(tmp_path, release, name)
    assert {each.name: reported(each, more_than=50) for each in directories} == {each.name: [] for each in directories}
    assert directories
