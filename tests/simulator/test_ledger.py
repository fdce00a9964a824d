"""The ledger of fresh seeds, and the sentence about it on the page of the simulator."""

from simulator.command import Options, report
from simulator.plan import Fault
from simulator.result import Result
from tests.simulator.ledger import (
    ALL,
    BY_SEED,
    FILE,
    PAGE,
    Entry,
    Finding,
    entry_of,
    read,
    sentence,
    since_last_finding,
)

FINDINGS = [Finding(3, "a promise")]


def test_each_line_is_an_entry_and_the_page_has_their_sum() -> None:
    """Each line is an entry as `--add` writes it, and the page has their sum."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    entries = read(lines)
    assert [each.line for each in entries] == lines
    assert {each.kinds for each in entries} <= {ALL, BY_SEED}
    assert {each.build for each in entries} <= {"compiled", "sources"}
    assert all(len(each.findings) <= each.seeds for each in entries)
    assert sentence(entries) in PAGE.read_text(encoding="utf-8").splitlines()


def test_seeds_are_counted_since_the_last_finding() -> None:
    """Of both sorts: a finding of either ends what was counted, that of its own entry included."""
    entries = [Entry("a", "sources", ALL, 5, 0.5), Entry("b", "sources", BY_SEED, 7, 0.5, FINDINGS)]
    assert since_last_finding(entries) == {ALL: 0, BY_SEED: 0}
    entries += [Entry("c", "sources", BY_SEED, 11, 0.5), Entry("c", "compiled", ALL, 13, 0.5)]
    assert since_last_finding(entries) == {ALL: 13, BY_SEED: 11}
    assert sentence(entries) == (
        "Of 36 fresh seeds in the ledger, 1 broke a promise. Since the last of them, 24 of 20,000 have been played: "
        "13 with all kinds and 11 with those that the seed chooses."
    )


def test_an_entry_is_made_of_what_simulate_prints() -> None:
    """Its first broken promise with each seed; the events, and promises that are excused, do not count."""
    faults = [Fault(0, 1, "kill", 1, 200, "")]
    results = [
        Result(1, [], "", 0, 90_000, faults, excused=["transaction 1 is torn"]),
        Result(2, ["a promise", "another"], "", 0, 90_000, faults),
        Result(3, [], "", 0, 90_000, faults),
    ]
    output = [line for each in results for line in report(each, Options(1))]
    output.append("3 runs, 1 with broken promises; 0.10 runs and 0.003 virtual hours per second")
    assert entry_of(output, "abc", "compiled", ALL, 0.5) == Entry(
        "abc", "compiled", ALL, 3, 0.5, [Finding(2, "a promise", "open")]
    )
