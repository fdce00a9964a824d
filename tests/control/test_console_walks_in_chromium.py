"""How many clicks it takes from the first page to an answer, in a headless Chromium: docs/console.md has the table."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from tests.control.chromium import Page
from tests.control.harness import ControlPlane
from tests.control.test_console_in_chromium import transactor
from tests.serving import until

TABLE = Path(__file__).resolve().parents[2] / "docs" / "console.md"


class Walk:
    """A person on the page, whose clicks are counted."""

    def __init__(self, page: Page, plane: ControlPlane, tmp_path: Path) -> None:
        self.page, self.plane, self.tmp_path = page, plane, tmp_path
        self.clicks = 0
        self.shown: dict[str, str] = {}
        page.open(plane.url)
        page.sees("Refusals of the last minutes")

    def follow(self, region: str, text: str) -> None:
        """Click a link in a region of the page."""
        self.page.follow(region, text)
        self.clicks += 1

    def press(self, name: str) -> None:
        """Click a button."""
        self.page.press(name)
        self.clicks += 1

    def command(self, task: str) -> None:
        """Run the command that the page has for a task."""
        arguments = [str(self.tmp_path / each) if each.endswith(".json") else each for each in commands()[task]]
        self.shown[task] = self.plane.ctl_text(*arguments)


def fenced(walk: Walk) -> None:
    """A second producer of the same id begins, and the first one commits."""
    first = transactor(walk.plane, **{"client.id": "first"})
    transactor(walk.plane, **{"client.id": "second"})
    with pytest.raises(KafkaException):
        first.commit_transaction(60)
    walk.page.sees("fenced: at", "client `second`")


def owner(walk: Walk) -> None:
    """A consumer of a group has the partitions."""
    conf = {"bootstrap.servers": walk.plane.bootstrap, "group.id": "g", "client.id": "reader"}
    consumer = Consumer(conf)
    consumer.subscribe(["t"])
    until(lambda: consumer.poll(0.1) or consumer.assignment(), "an assignment")
    walk.follow("Groups", "g")
    walk.page.sees("Groups / g")
    walk.page.row("reader at", "t-1")
    walk.command("Which member has partition 1?")
    consumer.close()


def failing(walk: Walk) -> None:
    """The next commit is refused, and the fault has been met."""
    walk.follow("Sections", "Faults")
    walk.press("The next commit fails")
    walk.press("Add the fault")
    walk.page.row("EndTxn", "COORDINATOR_LOAD_IN_PROGRESS")
    transactor(walk.plane).commit_transaction(60)
    assert [fault.hits for fault in walk.plane.kafka.faults.list()] == [1]


def silent(walk: Walk) -> None:
    """A producer waits for an answer that a fault swallows; its last request is opened with what it asked for."""
    walk.plane.kafka.faults.add(api="Produce", drop=True, optional=True)
    producer = Producer({"bootstrap.servers": walk.plane.bootstrap, "client.id": "hung", "request.timeout.ms": 60000})
    producer.produce("t", b"lost", partition=0)
    until(lambda: producer.poll(0.1) or walk.plane.kafka.journal.find(client_id="hung", api="Produce"), "it")
    entries = walk.plane.kafka.journal.find(client_id="hung")
    assert entries
    walk.follow("Clients", "hung")
    walk.page.sees("All requests of this client in the journal")  # the first page shows the fault and the error, too
    walk.page.row("Produce", "never answered").find_element("tag name", "a").click()
    walk.clicks += 1
    walk.page.sees("topic_data", "acks")
    producer.purge()


def incident(walk: Walk) -> None:
    """A scenario file is done again."""
    file = walk.tmp_path / "incident.json"
    steps = [{"verb": "faults add", "arguments": {"api": "EndTxn", "error": "NOT_COORDINATOR"}}]
    file.write_text(json.dumps({"scenario": 1, "steps": steps}), encoding="utf-8")
    walk.follow("Sections", "Scenario")
    walk.page.named("input", "Scenario file").send_keys(str(file))
    walk.clicks += 1
    walk.press("Run the steps")
    walk.page.sees("The steps of incident.json have run")
    walk.plane.kafka.faults.clear()


WALKS: dict[str, Callable[[Walk], None]] = {
    "Why was my producer fenced?": fenced,
    "Which member has partition 1?": owner,
    "Make the next commit fail": failing,
    "What did my client send before it hung?": silent,
    "Do yesterday's incident again": incident,
}
SHOWN = {
    "Why was my producer fenced?": "client `second`",
    "Which member has partition 1?": "t-1",
    "Make the next commit fail": "refused with COORDINATOR_LOAD_IN_PROGRESS",
    "What did my client send before it hung?": "Produce",
    "Do yesterday's incident again": "steps  1",
}
"""What the command of a task prints."""


@pytest.mark.interop
@pytest.mark.timeout(180)
@pytest.mark.parametrize("task", WALKS)
def test_a_task_takes_the_clicks_that_the_page_promises(
    page: Page, plane: ControlPlane, tmp_path: Path, task: str
) -> None:
    """Each task takes as many clicks from the first page as the documentation promises."""
    walk = Walk(page, plane, tmp_path)
    WALKS[task](walk)
    assert walk.clicks == promised()[task]
    if task not in walk.shown:
        walk.command(task)
    assert SHOWN[task] in walk.shown[task]


def test_every_task_of_the_table_is_walked() -> None:
    """Each task of the page's table has a walk, and each walk a task."""
    assert promised().keys() == WALKS.keys()


def promised() -> dict[str, int]:
    """Task -> clicks, as the page has them."""
    return {task: int(clicks) for task, clicks, _ in _rows()}


def commands() -> dict[str, list[str]]:
    """Task -> arguments of `understudy ctl`, as the page has them."""
    return {task: shlex.split(command) for task, _, command in _rows()}


def _rows() -> list[tuple[str, str, str]]:
    matches = re.findall(r"^\| (.+?) \| (\d+) \| .+ \| `(.+)` \|$", TABLE.read_text(encoding="utf-8"), re.MULTILINE)
    return [tuple(row) for row in matches]
