"""The administrator in random schedules: topics that are reported as created are there, with their partitions."""

from collections.abc import Iterator
from typing import Any

from understudy.exam.random.clients import Client


class Administrator(Client):
    """Creates topics, some of them twice."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.created: dict[str, int] = {}
        """Topics that were reported as created -> their partitions."""

    def create_last(self, attempts: int) -> None:
        """Create one more topic after all faults, which has to succeed."""
        if not any(self.create(f"last-{number}", 1) for number in range(attempts)):
            text = f"{self.name} could not create a topic, after all faults were over: {self.last_error}"
            self.history.problems.append(("not-created-after-healing", text))

    def create(self, topic: str, partitions: int) -> bool:
        """Create a topic; one that is there already has to be refused. Return whether that is reported as done."""
        servers, timeout_ms = self.cluster.bootstrap_servers, self.exercise.timeout_ms
        error = self.attempt(
            lambda: self.exercise.driver.call(
                "create_topic", bootstrap_servers=servers, topic=topic, partitions=partitions, timeout_ms=timeout_ms
            )
        )
        if error is not None:
            return False
        if topic in self.created:
            text = f"{topic} was reported as created twice, with {self.created[topic]} and {partitions} partitions"
            self.history.problems.append(("admin-created-twice", text))
        self.created.setdefault(topic, partitions)
        return True

    def problems(self) -> Iterator[tuple[str, str]]:
        """Return the check and a sentence for topics that are not what was reported."""
        there = {each.name: len(each.partitions) for each in self.cluster.topics.list()}
        for topic, partitions in self.created.items():
            if there.get(topic) != partitions:
                text = f"{topic} was reported as created with {partitions} partitions, and has {there.get(topic, 0)}"
                yield "admin-not-created", text
