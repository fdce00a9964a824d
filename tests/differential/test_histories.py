"""Histories that chance made up, played on a real Kafka and on ours: no answer, no log, no record may differ."""

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from comparison.exchange import as_recorded
from comparison.histories.run import Histories, load_history, save
from tests.clients.targets import CACHE, oracle_release
from tests.differential import overlaps, stops
from tests.differential.conftest import REPORTS
from tests.differential.controllers import CONTROLLERS
from tests.differential.many import clusters
from tests.storage.kafka_tools import need_kafka

SAVED = Path(__file__).parent / "histories"
OF_THIS_RELEASE = [
    file for file in sorted(SAVED.glob("*.json")) if load_history(file).get("release") in (None, oracle_release())
]
WITH_SETTINGS = [file for file in OF_THIS_RELEASE if "settings" in load_history(file)]
"""Those whose brokers need settings of their own: what the clock does comes soon enough to wait for it."""
DIFFERENCES = CACHE / "differences"
"""Where histories that show something new are put, shortened; those that are understood move to SAVED."""


ALL_NIGHTS = os.environ.get("HISTORIES") == "all"
NIGHTLY_S = 36_000 if ALL_NIGHTS else 7_200
"""What hangs costs a night two hours: a thousand histories are the most, and took 4.4 s each beside 20 other jobs."""


def of_tonight(seeds: range, nights: int) -> range:
    """The seeds of one night of several: each is played once in so many days. `HISTORIES=all`: those of all nights."""
    if ALL_NIGHTS:
        return seeds
    return seeds[datetime.now(UTC).toordinal() % nights :: nights]


def check(
    histories: Histories,
    seeds: Iterable[object],
    config: pytest.Config,
    restarts: int = 0,
    kind: str = "records",
) -> None:
    """Fail with the shortened histories that show a difference each time they are played."""
    report = histories.run(seeds, restarts=restarts, kind=kind)
    config.stash.setdefault(REPORTS, []).append(report)
    for finding in report.steady:
        save(DIFFERENCES / f"seed-{finding.seed}.json", "; ".join(map(str, finding.differences)), finding.steps, {})
    assert not report.steady, "\n".join(map(str, report.steady))


@pytest.mark.interop
@pytest.mark.timeout(1200)
def test_eighty_histories(histories: Histories, pytestconfig: pytest.Config) -> None:
    """The slice that every change has to pass."""
    check(histories, range(80), pytestconfig)


@pytest.mark.interop
@pytest.mark.timeout(600)
def test_histories_with_restarts(histories: Histories, pytestconfig: pytest.Config) -> None:
    """Both go down in good order or by SIGKILL, and go on from what is on their disks."""
    check(histories, range(-5, 0), pytestconfig, restarts=1)


@pytest.mark.nightly
@pytest.mark.timeout(NIGHTLY_S)
def test_many_histories_with_restarts(histories: Histories, pytestconfig: pytest.Config) -> None:
    """Random requests with two restarts of the broker get the same responses from Kafka and from Understudy."""
    check(histories, of_tonight(range(-300, -5), 10), pytestconfig, restarts=2)


@pytest.mark.nightly
@pytest.mark.timeout(NIGHTLY_S)
def test_twenty_thousand_histories(histories: Histories, pytestconfig: pytest.Config) -> None:
    """Seeds that the slice does not have, a thousand a night and a few each time."""
    check(histories, [*range(80, 200), *of_tonight(range(1_000, 21_000), 20)], pytestconfig)


@pytest.mark.nightly
@pytest.mark.timeout(NIGHTLY_S)
def test_histories_of_consumer_groups(histories: Histories, pytestconfig: pytest.Config) -> None:
    """Members of both protocols, with regular expressions, instance ids, votes for assignors and stale epochs."""
    check(histories, of_tonight(range(-3_000, -2_600), 4), pytestconfig, kind="consumers")


@pytest.mark.nightly
@pytest.mark.timeout(NIGHTLY_S)
def test_histories_of_streams_groups(histories: Histories, pytestconfig: pytest.Config) -> None:
    """Topologies, task reports, static members, epochs that are stale, offsets, and topics that come and go."""
    check(histories, of_tonight(range(-5_900, -4_900), 10), pytestconfig, kind="streams")


@pytest.mark.nightly
@pytest.mark.timeout(NIGHTLY_S)
@pytest.mark.parametrize(
    "kind", ["users", "quotas", "features", "settings", "acls", "tokens", "batches", "uncommon", "extremes"]
)
def test_histories_of_users_and_limits(tmp_path: Path, pytestconfig: pytest.Config, kind: str) -> None:
    """Users, quotas, features, settings that change, ACLs, tokens, several entries, uncommon requests; odd values."""
    for (only,) in clusters(tmp_path, kind):
        check(only, of_tonight(range(-4_000, -3_800), 4), pytestconfig, kind=kind)


@pytest.mark.nightly
@pytest.mark.timeout(NIGHTLY_S)
@pytest.mark.parametrize("kind", ["records", "consumers", "share", "streams", "batches"])
def test_histories_that_overlap(histories: Histories, pytestconfig: pytest.Config, kind: str) -> None:
    """Requests that wait, that are queued behind others and that are sent together: Kafka shows each outcome, too."""
    check(histories, of_tonight(range(-9_400, -9_000), 10), pytestconfig, kind=f"overlapping_{kind}")


