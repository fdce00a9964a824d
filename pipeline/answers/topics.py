"""Compares what an administrator was answered about the creation of topics and partitions with earlier answers."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from pipeline.answers.calls import NONE, Call, Fault, listed

_REMOVALS: Final = frozenset({"DeleteTopics"})


@dataclass
class Topics:
    """The topics of one run and era, as far as answers name them."""

    _created: dict[str, Call] = field(default_factory=dict)
    """By name: the CreateTopics that succeeded, unless a topic may have been deleted since."""
    _counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By name: partitions, and when that was answered."""

    def note(self, call: Call) -> Iterator[Fault]:
        """Record a call, and yield the faults that earlier calls prove."""
        if call.api in _REMOVALS:  # by name or by id; a refused one may have deleted something, too
            self._created.clear()
            self._counts.clear()
        elif call.api == "CreateTopics" and not call.request.get("validate_only"):
            yield from self._creation(call)
        elif call.api == "CreatePartitions" and not call.request.get("validate_only"):
            yield from self._growth(call)
        elif call.api == "Metadata" and call.is_answered:
            for each in listed(call.response, "topics"):
                if each.get("error_code") == NONE and each.get("name"):
                    self._count(each["name"], len(listed(each, "partitions")), call)

    def faults(self) -> Iterator[Fault]:
        """Yield nothing more: all faults are found as calls are recorded."""
        return iter(())

    def _creation(self, call: Call) -> Iterator[Fault]:
        for each in listed(call.response, "topics") if call.is_answered else ():
            before = self._created.get(each["name"])
            if each.get("error_code") != NONE:
                continue
            if before is not None and before.end_us < call.start_us:
                yield Fault(
                    call.id, "answer-contradicted", "the creation of a topic that was created before", each["name"]
                )
            self._created[each["name"]] = call
            self._count(each["name"], each.get("num_partitions", -1), call)

    def _growth(self, call: Call) -> Iterator[Fault]:
        wanted = {each["name"]: each["count"] for each in listed(call.request, "topics")}
        for each in listed(call.response, "results") if call.is_answered else ():
            count = wanted.get(each["name"], -1)
            known, at_us = self._counts.get(each["name"], (0, 0))
            if each.get("error_code") != NONE:
                continue
            if count <= known and at_us < call.start_us:
                what = f"{count} partitions for a topic that had {known}"
                yield Fault(call.id, "answer-contradicted", what, each["name"])
            self._count(each["name"], count, call)

    def _count(self, name: str, count: int, call: Call) -> None:
        if count > self._counts.get(name, (0, 0))[0]:
            self._counts[name] = count, call.end_us
