"""Links to the specification: the only place that turns the id of a rule into a link.

An id names a document, a section and, if the section has numbered rows, a row: ``transactions A.2 I5``,
``groups A.10``. Users see the KIP or the class of Kafka from which a rule comes, and the link; never the bare id.
"""

from collections.abc import Mapping
from functools import cache

FOLDER = "docs/specification"
_PAGES: Mapping[str, Mapping[str, str]] = {
    "core": {
        "0": "0-scope",
        "A": "a-connection",
        "B": "b-metadata",
        "C": "c-configs",
        "D": "d-produce",
        "E": "e-fetch",
        "F": "f-log",
        "G": "g-security",
        "H": "h-telemetry",
        "I": "i-scenarios",
    },
    "groups": {
        "0": "0-scope",
        "A": "a-classic-groups",
        "B": "b-offsets",
        "C": "c-consumer-groups",
        "D": "d-share-groups",
        "E": "e-streams-groups",
        "F": "f-coordinators",
        "G": "g-scenarios",
        "H": "h-notes",
    },
    "transactions": {
        "0": "0-scope",
        "A": "a-init-producer-id",
        "B": "b-coordinator",
        "C": "c-requests",
        "D": "d-partition-leader",
        "E": "e-group-coordinator",
        "F": "f-records",
        "G": "g-clients",
        "H": "h-scenarios",
        "I": "i-kips",
    },
}
"""Document -> the letter of a chapter -> the page with that chapter."""


@cache
def link(rule: str) -> str:
    """Return the link to a rule's section or row: ``docs/specification/transactions/a-init-producer-id.md#a-2-i5``.

    Raises:
        ValueError: the text is not the id of a rule.
    """
    document, _, place = rule.partition(" ")
    page = _PAGES.get(document, {}).get(place[:1])
    if page is None:
        raise ValueError(f"{rule!r} is not a rule of the specification")
    anchor = place.lower().replace(".", "-").replace(" ", "-")
    return f"{FOLDER}/{document}/{page}.md#{anchor}"


@cache
def cite(rule: str, source: str) -> str:
    """Return a rule as users see it: its source and the link; empty if no rule of Kafka decided."""
    if not rule or " " not in rule:
        return ""
    return f"{source} ({link(rule)})" if source else link(rule)
