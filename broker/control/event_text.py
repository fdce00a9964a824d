"""Sentences about timeline events, for the explanations of refusals."""

from broker.coordination.reasons import STEERING
from broker.coordination.transaction.transitions import NO_PRODUCER, ProducerIdAndEpoch
from broker.settings.specification import cite
from broker.steering.timelines.event_log import UNKNOWN_COUNT
from broker.steering.timelines.transaction_events import Event
from control_api.times import local_time


def span(at_ms: int, until_ms: int) -> str:
    """Format a time or an interval: ``at 2026-11-22T12:00:03.120+01:00``, or ``from ... to ...``."""
    if until_ms <= at_ms:
        return f"at {local_time(at_ms)}"
    return f"from {local_time(at_ms)} to {local_time(until_ms)}"


def place(producer: ProducerIdAndEpoch) -> str:
    """Format a producer id and epoch as ``(4000, 3)``."""
    return f"({producer.producer_id}, {producer.producer_epoch})"


def client(event: Event) -> str:
    """Name the client that sent the request, with its connection."""
    return f"client `{event.client_id}` (connection {event.connection})"


def call(event: Event) -> str:
    """Name the request's API and version; for EndTxn also whether it commits or aborts."""
    return f"{event.api} v{event.version}" + (f" ({event.wants})" if event.wants else "")


def actor(event: Event) -> str:
    """Name who acted: a client with its request, the coordinator, or the control plane."""
    if event.api is not None:
        return f"{client(event)} called {call(event)}"
    return "the coordinator acted on its own" if event.rule != STEERING else "the control plane acted"


def request(event: Event) -> str:
    """Describe a request: API, client, and the producer that it names."""
    producer = "" if event.request_producer == NO_PRODUCER else f" as {place(event.request_producer)}"
    return f"{call(event)} from {client(event)}{producer}"


def citation(rule: str, source: str) -> str:
    """Format ``; `` and the rule's citation; empty without a rule of Kafka's."""
    cited = cite(rule, source)
    return f"; {cited}" if cited else ""


def refused(what: str, at_ms: int, error: str | None, cited: str, count: int = 1) -> str:
    """Write the sentence that names the refused request and its error."""
    again = f", {count} times" if count > 1 else ""
    return f"{what} was refused at {local_time(at_ms)}{again}, with {error}" + (f": {cited}." if cited else ".")


def nothing_refused(subject: str, forgotten: int) -> str:
    """Write the answer if the log has no refusal. A refusal may be among the events that were dropped."""
    if not forgotten:
        return f"no request of {subject} has been refused"
    many = "some events were" if forgotten == UNKNOWN_COUNT else f"{forgotten} earlier events were"
    return f"no refusal of {subject} is in the log; {many} dropped because the log is full, perhaps with a refusal"


def move(event: Event) -> str:
    """Describe the event that gave a transactional id another epoch or producer id."""
    at, before = span(event.at_ms, event.until_ms), place(event.before)
    became = f"the epoch became {event.epoch_after}"
    if event.producer_id != event.producer_before:
        became = f"it became {place(event.after)}"
    if event.count > 1:
        by = "several clients" if event.client_id is None else client(event)
        return f"{at} {by} used the id ({event.event}), while this producer was at {before}; {became}"
    rule = citation(event.rule, event.source)
    if event.event == "timed out":
        late = f"its transaction, open for longer than its timeout, was aborted while it was at {before}"
        return f"{at} {late}; {became}{rule}"
    if event.api is None:
        return f"{at} it was {event.event}, while this producer was at {before}; {became}"
    how = "without an epoch" if event.request_producer == NO_PRODUCER else f"as {place(event.request_producer)}"
    if event.api == "EndTxn":
        return f"{at} {client(event)} ended its transaction by {call(event)} {how}; {became}{rule}"
    origin = f"{at} {client(event)} called {call(event)} {how}"
    return f"{origin} while this producer was at {before}; {became}{rule}"
