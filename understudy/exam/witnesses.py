"""Extracts facts from the wire for scenarios: batches of producers and the order of requests."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from understudy.results import JournalEntry

KEPT_BATCHES: Final = 5
"""Batches per producer and partition for which a broker detects duplicates (ProducerStateEntry)."""
FENCED: Final = frozenset({"INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"})
"""Errors of Produce after which the broker appends no batch of this producer's epoch (KIP-588)."""
REFUSED: Final = frozenset(
    {"INVALID_RECORD", "INVALID_REQUIRED_ACKS", "MESSAGE_TOO_LARGE", "POLICY_VIOLATION", "TOPIC_AUTHORIZATION_FAILED"}
)
"""Errors of Produce with which a batch is refused for good: the broker still expects its sequence."""
SEQUENCES: Final = 2**31  # 0 follows the highest int32 (DefaultRecordBatch.incrementSequence)


@dataclass(frozen=True)
class Batch:
    """A batch in a Produce request, and the error code in the response; None: there was no response."""

    entry: JournalEntry
    topic: str
    partition: int
    producer_id: int
    epoch: int
    base_sequence: int
    count: int
    transactional: bool
    compression: str
    error: str | None

    @property
    def place(self) -> tuple[int, int, str, int]:
        """Return producer id, epoch, topic and partition: the scope of sequences."""
        return self.producer_id, self.epoch, self.topic, self.partition

    def __str__(self) -> str:
        last = (self.base_sequence + self.count - 1) % SEQUENCES
        return (
            f"request {self.entry.id}: sequences {self.base_sequence} to {last} of producer {self.producer_id}, "
            f"epoch {self.epoch}, for {self.topic}-{self.partition}"
        )


def batches(entries: Iterable[JournalEntry]) -> Iterator[Batch]:
    """Return the batches of all Produce requests, in order of arrival."""
    for entry in entries:
        if entry.api != "Produce":
            continue
        errors = _errors(entry)
        for topic in entry.request.get("topic_data", ()):
            name = str(topic.get("name") or topic.get("topic_id"))
            for partition in topic.get("partition_data", ()):
                records = partition.get("records") or {}
                yield Batch(
                    entry,
                    name,
                    partition["index"],
                    int(records.get("producer_id", -1)),
                    records.get("producer_epoch", -1),
                    records.get("base_sequence", -1),
                    records.get("count") or 0,  # unknown of a set that is cut off
                    bool(records.get("transactional")),
                    str(records.get("compression", "none")),
                    errors.get((name, partition["index"])),
                )


def _errors(entry: JournalEntry) -> dict[tuple[str, int], str]:
    """Return topic and partition -> error code of the response."""
    if entry.response is None or entry.outcome != "answered":
        return {}
    return {
        (str(topic.get("name") or topic.get("topic_id")), partition["index"]): partition["error_code"]
        for topic in entry.response.get("responses", ())
        for partition in topic.get("partition_responses", ())
    }


def broken_sequences(sent: Sequence[Batch]) -> list[tuple[Batch, str]]:
    """Return batches that neither continue the producer's sequence nor repeat one of the last five.

    A repetition has the same base sequence and count: sent batches are neither merged nor split (KIP-98). An epoch that
    the broker has refused is not judged further, as nothing more of it is appended: Java gives the sequence of the
    refused batch to the next one in flight (TransactionManager.handleFailedBatch). The sequence of a batch that was
    refused for good, and was sent once, may be given to the next one, as KafkaJS does.
    """
    problems: list[tuple[Batch, str]] = []
    seen: dict[tuple[int, int, str, int], list[tuple[int, int]]] = defaultdict(list)
    fenced = set[tuple[int, int]]()
    free: dict[tuple[int, int, str, int], int] = {}
    for batch in sent:
        if batch.producer_id < 0:
            continue
        if batch.base_sequence < 0:
            problems.append((batch, f"{batch}: a producer id without a sequence"))
            continue
        producer = batch.producer_id, batch.epoch
        if producer in fenced:
            continue
        if batch.error in FENCED:
            fenced.add(producer)
        earlier = seen[batch.place]
        each = (batch.base_sequence, batch.count)
        expected = (earlier[-1][0] + earlier[-1][1]) % SEQUENCES if earlier else 0
        if each in earlier[-KEPT_BATCHES:]:
            free.pop(batch.place, None)
            continue
        if batch.base_sequence not in {expected, free.pop(batch.place, expected)}:
            problems.append((batch, f"{batch}: {expected} comes next, and no earlier batch is repeated"))
        if batch.error in REFUSED:
            free[batch.place] = batch.base_sequence
        earlier.append(each)
    return problems


def wrong_epochs(sent: Sequence[Batch]) -> list[tuple[Batch, str]]:
    """Return batches with an epoch below an earlier one of the same producer id, or outside of 0 to 32,767."""
    problems, highest = list[tuple[Batch, str]](), dict[int, int]()
    for batch in sent:
        if batch.producer_id < 0:
            continue
        if not 0 <= batch.epoch < 2**15:
            problems.append((batch, f"{batch}: invalid epoch"))
        elif batch.epoch < highest.get(batch.producer_id, 0):
            problems.append((batch, f"{batch}: epoch {highest[batch.producer_id]} was in use before"))
        highest[batch.producer_id] = max(batch.epoch, highest.get(batch.producer_id, 0))
    return problems


def line(entry: JournalEntry) -> str:
    """Format a request for the evidence: its fields, its client, and the response."""
    names = [f"{batch.topic}-{batch.partition} {_sequence(batch)}" for batch in batches([entry])]
    for field in ("transactional_id", "group_id", "generation_id", "member_epoch", "committed"):
        value = entry.request.get(field)
        if value not in (None, "", -1):
            names.append(f"{field}={value}")
    answer = entry.error or "NONE" if entry.outcome == "answered" else entry.outcome
    fault = f", by fault {entry.fault}" if entry.fault else ""
    return (
        f"{entry.id:5} connection {entry.connection} {entry.api} v{entry.version} {' '.join(names)} -> {answer}{fault}"
    )


def _sequence(batch: Batch) -> str:
    if batch.producer_id < 0:
        return f"{batch.count} records"
    return f"producer {batch.producer_id}/{batch.epoch} sequence {batch.base_sequence}+{batch.count}"
