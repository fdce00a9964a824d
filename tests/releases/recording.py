"""Put the questions to real brokers and write down what they answer.

    python -m tests.releases.recording [RELEASE ...]      (all that run here)

`answers.json` has a row for each question: under a release what it answered first, and so all later ones up to the next
release in the row.
"""

import json
import sys
from pathlib import Path

from broker.settings.releases import NAMES, release
from tests.releases.questions import QUESTIONS, ask_all
from tools.compact_json import dumps
from tools.old_kafka import running

ANSWERS = Path(__file__).with_name("answers.json")
OF_CONSUMER_GROUPS = {"group.consumer.assignment.interval.ms": "0", "group.consumer.max.size": "3"}
Answers = dict[str, dict[str, str]]
RUN = tuple(name for name in NAMES if release(name).run)


def load() -> Answers:
    """Release -> question -> answer."""
    rows = json.loads(ANSWERS.read_text(encoding="utf-8")) if ANSWERS.exists() else {}
    answers: Answers = {}
    for question, row in rows.items():
        answer = None
        for name in RUN:
            answer = row.get(name, answer)
            if answer is not None:
                answers.setdefault(name, {})[question] = answer
    return answers


def save(answers: Answers) -> None:
    """Write the changes alone."""
    rows: dict[str, dict[str, str]] = {}
    for question in (each.__name__ for each in QUESTIONS):
        before = None
        for name in RUN:
            answer = answers.get(name, {}).get(question, before)
            if answer is not None and answer != before:
                rows.setdefault(question, {})[name] = before = answer
    ANSWERS.write_text(dumps(rows, depth=2), encoding="utf-8")


def settings_of(name: str) -> dict[str, str]:
    """No delay of assignments, and small consumer groups, for the questions of 4.4."""
    return OF_CONSUMER_GROUPS if NAMES.index(name) >= NAMES.index("4.3") else {}


def main() -> None:
    """Ask the releases that are named, or all."""
    known = load()
    for name in sys.argv[1:] or RUN:
        with running(name, settings=settings_of(name)) as address:
            known[name] = ask_all(address, name)
        sys.stderr.write(f"{name} answered\n")
        save(known)


if __name__ == "__main__":
    main()
