"""The ledger of fresh seeds, and the sentence about it on the page of the simulator."""

from simulator.command import Options, report
from simulator.plan import Fault
from simulator.result import Result
from tests.simulator.ledger import (
    ALL,
    BY_SEED,
    COPIER,
    FILE,
    PAGE,
    RACE_PAGE,
    Entry,
    Finding,
    copier_sentence,
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
    assert {each.kinds for each in entries} <= {ALL, BY_SEED, COPIER}
    assert {each.build for each in entries} <= {"compiled", "sources"}
    assert all(len(each.findings) <= each.seeds for each in entries)
    assert sentence(entries) in PAGE.read_text(encoding="utf-8").splitlines()
    assert copier_sentence(entries) in RACE_PAGE.read_text(encoding="utf-8").splitlines()


def test_seeds_are_counted_since_the_last_finding() -> None:
    """Of both sorts: a finding of either ends what was counted, that of its own entry included."""
    entries = [Entry("a", "sources", ALL, 5, 0.5), Entry("b", "sources", BY_SEED, 7, 0.5, FINDINGS)]
    assert since_last_finding(entries) == {ALL: 0, BY_SEED: 0, COPIER: 0}
    entries += [Entry("c", "sources", BY_SEED, 11, 0.5), Entry("c", "compiled", ALL, 13, 0.5)]
    assert since_last_finding(entries) == {ALL: 13, BY_SEED: 11, COPIER: 0}
    entries += [Entry("d", "compiled", COPIER, 290, 0.5, FINDINGS), Entry("e", "compiled", COPIER, 60, 0.5)]
    assert since_last_finding(entries) == {ALL: 13, BY_SEED: 11, COPIER: 60}
    assert copier_sentence(entries) == (
        "Of 350 seeds of the right copier with the faults of today, 1 had a finding; the last 60 had none."
    )
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


def test_an_entry_of_the_copier_is_made_of_what_its_runs_print() -> None:
    """The first finding of each seed, whether it is reported at length or in a line."""
    output = [
        "20 seeds, 0 with findings; 880 virtual s in 14.2 s",
        "seed 31: FOUND after 393.2 virtual s, hash 52a7c2f570597599",
        "  finding: the program makes no progress for 360 s after the last fault",
        "      group copiers has committed 83 of in-1, 55 behind its end",
        "seed 35: FOUND after 41.0 virtual s: 1 without an outcome in out",
        "20 seeds, 2 with findings; 900 virtual s in 14.1 s",
        "seed 31: understudy simulate --application simulated:right --seed 31",
    ]
    hangs = Finding(31, "the program makes no progress for 360 s after the last fault")
    findings = [hangs, Finding(35, "1 without an outcome in out")]
    assert entry_of(output, "abc", "compiled", COPIER, 0.5) == Entry("abc", "compiled", COPIER, 40, 0.5, findings)
