"""What a step of a history asks: the request, and what follows from its answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from comparison.side import Side
from protocol.apis import ApiKey

Step = Mapping[str, Any]
"""A step as it is saved: ``{"do": "produce", "topic": "t0", ...}``; symbols stand for what a cluster names itself."""


class Settle(Enum):
    """What a step sets going that goes on after its answer, and has to come to rest before the next step."""

    NOTHING = "nothing"
    METADATA = "metadata"
    TRANSACTION = "transaction"
    GROUP = "group"
    CONNECTION = "connection"
    REPLICAS = "replicas"


@dataclass(slots=True)
class Asked:
    """A step made out for one side. ``after`` takes the answer and remembers what later steps need of it."""

    key: ApiKey
    version: int
    request: Any
    connection: str = "0"
    after: Callable[[Any], None] | None = None
    settle: Settle = Settle.NOTHING
    about: str = ""  # the transactional id or the group that has to settle
    reads: bool = False  # nothing changes by asking, so it may be asked again until both say the same
    answered: bool = True
    view: Callable[[Any], Any] | None = None  # what of the answer belongs to the history
    parks: bool = False  # the answer may wait for other members


Builder = Callable[[Side, Step], Asked]
