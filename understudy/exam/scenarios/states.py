"""States that are brought about, not only reported: the next wrong step of a client has its consequence."""

import time
from contextlib import suppress

from understudy.exam.driver import CallError
from understudy.exam.exercise import POLL_MS, Consumer, Exercise, Producer
from understudy.exam.level import Level
from understudy.exam.scenario import scenario
from understudy.exam.scenarios import groups, transactions
from understudy.exam.scenarios.consumers import NEEDS as CONSUMER
from understudy.exam.scenarios.consumers import SKIPPED, check_latest, check_read
from understudy.exam.scenarios.values import BRIEF_MS, LOOK_S, MANY, SOON_S, TURN_MS, next_broker, numbered

QUIET_S = 2.0
"""How long a member is polled that may do nothing: several of its heartbeats, or looks for its offsets."""
OWN_TOPIC = "made"
"""A topic that a case creates."""


# --- leaders ----------------------------------------------------------------------------------------------------------


@scenario(
    "consumers/leader-moves-away",
    "The leader moves, and its former broker stays",
    rule="FetchCollector: NOT_LEADER_OR_FOLLOWER",
    needs=CONSUMER,
    steers="leaders",
    correct="Looks up the new leader: the former one refuses each request.",
    loss="A consumer that stops.",
)
def leader_moves_away(exercise: Exercise) -> None:
    """Move it to the next broker."""
    exercise.write(numbered(10, "a"))
    consumer = exercise.consumer()
    consumer.assign(0)
    consumer.poll_for(10)
    partition = exercise.cluster.topics["t"].partitions[0]
    partition.move_leader(next_broker(partition.show().leader))
    exercise.write(numbered(10, "b"))
    check_read(exercise, consumer, numbered(10, "a") + numbered(10, "b"))


@scenario(
    "consumers/leader-returns",
    "The leader moves away and back while the consumer is idle",
    rule="KIP-320: FENCED_LEADER_EPOCH",
    needs=CONSUMER,
    steers="leaders",
    correct="Refreshes its metadata, and goes on with the new leader epoch.",
    loss="A consumer that stops.",
)
def leader_returns(exercise: Exercise) -> None:
    """Move it to the next broker and back: a request with the former epoch is refused."""
    exercise.write(numbered(10, "a"))
    consumer = exercise.consumer()
    consumer.assign(0)
    consumer.poll_for(10)
    partition = exercise.cluster.topics["t"].partitions[0]
    former = partition.show().leader
    partition.move_leader(next_broker(former))
    partition.move_leader(former)
    exercise.write(numbered(10, "b"))
    check_read(exercise, consumer, numbered(10, "a") + numbered(10, "b"))


# --- positions --------------------------------------------------------------------------------------------------------


@scenario(
    "consumers/seek-discards-what-was-fetched",
    "A seek while fetched records were not returned yet",
    rule="KafkaConsumer.seek: SubscriptionState",
    needs=f"{CONSUMER} seek max_records",
    correct="Discards them, and reads from the new offset.",
    loss=SKIPPED,
)
def seek_discards_what_was_fetched(exercise: Exercise) -> None:
    """Take three of ten records, and seek forward and back."""
    exercise.write(numbered(10))
    consumer = exercise.consumer()
    consumer.assign(0)
    until = exercise.deadline()
    while not consumer.read and not exercise.past(until):
        consumer.poll(max_records=3)
    first = consumer.values()
    # Fewer than 8, to which it seeks: there are records that it may have fetched, and must not return.
    exercise.require_situation(0 < len(first) < 8, f"the first poll returned {len(first)} records")
    consumer.seek(8)
    check_read(exercise, consumer, first + numbered(10)[8:])
    consumer.seek(1)
    check_read(exercise, consumer, first + numbered(10)[8:] + numbered(10)[1:])


