"""Members of a share group in random schedules (KIP-932), and what is true of their records at the end."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from understudy.exam.driver import LibraryError
from understudy.exam.random.clients import POLL_MS, Client
from understudy.exam.share_consumer import ShareConsumer, share_consumer

Place = tuple[str, int, int]
"""Topic, partition and offset."""


@dataclass
class ShareLedger:
    """What became of the records of a share group, by the reports of the library."""

    delivered: dict[Place, str] = field(default_factory=dict)
    """Records -> their values."""
    done: dict[Place, str] = field(default_factory=dict)
    """Records -> `accept` or `reject`, where a commit of that was reported as successful."""
    left: set[Place] = field(default_factory=set)
    """Records that were not acknowledged by the last member that got them, when it was closed."""
    again: set[Place] = field(default_factory=set)
    """Records that a member got which began after all others had ended."""

    def problems(self, visible: Mapping[Place, str]) -> Iterator[tuple[str, str]]:
        """Return the check and a sentence for what is wrong, if these records can be read at the end."""
        lost = sorted(self.again & self.done.keys())
        if lost:
            text = f"{self.delivered[lost[0]]!r} was reported as done ({self.done[lost[0]]}ed), and delivered again"
            yield "share-not-acknowledged", f"{text} at the end; {len(lost)} such records"
        taken = sorted(self.left & visible.keys() - self.again)
        if taken:
            text = f"{self.delivered[taken[0]]!r} was never acknowledged, and did not come again"
            yield "share-taken", f"{text}; {len(taken)} such records"
        if not self.delivered:
            yield "share-undelivered", "nothing was ever delivered"
        missing = sorted(self.expected(visible) - self.delivered.keys())
        if missing:
            text = f"{visible[missing[0]]!r} at offset {missing[0][2]} of {missing[0][0]}-{missing[0][1]}"
            yield "share-undelivered", f"{text} was never delivered; {len(missing)} such records"

    def expected(self, visible: Mapping[Place, str]) -> set[Place]:
        """Return the records that have to be delivered: a group begins at the end, with what it gets first."""
        first: dict[tuple[str, int], int] = {}
        for topic, partition, offset in self.delivered:
            first[topic, partition] = min(offset, first.get((topic, partition), offset))
        return {place for place in visible if place[2] >= first.get(place[:2], place[2] + 1)}


def _place(record: Mapping[str, Any]) -> Place:
    return record["topic"], record["partition"], record["offset"]


class Sharer(Client):
    """A member of a share group. All members of a group have one ledger."""

    handle: ShareConsumer | None

    def __init__(self, *arguments: Any, ledger: ShareLedger) -> None:
        super().__init__(*arguments)
        self.ledger = ledger
        self.names: list[str] = []
        """The client ids that it has had."""
        self.refusals: list[LibraryError | None] = []
        """The outcomes of the commits after all faults were over."""

    def open(self) -> None:
        """Create it, and subscribe. Raises CallError."""
        consumer = share_consumer(self.exercise, self.options["group"])
        self.names.append(consumer.name)
        consumer.subscribe(self.options["topic"])
        self.handle = consumer

    def share(self, kind: str = "accept", *, commit: bool = True, last: bool = False) -> int:
        """Poll, acknowledge all that was polled, and commit that; return the number of records.

        Without a commit the acknowledgements go with the next request, and their outcome is not reported. `last`: the
        member began after all others had ended.
        """
        records = self._polled()
        if not records or self.handle is None:
            return 0
        handle = self.handle
        places = [_place(each) for each in records]
        if last:
            self.ledger.again.update(places)
        if self.attempt(lambda: handle.acknowledge(kind, records)) is not None or not commit:
            return len(records)
        error = self.promised(handle.name, "ShareAcknowledge", handle.commit)
        if last:
            self.refusals.append(error)
        elif error is None and kind != "release":
            self.ledger.done.update(dict.fromkeys(places, kind))
        return len(records)

    def _polled(self) -> list[Mapping[str, Any]]:
        """Poll; return the records, and write down that they were delivered."""
        if self.opened() is None or self.handle is None:
            return []
        handle, before = self.handle, len(self.handle.read)
        if self.attempt(lambda: handle.poll(POLL_MS)) is not None:
            return []
        records = handle.read[before:]
        for each in records:
            self.ledger.delivered[_place(each)] = str(each["value"])
            self.ledger.left.discard(_place(each))
            self.history.check_key(self.name, str(each["value"]), each.get("key"))
        return records

    def leave(self) -> None:
        """Poll, and close without acknowledging: others have to get these records."""
        records = self._polled()
        self.close()
        self.ledger.left.update(map(_place, records))
