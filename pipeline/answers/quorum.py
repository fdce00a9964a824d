"""Checks that the offsets and epochs which one broker reports of the quorum never decrease."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from pipeline.answers.calls import NONE, Call, Fault, listed

_GROWING: Final = ("leader_epoch", "high_watermark")


@dataclass
class Quorums:
    """The DescribeQuorum responses of one run and era."""

    _highest: dict[tuple[int, str, int, str], tuple[int, int]] = field(default_factory=dict)
    """By broker, topic, partition and field: the highest value so far, and when its response had arrived."""

    def note(self, call: Call) -> Iterator[Fault]:
        """Record a response, and yield the values that have decreased."""
        for topic in listed(call.response, "topics") if call.api == "DescribeQuorum" else ():
            for part in listed(topic, "partitions"):
                for name in _GROWING if part["error_code"] == NONE else ():
                    key = (call.broker, topic["topic_name"], part["partition_index"], name)
                    value, since_us = self._highest.get(key, (-1, 0))
                    if part[name] < value and since_us < call.start_us:
                        what = f"{name.replace('_', ' ')} {part[name]} after {value}"
                        yield Fault(call.id, "answer-contradicted", what, topic["topic_name"], part["partition_index"])
                    elif part[name] > value:
                        self._highest[key] = (part[name], call.end_us)

    def faults(self) -> Iterator[Fault]:
        """Yield nothing: all faults are found in `note`."""
        return iter(())