@scenario(
    "groups/commit-of-what-was-returned",
    "A commit while fetched records were not returned yet",
    rule="KafkaConsumer.commitSync: positions are those of returned records",
    needs=f"{groups.COMMITS} max_records",
    correct="Commits the position after the last record that it returned.",
    loss=groups.LOST,
)
def commit_of_what_was_returned(exercise: Exercise) -> None:
    """Take three of ten records, commit, and let the next member read the others."""
    exercise.write(numbered(10))
    first = groups.member(exercise)
    until = exercise.deadline()
    while not first.read and not exercise.past(until):
        first.poll(max_records=3)
    count = len(first.read)
    exercise.require_situation(0 < count < 10, f"the first poll returned {count} records")
    error = first.commit()
    exercise.require(error is None, f"the commit failed: {error}")
    exercise.require(groups.committed(exercise) == [count], f"committed {groups.committed(exercise)}, not {count}")
    first.close()
    second = groups.member(exercise)
    second.poll_for(10 - count)
    second.poll_quietly()
    exercise.require(second.values() == numbered(10)[count:], f"the second member read {second.values()}")


@scenario(
    "groups/auto-commit",
    "A member that commits by itself is closed",
    rule="ConsumerCoordinator: maybeAutoCommitOffsetsSync",
    needs=f"{groups.NEEDS} auto_commit",
    level=Level.SHOULD,
    correct="Commits the position after the last record that it returned.",
    loss=groups.LOST,
)
def auto_commit(exercise: Exercise) -> None:
    """Read ten records; what is committed is never more than what was returned."""
    exercise.write(numbered(10))
    consumer = exercise.consumer(group="g", auto_commit=True)
    consumer.subscribe("t")
    consumer.poll_for(10)
    consumer.close()
    until = time.monotonic() + SOON_S
    while groups.committed(exercise) != [10] and time.monotonic() < until:
        time.sleep(LOOK_S)
    offsets = groups.committed(exercise)
    exercise.require(all(offset <= 10 for offset in offsets), f"committed {offsets}, and ten records were read")
    exercise.require(offsets == [10], f"committed {offsets}, not 10", Level.SHOULD)


@scenario(
    "groups/latest",
    "A member without a committed offset; offset reset is latest",
    rule="auto.offset.reset",
    needs=groups.NEEDS,
    correct="Begins with the records that are written after it has its partitions.",
    loss="Old records are processed.",
)
def latest(exercise: Exercise) -> None:
    """Write ten records before it joins; then, until one is read, further ones."""
    exercise.write(numbered(10, "old"))
    consumer = exercise.consumer(group="g", offset_reset="latest")
    consumer.subscribe("t")
    check_latest(exercise, consumer)


@scenario(
    "groups/no-reset",
    "A member without a committed offset; offset reset is none",
    rule="auto.offset.reset; NoOffsetForPartitionException",
    needs=f"{groups.NEEDS} offset_reset",
    correct="Reports an error and reads nothing.",
    loss="Records are silently processed again, or skipped.",
)
def no_reset(exercise: Exercise) -> None:
    """Write ten records before it joins."""
    exercise.write(numbered(10))
    consumer = exercise.consumer(group="g", offset_reset="none")
    consumer.subscribe("t")
    until = exercise.deadline()
    while not (consumer.errors or consumer.read or exercise.past(until)):
        consumer.poll()
    exercise.require(not consumer.read, f"read {consumer.values()} without an offset to begin at")
    exercise.require(bool(consumer.errors), "no error was reported")


# --- topics -----------------------------------------------------------------------------------------------------------


@scenario(
    "groups/topic-created-later",
    "A member subscribes to a topic that is created afterwards",
    rule="Metadata: requestUpdate after UNKNOWN_TOPIC_OR_PARTITION",
    needs=groups.NEEDS,
    steers="topics",
    level=Level.SHOULD,
    correct="Asks for it again, and joins once it exists.",
    loss="A consumer that reads nothing for minutes, or until it is restarted.",
)
def topic_created_later(exercise: Exercise) -> None:
    """Create it a second after the subscription."""
    consumer = groups.member(exercise, OWN_TOPIC)
    consumer.poll_quietly(times=5)
    exercise.cluster.topics.create(OWN_TOPIC, partitions=1)
    exercise.write(numbered(5), topic=OWN_TOPIC)
    consumer.poll_for(5)
    exercise.require(consumer.values() == numbered(5), f"read {consumer.values()}", Level.SHOULD)


