"""Answers of a broker that are right by themselves, and wrong beside the request or beside other answers.

Written down from the fields of each answer (`protocol/messages`): what it has to do with the request, with what was
accepted before, with what other members were reported. Each is a change of one or several answers of a journal of
`administrator_traffic` or `member_traffic`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple


class Run(NamedTuple):
    """The journal of a run, to be changed."""

    lines: Sequence[dict[str, Any]]

    def calls(self, api: str, client_id: str | None = None) -> list[dict[str, Any]]:
        """The lines of an API, of one client or of all."""
        matching = [each for each in self.lines if each["api"] == api and client_id in (None, each["client_id"])]
        assert matching, f"no {api} of {client_id}"
        return matching

    def answers(self, api: str, client_id: str | None = None) -> list[Any]:
        """The answers of an API."""
        return [each["response"] for each in self.calls(api, client_id)]

    def settled(self, api: str, client_id: str) -> list[Any]:
        """Those without an error."""
        return [each for each in self.answers(api, client_id) if each["error_code"] == "NONE"]

    def settings(self, resource: str) -> list[Any]:
        """The settings of a resource in each description of it."""
        results = [each for answer in self.answers("DescribeConfigs") for each in answer["results"]]
        return [each["configs"] for each in results if each["resource_name"] == resource]

    def setting(self, resource: str, name: str) -> list[Any]:
        """One of them."""
        return [each for configs in self.settings(resource) for each in configs if each["name"] == name]

    def partition(self) -> Any:
        """The first partition of the last description of topics."""
        return self.answers("DescribeTopicPartitions")[-1]["topics"][0]["partitions"][0]

    def rules(self, at: int) -> Any:
        """The permissions in a description of them."""
        return self.answers("DescribeAcls")[at]

    def quorum(self) -> Any:
        """The last description of the quorum."""
        return self.answers("DescribeQuorum")[-1]["topics"][0]["partitions"][0]

    def committed(self, at: int) -> Any:
        """What an OffsetFetch has of the first group."""
        return self.answers("OffsetFetch")[at]["groups"][0]

    def group(self, api: str, at: int = 0) -> Any:
        """The first group in a description or a list."""
        return self.answers(api)[at]["groups"][0]

    def member(self, api: str) -> Any:
        """The first member in the first description of a group."""
        return self.group(api)["members"][0]

    def assigned(self, client_id: str) -> list[Any]:
        """Answers with partitions for a member of a consumer group."""
        beats = self.settled("ConsumerGroupHeartbeat", client_id)
        return [each for each in beats if each["assignment"] and each["assignment"]["topic_partitions"]]

    def tasked(self, client_id: str) -> list[Any]:
        """Answers with tasks for a member of a streams group."""
        return [each for each in self.settled("StreamsGroupHeartbeat", client_id) if each["active_tasks"]]

    def acquired(self, client_id: str) -> list[Any]:
        """Partitions of which a member of a share group was given records."""
        topics = [each for answer in self.answers("ShareFetch", client_id) for each in answer["responses"]]
        return [part for each in topics for part in each["partitions"] if part["acquired_records"]]

    def acknowledged(self, client_id: str) -> dict[str, Any]:
        """The first ShareAcknowledge of a member."""
        return self.calls("ShareAcknowledge", client_id)[0]


Lie = Callable[[Run], object]
ADMINISTRATOR, MEMBERS = "administrator", "members"


def _fewer_partitions(run: Run) -> None:
    for answer in run.answers("DescribeTopicPartitions"):
        for each in answer["topics"]:
            if each["name"] == "grown":
                each["partitions"] = each["partitions"][:2]


def _topic_id_of_another(run: Run) -> None:
    one, other = run.answers("DescribeTopicPartitions")[-1]["topics"]
    one["topic_id"], other["topic_id"] = other["topic_id"], one["topic_id"]


def _commit_lost(run: Run) -> None:
    for answer in run.answers("OffsetFetch"):
        for each in answer["groups"][0]["topics"]:
            each["partitions"][0].update(committed_offset=-1, committed_leader_epoch=-1, metadata="")


def _plan_of_another(run: Run) -> None:
    one, two = (run.answers("SyncGroup", client_id)[-1] for client_id in ("one", "two"))
    for each in run.group("DescribeGroups", -1)["members"]:
        if each["member_assignment"] == two["assignment"]:
            each["member_assignment"] = one["assignment"]


_OF_ADMINISTRATORS: Final[Mapping[str, tuple[str, Lie]]] = {
    "a setting has its value of before": ("answer-contradicted", lambda run: [
        each.update(value="600000000000") for place in run.setting("kept", "retention.ms")[-1:]
        for each in (place, place["synonyms"][0])]),
    "a setting of a topic is a default again": ("answer-contradicted", lambda run: [
        each.update(value="604800000", config_source=5, synonyms=[])
        for each in run.setting("kept", "retention.ms")[-1:]]),
    "a setting of a broker was never taken": ("answer-contradicted", lambda run: [
        each.update(value="1", config_source=5, synonyms=[]) for each in run.setting("1", "log.cleaner.threads")[1:]]),
    "a setting is left out": ("answer-contradicted", lambda run: run.settings("1")[-1].remove(
        run.setting("1", "log.cleaner.threads")[-1])),
    "a synonym has another value": (
        "answer-value", lambda run: run.setting("kept", "retention.ms")[-1]["synonyms"][0].update(value="7")),
    "a topic has fewer partitions than it was given": ("answer-contradicted", _fewer_partitions),
    "two topics have each other's id": ("answer-contradicted", _topic_id_of_another),
    "an epoch has another leader": (
        "answer-contradicted",
        lambda run: run.partition().update(leader_id=2, replica_nodes=[1, 2], isr_nodes=[1, 2])),
    "a partition has another replica": (
        "answer-contradicted", lambda run: run.partition().update(replica_nodes=[1, 2], isr_nodes=[1])),
    "a leader is no replica": ("answer-value", lambda run: run.partition().update(leader_id=9)),
    "fewer records are deleted than was asked for": ("answer-value", lambda run: run.answers(
        "DeleteRecords")[-1]["topics"][0]["partitions"][0].update(low_watermark=2)),
    "a quota has its value of before": ("answer-contradicted", lambda run: run.answers(
        "DescribeClientQuotas")[-1]["entries"][0]["values"][0].update(value=5e8)),
    "a quota is there that no one made": ("answer-contradicted", lambda run: run.answers(
        "DescribeClientQuotas")[-1]["entries"][0]["values"].append({"key": "consumer_byte_rate", "value": 7.0})),
    "a quota of someone else": ("answer-items", lambda run: run.answers(
        "DescribeClientQuotas")[-1]["entries"][0]["entity"][0].update(entity_name="another")),
    "a permission is gone": ("answer-contradicted", lambda run: run.rules(-1)["resources"][0]["acls"].pop()),
    "a permission that was deleted is there": (
        "answer-contradicted", lambda run: run.rules(-1).update(resources=run.rules(0)["resources"])),
    "another permission was deleted": ("answer-items", lambda run: run.answers(
        "DeleteAcls")[0]["filter_results"][0]["matching_acls"][0].update(operation=3)),
    "another cluster id": (
        "answer-contradicted", lambda run: run.answers("DescribeCluster")[-1].update(cluster_id="another")),
    "the broker that answers is none": (
        "answer-value", lambda run: run.answers("DescribeCluster")[-1]["brokers"][0].update(broker_id=3)),
    "a quorum's leader is no voter": ("answer-value", lambda run: run.quorum().update(leader_id=3)),
    "a quorum is ahead of its leader": (
        "answer-value", lambda run: run.quorum().update(high_watermark=run.quorum()["high_watermark"] + 5)),
    "a commit is lost": ("answer-contradicted", _commit_lost),
    "a commit has another note": (
        "answer-contradicted", lambda run: run.committed(0)["topics"][0]["partitions"][0].update(metadata="other")),
    "an offset that was deleted is there": (
        "answer-contradicted", lambda run: run.answers("OffsetFetch")[-1].update(groups=[run.committed(0)])),
    "a member has another's plan": ("group-description", _plan_of_another),
    "a group is left out of the list": (
        "group-description", lambda run: run.answers("ListGroups")[0].update(groups=[])),
    "a group has another type": ("group-description", lambda run: run.group("ListGroups").update(
        group_type="Consumer")),
    "an empty group has members": ("group-description", lambda run: run.group("DescribeGroups", -1).update(
        group_state="Empty")),
}  # fmt: skip


def _topic_without_subscription(run: Run) -> None:
    jobs = next(each for each in run.calls("CreateTopics") if each["request"]["topics"][0]["name"] == "jobs")
    topic_id = jobs["response"]["topics"][0]["topic_id"]
    run.assigned("one")[0]["assignment"]["topic_partitions"] = [{"topic_id": topic_id, "partitions": [0]}]


def _epoch_back(run: Run) -> None:
    beats = run.calls("ConsumerGroupHeartbeat", "two")
    epochs = [each["response"]["member_epoch"] for each in beats]
    at = next(
        at for at in range(1, len(beats)) if epochs[at] > 1 and beats[at]["request"]["member_epoch"] == epochs[at]
    )
    beats[at]["response"]["member_epoch"] = 1


def _wrong_session_epoch(run: Run) -> None:
    line = next(each for each in run.calls("ShareAcknowledge") if each["request"]["share_session_epoch"] == 99)
    line["response"].update(error_code="NONE")
    line.update(error=None, error_codes=[])


def _holder_is_refused(run: Run) -> None:
    run.acknowledged("one")["response"]["responses"][0]["partitions"][0]["error_code"] = "INVALID_RECORD_STATE"
    run.acknowledged("one")["error"] = "INVALID_RECORD_STATE"


def _right_session_epoch_refused(run: Run) -> None:
    run.acknowledged("one")["response"].update(error_code="INVALID_SHARE_SESSION_EPOCH", responses=[])
    run.acknowledged("one")["error"] = "INVALID_SHARE_SESSION_EPOCH"


_OF_MEMBERS: Final[Mapping[str, tuple[str, Lie]]] = {
    # the second member is given what the first one keeps, while that one goes on
    "a partition has two owners": (
        "assignment-answer",
        lambda run: run.assigned("two")[0].update(assignment=[
            each["assignment"] for each in run.settled("ConsumerGroupHeartbeat", "one") if each["assignment"]][-1])),
    "a partition without a subscription": ("assignment-answer", _topic_without_subscription),
    "a member epoch goes back": ("member-epoch-answer", _epoch_back),
    "a member is left out of the description": (
        "group-description", lambda run: run.group("ConsumerGroupDescribe", 1)["members"].pop()),
    "a description has another group epoch": (
        "group-description", lambda run: run.group("ConsumerGroupDescribe").update(group_epoch=99)),
    "a description has an older assignment": (
        "group-description", lambda run: run.group("ConsumerGroupDescribe").update(assignment_epoch=0)),
    "a member has another client id": (
        "group-description", lambda run: run.member("ConsumerGroupDescribe").update(client_id="x")),
    "a member has another subscription": (
        "group-description",
        lambda run: run.member("ConsumerGroupDescribe").update(subscribed_topic_names=["jobs"])),
    "a member has another process": (
        "group-description", lambda run: run.member("StreamsGroupDescribe").update(process_id="x")),
    "a task has two owners": ("assignment-answer", lambda run: run.tasked("two")[0].update(
        active_tasks=run.tasked("one")[-1]["active_tasks"], standby_tasks=[])),
    "a task has two roles": ("assignment-answer", lambda run: run.tasked("two")[0].update(
        warmup_tasks=run.tasked("two")[0]["active_tasks"])),
    "a task of no topology": (
        "assignment-answer", lambda run: run.tasked("one")[0]["active_tasks"][0].update(subtopology_id="7")),
    "a task of no partition": (
        "assignment-answer", lambda run: run.tasked("one")[0]["active_tasks"][0]["partitions"].append(9)),
    "a topology that no one sent": ("group-description", lambda run: run.group("StreamsGroupDescribe")[
        "topology"]["subtopologies"][0].update(source_topics=["jobs"])),
    # the second member is given what the first one still has
    "locked records are acquired": ("share-answer", lambda run: run.acquired("two")[0].update(
        {name: run.acquired("one")[0][name] for name in ("records", "acquired_records")})),
    "accepted records are acquired": ("share-answer", lambda run: run.acquired("two")[-1].update(
        records=run.acquired("one")[0]["records"],
        acquired_records=[{"first_offset": 0, "last_offset": 2, "delivery_count": 2}])),
    "a delivery count leaps": ("share-answer", lambda run: next(
        each for part in run.acquired("one") for each in part["acquired_records"] if each["delivery_count"] == 2
    ).update(delivery_count=5)),
    "acquired records are not in the answer": ("share-answer", lambda run: [
        each.update(last_offset=each["last_offset"] + 3) for each in run.acquired("one")[0]["acquired_records"][:1]]),
    "acquired ranges overlap": ("share-answer", lambda run: run.acquired("one")[0]["acquired_records"].append(
        {"first_offset": 2, "last_offset": 4, "delivery_count": 1})),
    "the holder of records is refused": ("share-answer", _holder_is_refused),
    "who has no records is believed": ("share-answer", lambda run: run.acknowledged("two")["request"]["topics"][0][
        "partitions"][0]["acknowledgement_batches"][0].update(first_offset=900, last_offset=901)),
    "a wrong epoch of a share session is accepted": ("share-answer", _wrong_session_epoch),
    "the right epoch of a share session is refused": ("share-answer", _right_session_epoch_refused),
    "an acknowledgement has no answer": (
        "answer-items", lambda run: run.acknowledged("one")["response"].update(responses=[])),
    "a share group starts elsewhere than it was set": (
        "answer-contradicted",
        lambda run: run.group("DescribeShareGroupOffsets", -1)["topics"][0]["partitions"][0].update(start_offset=11)),
    "a member of a share group that never came": (
        "group-description", lambda run: run.member("ShareGroupDescribe").update(member_id="never")),
}  # fmt: skip

LIES: Final[Mapping[str, tuple[str, str, Lie]]] = {
    name: (traffic, *row)
    for traffic, rows in ((ADMINISTRATOR, _OF_ADMINISTRATORS), (MEMBERS, _OF_MEMBERS))
    for name, row in rows.items()
}
"""What is wrong: in which traffic, under which name it has to be found, and how it is made."""
