"""The assignor of share groups, ``simple``, by tables (groups D.3)."""

import random
from uuid import UUID

from broker.coordination.group.modern.assignor.range import Subscriber
from broker.coordination.group.modern.assignor.simple import assign_simply

FOO, BAR = UUID(int=1 << 64 | 1), UUID(int=1 << 64 | 2)
COUNTS = {FOO: 3, BAR: 2}
_LETTERS = {FOO: "f", BAR: "b"}
Targets = dict[str, dict[UUID, frozenset[int]]]


def assigned(members: dict[str, list[UUID]], before: Targets) -> tuple[str, Targets]:
    """The assignment as a text such as ``A=f0 B=f1,b0``, and as it is."""
    subscribers = [
        Subscriber(name, None, tuple(topics), len(topics), before.get(name, {})) for name, topics in members.items()
    ]
    homogeneous = len({tuple(topics) for topics in members.values()}) == 1
    counts = {topic: range(COUNTS[topic]) for topics in members.values() for topic in topics}
    targets = assign_simply(subscribers, counts, homogeneous=homogeneous)
    texts = []
    for name, target in targets.items():
        places = ((topic, index) for topic, indexes in target.items() for index in indexes)
        texts.append(f"{name}={','.join(sorted(f'{_LETTERS[topic]}{index}' for topic, index in places))}")
    return " ".join(texts), targets


def test_without_any_topic_no_member_keeps_a_target() -> None:
    """Also where members subscribe to different topics; a topic of one member alone leaves old targets as they are."""
    before = {"A": {FOO: frozenset({0, 1})}}
    assert assigned({"A": [], "B": []}, before)[0] == "A= B="
    gone = [Subscriber("A", None, (), 1, before["A"]), Subscriber("B", None, (), 1, {})]
    assert assign_simply(gone, {}, homogeneous=False) == {"A": {}, "B": {}}
    assert assigned({"A": [], "B": [BAR]}, before)[0] == "A=f0,f1 B=b0,b1"


def test_the_table_of_the_simple_assignor() -> None:
    """The rows of groups D.3, which are Kafka's answers."""
    three = {"A": [BAR], "B": [BAR], "C": [BAR]}
    assert assigned(three, {})[0] == "A=b0,b1 B=b0 C=b1"
    both = [FOO, BAR]
    text, targets = assigned({"A": both}, {})
    assert text == "A=b0,b1,f0,f1,f2"
    text, targets = assigned({"A": both, "B": both}, targets)
    assert text == "A=b0,b1,f2 B=f0,f1"
    text, targets = assigned({"A": both, "B": both, "C": both}, targets)
    assert text == "A=b0,b1 B=f0,f1 C=f2"
    del targets["A"]
    assert assigned({"B": both, "C": both}, targets)[0] == "B=b0,f0,f1 C=b1,f2"
    text, targets = assigned({"A": [FOO], "B": both, "C": [BAR]}, {})
    assert text == "A=f0,f2 B=b0,f1 C=b1"
    del targets["C"]
    assert assigned({"A": [FOO], "B": both}, targets)[0] == "A=f0,f2 B=b0,b1,f1"


def test_each_partition_has_an_owner_after_each_change() -> None:
    """Random members come, go and subscribe to other topics."""
    for seed in range(150):
        chance = random.Random(seed)
        targets: Targets = {}
        members: dict[str, list[UUID]] = {}
        for _ in range(8):
            name = f"m{chance.randrange(6)}"
            if name in members and chance.random() < 0.4:
                del members[name]
            else:
                members[name] = chance.choice([[FOO], [BAR], [FOO, BAR]])
            targets = {each: target for each, target in targets.items() if each in members}
            if not members:
                continue
            _, targets = assigned(dict(sorted(members.items())), targets)
            wanted = {
                (topic, index) for topics in members.values() for topic in topics for index in range(COUNTS[topic])
            }
            owned = {
                (topic, index)
                for name, target in targets.items()
                for topic, indexes in target.items()
                if topic in members[name]
                for index in indexes
            }
            assert owned == wanted