@scenario(
    "groups/partitions-are-added",
    "New metadata has more partitions of a topic than a member knew",
    rule="ConsumerCoordinator.rejoinNeededOrPending: metadataSnapshot",
    needs=groups.NEEDS,
    level=Level.SHOULD,
    correct="Joins again, so that the new partitions have a reader.",
    loss="Partitions without a reader.",
)
def partitions_are_added(exercise: Exercise) -> None:
    """Let metadata have one partition of three, until the member has read; an error of this one makes it ask again."""
    exercise.write(["p0"], topic="many")
    leader = exercise.cluster.topics["many"].partitions[0].show().leader
    one = {"error_code": "NONE", "partition_index": 0, "leader_id": leader}
    hidden = exercise.cluster.faults.add(api="Metadata", topic="many", alter={"topics.*.partitions": [one]}, times=None)
    consumer = groups.member(exercise, "many")
    consumer.poll_for(1)
    exercise.require_situation(consumer.values() == ["p0"], f"before, the member read {consumer.values()}")
    exercise.require_situation(hidden.hits() > 0, "no Metadata request names the topic")
    hidden.remove()
    for partition in (1, 2):
        exercise.write([f"p{partition}"], topic="many", partition=partition)
    exercise.fault(api="Fetch", topic="many", partition=0, error="NOT_LEADER_OR_FOLLOWER")
    consumer.poll_for(3)
    exercise.require_exercised()
    exercise.require(sorted(set(consumer.values())) == ["p0", "p1", "p2"], f"read {consumer.values()}", Level.SHOULD)


# --- members ----------------------------------------------------------------------------------------------------------


def evict(exercise: Exercise, consumer: Consumer, group: str = "g") -> None:
    """Remove a member from its group, as if its session had timed out."""
    for each in exercise.group(group).members:
        if each.client_id == consumer.name:
            exercise.cluster.groups[group].evict(each.member_id)


@scenario(
    "groups/removed-member",
    "A member is removed from its group",
    rule="groups A.6: UNKNOWN_MEMBER_ID",
    needs=groups.NEEDS,
    steers="members",
    correct="Rejoins as a new member, without its former member id, and reads on.",
    loss=groups.STOPPED,
)
def removed_member(exercise: Exercise) -> None:
    """Remove it as if its session had timed out: each request with its member id is refused."""
    exercise.write(numbered(10, "a"))
    consumer = groups.member(exercise)
    consumer.poll_for(10)
    evict(exercise, consumer)
    until = exercise.deadline()
    while not exercise.past(until) and not exercise.group("g").members:
        consumer.poll()
    exercise.write(numbered(10, "b"))
    until = exercise.deadline()
    while not exercise.past(until) and not {*numbered(10, "b")} <= {*consumer.values()}:
        consumer.poll()
    exercise.require_read(consumer, numbered(10, "a") + numbered(10, "b"))
    exercise.require(bool(exercise.group("g").members), "it reads on without being a member")


@scenario(
    "groups/removed-member-commits",
    "A removed member commits before it knows",
    rule="groups B.1: UNKNOWN_MEMBER_ID",
    needs=groups.COMMITS,
    steers="members",
    correct="Reports that the commit failed, or commits as a member again.",
    loss=groups.LOST,
    slow=True,
)
def removed_member_commits(exercise: Exercise) -> None:
    """Remove it, and commit at once."""
    exercise.write(numbered(10))
    consumer = groups.member(exercise)
    consumer.poll_for(10)
    evict(exercise, consumer)
    error = consumer.commit()
    offsets = groups.committed(exercise)
    exercise.require(
        error is not None or offsets == [10], f"the commit was reported as done, and the group has {offsets}"
    )


