"""DescribeGroups, ListGroups and DeleteGroups of one shard (groups A.13)."""

from collections.abc import Collection, Hashable, Sequence

from broker.coordination.group.classic.group import ClassicGroup
from broker.coordination.group.classic.states import State
from broker.coordination.group.group import Groups
from broker.coordination.group.offsets.commit import Commits
from broker.coordination.group.outcome_builder import OutcomeBuilder
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.delete_groups import DeletableGroupResult
from protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from protocol.messages.list_groups import ListedGroup


class Administration:
    """Decides DescribeGroups, ListGroups and DeleteGroups."""

    def __init__(self, groups: Groups, commits: Commits) -> None:
        self._groups, self._commits = groups, commits

    def describe(self, group_id: str) -> DescribedGroup:
        """Describe a classic group; with its protocol and the metadata of its members only if it is Stable.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND, also for groups of other kinds, which have their own Describe APIs.
        """
        group = self._groups.get(group_id)
        if group is None or not self._groups.has(group_id, reads=True):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        if not isinstance(group, ClassicGroup):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a classic group.")
        protocol = group.protocol_name if group.state is State.STABLE else None
        members = [
            DescribedGroupMember(
                member.member_id,
                member.client_id,
                member.client_host,
                b"" if protocol is None else member.metadata(protocol),
                member.assignment,
                member.instance_id,
            )
            for member in group.members.values()
        ]
        return DescribedGroup(
            group_id=group_id,
            group_state=group.state.value,
            protocol_type=group.protocol_type or "",
            protocol_data=protocol or "",
            members=members,
        )

    def listed(self, states: Collection[str], types: Collection[str]) -> list[ListedGroup]:
        """List the groups in one of these states and of one of these types, both in lower case.

        An empty filter matches all groups; an unknown name matches none.
        """
        return [
            ListedGroup(group.group_id, group.listed_protocol_type, group.state_name, group.type.value)
            for group in self._groups.in_table_order()
            if self._groups.has(group.group_id, reads=True)
            and (not states or group.in_states(states))
            and (not types or group.type.value in types)
        ]

    def delete(self, builder: OutcomeBuilder, group_ids: Sequence[str], reply_to: Hashable) -> None:
        """Delete Empty groups with all their offsets, pending ones too; replies with a list of results."""
        results = []
        for group_id in group_ids:
            group = self._groups.get(group_id)
            if group is None:
                results.append(DeletableGroupResult(group_id, ErrorCode.GROUP_ID_NOT_FOUND))
                continue
            if not group.is_empty:
                results.append(DeletableGroupResult(group_id, ErrorCode.NON_EMPTY_GROUP))
                continue
            self._commits.forget_all(builder, group)
            for record in group.tombstones():
                builder.record(record)
            results.append(DeletableGroupResult(group_id))
        builder.reply(reply_to, results)
