"""Answers of a broker that are right by themselves, and wrong beside the request or beside other answers.

Written down from the fields of each answer (`protocol/messages`): what it has to do with the request, with what was
accepted before, with what other members were reported. Each is a change of one or several answers of a journal of
`administrator_traffic` or `member_traffic`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

Lines = Sequence[dict[str, Any]]
Lie = Callable[[Lines], None]
ADMINISTRATOR, MEMBERS = "administrator", "members"


def answers(lines: Lines, api: str, client_id: str | None = None) -> list[dict[str, Any]]:
    """The answers of an API, to one client."""
    return [each["response"] for each in _lines(lines, api, client_id)]


def _lines(lines: Lines, api: str, client_id: str | None = None) -> list[dict[str, Any]]:
    matching = [each for each in lines if each["api"] == api and client_id in (None, each["client_id"])]
    assert matching, f"no {api} of {client_id}"
    return matching


def _settings(lines: Lines, resource: str) -> Iterator[list[dict[str, Any]]]:
    for answer in answers(lines, "DescribeConfigs"):
        for result in answer["results"]:
            if result["resource_name"] == resource:
                yield result["configs"]


def _setting(lines: Lines, resource: str, name: str) -> list[dict[str, Any]]:
    return [each for configs in _settings(lines, resource) for each in configs if each["name"] == name]


def _value_of_before(lines: Lines) -> None:
    for each in _setting(lines, "kept", "retention.ms")[-1:]:
        each["value"] = each["synonyms"][0]["value"] = "600000000000"


def _default_again(lines: Lines) -> None:
    for each in _setting(lines, "kept", "retention.ms")[-1:]:
        each.update(value="604800000", config_source=5, synonyms=[])


def _setting_never_taken(lines: Lines) -> None:
    for each in _setting(lines, "1", "log.cleaner.threads")[1:]:
        each.update(value="1", config_source=5, synonyms=[])


def _setting_left_out(lines: Lines) -> None:
    configs = list(_settings(lines, "1"))[-1]
    configs.remove(next(each for each in configs if each["name"] == "log.cleaner.threads"))


def _synonym_differs(lines: Lines) -> None:
    _setting(lines, "kept", "retention.ms")[-1]["synonyms"][0]["value"] = "7"


def _fewer_partitions(lines: Lines) -> None:
    for answer in answers(lines, "DescribeTopicPartitions"):
        for each in answer["topics"]:
            if each["name"] == "grown":
                each["partitions"] = each["partitions"][:2]


def _topic_id_of_another(lines: Lines) -> None:
    one, other = answers(lines, "DescribeTopicPartitions")[-1]["topics"]
    one["topic_id"], other["topic_id"] = other["topic_id"], one["topic_id"]


def _other_leader(lines: Lines) -> None:
    part = answers(lines, "DescribeTopicPartitions")[-1]["topics"][0]["partitions"][0]
    part.update(leader_id=2, replica_nodes=[1, 2], isr_nodes=[1, 2])


def _other_replicas(lines: Lines) -> None:
    part = answers(lines, "DescribeTopicPartitions")[-1]["topics"][0]["partitions"][0]
    part.update(replica_nodes=[1, 2], isr_nodes=[1])


def _leader_out_of_sync(lines: Lines) -> None:
    answers(lines, "DescribeTopicPartitions")[-1]["topics"][0]["partitions"][0].update(leader_id=9)


def _deleted_too_little(lines: Lines) -> None:
    answers(lines, "DeleteRecords")[-1]["topics"][0]["partitions"][0]["low_watermark"] = 2


def _quota_of_before(lines: Lines) -> None:
    answers(lines, "DescribeClientQuotas")[-1]["entries"][0]["values"][0]["value"] = 5e8


def _removed_quota_is_there(lines: Lines) -> None:
    values = answers(lines, "DescribeClientQuotas")[-1]["entries"][0]["values"]
    values.append({"key": "consumer_byte_rate", "value": 7.0})


def _quota_of_another(lines: Lines) -> None:
    answers(lines, "DescribeClientQuotas")[-1]["entries"][0]["entity"][0]["entity_name"] = "another"


def _rule_is_gone(lines: Lines) -> None:
    answers(lines, "DescribeAcls")[-1]["resources"][0]["acls"].pop()


def _deleted_rule_is_there(lines: Lines) -> None:
    first, last = answers(lines, "DescribeAcls")[0], answers(lines, "DescribeAcls")[-1]
    last["resources"] = first["resources"]


def _deleted_another_rule(lines: Lines) -> None:
    answers(lines, "DeleteAcls")[0]["filter_results"][0]["matching_acls"][0]["operation"] = 3


def _cluster_id(lines: Lines) -> None:
    answers(lines, "DescribeCluster")[-1]["cluster_id"] = "another"


def _broker_left_out(lines: Lines) -> None:
    answers(lines, "DescribeCluster")[-1]["brokers"][0]["broker_id"] = 3


def _quorum_without_its_leader(lines: Lines) -> None:
    answers(lines, "DescribeQuorum")[-1]["topics"][0]["partitions"][0]["leader_id"] = 3


def _quorum_ahead_of_its_leader(lines: Lines) -> None:
    answers(lines, "DescribeQuorum")[-1]["topics"][0]["partitions"][0]["high_watermark"] += 5


def _commit_lost(lines: Lines) -> None:
    for answer in answers(lines, "OffsetFetch"):
        for each in answer["groups"][0]["topics"]:
            each["partitions"][0].update(committed_offset=-1, committed_leader_epoch=-1, metadata="")


def _note_changed(lines: Lines) -> None:
    answers(lines, "OffsetFetch")[0]["groups"][0]["topics"][0]["partitions"][0]["metadata"] = "other"


def _deleted_offset_is_there(lines: Lines) -> None:
    answers(lines, "OffsetFetch")[-1]["groups"] = answers(lines, "OffsetFetch")[0]["groups"]


def _plan_of_another(lines: Lines) -> None:
    one, two = answers(lines, "SyncGroup", "one")[-1], answers(lines, "SyncGroup", "two")[-1]
    described = answers(lines, "DescribeGroups")[-1]["groups"][0]["members"]
    for each in described:
        if each["member_assignment"] == two["assignment"]:
            each["member_assignment"] = one["assignment"]


def _group_left_out(lines: Lines) -> None:
    answers(lines, "ListGroups")[0]["groups"] = []


def _group_of_another_type(lines: Lines) -> None:
    answers(lines, "ListGroups")[0]["groups"][0]["group_type"] = "Consumer"


def _member_left_out(lines: Lines) -> None:
    answers(lines, "ConsumerGroupDescribe")[1]["groups"][0]["members"].pop()


def _dead_with_members(lines: Lines) -> None:
    answers(lines, "DescribeGroups")[-1]["groups"][0]["group_state"] = "Empty"


def _settled(lines: Lines, api: str, client_id: str) -> list[dict[str, Any]]:
    return [each for each in answers(lines, api, client_id) if each["error_code"] == "NONE"]


def _partition_of_another(lines: Lines) -> None:
    """The second member is given what the first one keeps, while that one goes on."""
    kept = [each["assignment"] for each in _settled(lines, "ConsumerGroupHeartbeat", "one") if each["assignment"]]
    for each in _settled(lines, "ConsumerGroupHeartbeat", "two"):
        if each["assignment"] and each["assignment"]["topic_partitions"]:
            each["assignment"] = kept[-1]
            return
    raise AssertionError("the second member has no assignment")


def _topic_without_subscription(lines: Lines) -> None:
    jobs = next(
        each["response"]["topics"][0]["topic_id"]
        for each in _lines(lines, "CreateTopics")
        if each["request"]["topics"][0]["name"] == "jobs"
    )
    for each in _settled(lines, "ConsumerGroupHeartbeat", "one"):
        if each["assignment"] and each["assignment"]["topic_partitions"]:
            each["assignment"]["topic_partitions"] = [{"topic_id": jobs, "partitions": [0]}]
            return


def _epoch_back(lines: Lines) -> None:
    beats = _lines(lines, "ConsumerGroupHeartbeat", "two")
    epochs = [each["response"]["member_epoch"] for each in beats]
    at = next(
        at for at in range(1, len(beats)) if epochs[at] > 1 and beats[at]["request"]["member_epoch"] == epochs[at]
    )
    beats[at]["response"]["member_epoch"] = 1


def _described(lines: Lines, api: str, **changes: Any) -> None:
    answers(lines, api)[0]["groups"][0].update(changes)


def _described_member(lines: Lines, api: str, **changes: Any) -> None:
    answers(lines, api)[0]["groups"][0]["members"][0].update(changes)


def _task_of_another(lines: Lines) -> None:
    kept = [each["active_tasks"] for each in _settled(lines, "StreamsGroupHeartbeat", "one") if each["active_tasks"]]
    for each in _settled(lines, "StreamsGroupHeartbeat", "two"):
        if each["active_tasks"]:
            each["active_tasks"] = kept[-1]
            each["standby_tasks"] = []
            return


def _task_in_two_roles(lines: Lines) -> None:
    for each in _settled(lines, "StreamsGroupHeartbeat", "two"):
        if each["active_tasks"]:
            each["warmup_tasks"] = each["active_tasks"]
            return


def _task_of_no_topology(lines: Lines) -> None:
    next(each for each in _settled(lines, "StreamsGroupHeartbeat", "one") if each["active_tasks"])["active_tasks"][0][
        "subtopology_id"
    ] = "7"


def _task_of_no_partition(lines: Lines) -> None:
    next(each for each in _settled(lines, "StreamsGroupHeartbeat", "one") if each["active_tasks"])["active_tasks"][0][
        "partitions"
    ].append(9)


def _other_topology(lines: Lines) -> None:
    answers(lines, "StreamsGroupDescribe")[0]["groups"][0]["topology"]["subtopologies"][0]["source_topics"] = ["jobs"]


def _acquired(lines: Lines, client_id: str) -> list[dict[str, Any]]:
    return [
        part
        for answer in answers(lines, "ShareFetch", client_id)
        for each in answer["responses"]
        for part in each["partitions"]
        if part["acquired_records"]
    ]


def _locked_records_again(lines: Lines) -> None:
    """The second member is given what the first one still has."""
    one, two = _acquired(lines, "one")[0], _acquired(lines, "two")[0]
    two.update(records=one["records"], acquired_records=one["acquired_records"])


def _accepted_records_again(lines: Lines) -> None:
    part = _acquired(lines, "two")[-1]
    part["acquired_records"] = [{"first_offset": 0, "last_offset": 2, "delivery_count": 2}]
    part["records"] = _acquired(lines, "one")[0]["records"]


def _count_stays(lines: Lines) -> None:
    again = next(
        run for part in _acquired(lines, "one") for run in part["acquired_records"] if run["delivery_count"] == 2
    )
    again["delivery_count"] = 5


def _not_in_the_answer(lines: Lines) -> None:
    _acquired(lines, "one")[0]["acquired_records"][0]["last_offset"] += 3


def _ranges_overlap(lines: Lines) -> None:
    part = _acquired(lines, "one")[0]
    part["acquired_records"] = [*part["acquired_records"], {"first_offset": 2, "last_offset": 4, "delivery_count": 1}]


def _holder_is_refused(lines: Lines) -> None:
    line = _lines(lines, "ShareAcknowledge", "one")[0]
    line["response"]["responses"][0]["partitions"][0]["error_code"] = "INVALID_RECORD_STATE"
    line["error"] = "INVALID_RECORD_STATE"


def _no_holder_is_believed(lines: Lines) -> None:
    line = _lines(lines, "ShareAcknowledge", "two")[0]
    batch = line["request"]["topics"][0]["partitions"][0]["acknowledgement_batches"][0]
    batch.update(first_offset=900, last_offset=901)


def _wrong_session_epoch(lines: Lines) -> None:
    line = next(each for each in _lines(lines, "ShareAcknowledge") if each["request"]["share_session_epoch"] == 99)
    line["response"].update(error_code="NONE")
    line.update(error=None, error_codes=[])


def _right_session_epoch_refused(lines: Lines) -> None:
    line = _lines(lines, "ShareAcknowledge", "one")[0]
    line["response"].update(error_code="INVALID_SHARE_SESSION_EPOCH", responses=[])
    line["error"] = "INVALID_SHARE_SESSION_EPOCH"


def _acknowledged_left_out(lines: Lines) -> None:
    answers(lines, "ShareAcknowledge", "one")[0]["responses"] = []


def _start_after_reset(lines: Lines) -> None:
    answers(lines, "DescribeShareGroupOffsets")[-1]["groups"][0]["topics"][0]["partitions"][0]["start_offset"] = 11


def _share_member_unknown(lines: Lines) -> None:
    answers(lines, "ShareGroupDescribe")[0]["groups"][0]["members"][0]["member_id"] = "never"


LIES: Final[Mapping[str, tuple[str, str, Lie]]] = {
    "a setting has its value of before": (ADMINISTRATOR, "answer-contradicted", _value_of_before),
    "a setting of a topic is a default again": (ADMINISTRATOR, "answer-contradicted", _default_again),
    "a setting of a broker was never taken": (ADMINISTRATOR, "answer-contradicted", _setting_never_taken),
    "a setting is left out": (ADMINISTRATOR, "answer-contradicted", _setting_left_out),
    "a synonym has another value": (ADMINISTRATOR, "answer-value", _synonym_differs),
    "a topic has fewer partitions than it was given": (ADMINISTRATOR, "answer-contradicted", _fewer_partitions),
    "two topics have each other's id": (ADMINISTRATOR, "answer-contradicted", _topic_id_of_another),
    "an epoch has another leader": (ADMINISTRATOR, "answer-contradicted", _other_leader),
    "a partition has another replica": (ADMINISTRATOR, "answer-contradicted", _other_replicas),
    "a leader is no replica": (ADMINISTRATOR, "answer-value", _leader_out_of_sync),
    "fewer records are deleted than was asked for": (ADMINISTRATOR, "answer-value", _deleted_too_little),
    "a quota has its value of before": (ADMINISTRATOR, "answer-contradicted", _quota_of_before),
    "a quota is there that no one made": (ADMINISTRATOR, "answer-contradicted", _removed_quota_is_there),
    "a quota of someone else": (ADMINISTRATOR, "answer-items", _quota_of_another),
    "a permission is gone": (ADMINISTRATOR, "answer-contradicted", _rule_is_gone),
    "a permission that was deleted is there": (ADMINISTRATOR, "answer-contradicted", _deleted_rule_is_there),
    "another permission was deleted": (ADMINISTRATOR, "answer-items", _deleted_another_rule),
    "another cluster id": (ADMINISTRATOR, "answer-contradicted", _cluster_id),
    "the broker that answers is none": (ADMINISTRATOR, "answer-value", _broker_left_out),
    "a quorum's leader is no voter": (ADMINISTRATOR, "answer-value", _quorum_without_its_leader),
    "a quorum is ahead of its leader": (ADMINISTRATOR, "answer-value", _quorum_ahead_of_its_leader),
    "a commit is lost": (ADMINISTRATOR, "answer-contradicted", _commit_lost),
    "a commit has another note": (ADMINISTRATOR, "answer-contradicted", _note_changed),
    "an offset that was deleted is there": (ADMINISTRATOR, "answer-contradicted", _deleted_offset_is_there),
    "a member has another's plan": (ADMINISTRATOR, "group-description", _plan_of_another),
    "a group is left out of the list": (ADMINISTRATOR, "group-description", _group_left_out),
    "a group has another type": (ADMINISTRATOR, "group-description", _group_of_another_type),
    "an empty group has members": (ADMINISTRATOR, "group-description", _dead_with_members),
    "a partition has two owners": (MEMBERS, "assignment-answer", _partition_of_another),
    "a partition without a subscription": (MEMBERS, "assignment-answer", _topic_without_subscription),
    "a member epoch goes back": (MEMBERS, "member-epoch-answer", _epoch_back),
    "a member is left out of the description": (MEMBERS, "group-description", _member_left_out),
    "a description has another group epoch": (
        MEMBERS, "group-description", lambda lines: _described(lines, "ConsumerGroupDescribe", group_epoch=99)),
    "a description has an older assignment": (
        MEMBERS, "group-description", lambda lines: _described(lines, "ConsumerGroupDescribe", assignment_epoch=0)),
    "a member has another client id": (
        MEMBERS, "group-description", lambda lines: _described_member(lines, "ConsumerGroupDescribe", client_id="x")),
    "a member has another subscription": (
        MEMBERS, "group-description",
        lambda lines: _described_member(lines, "ConsumerGroupDescribe", subscribed_topic_names=["jobs"])),
    "a member has another process": (
        MEMBERS, "group-description", lambda lines: _described_member(lines, "StreamsGroupDescribe", process_id="x")),
    "a task has two owners": (MEMBERS, "assignment-answer", _task_of_another),
    "a task has two roles": (MEMBERS, "assignment-answer", _task_in_two_roles),
    "a task of no topology": (MEMBERS, "assignment-answer", _task_of_no_topology),
    "a task of no partition": (MEMBERS, "assignment-answer", _task_of_no_partition),
    "a topology that no one sent": (MEMBERS, "group-description", _other_topology),
    "locked records are acquired": (MEMBERS, "share-answer", _locked_records_again),
    "accepted records are acquired": (MEMBERS, "share-answer", _accepted_records_again),
    "a delivery count leaps": (MEMBERS, "share-answer", _count_stays),
    "acquired records are not in the answer": (MEMBERS, "share-answer", _not_in_the_answer),
    "acquired ranges overlap": (MEMBERS, "share-answer", _ranges_overlap),
    "the holder of records is refused": (MEMBERS, "share-answer", _holder_is_refused),
    "who has no records is believed": (MEMBERS, "share-answer", _no_holder_is_believed),
    "a wrong epoch of a share session is accepted": (MEMBERS, "share-answer", _wrong_session_epoch),
    "the right epoch of a share session is refused": (MEMBERS, "share-answer", _right_session_epoch_refused),
    "an acknowledgement has no answer": (MEMBERS, "answer-items", _acknowledged_left_out),
    "a share group starts elsewhere than it was set": (MEMBERS, "answer-contradicted", _start_after_reset),
    "a member of a share group that never came": (MEMBERS, "group-description", _share_member_unknown),
}  # fmt: skip
"""What is wrong: in which traffic, under which name it has to be found, and how it is made."""
