"""Verbs of sequence diagrams."""

from typing import Annotated, TypedDict

from control_api.fields import About
from control_api.verb import Verb


class DiagramQuery(TypedDict, total=False):
    """The subject of a diagram, one of four, and a selection of its requests."""

    transactional_id: Annotated[str, About("a transactional id")]
    producer_id: Annotated[int, About("a producer id, idempotent or transactional", least=0)]
    transaction: Annotated[
        int, About("one transaction of the transactional id: its id in `transactions history`", least=0)
    ]
    group: Annotated[str, About("a group id")]
    generation: Annotated[
        int,
        About("one generation or epoch of the group: from the rebalance that led to it to the next one", least=0),
    ]
    connection: Annotated[int, About("number of a connection, as in the journal", least=0)]
    since: Annotated[int, About("not before this time of the cluster's clock (ms)", least=0, default=0)]
    until: Annotated[int | None, About("not after this time", least=0, default=None)]
    # A page of 100 requests can be read, one of 1000 still be drawn.
    limit: Annotated[int, About("maximum number of requests; the newest are shown", least=1, most=1000, default=100)]
    errors: Annotated[bool, About("only requests with an error or a fault, or without a response", default=False)]
    polls: Annotated[bool, About("also successful ApiVersions, Metadata, Fetch and heartbeats", default=False)]


VERBS = (
    Verb("diagrams show", "GET", "/v1/diagrams", "diagrams.show(...)",
         "sequence diagram of a transactional id, a producer, a group or a connection: steps, text, Mermaid",
         query=DiagramQuery, answer="diagrams.Diagram",
         example={"transactional_id": "payments-1"}),
    Verb("diagrams svg", "GET", "/v1/diagrams.svg", "diagrams.svg(...)", "the same diagram as an SVG image",
         query=DiagramQuery, media="image/svg+xml", example={"transactional_id": "payments-1"}),
)  # fmt: skip
