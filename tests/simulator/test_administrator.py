"""Which requests for levels of features must be refused, as the simulator sees it (KIP-584, KIP-778)."""

import pytest

from simulator.clients.administrator import SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, UPGRADE, Levels

LEVELS = Levels({"metadata.version": (7, 33), "group.version": (0, 1)}, {"metadata.version": 31, "group.version": 1})


@pytest.mark.parametrize(
    ("name", "level", "kind"),
    [
        ("metadata.version", 33, UPGRADE),
        ("metadata.version", 30, SAFE_DOWNGRADE),
        ("group.version", 0, UNSAFE_DOWNGRADE),
    ],
)
def test_a_level_within_the_rules_is_given(name: str, level: int, kind: int) -> None:
    """Up with an upgrade, down with a downgrade, where no level in between brought new records."""
    assert not LEVELS.refuses(name, level, kind)


@pytest.mark.parametrize(
    ("name", "level", "kind"),
    [
        ("metadata.version", 34, UPGRADE),
        ("metadata.version", 30, UPGRADE),
        ("metadata.version", 32, SAFE_DOWNGRADE),
        ("metadata.version", 29, SAFE_DOWNGRADE),
        ("metadata.version", 29, UNSAFE_DOWNGRADE),
        ("group.version", 2, UPGRADE),
        ("streams.version", 1, UPGRADE),
    ],
)
def test_a_level_beyond_the_rules_is_refused(name: str, level: int, kind: int) -> None:
    """Too high, the wrong way, with a loss of metadata, or of a feature that no broker has."""
    assert LEVELS.refuses(name, level, kind)
