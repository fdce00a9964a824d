"""Verbs of the journal, which has every request with its response."""

from typing import Annotated, TypedDict

from control_api.fields import About
from control_api.verb import Removed, Verb


class JournalQuery(TypedDict, total=False):
    """Conditions on requests, joined by AND."""

    id: Annotated[int, About("id of the request", least=0)]
    api: Annotated[str, About("name of the API, such as EndTxn")]
    client_id: Annotated[str, About("client.id")]
    connection: Annotated[int, About("number of the connection", least=0)]
    broker: Annotated[int, About("id of the broker that got the request", least=0)]
    topic: Annotated[str, About("topic that the request or its response names")]
    group: Annotated[str, About("group id")]
    transactional_id: Annotated[str, About("transactional id")]
    error: Annotated[str, About("error code anywhere in the response, by name")]
    errors: Annotated[bool, About("only requests with any error code in the response, or without a response")]
    outcome: Annotated[
        str,
        About(
            "`answered`, `is being served`, or why there was no response: `never answered`, `closed` (for any reason)"
        ),
    ]
    fault: Annotated[str, About("id of a fault that applied to the request")]
    since: Annotated[
        int, About("not before this time of the cluster's clock (ms), or not before this request id", least=0)
    ]
    limit: Annotated[int, About("maximum number of requests; the newest are returned", least=0)]


class JournalListing(JournalQuery, total=False):
    """Conditions on requests, and whether to include their bodies."""

    bodies: Annotated[bool, About("include the decoded requests and responses", default=True)]


class JournalFile(TypedDict):
    """The file that was finished."""

    file: Annotated[str | None, About("null: no file was open")]


VERBS = (
    Verb("journal list", "GET", "/v1/journal", "journal.find(...)", "requests with their responses",
         query=JournalListing, answer="journal.JournalEntries", items="entries",
         columns=("id", "at_ms", "broker", "connection", "client_id", "api", "version", "topics", "groups",
                  "transactional_ids", "error", "fault")),
    Verb("journal clear", "DELETE", "/v1/journal", "journal.clear()", "remove all requests", answer=Removed),
    Verb("journal rotate", "POST", "/v1/journal/rotate", "journal.rotate()",
         "close the current file of --journal DIR; returns its name", answer=JournalFile),
    Verb("journal pcap", "GET", "/v1/journal.pcap", "journal.pcap()", "the journal as a packet capture for Wireshark",
         query=JournalQuery, media="application/vnd.tcpdump.pcap"),
)  # fmt: skip
