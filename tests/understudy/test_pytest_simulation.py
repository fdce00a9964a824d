"""pytest: tests with the fixture `sim` are played for each seed; a failure has seed, story and command."""

from dataclasses import replace

import pytest

from tests.understudy.test_pytest_plugin import run
from understudy.found_seed import difference
from understudy.pytest_simulation import seeds_of
from understudy.simulation import Outcome

TESTS = """
import asyncio
import pytest

@pytest.mark.kafka_simulation(seeds=3, minutes=0.02, topics={"in": 2}, faults="none")
async def test_passes(sim, tmp_path):
    await sim.feed("in", range(3))
    assert [each.value for each in await sim.read("in")] and tmp_path.exists() and len(sim.bootstrap_servers) == 3

@pytest.mark.kafka_simulation(seeds="4-9", minutes=0.02, faults="none")
async def test_fails(sim):
    sim.note("a line of the story")
    assert sim.seed != 6

@pytest.mark.kafka_simulation(seeds=[1], minutes=0.02, topics={"in": 1}, faults="none")
async def test_differs(sim):
    reader, writer = await asyncio.open_connection(*sim.bootstrap_servers[0].split(":"))
    writer.write(str(id([])).encode() + bytes(bytearray(id(writer) // 16 % 251)))
    await asyncio.sleep(0)
    assert not sim.seed

@pytest.mark.kafka_simulation(brokers=0)
async def test_refuses(sim):
    pass

def test_is_no_coroutine(sim):
    pass
"""


def test_each_seed_is_played_and_a_failure_has_the_command(pytester: pytest.Pytester) -> None:
    """The first failing seed is played again; a run that is another one then is no story."""
    result = run(pytester, TESTS)
    result.assert_outcomes(passed=1, failed=4)
    printed = result.stdout.str()
    assert "finding: test: AssertionError: assert 6 != 6" in printed
    assert "a line of the story" in printed
    assert "test_fails' --simulation-seeds 6" in printed
    assert "played twice, with the same hash" in printed
    assert "NOT REPEATED: the same seed, played again, was another run" in printed
    assert "brokers needs a number from 1 to 9, not 0" in printed
    assert "a test with the fixture sim is an async def" in printed


def test_an_option_chooses_the_seed(pytester: pytest.Pytester) -> None:
    """`--simulation-seeds` overrides those of the marker."""
    run(pytester, TESTS, "-k", "fails", "--simulation-seeds", "5").assert_outcomes(passed=1, deselected=4)
    run(pytester, TESTS, "-k", "fails", "--simulation-seeds", "6").assert_outcomes(failed=1, deselected=4)


@pytest.mark.parametrize(("setting", "seeds"), [(2, [1, 2]), ("7", [7]), ("3-5", [3, 4, 5]), ([9, 2], [9, 2])])
def test_seeds_are_a_number_a_range_or_a_list(setting: object, seeds: list[int]) -> None:
    """Seeds are a list, a range as text, or a number, which counts from 1."""
    assert seeds_of(setting) == seeds


@pytest.mark.parametrize("setting", ["a", "1-", None, 1.5])
def test_other_seeds_are_refused(setting: object) -> None:
    """The sentence has what is possible."""
    with pytest.raises(ValueError, match="seeds needs their number"):
        seeds_of(setting)


def outcome(*exchanges: tuple[int, str, str, int, int]) -> Outcome:
    """An outcome with these exchanges."""
    return Outcome(1, ("x",), "", 1.0, 0, (), (), exchanges)


def test_the_first_difference_has_its_likely_cause() -> None:
    """Other bytes at the same place come from an id or a time; another place is another order."""
    same, bytes_, order = (1, "a", "sends", 5, 7), (2, "a", "sends", 5, 8), (2, "b", "sends", 5, 8)
    explanation = "\n".join(difference(outcome(same, bytes_), outcome(same, (2, "a", "sends", 5, 9))))
    assert "first play:  at 0.000002 s, a sends: 5 bytes, checksum 00000008" in explanation
    assert "an id, a time or a random number" in explanation
    assert "another order of events" in "\n".join(difference(outcome(same, bytes_), outcome(same, order)))
    stories = (replace(outcome(same), story=("1  starts", f"2  INFO object {at}")) for at in (7, 8))
    assert "second play: 2  INFO object 8" in "\n".join(difference(*stories))
