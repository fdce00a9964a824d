"""Consumer groups with any sequence of events: no partition has two owners, and a group left alone becomes stable."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.coordination.group.modern.consumer.states import State
from protocol.errors import ErrorCode
from tests.coordination.group.consumer_harness import Cluster, Consumer, group, held_by_two
from tests.coordination.group.harness import Context, G

NAMES = ("m1", "m2", "m3")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("join"), st.sampled_from(NAMES), st.sampled_from([("foo",), ("bar",), ("foo", "bar"), ()])),
        st.tuples(
            st.just("subscribes"), st.sampled_from(NAMES), st.sampled_from([("foo",), ("bar",), ("foo", "bar"), ()])
        ),
        st.tuples(st.just("keeps up"), st.sampled_from(NAMES)),
        st.tuples(st.just("heartbeats"), st.sampled_from(NAMES)),
        st.tuples(st.just("leaves"), st.sampled_from(NAMES)),
        st.tuples(st.just("goes for a while"), st.just("m3")),
        st.tuples(st.just("time"), st.sampled_from([100, 1_000, 20_000, 50_000])),
        st.tuples(st.just("grow"), st.integers(2, 8)),
        st.tuples(st.just("reload")),
    ),
    max_size=40,
)


class History:
    """Three members, of which m3 is static, and the assignments that they get."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.cluster.create("foo", 3)
        self.cluster.create("bar", 2)
        self.context = Context(topics=self.cluster)
        self.members = {
            name: Consumer(self.context, name, instance_id="i" if name == "m3" else None, rebalance_ms=5_000)
            for name in NAMES
        }
        self.inside: set[str] = set()

    def step(self, what: str, *more: object) -> None:
        """Take one step; a member that was refused joins again when its next step is to keep up."""
        if what == "time":
            self.context.advance(int(str(more[0])))
        elif what == "grow":
            self.cluster.grow("foo", max(int(str(more[0])), self.cluster.by_name["foo"].partition_count))
        elif what == "reload":
            self.context = self.context.reloaded()
            for member in self.members.values():
                member.context = self.context
        else:
            self._member(what, self.members[str(more[0])], *more[1:])

    def _member(self, what: str, member: Consumer, *more: object) -> None:
        if what in {"join", "subscribes"} and more:
            member.topics = tuple(map(str, more[0])) if isinstance(more[0], tuple) else ()
        fields: dict[str, object] = {}
        epoch = member.epoch
        if what == "join" or (what != "leaves" and epoch <= 0):
            epoch, member.owned = 0, {}
            fields = {"rebalance_timeout_ms": 5_000, "subscribed_topic_names": member.topics, "topic_partitions": []}
        elif what == "subscribes":
            fields = {"subscribed_topic_names": member.topics, "topic_partitions": dict(member.owned)}
        elif what == "keeps up":
            fields = {"topic_partitions": dict(member.owned)}
        elif what == "leaves":
            epoch = -1
        elif what == "goes for a while":
            epoch = -2
        answer = member.ask(epoch, **fields)
        if isinstance(answer.message, Exception):
            member.epoch = 0
            return
        member.epoch = answer.message.member_epoch
        if answer.message.assignment is not None:
            member.owned = {each.topic_id: list(each.partitions) for each in answer.message.assignment.topic_partitions}


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(steps=STEPS)
def test_nothing_is_held_by_two_and_all_settles(steps: list[tuple[object, ...]]) -> None:
    """After each step; then everybody keeps up until the group is stable, and every partition is read by one."""
    history = History()
    for step in steps:
        history.step(str(step[0]), *step[1:])
        if G in history.context.machine.groups:
            assert held_by_two(history.context) == []
    settled(history)


def settled(history: History) -> None:
    """Everybody comes back and keeps up."""
    for name in NAMES:
        history.step("join", name, ("foo", "bar"))
    history.step("time", 50_000)
    for _ in range(12):
        for name in NAMES:
            history.step("keeps up", name)
        history.step("time", 1_000)
    consumer_group = group(history.context)
    assert consumer_group.state is State.STABLE
    held = [
        (topic_id, at)
        for member in consumer_group.members.values()
        for topic_id, partitions in member.assigned.items()
        for at in partitions
    ]
    topics = history.cluster.by_name.values()
    assert sorted(held) == sorted((topic.id, at) for topic in topics for at in range(topic.partition_count))
    for member in history.members.values():
        assert {t: sorted(p) for t, p in member.owned.items()} == {
            t: sorted(p) for t, p in member.seen.assigned.items()
        }


def test_a_history_can_fail() -> None:
    """The check finds partitions that the coordinator's records give to two members."""
    history = History()
    history.step("join", "m1", ("foo",))
    assert history.members["m1"].refused(7) is ErrorCode.FENCED_MEMBER_EPOCH
    member = history.members["m1"].seen
    record = member.current_record(G)
    history.context.machine.consumers.replay(type(record)(record.kind, G, "m2", record.value))
    assert len(held_by_two(history.context)) == 3
