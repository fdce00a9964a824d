"""A directory that is larger than memory: the commands take what they take on a small one."""

from pathlib import Path

import pytest

from tools.bounded_memory import measure

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3600), pytest.mark.xdist_group("spark")]


def test_ten_gigabytes_take_bounded_memory(tmp_path: Path) -> None:
    """Audit, export and load: no kind of process goes above its bound."""
    measurements = measure(tmp_path, 10)
    assert [each.command for each in measurements] == ["audit", "export", "load"]
    assert all({"driver", "java", "worker"} == set(each.peaks) for each in measurements)
    assert [each for each in measurements if each.above()] == []
