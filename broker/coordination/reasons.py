"""Why a machine decided as it did, for people.

The code that decides gives the reason: it is never derived later from the state before and after. The rule is the id
of a row or a section of the specification, such as ``transactions A.2 I5`` or ``groups A.5 R7``; the source is the KIP
or the class of Kafka that the rule was read from.
"""

from dataclasses import dataclass
from typing import NamedTuple

from protocol.errors import ErrorCode, KafkaError

STEERING = "steering"
"""The rule of what the control plane did, which no Kafka does."""


@dataclass(frozen=True, slots=True)
class Reason:
    """What a decision is called, such as ``commit decided``, its rule and source, and a sentence of explanation."""

    kind: str
    rule: str
    source: str
    sentence: str = ""


class StateChange(NamedTuple):
    """What a machine decided on: for which group or transactional id, why, and the state and epoch before and after it.

    For state that follows from several records, or from none. ``epoch_*`` are generations of a classic group.
    """

    name: str
    reason: Reason
    state_before: str
    state_after: str
    epoch_before: int
    epoch_after: int


class Refusal(KafkaError):
    """A refusal that names its rule and source.

    ``message`` goes into the response if the API has a message field; ``sentence`` is a longer text, for people only.
    """

    def __init__(
        self, code: ErrorCode, rule: str, source: str, message: str | None = None, *, sentence: str = ""
    ) -> None:
        super().__init__(code, message)
        self.rule, self.source, self.sentence = rule, source, sentence or message or ""