@scenario(
    "groups/removed-member-resumes",
    "The committed offset of a removed member is set back before it joins again",
    rule="ConsumerCoordinator.onJoinComplete: positions are the committed offsets",
    needs=groups.COMMITS,
    steers="members",
    correct="Reads on at the committed offset, not at its former position.",
    loss="Records that another member, or the operator, left to be read.",
)
def removed_member_resumes(exercise: Exercise) -> None:
    """Remove it, and reset the group's offset from 10 to 4."""
    exercise.write(numbered(10))
    consumer = groups.member(exercise)
    consumer.poll_for(10)
    error = consumer.commit()
    exercise.require(error is None, f"the commit failed: {error}")
    evict(exercise, consumer)
    exercise.cluster.groups["g"].reset_offsets("t", offset=4)
    until = exercise.deadline()
    while not exercise.past(until) and len(consumer.read) < 16:
        consumer.poll()
    again = consumer.values()[10:]
    exercise.require(again == numbered(10)[4:], f"after it had joined again, it read {again}")


@scenario(
    "groups/commit-after-revocation",
    "A member commits after another one has got some of its partitions",
    rule="ConsumerCoordinator: a commit is for the partitions that a member has",
    needs=f"{groups.COMMITS} assignment",
    correct="Commits its own partitions only.",
    loss="The progress of another member: its records are read again.",
)
def commit_after_revocation(exercise: Exercise) -> None:
    """Let the second member read and commit more than the first one had read."""
    for partition in MANY:
        exercise.write(numbered(3, f"p{partition}-"), topic="many", partition=partition)
    first = groups.member(exercise, "many")
    first.poll_for(9)
    second = groups.member(exercise, "many")
    groups.check_shared(exercise, (first, second))
    for partition in MANY:
        exercise.write(numbered(3, f"p{partition}-later"), topic="many", partition=partition)
    share = second.partitions()
    until = exercise.deadline()
    while not exercise.past(until) and not all(f"p{each}-later02" in second.values() for each in share):
        second.poll()
        first.poll(BRIEF_MS)
    error = second.commit()
    exercise.require(error is None, f"the commit of the second member failed: {error}")
    exercise.require_situation(second.partitions() == share, "the group was rebalanced again")
    first.commit()
    offsets = {each.partition: each.offset for each in exercise.group("g").offsets if each.partition in share}
    exercise.require(set(offsets.values()) == {6}, f"the second member committed 6, and the group has {offsets}")


@scenario(
    "groups/joins-again-as-itself",
    "A member joins again, as another one has come",
    rule="AbstractCoordinator: the member id is kept after REBALANCE_IN_PROGRESS",
    needs=f"{groups.NEEDS} assignment",
    level=Level.SHOULD,
    correct="Keeps the member id that it was granted.",
    loss="A rebalance that waits until the member that it was has timed out.",
)
def joins_again_as_itself(exercise: Exercise) -> None:
    """Compare the member ids that the first member was granted."""
    first, second = groups.member(exercise, "many"), groups.member(exercise, "many")
    groups.check_shared(exercise, (first, second))
    joined = [entry.response or {} for entry in exercise.journal(first.name, "JoinGroup")]
    ids = {each["member_id"] for each in joined if each.get("member_id")}
    exercise.require(len(ids) == 1, f"the member has been {len(ids)} members: {', '.join(sorted(ids))}", Level.SHOULD)


def is_shared(first: Consumer, second: Consumer) -> bool:
    """Return whether both have partitions, by their own report, and together three."""
    shares = first.partitions(), second.partitions()
    return all(shares) and shares[0] == {0, 1, 2} - shares[1]


