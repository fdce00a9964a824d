"""The assignor of streams groups: equal to Kafka's ``StickyTaskAssignor``, whose results are recorded (groups E.6)."""

import hashlib
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import pytest

from broker.coordination.group.modern.streams.assignor import AssignableMember, Job, PriorityQueue, assign_sticky
from broker.coordination.group.modern.streams.tasks import Tasks, TaskSets
from protocol.java import HashMap

RECORDED: dict[str, dict[str, list[str]]] = json.loads(
    (Path(__file__).parent / "streams_assignments.json").read_text(encoding="ascii")
)
"""Release -> name of a story -> the digest of each assignment that its class computed in it (4.3.1 and 4.4.0)."""


@dataclass
class Story:
    """A group whose members come and go: ``members`` have a process and a target each, by member id."""

    subtopologies: dict[str, tuple[int, bool]]
    standby_count: int
    members: dict[str, tuple[str, TaskSets]] = field(default_factory=dict)
    newer: bool = False

    def offsets(self, member_id: str) -> dict[tuple[str, int], int]:
        """What a member reports of local state: some tasks, chosen by its id; before 4.4 nothing."""
        chance = random.Random(member_id)
        every = [(name, at) for name, (count, flag) in self.subtopologies.items() if flag for at in range(count)]
        return {task: chance.randint(0, 9) for task in every if chance.random() < 0.15} if self.newer else {}

    def job(self) -> Job:
        """The assignor's next job."""
        ordered: HashMap[tuple[str, TaskSets]] = HashMap(self.members.items())
        return Job(
            [AssignableMember(each, *ordered[each], self.offsets(each)) for each in ordered],
            {name: count for name, (count, _) in self.subtopologies.items()},
            frozenset(name for name, (_, stateful) in self.subtopologies.items() if stateful),
            self.standby_count,
            self.newer,
        )

    def text(self) -> str:
        """The job in one line, as a program around Kafka's class reads it."""
        names = ",".join(f"{name}:{count}:{int(flag)}" for name, (count, flag) in self.subtopologies.items())
        ordered: HashMap[tuple[str, TaskSets]] = HashMap(self.members.items())
        members = ",".join(
            f"{member_id}:{process}:{listed(target.active)}:{listed(target.standby)}:{self._reported(member_id)}"
            for member_id, (process, target) in zip(ordered, ordered.values(), strict=True)
        )
        return f"{self.standby_count}|{names}|{members}"

    def _reported(self, member_id: str) -> str:
        return "+".join(f"{name}_{at}={offset}" for (name, at), offset in self.offsets(member_id).items())


def listed(tasks: Tasks) -> str:
    """Tasks without blanks."""
    return "+".join(f"{name}_{partition}" for name in sorted(tasks) for partition in sorted(tasks[name]))


def shown(targets: dict[str, TaskSets]) -> str:
    """An assignment in one line."""
    return " ".join(
        f"{member_id}={listed(targets[member_id].active)}/{listed(targets[member_id].standby)}"
        for member_id in sorted(targets)
    )


def steps_of(name: str, *, newer: bool = False) -> Iterator[Story]:
    """The steps of a story: the caller puts the targets of each step into the story before it asks for the next."""
    chance = random.Random(name)
    size, members, processes, standby_count = (int(part) for part in name.split("-")[:4])
    ids = iter(lambda: str(UUID(int=chance.getrandbits(128))), "")
    homes = [next(ids) for _ in range(processes)]
    subtopologies = {str(at): (chance.randint(1, 9), chance.random() < 0.6) for at in range(size)}
    story = Story(dict(sorted(subtopologies.items())), standby_count, newer=newer)
    for at in range(members):
        story.members[next(ids)] = (homes[at % processes], TaskSets())
    yield story
    for _ in range(8):
        if len(story.members) > 1 and chance.random() < 0.5:
            del story.members[chance.choice(sorted(story.members))]
        else:
            story.members[next(ids)] = (chance.choice(homes), TaskSets())
        yield story


@pytest.mark.slow
@pytest.mark.parametrize("release", sorted(RECORDED))
@pytest.mark.parametrize("name", sorted(RECORDED["4.3"]))
def test_every_step_of_a_story_equals_kafkas(name: str, release: str) -> None:
    """Subtopologies, members, processes and standbys are in the name; "40-8-8-1" is 40 subtopologies for 8 members."""
    digests = []
    for story in steps_of(name, newer=release == "4.4"):
        targets = assign_sticky(story.job())
        digests.append(hashlib.sha256(shown(targets).encode()).hexdigest()[:16])
        story.members = {member_id: (home, targets[member_id]) for member_id, (home, _) in story.members.items()}
    assert digests == RECORDED[release][name]


def test_a_job_without_members_has_no_targets() -> None:
    """There is no member to assign tasks to."""
    assert assign_sticky(Job([], {"0": 3}, frozenset(), 0)) == {}


def test_equal_elements_leave_the_queue_in_javas_order() -> None:
    """As ``java.util.PriorityQueue`` of these loads does; Python's heap would begin with "b" after "a"."""
    loads = {"a": 1, "b": 1, "c": 1, "d": 1}
    queue = PriorityQueue(loads.__getitem__, loads)
    assert [queue.poll() for _ in range(4)] == ["a", "d", "c", "b"]
    with pytest.raises(IndexError):
        queue.poll()
