"""What the explanations of refusals have in common: the answer, and the sentence about faults."""

from broker.control.fault_text import does
from broker.control.request import ControlRequest
from broker.settings.specification import cite
from control_api.answers.common import Refusal


def explanation(
    text: str,
    forgotten: int,
    *,
    error: str | None = None,
    at_ms: int | None = None,
    rule: str = "",
    source: str = "",
    also: tuple[str, ...] = (),
) -> Refusal:
    """Build the answer of the `why` verbs."""
    return Refusal(
        why=text, error=error, at_ms=at_ms, rule=rule, citation=cite(rule, source), forgotten=forgotten, also=also
    )


def faults(request: ControlRequest, ids: str) -> str:
    """Describe faults. ``ids`` is a comma-separated list of fault ids."""
    faults_by_id = request.source.faults.faults
    return " and ".join(
        f"fault {fault_id} ({does(faults_by_id[fault_id].description['do'])})"
        if fault_id in faults_by_id
        else f"fault {fault_id}, removed since"
        for fault_id in ids.split(",")
    )
