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

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic; one that is there already has to be refused."""
        servers, timeout_ms = self.cluster.bootstrap_servers, self.exercise.timeout_ms
        error = self.attempt(
            lambda: self.exercise.driver.call(
                "create_topic", bootstrap_servers=servers, topic=topic, partitions=partitions, timeout_ms=timeout_ms
            )
        )
        if error is not None:
            return
        if topic in self.created:
            text = f"{topic} was reported as created twice, with {self.created[topic]} and {partitions} partitions"
            self.history.problems.append(("admin-created-twice", text))
        self.created.setdefault(topic, partitions)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Return the check and a sentence for topics that are not what was reported."""
        there = {each.name: len(each.partitions) for each in self.cluster.topics.list()}
        for topic, partitions in self.created.items():
            if there.get(topic) != partitions:
                text = f"{topic} was reported as created with {partitions} partitions, and has {there.get(topic, 0)}"
                yield "admin-not-created", text
