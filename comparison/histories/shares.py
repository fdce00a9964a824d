"""Steps of share groups (KIP-932): heartbeats, fetches and acknowledgements of members, and their offsets."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

from comparison.histories.quiescence import wait_metadata
from comparison.histories.records import PARTITION_BYTES
from comparison.histories.step_request import Builder, Settle, Step, StepRequest
from comparison.target import Sharer, Target
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages import share_acknowledge, share_fetch
from protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.share_group_describe import ShareGroupDescribeRequest
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

GROUP = 32  # ConfigResource.Type.GROUP
SET, DELETE = 0, 1
LOCK, SHORTEST_LOCK_MS = "share.record.lock.duration.ms", "1000"
LOCKS_ENDED_S = 1.25  # the shortest lock, and a quarter more for its timer
RENEW = 4  # AcknowledgeType
WAIT_MS, WAIT_TO_LOAD_MS = 80, 2500
"""The longest wait of a fetch, ours: short, as most find records or never will; longer, if the state is read first."""
Place = tuple[Any, int]
Acks = dict[Place, list[tuple[int, int, list[int]]]]


def _sharer(target: Target, step: Step) -> Sharer:
    return target.sharers.setdefault((step["group"], step["member"]), Sharer())


def beat(target: Target, step: Step) -> StepRequest:
    """ShareGroupHeartbeat: `epoch` is a number, or "own", the last one that the member got."""
    sharer = _sharer(target, step)
    epoch = sharer.epoch if step["epoch"] == "own" else step["epoch"]
    topics = step.get("topics")
    request = ShareGroupHeartbeatRequest(
        target.called(step["group"]),
        step["member"],
        min(epoch + step.get("epoch_shift", 0), 2**31 - 1),  # an int32
        step.get("rack"),
        None if topics is None else [target.called(topic) for topic in topics],
    )

    def after(answer: Any) -> None:
        if answer.error_code is ErrorCode.NONE:
            sharer.epoch = answer.member_epoch
        elif answer.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH):
            sharer.epoch = 0

    return StepRequest(ApiKey.SHARE_GROUP_HEARTBEAT, step["v"], request, step["c"], after, Settle.SHARES, step["group"])


def describe(target: Target, step: Step) -> StepRequest:
    """ShareGroupDescribe of groups, perhaps with duplicates."""
    groups = [target.called(group) if group else "" for group in step["groups"]]
    request = ShareGroupDescribeRequest(groups, step.get("operations", False))
    return StepRequest(ApiKey.SHARE_GROUP_DESCRIBE, step["v"], request, step["c"], reads=True)


# --- records ----------------------------------------------------------------------------------------------------------


def _runs(offsets: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last offset of each run of consecutive offsets."""
    first = last = offsets[0]
    for offset in offsets[1:]:
        if offset != last + 1:
            yield first, last
            first = offset
        last = offset
    yield first, last


def _batches(sharer: Sharer, place: Place, part: Any, types: Sequence[int]) -> list[tuple[int, int, list[int]]]:
    """Build the acknowledgements of a partition: of the member's acquired offsets, or of the given ones."""
    if isinstance(part, list):
        return [(part[0], part[1], list(types))]
    held = sorted(sharer.held.get(place, ()))
    if not held:
        return []
    if part in ("first", "last"):
        offset = held[0] if part == "first" else held[-1]
        return [(offset, offset, list(types[:1]))]
    if part == "all":
        return [(first, last, list(types[:1])) for first, last in _runs(held)]
    return [
        (first, last, [types[index % len(types)] for index in range(last - first + 1)] if types else [])
        for first, last in _runs(held)
    ]


def _acks(target: Target, sharer: Sharer, step: Step) -> Acks:
    acks: Acks = {}
    for topic, partition, part, types in step.get("acks", ()):
        place = (target.topic_id(topic), partition)
        if place not in acks:
            acks[place] = _batches(sharer, place, part, types)
    return acks


def _forget_acknowledged(sharer: Sharer, acks: Acks, errors: dict[Place, Any]) -> None:
    """Remove offsets from the acquired ones that were acknowledged, or cannot be any more."""
    for place, batches in acks.items():
        if place not in errors:
            continue
        for first, last, types in batches:
            if RENEW not in types:
                # A range may name 2^63 offsets; no member has acquired more than a few.
                sharer.held.get(place, set()).difference_update(range(first, min(last, first + 10_000) + 1))


def _by_place(answer: Any) -> dict[Place, Any]:
    return {
        (topic.topic_id, partition.partition_index): partition
        for topic in answer.responses
        for partition in topic.partitions
    }


def _next_epoch(sharer: Sharer, step: Step) -> int:
    epoch = sharer.session if step["epoch"] == "own" else step["epoch"]
    return int(epoch + (step.get("epoch_shift") or 0)) if epoch >= 0 else int(epoch)


