"""Verbs about transactional ids."""

from typing import Annotated, Literal, Required, TypedDict

from control_api.fields import About
from control_api.verb import Verb

Step = Literal["prepare", "markers", "complete"]


class Hold(TypedDict, total=False):
    """The step at which commits and aborts are held."""

    at: Required[Annotated[Step, About("step at which to hold")]]
    after_markers: Annotated[int, About("at markers: number of markers to write first", least=0, most=2**31 - 1)]


class ProducerEpoch(TypedDict):
    """The stored epoch of a transactional id."""

    epoch: Annotated[int, About("producer epoch; 32767 is exhausted", least=0, most=32_767)]


class Held(TypedDict):
    """The step at which commits and aborts of an id are held."""

    transactional_id: str
    held_at: Step
    after_markers: int


class Released(TypedDict):
    """A transactional id that is no longer held."""

    transactional_id: str
    held_at: None


TRANSACTION = "/v1/transactions/{transactional_id}"

VERBS = (
    Verb("transactions list", "GET", "/v1/transactions", "transactions.list()", "all transactional ids",
         answer="transactions.Transactions", items="transactions",
         columns=("transactional_id", "state", "producer_id", "producer_epoch", "partitions", "client_id")),
    Verb("transactions show", "GET", TRANSACTION, "transactions[id].show()",
         "state, epochs, partitions, deadline and timeline", answer="transactions.Transaction", items="timeline",
         columns=("at_ms", "event", "state_before", "state_after", "epoch_before", "epoch_after", "error", "citation")),
    Verb("transactions history", "GET", f"{TRANSACTION}/history", "transactions[id].history()",
         "transactions of an id, one by one: begin, end, outcome, partitions", answer="transactions.TransactionHistory",
         items="transactions",
         columns=("id", "began_ms", "ended_ms", "outcome", "how", "producer_epoch", "partitions", "refusals",
                  "client_id"),
         example={"transactional_id": "payments-1"}),
    Verb("transactions why", "GET", f"{TRANSACTION}/why", "transactions[id].why()",
         "explanation of the last refusal", answer="common.Refusal"),
    Verb("transactions hold", "POST", f"{TRANSACTION}/hold", "transactions[id].hold(at)",
         "hold commits and aborts at a step", body=Hold, answer=Held),
    Verb("transactions release", "POST", f"{TRANSACTION}/release", "transactions[id].release()",
         "continue a held commit or abort", answer=Released),
    Verb("transactions abort", "POST", f"{TRANSACTION}/abort", "transactions[id].abort()",
         "abort a transaction as its timeout would", answer="transactions.Transaction"),
    Verb("transactions set-epoch", "PUT", f"{TRANSACTION}/producer", "transactions[id].set_epoch(epoch)",
         "set the stored epoch, for example to exhaust it", body=ProducerEpoch, answer="transactions.Transaction"),
)  # fmt: skip
