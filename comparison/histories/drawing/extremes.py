"""Random requests whose lists have several entries, of which two or three have an extreme number.

How numbers are chosen: `pieces`.
"""

import copy
import struct
from collections.abc import Iterator
from typing import Any

from comparison.histories.drawing.fields import BATCHED, NEVER_DOUBLED, Fields
from comparison.histories.fields import message
from comparison.target import Target
from protocol.apis import ApiKey
from protocol.codec import encode_request, message_class

LIMITS = (2**63 - 1, 2**31 - 1, 2**15 - 1, 2**7 - 1)
"""Highest values of the protocol's integers, the widest first: a field has the first one that can be encoded."""
LEFT_OUT = frozenset({"timeout_ms", "max_wait_ms", "acks", "resource_type", "count", "num_partitions"})
"""Fields in which an extreme makes the brokers wait, or create billions of partitions."""
SLOW = frozenset({ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS})
"""APIs in which Kafka asks again for half a minute about what does not exist."""
Leaf = tuple[Any, Any]
"""A list or an object, and the index or name of a number in it."""


class Extremes(Fields):
    """Draws requests with several entries and extremes."""

    def _extremes(self) -> dict[str, Any]:
        step = self._fields()
        while ApiKey[step["api"]] in SLOW or not any(isinstance(value, list) for value in step["body"].values()):
            step = self._fields()
        api = ApiKey[step["api"]]
        name, since = BATCHED.get(api, ("", 0))
        if not (name and step["v"] < since):
            self._multiply(step["body"])
        leaves = list(_numbers(step["body"]))
        for leaf in self._chance.sample(leaves, min(len(leaves), self._chance.choice((2, 2, 3)))):
            self._set(api, step, leaf)
        return step

    def _multiply(self, body: dict[str, Any]) -> None:
        """Let a list have two or three entries."""
        lists = [name for name, value in body.items() if isinstance(value, list) and value]
        for name in lists:
            if name not in NEVER_DOUBLED and len(body[name]) == 1 and not self._rarely(3):
                body[name] += [copy.deepcopy(body[name][0]) for _ in range(self._chance.choice((1, 2)))]

    def _set(self, api: ApiKey, step: dict[str, Any], leaf: Leaf) -> None:
        """Set a number to the highest or lowest value that its field can have, or next to it."""
        place, at = leaf
        before, lowest, inside = place[at], self._rarely(2), self._rarely(3)
        for limit in LIMITS:
            place[at] = -limit - 1 + inside if lowest else limit - inside
            if _can_be_sent(api, step):
                return
        place[at] = before


def _numbers(value: Any) -> Iterator[Leaf]:
    """Yield where the numbers of a body are."""
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for at, inner in entries:
        if isinstance(inner, dict | list):
            yield from _numbers(inner)
        elif isinstance(inner, int) and not isinstance(inner, bool) and at not in LEFT_OUT:
            yield value, at


def _can_be_sent(api: ApiKey, step: dict[str, Any]) -> bool:
    try:
        encode_request(api, step["v"], 0, "", message(message_class(api, "Request"), step["body"], Target("")))
    except (struct.error, OverflowError, ValueError):
        return False
    return True
