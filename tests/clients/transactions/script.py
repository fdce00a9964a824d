"""The transactional steps, played with any library through its driver of `understudy exam`."""

# ruff: noqa: D102 -- TRANSACTION_STEPS documents each step

import re
import time
from collections import Counter
from collections.abc import Callable, Sequence

from protocol.apis import ApiKey
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tests.clients.observed import Report, observed
from tests.clients.script import (
    PARTITIONS,
    PATIENCE_MS,
    PATIENCE_S,
    PRODUCER,
    Clients,
    Member,
    Record,
    committed,
    expect,
    until,
)
from tests.wire import Wire
from understudy.exam.driver import AnyDriver, NotSupported

NUMBERED = 300


class Transactor:
    """A producer with a transactional id, initialized."""

    def __init__(self, clients: Clients, transactional_id: str, timeout_ms: int) -> None:
        options = {"idempotent": True, "transactional_id": transactional_id, "transaction_timeout_ms": timeout_ms}
        options["request_timeout_ms"] = min(PRODUCER["request_timeout_ms"], timeout_ms)
        self.clients = clients
        self.name = clients.create("producer", {**PRODUCER, "linger_ms": 0, **options})
        self._call("init_transactions")
        if clients.driver.library == "KafkaJS":  # it asks for its producer id with the first transaction
            self.begin()
            self.abort()

    def _call(self, command: str, **fields: str) -> None:
        self.clients.driver.call(command, producer=self.name, timeout_ms=PATIENCE_MS, **fields)

    def begin(self) -> None:
        """Begin a transaction."""
        self.clients.driver.call("begin", producer=self.name)

    def send(self, topic: str, values: Sequence[tuple[int, str]]) -> None:
        """Send by partition, and wait for all acknowledgements."""
        records = [{"partition": index, "value": value} for index, value in values]
        self.clients.send(self.name, topic, records)

    def send_offsets(self, source: Member) -> None:
        """Add the member's positions to the transaction."""
        self._call("send_offsets", consumer=source.name)

    def commit(self) -> None:
        """Commit the transaction."""
        self._call("commit")

    def abort(self) -> None:
        """Abort the transaction."""
        self._call("abort")

    def close(self) -> None:
        """Close the producer."""
        self.clients.close(self.name)


