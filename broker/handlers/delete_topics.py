"""DeleteTopics: deletes topics by name or by id (KIP-516).

Versions 1-6. Not done: nothing.
"""

from collections import Counter
from uuid import UUID

from broker.request.api import Api, per_item
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.throttling import Mutations
from broker.request.topology import may_on_cluster
from protocol import features
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

Answer = DeletableTopicResult


async def handle(request: DeleteTopicsRequest, ctx: RequestContext) -> DeleteTopicsResponse:
    """Delete topics by name or by id, each with its own result (core B.9 D1 to D10)."""
    if not ctx.node.settings.boolean("delete.topic.enable"):
        if features.delete_topics_knows_disabled(ctx.version):
            raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED)
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Topic deletion is disabled.")
    names, ids, answers = _split_topics(request)
    if request.timeout_ms <= 0 and (any(count == 1 for count in names.values()) or any(c == 1 for c in ids.values())):
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)  # the timeout of the lookup in the controller
    repeated = frozenset(topic_id for topic_id, count in ids.items() if count > 1)
    doomed = _Doomed(ctx, answers, repeated)
    for topic_id, count in ids.items():
        if count == 1:
            doomed.by_id(topic_id)
    for name, count in names.items():
        if count == 1:
            doomed.by_name(name)
    mutations = Mutations(ctx, strict=features.delete_topics_refuses_above_quota(ctx.version))
    refused: dict[UUID, KafkaError] = await ctx.cluster.metadata.ask(
        lambda machine, _now_ms, token: machine.delete_topics(doomed.topics, token, charge=mutations.charge),
        records=sum(len(ctx.cluster.image.topics_by_id[each].partitions) for each in doomed.topics),
    )
    answers += [_answer(name, topic_id, refused.get(topic_id)) for topic_id, name in doomed.topics.items()]
    return DeleteTopicsResponse(mutations.settle(), answers)


def _answer(name: str, topic_id: UUID, error: KafkaError | None) -> Answer:
    if error is None:
        return Answer(name, topic_id=topic_id)
    return Answer(name, error.code, error.message, topic_id)


def _split_topics(request: DeleteTopicsRequest) -> tuple[Counter[str], Counter[UUID], list[Answer]]:
    """Count names and ids; return them with the errors of duplicate and invalid ones (core B.9 D2 to D4)."""
    answers: list[Answer] = []
    names: Counter[str] = Counter()
    ids: Counter[UUID] = Counter()
    for topic in request.topics:
        if topic.name is None and topic.topic_id is None:
            answers.append(_invalid(topic, "Neither topic name nor id were specified."))
        elif topic.name is None:
            ids[topic.topic_id] += 1  # type: ignore[index]
        elif topic.topic_id is not None:
            answers.append(_invalid(topic, "You may not specify both topic name and topic id."))
        else:
            names[topic.name] += 1
    twice = [DeleteTopicState(name=name) for name, count in names.items() if count > 1]
    answers += [_invalid(topic, "Duplicate topic name.") for topic in twice]
    twice = [DeleteTopicState(topic_id=topic_id) for topic_id, count in ids.items() if count > 1]
    answers += [_invalid(topic, "Duplicate topic id.") for topic in twice]
    return names, ids, answers


def _invalid(topic: DeleteTopicState, message: str) -> Answer:
    return Answer(topic.name, ErrorCode.INVALID_REQUEST, message, topic.topic_id)


class _Doomed:
    """The topics to delete, collected with the requester's permissions."""

    def __init__(self, ctx: RequestContext, answers: list[Answer], repeated: frozenset[UUID]) -> None:
        self.topics: dict[UUID, str] = {}
        self._repeated = repeated
        self._ctx, self._answers = ctx, answers
        self._all = may_on_cluster(ctx, AclOperation.DELETE)

    def _may(self, operation: AclOperation, name: str) -> bool:
        return self._all or self._ctx.authorized(operation, ResourceType.TOPIC, name)

    def by_id(self, topic_id: UUID) -> None:
        """Add a topic by id; refuse unknown ids and topics without DESCRIBE or DELETE (core B.9 D5, D6)."""
        topic = self._ctx.cluster.image.topics_by_id.get(topic_id)
        # The id before permissions: an unknown id names no topic that could be hidden (core B.9 D5).
        if topic is None:
            text = "This server does not host this topic ID."
            self._answers.append(Answer(None, ErrorCode.UNKNOWN_TOPIC_ID, text, topic_id))
        elif not self._may(AclOperation.DESCRIBE, topic.name):
            self._refuse(None, topic_id)
        elif not self._may(AclOperation.DELETE, topic.name):
            self._refuse(topic.name, topic_id)
        else:
            self.topics[topic_id] = topic.name

    def by_name(self, name: str) -> None:
        """Add a topic by name; check authorization, existence, and ids of the same topic (core B.9 D7, D8)."""
        topic = self._ctx.cluster.image.topics.get(name)
        # DESCRIBE before existence, which it would reveal; DELETE only of a topic that exists (core B.9 D7).
        if not self._may(AclOperation.DESCRIBE, name):
            self._refuse(name, None)
        elif topic is None:
            text = "This server does not host this topic-partition."
            self._answers.append(Answer(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text))
        elif not self._may(AclOperation.DELETE, name):
            self._refuse(name, None)
        elif topic.id in self.topics or topic.id in self._repeated:
            text = "The provided topic name maps to an ID that was already supplied."
            self.topics.pop(topic.id, None)
            self._answers.append(Answer(name, ErrorCode.INVALID_REQUEST, text, topic.id))
        else:
            self.topics[topic.id] = name

    def _refuse(self, name: str | None, topic_id: UUID | None) -> None:
        text = "Topic authorization failed."
        self._answers.append(Answer(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, text, topic_id))


API: Api[DeleteTopicsRequest, DeleteTopicsResponse] = Api(
    ApiKey.DELETE_TOPICS,
    handle,
    per_item(
        lambda request: request.topics,
        lambda topic, error: Answer(topic.name, error.code, error.message, topic.topic_id),
        lambda responses: DeleteTopicsResponse(responses=responses),
    ),
)