def _session_is(sharer: Sharer, sent: int, code: ErrorCode) -> None:
    if code in (ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH) or sent == -1:
        sharer.session = 0
        if code is not ErrorCode.INVALID_SHARE_SESSION_EPOCH:
            sharer.places.clear()
        if sent == -1 and code is ErrorCode.NONE:
            sharer.held.clear()
    elif code is ErrorCode.NONE:
        sharer.session = 1 if sent >= 2**31 - 1 else sent + 1  # 1 follows the highest int32 (ShareRequestMetadata)


def _fetched(target: Target, sharer: Sharer, step: Step) -> tuple[int, Acks, list[Place]]:
    """Return the session's epoch, the acknowledgements and the partitions of a fetch.

    A partition that the leader has not loaded is fetched alone, in a new session: several are loaded in random order.
    """
    places = list(dict.fromkeys((target.topic_id(topic), partition) for topic, partition in step["topics"]))
    of_session = [] if step["epoch"] == 0 else list(sharer.places)
    is_first = _next_epoch(sharer, step) == 0
    acknowledged = step.get("acks", ()) if is_first else ()  # a session's first fetch reads those partitions as well
    named = (*places, *of_session, *((target.topic_id(topic), partition) for topic, partition, *_ in acknowledged))
    unloaded = [place for place in named if (step["group"], place) not in target.shared]
    if unloaded and _reads(step):
        return 0, {}, unloaded[:1]
    return _next_epoch(sharer, step), _acks(target, sharer, step), places


def _reads(step: Step) -> bool:
    return bool(step["max_records"] and step.get("max_bytes", 1) and not step.get("renews"))


def fetch(target: Target, step: Step) -> StepRequest:
    """ShareFetch; with `locks_end` its locks have the shortest duration, and expire before the next step."""
    sharer = _sharer(target, step)
    epoch, acks, places = _fetched(target, sharer, step)
    partitions: dict[Any, list[share_fetch.FetchPartition]] = {}
    for place in (*places, *(acked for acked in acks if acked not in places)):
        batches = [share_fetch.AcknowledgementBatch(*batch) for batch in acks.get(place, ())]
        partitions.setdefault(place[0], []).append(share_fetch.FetchPartition(place[1], batches))
    loaded = all((step["group"], place) in target.shared for place in places)
    longest_ms = step.get("max_wait", WAIT_MS if loaded else WAIT_TO_LOAD_MS)
    limits = (longest_ms, step.get("min_bytes", 1), step.get("max_bytes", PARTITION_BYTES), step["max_records"])
    renews = bool(step.get("renews")) and bool(acks)
    wait_ms, min_bytes, max_bytes, max_records = (0, 0, 0, 0) if renews else limits
    request = share_fetch.ShareFetchRequest(
        target.called(step["group"]),
        step["member"],
        epoch,
        wait_ms,
        min_bytes,
        max_bytes,
        max_records,
        step["batch_size"],
        [share_fetch.FetchTopic(topic, each) for topic, each in partitions.items()],
        [
            share_fetch.ForgottenTopic(target.topic_id(topic), [partition])
            for topic, partition in step.get("forget", ())
        ],
        step.get("mode", 0),
        renews,
    )
    if step.get("locks_end"):
        _set_config(target, step["group"], LOCK, SHORTEST_LOCK_MS)

    def after(answer: Any) -> None:
        _session_is(sharer, epoch, answer.error_code)
        _places_are(target, sharer, step, epoch, places)
        by_place = _by_place(answer)
        _forget_acknowledged(sharer, acks, by_place)
        for place, data in by_place.items():
            held = sharer.held.setdefault(place, set())
            for run in data.acquired_records:
                held.update(range(run.first_offset, run.last_offset + 1))
        _note_loaded(target, step, epoch, places, by_place)
        if step.get("locks_end"):
            time.sleep(LOCKS_ENDED_S)
            _set_config(target, step["group"], LOCK, None)

    return StepRequest(ApiKey.SHARE_FETCH, step["v"], request, step["c"], after, Settle.SHARES, step["group"])


def _places_are(target: Target, sharer: Sharer, step: Step, epoch: int, places: Sequence[Place]) -> None:
    """Note the partitions of a session, even for a refused request, which may have changed them."""
    if epoch == 0:
        sharer.places.clear()
    if epoch >= 0:
        sharer.places.update(dict.fromkeys(places))
        if epoch > 0:
            for topic, partition in step.get("forget", ()):
                sharer.places.pop((target.topic_id(topic), partition), None)


def _note_loaded(target: Target, step: Step, epoch: int, places: Sequence[Place], by_place: dict[Place, Any]) -> None:
    group = step["group"]
    if _reads(step):
        target.shared.update((group, place) for place in places)
    refused = [place for place, data in by_place.items() if data.error_code is not ErrorCode.NONE]
    target.shared.update((group, place) for place in refused)
    failed = [place for place, data in by_place.items() if data.error_code is ErrorCode.UNKNOWN_SERVER_ERROR]
    target.shared.difference_update((group, place) for place in failed)
    if epoch == -1:
        target.shared = {loaded for loaded in target.shared if loaded[0] != group}


