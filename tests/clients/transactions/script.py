"""The transactional steps, written once; each Python client is an adapter behind `Client`."""

# ruff: noqa: D102 -- TRANSACTION_STEPS documents each step

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from tests.clients.python.observed import observed
from tests.clients.python.script import UnsupportedError, expect, report

PARTITIONS = 3
NUMBERED = 300


class Source(Protocol):
    """A member of a group that reads the input with read_committed and commits nothing by itself."""

    def poll(self) -> list[tuple[int, int, bytes]]:
        """Wait a moment; what was read: (partition, offset, value)."""

    def metadata(self) -> Any:
        """What the client hands to its producer so that the group can fence it."""

    def rewind(self) -> None:
        """Go back to what is committed."""

    def close(self) -> None:
        """Leave the group."""


class Transactor(Protocol):
    """A producer with a transactional id, initialized."""

    def begin(self) -> None:
        """Begin a transaction."""

    def send(self, topic: str, values: Sequence[tuple[int, bytes]]) -> None:
        """Send by partition, and wait for all acknowledgements."""

    def send_offsets(self, topic: str, offsets: Mapping[int, int], metadata: Any) -> None:
        """Add the group's offsets, the next to read by partition, to the transaction."""

    def commit(self) -> None:
        """Commit the transaction."""

    def abort(self) -> None:
        """Abort the transaction."""

    def close(self) -> None:
        """Close the producer."""


class Client(Protocol):
    """What the script needs of a client."""

    zombies_fenced: str  # "" where send_offsets carries member and generation, else why not

    def create(self, topics: Sequence[str], replicas: int) -> None:
        """Create topics of three partitions."""

    def produce(self, topic: str, values: Sequence[tuple[int, bytes]]) -> None:
        """Send without a transaction, by partition."""

    def transactor(self, transactional_id: str, timeout_ms: int) -> Transactor:
        """An initialized producer; an older one with the id is fenced."""

    def read(self, topic: str, count: int, *, committed: bool) -> list[bytes]:
        """All values, read until there are that many and for a moment longer."""

    def source(self, topic: str, group: str) -> Source:
        """A new member of the group."""

    def committed_offsets(self, topic: str, group: str) -> dict[int, int]:
        """What the group has committed, by partition."""

    def is_fenced(self, error: Exception) -> bool:
        """Whether that is the client's error for a fenced producer."""


def values(name: str) -> list[tuple[int, bytes]]:
    """One record for each partition."""
    return [(partition, f"{name}-{partition}".encode()) for partition in range(PARTITIONS)]


class Script:
    """Plays the steps with one client."""

    def __init__(self, client: Client, brokers: int, topic: str) -> None:
        self.client, self.brokers = client, brokers
        self.inputs, self.output, self.result = f"{topic}-in", f"{topic}-out", f"{topic}-result"
        self.id, self.group = f"{topic}-id", f"{topic}-group"
        self.seen: list[bytes] = []  # what read_committed must show of the output

    def play(self) -> None:
        """Play all steps, one line of JSON for each."""
        for name in vars(Script):
            if name.startswith("step_"):
                report(name.removeprefix("step_"), getattr(self, name))

    def step_create(self) -> None:
        self.client.create([self.inputs, self.output, self.result], min(self.brokers, 3))
        self.client.produce(self.inputs, [(n % PARTITIONS, str(n).encode()) for n in range(NUMBERED)])
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
        expect(sum(value.startswith(b"aborted") for value in raw) == PARTITIONS, sorted(raw))

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
        expect(self.client.is_fenced(answer), f"{type(answer).__name__} {answer}")
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
        """Return what the work raised; fail if it raised nothing."""
        try:
            work()
        except Exception as error:  # any error of the client  # noqa: BLE001
            return error
        raise AssertionError("nothing was refused")

    def step_transform(self) -> str:
        source = self.client.source(self.inputs, self.group)
        written: set[bytes] = set()
        turns = 0
        while len(written) < NUMBERED:
            batch = source.poll()[:25]
            if not batch:
                continue
            turns += 1
            expect(turns < 200, f"{len(written)} records after {turns} transactions")
            if self.transform(source, batch, abort=turns % 3 == 0):
                written |= {value for _, _, value in batch}
            else:
                source.rewind()
        source.close()
        read = self.client.read(self.result, NUMBERED, committed=True)
        expect(Counter(read) == Counter(b"t-%d" % n for n in range(NUMBERED)), f"{len(read)} records")
        offsets = self.client.committed_offsets(self.inputs, self.group)
        expect(offsets == dict.fromkeys(range(PARTITIONS), NUMBERED // PARTITIONS), offsets)
        return f"{turns} transactions"

    def transform(self, source: Source, batch: Sequence[tuple[int, int, bytes]], *, abort: bool) -> bool:
        """One transaction of the template; whether it was committed."""
        self.producer.begin()
        self.producer.send(self.result, [(partition, b"t-" + value) for partition, _, value in batch])
        offsets = {partition: offset + 1 for partition, offset, _ in batch}
        self.producer.send_offsets(self.inputs, offsets, source.metadata())
        if abort:
            self.producer.abort()
        else:
            self.producer.commit()
        return not abort

    def step_zombie(self) -> str:
        if self.client.zombies_fenced:
            raise UnsupportedError(self.client.zombies_fenced)
        group = f"{self.group}-zombie"
        zombie = self.client.source(self.inputs, group)
        while not zombie.poll():
            pass
        before = zombie.metadata()
        zombie.close()
        heir = self.client.source(self.inputs, group)
        while not heir.poll():
            pass
        producer = self.client.transactor(f"{self.id}-zombie", 30_000)
        producer.begin()
        producer.send(self.output, values("zombie"))
        answer = self.refused(lambda: producer.send_offsets(self.inputs, {0: 50}, before))
        producer.abort()
        producer.close()
        heir.close()
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


def main(make: Callable[[str], Client], arguments: Sequence[str]) -> None:
    """The driver's entry: `make(bootstrap)` gives the client."""
    bootstrap, brokers, topic, _ = arguments
    Script(observed(make(bootstrap)), int(brokers), topic).play()