@scenario(
    "groups/revoked-records-are-dropped",
    "Partitions are revoked while their fetched records were not returned yet",
    rule="ConsumerCoordinator.onJoinPrepare; SubscriptionState.assignFromSubscribed",
    needs=f"{groups.NEEDS} assignment max_records",
    correct="Drops them: they belong to another member now.",
    loss=groups.LOST,
)
def revoked_records_are_dropped(exercise: Exercise) -> None:
    """Let the first member take one of 3000 records with each poll while the second one joins."""
    for partition in MANY:
        exercise.write(numbered(1_000, f"p{partition}-"), topic="many", partition=partition)
    first = groups.member(exercise, "many")
    first.poll(POLL_MS * 5, max_records=1)  # it has to join first
    second = groups.member(exercise, "many")
    until = exercise.deadline()
    while not exercise.past(until) and not is_shared(first, second):
        first.poll(BRIEF_MS, max_records=1)
        second.poll(BRIEF_MS)
    share, count = first.partitions(), len(first.read)
    exercise.require_situation(0 < len(share) < len(MANY), f"the first member has {share}")
    exercise.require_situation(count < 1_000 * len(MANY), "it had read everything before")
    for _ in range(10):  # more than it has
        first.poll(max_records=500)  # as many as Kafka's consumers return by default
    exercise.require_situation(first.partitions() == share, "the group was rebalanced again")
    foreign = sorted({record["partition"] for record in first.read[count:]} - share)
    exercise.require(not foreign, f"it returned records of {foreign}, which were revoked")


@scenario(
    "groups/different-subscriptions",
    "Two members subscribe to different topics",
    rule="ConsumerPartitionAssignor: GroupSubscription",
    needs=groups.NEEDS,
    correct="The leader assigns a topic to those that subscribe to it.",
    loss="Partitions without a reader.",
)
def different_subscriptions(exercise: Exercise) -> None:
    """Subscribe the first one to `many`, the second one to `many` and `t`."""
    for partition in MANY:
        exercise.write(numbered(2, f"p{partition}-"), topic="many", partition=partition)
    exercise.write(numbered(5, "t"))
    first, second = groups.member(exercise, "many"), groups.member(exercise, "many", "t")
    wanted = {*numbered(5, "t"), *(value for partition in MANY for value in numbered(2, f"p{partition}-"))}
    until = exercise.deadline()
    while not exercise.past(until) and not wanted <= {*first.values(), *second.values()}:
        first.poll(TURN_MS)
        second.poll(TURN_MS)
    foreign = [value for value in first.values() if value.startswith("t")]
    exercise.require(not foreign, f"the first member read {foreign}, to which it does not subscribe")
    missing = sorted(wanted - {*first.values(), *second.values()})
    exercise.require(not missing, f"not read: {', '.join(missing)}")


def static(exercise: Exercise, instance: str) -> Consumer:
    """Return a static member that reads three partitions."""
    consumer = exercise.consumer(group="g", instance_id=instance)
    consumer.subscribe("many")
    return consumer


STATIC = f"{groups.NEEDS} static_members"


@scenario(
    "groups/static-member-returns",
    "A static member is closed, and another client with its instance id comes",
    rule="KIP-345",
    needs=f"{STATIC} assignment",
    correct="Does not leave the group; its successor gets the same partitions without a rebalance.",
    loss="A rebalance of the whole group with each restart of an instance.",
)
def static_member_returns(exercise: Exercise) -> None:
    """Restart one of two members."""
    first, second = static(exercise, "one"), static(exercise, "two")
    groups.check_shared(exercise, (first, second))
    share, joined = first.partitions(), len(exercise.journal(second.name, "JoinGroup"))
    first.close()
    left = exercise.group("g")
    exercise.require(len(left.members) == 2, "the static member has left its group", Level.SHOULD)
    successor = static(exercise, "one")
    groups.check_shared(exercise, (successor, second))
    exercise.require(successor.partitions() == share, f"it had {share}, its successor has {successor.partitions()}")
    again = len(exercise.journal(second.name, "JoinGroup")) - joined
    exercise.require(not again, f"the other member had to join again {again} times", Level.SHOULD)