class Client:
    """What the script asks of a library."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    def create(self, topics: Sequence[str], replicas: int) -> None:
        """Create topics of three partitions."""
        for topic in topics:
            self._clients.administrator("create_topic", topic=topic, partitions=PARTITIONS, replicas=replicas)

    def produce(self, topic: str, values: Sequence[tuple[int, str]]) -> None:
        """Send without a transaction, by partition."""
        producer = self._clients.create("producer", PRODUCER)
        self._clients.send(producer, topic, [{"partition": index, "value": value} for index, value in values])
        self._clients.close(producer)

    def transactor(self, transactional_id: str, timeout_ms: int) -> Transactor:
        """Initialize a producer; an older one with the id is fenced."""
        return Transactor(self._clients, transactional_id, timeout_ms)

    def read(self, topic: str, count: int, *, committed: bool) -> list[str]:
        """All values, read until there are that many and for a moment longer."""
        isolation = "read_committed" if committed else "read_uncommitted"
        offsets = dict.fromkeys(range(PARTITIONS), 0)
        return [each.value or "" for each in self._clients.read(topic, offsets, count, isolation=isolation)]

    def source(self, topic: str, group: str, heartbeat_ms: int = 300) -> Member:
        """Return a new member of the group, which reads what is committed and commits nothing by itself."""
        options = {"isolation": "read_committed", "heartbeat_interval_ms": heartbeat_ms, "session_timeout_ms": 30_000}
        return Member(self._clients, topic, group, **options)

    def committed_offsets(self, topic: str, group: str) -> dict[int, int]:
        """What the group has committed, by partition."""
        return committed(self._clients, group, topic)


def evict(bootstrap: str, group: str) -> None:
    """Remove all members of a group, as an administrator; none of them knows it."""
    with Wire(bootstrap.split(",", maxsplit=1)[0]) as wire:
        coordinator = wire.call(ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(group))
    with Wire(f"{coordinator.host}:{coordinator.port}") as wire:
        (described,) = wire.call(ApiKey.DESCRIBE_GROUPS, 5, DescribeGroupsRequest([group])).groups
        members = [MemberIdentity(each.member_id) for each in described.members]
        expect(members, f"{group} has no members")
        wire.call(ApiKey.LEAVE_GROUP, 4, LeaveGroupRequest(group, members=members))


FENCED = re.compile("fenced|invalid_?producer_?epoch", re.IGNORECASE)
"""In the code or message of an error: the producer was fenced."""


def values(name: str) -> list[tuple[int, str]]:
    """One record for each partition."""
    return [(partition, f"{name}-{partition}") for partition in range(PARTITIONS)]


class Script:
    """Plays the steps with one client."""

    def __init__(self, clients: Clients, brokers: int, topic: str) -> None:
        self.report, self.bootstrap, self.brokers = Report(), clients.bootstrap, brokers
        self.client = observed(Client(clients), self.report)
        self.inputs, self.output, self.result = f"{topic}-in", f"{topic}-out", f"{topic}-result"
        self.id, self.group = f"{topic}-id", f"{topic}-group"
        self.seen: list[str] = []  # what read_committed must show of the output

    def play(self) -> None:
        """Play all steps."""
        for name in vars(Script):
            if name.startswith("step_"):
                self.report.step(name.removeprefix("step_"), getattr(self, name))

    def step_create(self) -> None:
        self.client.create([self.inputs, self.output, self.result], min(self.brokers, 3))
        self.client.produce(self.inputs, [(n % PARTITIONS, str(n)) for n in range(NUMBERED)])
        self.producer = self.client.transactor(self.id, 30_000)

    def transact(self, producer: Transactor, name: str) -> None:
        """Begin, and send one record to each partition."""
        producer.begin()
        producer.send(self.output, values(name))

    def committed(self, *names: str) -> None:
        """Compare what read_committed shows with what was committed, these names now among it."""
        self.seen += [value for name in names for _, value in values(name)]
        read = self.client.read(self.output, len(self.seen), committed=True)
        expect(Counter(read) == Counter(self.seen), f"{sorted(read)}, not {sorted(self.seen)}")

    def step_commit(self) -> None:
        self.transact(self.producer, "committed")
        self.producer.commit()
        self.committed("committed")

    def step_abort(self) -> None:
        self.transact(self.producer, "aborted")
        self.producer.abort()
        self.committed()
        raw = self.client.read(self.output, len(self.seen) + PARTITIONS, committed=False)
        expect(sum(value.startswith("aborted") for value in raw) == PARTITIONS, sorted(raw))

    def step_isolation(self) -> None:
        self.transact(self.producer, "open")
        self.client.produce(self.output, values("after"))
        self.committed()
        self.producer.commit()
        self.committed("open", "after")

    def step_fencing(self) -> str:
        first = self.producer
        self.transact(first, "fenced")
        self.producer = self.client.transactor(self.id, 30_000)
        answer = self.refused(lambda: self.finish(first))
        expect(FENCED.search(str(answer)), f"{type(answer).__name__} {answer}")
        first.close()
        self.transact(self.producer, "second")
        self.producer.commit()
        self.committed("second")
        return f"{type(answer).__name__}: {answer}"[:200]

    def finish(self, producer: Transactor) -> None:
        """Send one record more, and commit."""
        producer.send(self.output, values("late")[:1])
        producer.commit()

    @staticmethod
    def refused(work: Callable[[], object]) -> Exception:
        """Return what the work raised; fail if it raised nothing, or was not done."""
        try:
            work()
        except NotSupported:
            raise
        except Exception as error:  # any error of the client  # noqa: BLE001
            return error
        raise AssertionError("nothing was refused")

    def step_transform(self) -> str:
        source = self.client.source(self.inputs, self.group)
        producer = self.client.transactor(f"{self.id}-transform", 30_000)  # franz-go makes one client of the two
        written: set[str | None] = set()
        turns = 0
        deadline = time.monotonic() + 3 * PATIENCE_S
        while len(written) < NUMBERED:
            batch = source.poll(max_records=25)
            expect(time.monotonic() < deadline, f"{len(written)} records after {turns} transactions")
            if not batch:
                continue
            turns += 1
            expect(turns < 200, f"{len(written)} records after {turns} transactions")
            if self.transform(producer, source, batch, abort=turns % 3 == 0):
                written |= {each.value for each in batch}
            else:
                source.rewind()
        source.close()
        producer.close()
        read = self.client.read(self.result, NUMBERED, committed=True)
        expect(Counter(read) == Counter(f"t-{n}" for n in range(NUMBERED)), f"{len(read)} records")
        offsets = self.client.committed_offsets(self.inputs, self.group)
        expect(offsets == dict.fromkeys(range(PARTITIONS), NUMBERED // PARTITIONS), offsets)
        return f"{turns} transactions"

    def transform(self, producer: Transactor, source: Member, batch: Sequence[Record], *, abort: bool) -> bool:
        """One transaction of the template; whether it was committed."""
        producer.begin()
        producer.send(self.result, [(each.partition, f"t-{each.value}") for each in batch])
        producer.send_offsets(source)
        if abort:
            producer.abort()
        else:
            producer.commit()
        return not abort

    def step_zombie(self) -> str:
        group = f"{self.group}-zombie"
        zombie = self.client.source(self.inputs, group, heartbeat_ms=9_000)
        until(lambda: bool(zombie.poll()), lambda: "it reads nothing")
        producer = self.client.transactor(f"{self.id}-zombie", 30_000)
        producer.begin()
        producer.send(self.output, values("zombie"))
        evict(self.bootstrap, group)
        try:
            answer = self.refused(lambda: producer.send_offsets(zombie))
        finally:  # what stays open would hide what the next step writes
            producer.abort()
            producer.close()
            zombie.close()
        self.committed()
        offsets = self.client.committed_offsets(self.inputs, group)
        expect(not any(offset > 0 for offset in offsets.values()), offsets)
        return f"{type(answer).__name__}: {answer}"[:200]

    def step_timeout(self) -> str:
        late = self.client.transactor(f"{self.id}-late", 2000)
        self.transact(late, "late")
        self.client.produce(self.output, values("waiting"))
        self.committed("waiting")  # visible once the coordinator has aborted what was before it
        answer = self.refused(lambda: self.finish(late))
        late.close()
        heir = self.client.transactor(f"{self.id}-late", 30_000)
        self.transact(heir, "recovered")
        heir.commit()
        heir.close()
        self.committed("recovered")
        self.producer.close()
        return f"{type(answer).__name__}: {answer}"[:200]


def play(driver: AnyDriver, bootstrap: str, brokers: int, topic: str, base_ms: int) -> Report:  # noqa: ARG001
    """Play the script with a library."""
    script = Script(Clients(driver, bootstrap, f"{topic}-"), brokers, topic)
    script.play()
    return script.report
