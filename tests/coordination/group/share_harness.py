"""Members of share groups on the machine's bench; the share coordinator answers when a test lets it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from broker.coordination.group.modern.share import validation
from broker.coordination.group.modern.share.group import ShareGroup
from broker.coordination.group.modern.share.heartbeat import Sender
from broker.coordination.group.outcome_builder import GroupOutcome, InitializeShareState
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from tests.coordination.group.harness import Answer, Context, G

INTERVAL_MS = 1_000
SESSION_MS = 45_000
RETRY_MS = 30_000


@dataclass
class ShareConsumer:
    """A member; ``epoch`` and ``owned`` are from its last response."""

    context: Context
    member_id: str = "m1"
    topics: Sequence[str] = ("foo",)
    epoch: int = 0
    owned: dict[UUID, list[int]] = field(default_factory=dict)

    def ask(self, epoch: int | None = None, **fields: Any) -> Answer:
        """One heartbeat; fields that are not given are null."""
        fields.setdefault("subscribed_topic_names", None)
        request = ShareGroupHeartbeatRequest(G, self.member_id, self.epoch if epoch is None else epoch, **fields)
        sender = Sender("client", "/127.0.0.1")
        context = self.context

        def heartbeat(to: Answer) -> GroupOutcome:
            validation.check(request)  # as the handler does
            return context.machine.shares.heartbeat(request, sender, context.now_ms, to)

        return context.ask(heartbeat)

    def beat(self, epoch: int | None = None, **fields: Any) -> ShareGroupHeartbeatResponse:
        """A heartbeat that succeeds; the member takes over what it gets."""
        answer = self.ask(epoch, **fields).message
        assert isinstance(answer, ShareGroupHeartbeatResponse), answer
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            partitions = answer.assignment.topic_partitions
            self.owned = {each.topic_id: list(each.partitions) for each in partitions if each.topic_id is not None}
        return answer

    def join(self) -> ShareGroupHeartbeatResponse:
        """The first heartbeat."""
        return self.beat(0, subscribed_topic_names=self.topics)

    def refused(self, epoch: int | None = None, **fields: Any) -> ErrorCode:
        """The code of a heartbeat that is refused."""
        answer = self.ask(epoch, **fields).message
        assert isinstance(answer, KafkaError), answer
        return answer.code


def group(context: Context) -> ShareGroup:
    """The share group."""
    share_group = context.machine.groups[G]
    assert isinstance(share_group, ShareGroup)
    return share_group


def initialize(context: Context, *, failed: bool = False) -> list[InitializeShareState]:
    """The share coordinator answers everything that it was asked for; the requests."""
    initializations, context.initializations = context.initializations, []
    for each in initializations:
        partitions = {topic_id: list(offsets) for topic_id, offsets in each.offsets.items()}
        context.perform(context.machine.shares.state_created(G, partitions, context.now_ms, failed=failed))
    return initializations


def assembled(context: Context, *members: ShareConsumer) -> None:
    """All members in the group, with their assignments."""
    for member in members:
        member.join()
    initialize(context)
    for _ in range(2):
        context.advance(INTERVAL_MS)
        for member in members:
            member.beat()
