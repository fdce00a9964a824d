"""Events of a timeline in words."""

from datetime import UTC, datetime

from broker.coordination.transaction.epochs import NOBODY, ProducerIdAndEpoch
from broker.middleware.timeline import Event


def clock_time(at_ms: int) -> str:
    """Such as 12:00:03.120, in UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]


def place(producer: ProducerIdAndEpoch) -> str:
    """A producer, as (4000, 3)."""
    return f"({producer.producer_id}, {producer.producer_epoch})"


def client(event: Event) -> str:
    """Who asked."""
    return f"client `{event.client_id}` (connection {event.connection})"


def call(event: Event) -> str:
    """What was asked."""
    return f"{event.api} v{event.version}" + (f" ({event.wants})" if event.wants else "")


def actor(event: Event) -> str:
    """Who did it."""
    if event.api is not None:
        return f"{client(event)} called {call(event)}"
    return "the coordinator acted by itself" if event.rule != "steering" else "the control plane acted"


def request(event: Event) -> str:
    """A request, with who it says that it is."""
    producer = "" if event.said == NOBODY else f" as {place(event.said)}"
    return f"{call(event)} of {client(event)}{producer}"


def move(event: Event) -> str:
    """How an id came to another epoch or producer id."""
    at, stood = clock_time(event.at_ms), place(event.stood)
    became = f"the epoch became {event.epoch_after}"
    if event.producer_id != event.producer_before:
        became = f"it became {place(event.stands)}"
    if event.event == "timed out":
        late = f"its transaction, open for longer than its timeout, was aborted while it was at {stood}"
        return f"at {at} {late}; {became}; {event.rule}"
    if event.api is None:
        return f"at {at} it was {event.event}, while this producer was at {stood}; {became}"
    how = "without an epoch" if event.said == NOBODY else f"as {place(event.said)}"
    if event.api == "EndTxn":
        return f"at {at} {client(event)} ended its transaction by {call(event)} {how}; {became}; {event.rule}"
    asked = f"at {at} {client(event)} called {call(event)} {how}"
    return f"{asked} while this producer was at {stood}; {became}; {event.rule}"
