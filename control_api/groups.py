"""Verbs about groups."""

from typing import Annotated, Literal, Required, TypedDict

from control_api.fields import About
from control_api.verb import Verb


class OffsetsReset(TypedDict, total=False):
    """New committed offsets of a group: one of `to`, `offset` and `timestamp_ms`."""

    topic: Required[Annotated[str, About("name of the topic", least=1, like="the name of a topic")]]
    partition: Annotated[
        int, About("this partition only; by default all partitions of the topic", least=0, most=2**31 - 1)
    ]
    to: Annotated[Literal["earliest", "latest"], About("start or end of each partition")]
    offset: Annotated[int, About("this offset; outside the log, the nearest end of the log", least=0, most=2**63 - 1)]
    timestamp_ms: Annotated[
        int, About("offset of the first record with this timestamp or later", least=0, most=2**63 - 1)
    ]


VERBS = (
    Verb("groups list", "GET", "/v1/groups", "groups.list()", "all groups", answer="groups.Groups", items="groups",
         columns=("group_id", "type", "state", "epoch", "members", "lag")),
    Verb("groups show", "GET", "/v1/groups/{group}", "groups[id].show()", "members, assignment, offsets, lag",
         answer="groups.Group", items="members", columns=("member_id", "client_id", "instance_id", "assignment")),
    Verb("groups why", "GET", "/v1/groups/{group}/why", "groups[id].why()",
         "explanation of the last refusal of a member", answer="common.Refusal"),
    Verb("groups rebalance", "POST", "/v1/groups/{group}/rebalance", "groups[id].rebalance()", "start a rebalance now",
         answer="groups.GroupInShort"),
    Verb("groups evict", "POST", "/v1/groups/{group}/members/{member}/evict", "groups[id].evict(member)",
         "remove a member as if its session had timed out", answer="groups.GroupInShort"),
    Verb("groups reset-offsets", "POST", "/v1/groups/{group}/offsets", "groups[id].reset_offsets(topic)",
         "reset the committed offsets of a group without members", body=OffsetsReset, answer="groups.GroupInShort",
         example={"group": "shipping", "topic": "orders", "to": "earliest"}),
)  # fmt: skip
