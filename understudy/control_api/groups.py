"""Groups."""

from understudy.control_api.verb import Verb

VERBS = (
    Verb("groups list", "GET", "/v1/groups", "groups.list()", "all groups", answer="groups.Groups", items="groups",
         columns=("group_id", "type", "state", "epoch", "members")),
    Verb("groups show", "GET", "/v1/groups/{group}", "groups[id].show()", "members, assignment, offsets, lag",
         answer="groups.Group", items="members", columns=("member_id", "client_id", "instance_id", "assignment")),
    Verb("groups why", "GET", "/v1/groups/{group}/why", "groups[id].why()",
         "explanation of the last refusal of a member", answer="common.Refusal"),
    Verb("groups rebalance", "POST", "/v1/groups/{group}/rebalance", "groups[id].rebalance()", "start a rebalance now",
         answer="groups.GroupInShort"),
    Verb("groups evict", "POST", "/v1/groups/{group}/members/{member}/evict", "groups[id].evict(member)",
         "remove a member as if its session had timed out", answer="groups.GroupInShort"),
)  # fmt: skip
