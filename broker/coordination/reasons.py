"""Reasons for a machine's decisions, shown in reports.

The deciding code names the reason; it is never derived later from the states before and after. A rule is the id of a
row or a section of the specification, such as ``transactions A.2 I5`` or ``groups A.5 R7``; its source is the KIP or
the Kafka class that it comes from.
"""

from typing import NamedTuple

from protocol.deferred import dataclass
from protocol.errors import ErrorCode, KafkaError

STEERING = "steering"
"""Rule of the control plane's own actions, which Kafka does not have."""


@dataclass(frozen=True, slots=True)
class Reason:
    """The name of a decision, such as ``commit decided``, its rule, its source, and a sentence of explanation."""

    kind: str
    rule: str
    source: str
    sentence: str = ""


class StateChange(NamedTuple):
    """A state change of a group or a transactional id (``name``), with its reason and the states and epochs around it.

    For state that is derived from several records, or from none. For a classic group ``epoch_*`` are generations. The
    last fields name the member that came or went, or the committed offsets that changed, ``places`` as topic,
    partition, offset before; ``detail`` is the part of the reason that this change alone has.
    """

    name: str
    reason: Reason
    state_before: str
    state_after: str
    epoch_before: int
    epoch_after: int
    member_id: str = ""
    instance_id: str | None = None
    client_id: str | None = None
    detail: str = ""
    places: tuple[tuple[str, int, int], ...] = ()


class Refusal(KafkaError):
    """A refusal that names its rule and source.

    ``message`` goes into the response if the API has a field for it; ``sentence`` is a longer text for reports only.
    """

    def __init__(
        self, code: ErrorCode, rule: str, source: str, message: str | None = None, *, sentence: str = ""
    ) -> None:
        super().__init__(code, message)
        self.rule, self.source, self.sentence = rule, source, sentence or message or ""
