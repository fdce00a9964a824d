"""The table of releases: whole, and in its newest column what the handlers serve."""

import re
from pathlib import Path

import pytest

from broker.cluster.emulation import feature_levels, listed_range, versions_of
from broker.coordination.metadata.features import FRESH_LEVELS, SUPPORTED
from broker.handlers import APIS
from broker.settings.releases import NAMES, NEWEST, Behaviour, release
from protocol.apis import ApiKey
from protocol.errors import ErrorCode

BEHIND = {ApiKey.STREAMS_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_DESCRIBE}
"""APIs whose newest version may not be served yet."""


def test_the_newest_release_is_what_is_served_anyway() -> None:
    """The recorded 4.4 has the versions, features and levels that the code has (Produce from 0: core A.5.4)."""
    newest = release(NEWEST)
    for api in APIS:
        if api.listed:
            low, high = newest.apis[api.key.title]
            behind = api.key in BEHIND and listed_range(api) == (low, high - 1)
            assert behind or listed_range(api) == (low, high), api.key.title
    assert newest.supported == SUPPORTED
    assert newest.levels == FRESH_LEVELS
    assert newest.has(Behaviour.SEQUENCE_BEGINS_AT_ZERO)


def test_the_specification_lists_the_newest_version_of_every_api() -> None:
    """core A.7; a row may be about several keys, and has the versions of 4.3 in brackets."""
    page = Path(__file__).parents[2] / "docs" / "specification" / "core" / "a-connection.md"
    rows = re.findall(
        r"^\| ([\d, ]+) \| [^|]+ \| (?:\d+-)?(\d+)(?: \[.+\])? \|", page.read_text(encoding="utf-8"), re.MULTILINE
    )
    listed = {int(key): int(newest) for keys, newest in rows for key in keys.split(", ")}
    assert listed == {api.key: listed_range(api)[1] for api in APIS}


@pytest.mark.parametrize("name", NAMES)
def test_every_release_was_recorded(name: str) -> None:
    """From a running broker; its last error code no higher than ours, and never lower than the release before had."""
    recorded = release(name)
    assert recorded.run
    assert recorded.version.startswith(name)
    assert recorded.last_error <= max(ErrorCode)
    assert recorded.last_error >= release(NAMES[max(0, NAMES.index(name) - 1)]).last_error
    assert set(recorded.levels) <= set(recorded.supported)


@pytest.mark.parametrize("name", NAMES[:-1])
def test_what_a_release_serves_lies_in_its_own_ranges(name: str) -> None:
    """All of them, removed ones too (KIP-896), and nothing that it had not."""
    recorded = release(name)
    played = versions_of(recorded)
    for api in APIS:
        if api.listed or not recorded.unstable_versions:
            limits = played.get(api.key, listed_range(api))
            assert limits == recorded.apis.get(api.key.title) or (recorded.newest and api.key in BEHIND), api.key


@pytest.mark.parametrize("behaviour", Behaviour)
def test_a_behaviour_has_two_sides(behaviour: Behaviour) -> None:
    """Its release has it, the one before has not."""
    at = NAMES.index(behaviour.since)
    assert at > 0
    assert release(NAMES[at]).has(behaviour)
    assert not release(NAMES[at - 1]).has(behaviour)


def test_features_before_kraft() -> None:
    """Our metadata log keeps its own level, which no client sees; levels of the command line win."""
    old = feature_levels(release("2.8"), {})
    assert {name for name, level in old.items() if level} == {"metadata.version"}
    assert feature_levels(release("4.0"), {"transaction.version": 1})["transaction.version"] == 1