@pytest.mark.nightly
@pytest.mark.parametrize("name", overlaps.ONE)
def test_scripts_that_overlap(histories: Histories, name: str) -> None:
    """What happens beside a request that waits ends it as in Kafka, with the same response."""
    assert not histories.outcomes.play(overlaps.ONE[name]).differences


@pytest.mark.nightly
@pytest.mark.parametrize("name", overlaps.STREAMS)
def test_scripts_that_overlap_with_streams_groups(histories: Histories, name: str) -> None:
    """Members of streams groups that join, leave and are replaced in one burst."""
    assert not histories.outcomes.play(overlaps.STREAMS[name]).differences


@pytest.mark.nightly
@pytest.mark.timeout(NIGHTLY_S)
def test_scripts_that_overlap_with_users_and_few_sessions(tmp_path: Path) -> None:
    """Rights that change beside a wait, SASL behind it, and a third share session where there may be two."""
    for (only,) in clusters(tmp_path, "limited"):
        played = {name: only.outcomes.play(steps).differences for name, steps in overlaps.LIMITED.items()}
        assert not {name: differences for name, differences in played.items() if differences}


@pytest.mark.nightly
@pytest.mark.parametrize("name", overlaps.THREE)
def test_scripts_that_overlap_on_three_brokers(histories_of_three: Histories, name: str) -> None:
    """Waits for in-sync replicas and waits at a leader that changes end as in Kafka."""
    assert not histories_of_three.outcomes.play(overlaps.THREE[name]).differences


@pytest.mark.nightly
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", stops.STOPS)
def test_scripts_in_which_brokers_stop(histories_of_three: Histories, name: str) -> None:
    """Requests that wait at a broker that stops, is killed or hangs, or whose leader moves, end as in Kafka."""
    assert not histories_of_three.outcomes.play(stops.STOPS[name]).differences


@pytest.mark.nightly
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", CONTROLLERS)
def test_scripts_in_which_controllers_stop(histories_of_controllers: Histories, name: str) -> None:
    """Requests that wait for a controller that stops, is killed or hangs, or at such a broker, end as in Kafka."""
    assert not histories_of_controllers.outcomes.play(CONTROLLERS[name]).differences


@pytest.mark.nightly
@pytest.mark.timeout(NIGHTLY_S)
@pytest.mark.parametrize("restarts", [0, 1])
def test_histories_of_ends_of_share_groups(tmp_path: Path, pytestconfig: pytest.Config, restarts: int) -> None:
    """Dead-letter queues, connections that are lost, members that fall silent, brokers that restart."""
    for (only,) in clusters(tmp_path, "share_ends"):
        check(only, of_tonight(range(-8_000, -7_800), 10), pytestconfig, restarts, kind="share_ends")


@pytest.mark.nightly
@pytest.mark.timeout(NIGHTLY_S)
@pytest.mark.parametrize("restarts", [0, 1])
def test_histories_of_three_brokers(histories_of_three: Histories, pytestconfig: pytest.Config, restarts: int) -> None:
    """Leaders, coordinators and wrong brokers; one of them goes down, in good order or by SIGKILL, and comes back."""
    seeds = of_tonight(range(-2_000, -1_980 if restarts else -1_800), 4)
    check(histories_of_three, seeds, pytestconfig, restarts)


@pytest.mark.interop
@pytest.mark.parametrize("file", OF_THIS_RELEASE, ids=lambda file: file.stem)
def test_what_once_differed(file: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Each history showed a defect, or what the clock does; Kafka still answers what was recorded of it."""
    if file not in WITH_SETTINGS:
        assert not played_again(request.getfixturevalue("histories"), file)
        return
    need_kafka()
    for (only,) in clusters(tmp_path, settings=load_history(file)["settings"]):
        assert not played_again(only, file)


def played_again(histories: Histories, file: Path) -> list[str]:
    """Play a saved history on both; return their differences, or else those of Kafka from what was recorded."""
    history = load_history(file)
    played = histories.player.play(history["steps"], file.stem)
    if played.differences:
        return [str(difference) for difference in played.differences]
    answers = as_recorded(history["kafka"], without_newer_settings(history["kafka"], histories.pair.answers))
    return [f"{what}: {answers.get(what)}" for what, answer in history["kafka"].items() if answers.get(what) != answer]


def without_newer_settings(recorded: Any, answer: Any) -> Any:
    """Leave out the settings in CreateTopics' answers that a release before this one did not have."""
    if isinstance(recorded, dict) and isinstance(answer, dict):
        return {name: without_newer_settings(recorded.get(name), inner) for name, inner in answer.items()}
    if not isinstance(recorded, list) or not isinstance(answer, list):
        return answer
    if recorded and isinstance(recorded[0], dict) and "config_source" in recorded[0]:
        known = {each["name"] for each in recorded}
        answer = [each for each in answer if each["name"] in known]
    if len(recorded) != len(answer):
        return answer
    return [without_newer_settings(*pair) for pair in zip(recorded, answer, strict=True)]
