"""Random ids of the first cluster, which the others then generate too, if the id can be found out.

Assignors iterate over members and topics in the order of hash tables, so that an assignment depends on ids that the
broker generates: those of topics, and those of members of the classic protocol.
"""

from base64 import urlsafe_b64decode
from collections.abc import Sequence
from uuid import UUID

from comparison.histories.quiescence import wait_metadata
from comparison.histories.step_request import StepRequest
from comparison.target import Target
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.describe_groups import DescribeGroupsRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

PARKED_AFTER_S = 0.3
"""A JoinGroup without a response by then waits for other members: ours, many times what a response takes."""
PATIENCE_S = 5.0  # ours: more than a request takes that does not wait
_BASE64_DIGITS, _DIGITS = 22, 36  # of a UUID as Kafka's ``Uuid`` writes it, and as Java's ``UUID``


def drawn_alike(targets: Sequence[Target], requests: Sequence[StepRequest]) -> bool:
    """Send requests for which the broker generates an id, to the first cluster first; return False for others."""
    first, request = targets[0], requests[0]
    if len(targets) == 1 or any(target.draws is None for target in targets[1:]) or not _draws(request):
        return False
    _send(first, request)
    drawn = _topic_id(first, request) if request.key is ApiKey.CREATE_TOPICS else _member_id(first, request)
    for target, each in zip(targets[1:], requests[1:], strict=True):
        assert target.draws is not None
        with target.draws(drawn):
            _send(target, each)
            target.connection(each.connection).peek(PARKED_AFTER_S if request.parks else PATIENCE_S)
    return True


def _draws(request: StepRequest) -> bool:
    if request.key is ApiKey.CREATE_TOPICS:
        return len(request.request.topics) == 1
    return request.key is ApiKey.JOIN_GROUP and not request.request.member_id


def _send(target: Target, request: StepRequest) -> None:
    target.connection(request.connection).send(request.key, request.version, request.request)


def _topic_id(target: Target, request: StepRequest) -> UUID | None:
    answer = target.connection(request.connection).peek(PATIENCE_S)
    if answer is None or answer.topics[0].error_code is not ErrorCode.NONE or request.request.validate_only:
        return None
    wait_metadata(target)
    metadata_request = MetadataRequest([MetadataRequestTopic(request.request.topics[0].name)], False)
    (topic,) = target.call(ApiKey.METADATA, 12, metadata_request).topics
    topic_id: UUID | None = topic.topic_id if topic.partitions else None
    return topic_id


def _member_id(target: Target, request: StepRequest) -> UUID | None:
    answer = target.connection(request.connection).peek(PARKED_AFTER_S)
    if answer is not None:
        return _random_part(answer.member_id)
    (group,) = target.call(ApiKey.DESCRIBE_GROUPS, 5, DescribeGroupsRequest([request.request.group_id])).groups
    known_ids = {member.id for member in target.members.values()}
    new = [member.member_id for member in group.members if member.member_id not in known_ids]
    return _random_part(new[0]) if len(new) == 1 else None


def _random_part(member_id: str) -> UUID | None:
    """Return the random part of a member id: ``client-uuid`` in a classic group, base64 in a consumer group."""
    try:
        if len(member_id) > _DIGITS and member_id[-_DIGITS - 1] == "-":
            return UUID(member_id[-_DIGITS:])
        return UUID(bytes=urlsafe_b64decode(f"{member_id}==")) if len(member_id) == _BASE64_DIGITS else None
    except ValueError:
        return None
