"""The script of mutants sees what it is for: in a table, in a function, and where no test comes."""

import subprocess
import sys

from tests.mutants.sites import CODES, ROOT, mutated, sites


def test_a_mutant_is_one_changed_code() -> None:
    """Everything else of the file is as it was."""
    for site in [each for each in sites(CODES) if each.path == "broker/handlers/end_txn.py"]:
        before = (ROOT / site.path).read_text(encoding="utf-8")
        changed = mutated(CODES, site.path, site.index)
        assert compile(changed, site.path, "exec").co_code
        assert before.splitlines()[site.line - 1].strip() == site.text
        assert site.was.startswith("ErrorCode.")
        assert site.becomes.startswith("ErrorCode.")


def test_a_wrong_code_is_noticed_or_listed() -> None:
    """With the tests of an API each of its codes is noticed; with those of another one none of them is reached."""
    assert "'noticed': 6" in run("tests/handlers/test_txn_offset_commit.py")
    assert "'reached by no quick test': 6" in run("tests/handlers/test_heartbeat.py")


def run(tests: str) -> str:
    """The last line of the script for the codes of TxnOffsetCommit."""
    options = ["--only", "handlers/txn_offset_commit", "--tests", tests]
    command = [sys.executable, "-m", "tests.mutants.run", *options]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    return output.splitlines()[-1]