@scenario(
    "groups/static-member-fenced",
    "Two clients have the same instance id",
    rule="KIP-345: FENCED_INSTANCE_ID",
    needs=f"{STATIC} commit_offsets",
    correct="The first one fails its commit, and reports a fatal error.",
    loss=groups.LOST,
)
def static_member_fenced(exercise: Exercise) -> None:
    """Let the second one read everything, then commit with the first one.

    A refused heartbeat may come first: it has no partitions then, and nothing to commit. It may ask again, with
    its own member id: that is refused.
    """
    exercise.write(numbered(3), topic="many")
    first = static(exercise, "one")
    first.poll_for(3)
    second = static(exercise, "one")
    second.poll_for(3)
    exercise.require(len(second.read) == 3, f"the second client read {second.values()}")
    error = first.commit()
    knows = error is not None or bool(first.errors) or not exercise.journal(first.name, "OffsetCommit")
    exercise.require(knows, "the fenced member reports that it has committed")
    offsets = exercise.group("g").offsets
    exercise.require(error is not None or not offsets, f"the fenced member has committed {offsets}")
    until = time.monotonic() + QUIET_S
    while time.monotonic() < until and not first.errors:  # its heartbeats are refused, too
        first.poll()
        second.poll(BRIEF_MS)
    replaced = exercise.journal(second.name, "JoinGroup")[0].id
    again = [entry for entry in exercise.journal(first.name, "JoinGroup") if entry.id > replaced and not entry.error]
    exercise.require(not again, "the fenced member has joined again, which fences its successor")
    error = second.commit()
    exercise.require(error is None, f"the fenced member has joined again: the commit of its successor fails: {error}")


# --- transactions -----------------------------------------------------------------------------------------------------


def copied(producer: Producer, consumer: Consumer) -> None:
    """Write what a consumer has read, within a transaction that stays open."""
    producer.call("begin")
    producer.send([f"copy of {value}" for value in consumer.values()], topic="u")
    producer.flush()


def copier(exercise: Exercise) -> Consumer:
    """Return a member of the group of copiers."""
    consumer = exercise.consumer(group="copier", isolation="read_committed")
    consumer.subscribe("t")
    return consumer


@scenario(
    "transactions/pending-offsets",
    "A successor joins while its predecessor's transaction is open",
    rule="KIP-447: RequireStable",
    needs=transactions.COPY,
    correct="Waits until the offsets of the transaction are committed, and reads what comes after them.",
    loss=transactions.LOST_COPY,
    slow=True,
)
def pending_offsets(exercise: Exercise) -> None:
    """End the predecessor's membership before its transaction."""
    exercise.write(numbered(10, "a"))
    first, producer = copier(exercise), exercise.transactional()
    first.poll_for(10)
    copied(producer, first)
    producer.send_offsets(first)
    exercise.require_situation(bool(exercise.journal(api="TxnOffsetCommit")), "the offsets are sent with the commit")
    first.close()
    second = copier(exercise)
    until = time.monotonic() + QUIET_S
    while time.monotonic() < until:
        second.poll()
    exercise.require(not second.read, "records are read again whose offsets are in a transaction that is open")
    producer.call("commit")
    exercise.write(numbered(5, "b"))
    second.poll_for(5)
    second.poll_quietly()
    exercise.require(second.values() == numbered(5, "b"), f"the successor read {second.values()}")


@scenario(
    "transactions/zombie-copier",
    "A member that was removed ends its transaction after its successor",
    rule="KIP-447: TxnOffsetCommit with generation and member",
    needs=f"{transactions.COPY} assignment",
    steers="members",
    correct="Sends its generation with the offsets: they are refused, and the transaction is aborted.",
    loss="Input is processed twice.",
)
def zombie_copier(exercise: Exercise) -> None:
    """Remove it when it has read everything; its successor copies all of it before."""
    exercise.write(numbered(10))
    first, one = copier(exercise), exercise.transactional("tx-1")
    first.poll_for(10)
    copied(one, first)
    evict(exercise, first, "copier")
    second, two = copier(exercise), exercise.transactional("tx-2")
    second.poll_for(10)
    learned = "the removed member has learned of it in the background"
    exercise.require_situation(bool(second.read), learned)  # otherwise it has joined again, before its successor
    copied(two, second)
    two.send_offsets(second)
    two.call("commit")
    exercise.require_situation(bool(first.partitions()), learned)
    try:
        one.send_offsets(first)
        one.call("commit")
    except CallError:
        with suppress(CallError):  # the producer may be unusable, which is another question
            one.call("abort")
    values = exercise.committed_values("u")
    exercise.require(
        values == [f"copy of {value}" for value in numbered(10)],
        f"the copy has {len(values)} of 10 records: the offsets of a removed member were accepted",
    )
