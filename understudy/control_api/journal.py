"""The journal: every request with its answer."""

from typing import Annotated, TypedDict

from understudy.control_api.fields import About
from understudy.control_api.verb import Removed, Verb


class JournalQuery(TypedDict, total=False):
    """Conditions on requests, joined by AND."""

    id: Annotated[int, About("id of the request", least=0)]
    api: Annotated[str, About("name of the API, such as EndTxn")]
    client_id: Annotated[str, About("client.id")]
    connection: Annotated[int, About("number of the connection", least=0)]
    broker: Annotated[int, About("id of the broker that was asked", least=0)]
    topic: Annotated[str, About("requests and answers that name this topic")]
    group: Annotated[str, About("group id")]
    transactional_id: Annotated[str, About("transactional id")]
    error: Annotated[str, About("error code anywhere in the answer, by name")]
    errors: Annotated[bool, About("only requests with any error code in the answer, or that got no answer")]
    outcome: Annotated[
        str, About("`answered`, `is being served`, or why there was no answer, such as `never answered`")
    ]
    fault: Annotated[str, About("id of a fault that met the request")]
    since: Annotated[int, About("not before this time of the cluster's clock (ms) or this entry's id", least=0)]
    limit: Annotated[int, About("maximum number of requests; the newest are returned", least=0)]


class JournalListing(JournalQuery, total=False):
    """Conditions on requests, and how much of them is wanted."""

    bodies: Annotated[bool, About("with the decoded requests and responses", default=True)]


class JournalFile(TypedDict):
    """The file that was closed."""

    file: Annotated[str | None, About("null: there was none to close")]


VERBS = (
    Verb("journal list", "GET", "/v1/journal", "journal.find(...)", "requests with their responses",
         query=JournalListing, answer="journal.JournalEntries", items="entries",
         columns=("id", "at_ms", "broker", "connection", "client_id", "api", "version", "topics", "groups",
                  "transactional_ids", "error", "fault")),
    Verb("journal clear", "DELETE", "/v1/journal", "journal.clear()", "remove all requests", answer=Removed),
    Verb("journal rotate", "POST", "/v1/journal/rotate", "journal.rotate()",
         "close the current file of --journal DIR; returns its name", answer=JournalFile),
    Verb("journal pcap", "GET", "/v1/journal.pcap", "journal.pcap()", "the journal as a capture for Wireshark",
         query=JournalQuery, media="application/vnd.tcpdump.pcap"),
)  # fmt: skip
