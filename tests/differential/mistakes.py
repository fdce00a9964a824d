"""The mistakes of ``tests/mutants`` against a real Kafka's answers: does the differential run notice each of them?

A real Kafka answers some histories once; then each mistake is made in a server of its own, which is asked the same
until it answers otherwise. ``python -m tests.differential.mistakes`` does so and keeps what came of it in
``mistakes.json``, of which ``docs/inside/rows.md`` has the sum.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from comparison.exchange import Recorded, Recording
from comparison.histories.generate import Generator
from comparison.histories.play import Player
from comparison.histories.quiescence import Restless, common_versions, wait_ready
from comparison.histories.run import LENGTH, load_history
from comparison.histories.step_request import Step
from comparison.target import Target
from tests.clients.targets import START_S, oracle_release, wait_until
from tests.differential import rows
from tests.differential.targets import SETTINGS, Kafka
from tests.mutants.mutant import Mutant
from tests.mutants.transactions import TRANSACTIONS
from tools.compact_json import dumps
from understudy.launcher import command_line

SAVED = Path(__file__).parent / "histories"
RECORD = Path(__file__).with_name("mistakes.json")
HISTORIES = 150
ROOT = Path(__file__).resolve().parents[2]
NEEDS_STEERING: Mapping[str, str] = {
    "a transaction is aborted at its deadline, not after it": (
        "shows in one millisecond only, where a scan comes at the very deadline: Kafka's scans come by its own timer, "
        "no answer shows when, and the abort that follows is logged with a later time"
    ),
}
"""Mistakes that no row and no history can show that a Kafka can be asked, and why."""


@dataclass(frozen=True, slots=True)
class Question:
    """A history, and what a real Kafka answered."""

    name: str
    steps: Sequence[Step]
    answers: Mapping[str, Any]


def saved() -> list[Question]:
    """The saved histories with their recorded answers, but for those that only another release answers so."""
    kept = [(file.stem, load_history(file)) for file in sorted(SAVED.glob("*.json"))]
    return [
        Question(name, history["steps"], history["kafka"])
        for name, history in kept
        if history.get("release") in (None, oracle_release())
    ]


def questions(folder: Path, count: int = HISTORIES) -> list[Question]:
    """The saved histories, and so many new ones with the answers of a Kafka of today."""
    histories = saved()
    kafka = Kafka(folder)
    kafka.start()
    try:
        exchange = Recording(Target(kafka.bootstrap))
        wait_ready(exchange.targets[0])
        versions, player = common_versions(*exchange.targets), Player(exchange, "")
        for seed in range(count):
            steps = Generator(versions, f"mistakes-{seed}").history(LENGTH)
            if not player.play(steps, f"m{seed}").differences:
                histories.append(Question(f"m{seed}", steps, exchange.answers))
    finally:
        kafka.stop()
    return histories


@contextmanager
def mistaken(number: int | None, folder: Path) -> Iterator[str]:
    """The address of a server with that mistake in it, or with none."""
    ready = folder / "ready.json"
    ready.unlink(missing_ok=True)
    module = ["understudy"] if number is None else ["tests.mutants.serve", str(number)]
    options = command_line(
        port=0, control_port=0, seed=1, settings=SETTINGS, ready_file=ready, as_version=oracle_release()
    )
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen([sys.executable, "-m", *module, "serve", *options], cwd=ROOT, stdout=log, stderr=log)
    try:
        wait_until(ready.exists, START_S, process, folder / "log")
        yield json.loads(ready.read_text())["bootstrap_servers"][0]
    finally:
        process.terminate()
        process.wait()


def noticed(address: str, questions: Sequence[Question]) -> str | None:
    """The first history whose answers differ from Kafka's, with the first difference."""
    side = Target(address)
    try:
        wait_ready(side)
    except Restless as restless:
        return f"(set-up): {restless}"
    for question in questions:
        played = Player(Recorded(side, question.answers), "").play(question.steps, question.name)
        if played.differences:
            first = played.differences[0]
            return f"{question.name}: {first.api} `{first.field}`"
    return None


def row_of(mutant: Mutant) -> list[str]:
    """The rows that are asked of both and notice the mistake."""
    assert mutant.noticed_by is not None
    test, record = mutant.noticed_by.__name__, rows.recorded()
    if test.startswith("test_"):
        outcomes = {name.partition("[")[0].rpartition("::")[2]: out for name, (out, _) in record["kafka"].items()}
        answer = [name.split(" ")[1] for name in rows.ids(rows.TRANSACTIONS, test)] or [test.removeprefix("test_")]
        return answer if outcomes.get(test) == "passed" else []
    if mutant.mistake in NEEDS_STEERING:
        return []
    notice = (mutant.noticed_by.__doc__ or "").strip(" .\n").replace("-", "_")
    status = {f"{row.part} {row.id}": row.status for row in rows.rows(record)}
    named = rows.ids(rows.TRANSACTIONS, f"test_{notice}_")
    return [name.split(" ")[1] for name in named if status.get(name) == rows.BOTH]


def caught(questions: Sequence[Question], folder: Path) -> dict[str, dict[str, Any]]:
    """Each mistake: the history and the rows that show it."""
    evidence = {}
    with mistaken(None, folder) as address:
        answer = noticed(address, questions)
        assert answer is None, f"without any mistake: {answer}"
    for number, mutant in enumerate(TRANSACTIONS):
        with mistaken(number, folder) as address:
            evidence[mutant.mistake] = {
                "history": noticed(address, questions),
                "rows": row_of(mutant),
                "why": NEEDS_STEERING.get(mutant.mistake, ""),
            }
        print(mutant.mistake, evidence[mutant.mistake], flush=True)  # noqa: T201
    return evidence


def main() -> None:
    """Try all of them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        evidence = caught(questions(folder / "kafka"), folder)
    RECORD.write_text(dumps(evidence), encoding="utf-8")
    subprocess.run([sys.executable, str(ROOT / "tools" / "generate_pages.py")], check=True)


if __name__ == "__main__":
    main()