def acknowledge(target: Target, step: Step) -> StepRequest:
    """ShareAcknowledge."""
    sharer = _sharer(target, step)
    epoch = _next_epoch(sharer, step)
    acks = _acks(target, sharer, step)
    partitions: dict[Any, list[share_acknowledge.AcknowledgePartition]] = {}
    for place, batches in acks.items():
        batches_sent = [share_acknowledge.AcknowledgementBatch(*batch) for batch in batches]
        partitions.setdefault(place[0], []).append(share_acknowledge.AcknowledgePartition(place[1], batches_sent))
    request = share_acknowledge.ShareAcknowledgeRequest(
        target.called(step["group"]),
        step["member"],
        epoch,
        [share_acknowledge.AcknowledgeTopic(topic, each) for topic, each in partitions.items()],
        bool(step.get("renews")),
    )

    def after(answer: Any) -> None:
        _session_is(sharer, epoch, answer.error_code)
        by_place = {
            (topic.topic_id, partition.partition_index): partition
            for topic in answer.responses
            for partition in topic.partitions
        }
        _forget_acknowledged(sharer, acks, by_place)
        if epoch == -1:
            target.shared = {loaded for loaded in target.shared if loaded[0] != step["group"]}

    return StepRequest(ApiKey.SHARE_ACKNOWLEDGE, step["v"], request, step["c"], after, Settle.SHARES, step["group"])


# --- administration ---------------------------------------------------------------------------------------------------


def _configs(target: Target, group: str, name: str, value: str | None) -> IncrementalAlterConfigsRequest:
    change = AlterableConfig(name, DELETE if value is None else SET, value)
    return IncrementalAlterConfigsRequest([AlterConfigsResource(GROUP, target.called(group), [change])])


def _set_config(target: Target, group: str, name: str, value: str | None) -> None:
    target.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, _configs(target, group, name, value))
    wait_metadata(target)


def group_config(target: Target, step: Step) -> StepRequest:
    """IncrementalAlterConfigs of a group config; `value` null removes it, `queue` is the symbol of a topic."""
    value = target.called(step["queue"]) if "queue" in step else step["value"]
    request = _configs(target, step["group"], step["name"], value)
    return StepRequest(ApiKey.INCREMENTAL_ALTER_CONFIGS, step["v"], request, step["c"], settle=Settle.METADATA)


def offsets(target: Target, step: Step) -> StepRequest:
    """DescribeShareGroupOffsets of one group: some partitions, or all of them."""
    topics = None
    if step.get("places") is not None:
        named: dict[str, list[int]] = {}
        for topic, partition in step["places"]:
            named.setdefault(target.called(topic), []).append(partition)
        topics = [DescribeShareGroupOffsetsRequestTopic(topic, each) for topic, each in named.items()]
    group = DescribeShareGroupOffsetsRequestGroup(target.called(step["group"]), topics)
    request = DescribeShareGroupOffsetsRequest([group])
    return StepRequest(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, step["v"], request, step["c"], reads=True)


def alter_offsets(target: Target, step: Step) -> StepRequest:
    """AlterShareGroupOffsets."""
    named: dict[str, list[AlterShareGroupOffsetsRequestPartition]] = {}
    for topic, partition, offset in step["places"]:
        partitions = named.setdefault(target.called(topic), [])
        partitions.append(AlterShareGroupOffsetsRequestPartition(partition, offset))
    topics = [AlterShareGroupOffsetsRequestTopic(topic, each) for topic, each in named.items()]
    request = AlterShareGroupOffsetsRequest(target.called(step["group"]), topics)
    key = ApiKey.ALTER_SHARE_GROUP_OFFSETS
    return StepRequest(key, step["v"], request, step["c"], settle=Settle.SHARES, about=step["group"])


def delete_offsets(target: Target, step: Step) -> StepRequest:
    """DeleteShareGroupOffsets."""
    topics = [DeleteShareGroupOffsetsRequestTopic(target.called(topic)) for topic in step["topics"]]
    request = DeleteShareGroupOffsetsRequest(target.called(step["group"]), topics)
    key = ApiKey.DELETE_SHARE_GROUP_OFFSETS
    return StepRequest(key, step["v"], request, step["c"], settle=Settle.SHARES, about=step["group"])


def delete_group(target: Target, step: Step) -> StepRequest:
    """DeleteGroups of one share group."""
    request = DeleteGroupsRequest([target.called(step["group"])])
    key = ApiKey.DELETE_GROUPS
    return StepRequest(key, step["v"], request, step["c"], settle=Settle.SHARES, about=step["group"])


STEPS: dict[str, Builder] = {
    "share_beat": beat,
    "describe_share_group": describe,
    "share_fetch": fetch,
    "share_ack": acknowledge,
    "group_config": group_config,
    "share_offsets": offsets,
    "alter_share_offsets": alter_offsets,
    "delete_share_offsets": delete_offsets,
    "delete_share_group": delete_group,
}
