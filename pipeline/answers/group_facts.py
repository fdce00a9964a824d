"""What requests write and responses report of committed offsets, start offsets of share groups, and members."""

from collections.abc import Mapping

from pipeline.answers.calls import NONE, ZERO_ID, Call, canonical, listed
from pipeline.answers.registers import ANY, Registers
from pipeline.answers.rights import UNSET, Reported


def topic_reported(name: str, topic_id: str | None) -> Reported:
    """Yield a topic's id, if the response has one."""
    if topic_id not in (None, ZERO_ID):
        yield ("topic", name, "id"), topic_id, name, None
        if name:
            yield ("topic id", topic_id, "name"), name, name, None


def share_start(call: Call, values: Registers) -> None:
    """Record AlterShareGroupOffsets, which resets a start offset; acknowledgements advance it afterwards."""
    group_id = call.request["group_id"]
    if call.api != "AlterShareGroupOffsets":
        values.reset(("share start", group_id), call.start_us, call.end_us)
        return
    for each in listed(call.response, "responses"):
        for part in listed(each, "partitions"):
            if part["error_code"] != NONE:
                continue
            for sent in listed(call.request, "topics"):
                for one in listed(sent, "partitions") if sent["topic_name"] == each["topic_name"] else ():
                    if one["partition_index"] == part["partition_index"]:
                        key = ("share start", group_id, f"{each['topic_name']}-{part['partition_index']}")
                        values.write(key, str(one["start_offset"]), call.start_us, call.end_us)
    if not call.response:
        values.reset(("share start", group_id), call.start_us)


def share_starts(call: Call) -> Reported:
    """Yield the start offsets of share groups."""
    for group in listed(call.response, "groups"):
        for each in listed(group, "topics"):
            yield from topic_reported(each["topic_name"], each.get("topic_id"))
            for part in listed(each, "partitions"):
                if part["error_code"] == NONE:
                    key = ("share start", group["group_id"], f"{each['topic_name']}-{part['partition_index']}")
                    yield key, str(part["start_offset"]), each["topic_name"], group["group_id"]


def altered_starts(call: Call) -> Reported:
    """Return the topics of an AlterShareGroupOffsets."""
    for each in listed(call.response, "responses"):
        yield from topic_reported(each["topic_name"], each.get("topic_id"))


def members_reported(call: Call) -> Reported:
    """Yield a member's address, and the names and ids of the topics of its partitions."""
    for group in listed(call.response, "groups"):
        for each in listed(group, "members"):
            key = ("member", group["group_id"], each["member_id"], "host")
            yield key, each["client_host"], None, group["group_id"]
            for name in ("assignment", "target_assignment"):
                assigned = each.get(name)
                for one in listed(assigned, "topic_partitions") if isinstance(assigned, dict) else ():
                    yield from topic_reported(one["topic_name"], one["topic_id"])


def locks(call: Call) -> Reported:
    """Yield the acquisition lock timeout of a share group."""
    if call.response.get("acquisition_lock_timeout_ms", 0) > 0:
        key = ("group", call.request["group_id"], "acquisition lock")
        yield key, str(call.response["acquisition_lock_timeout_ms"]), None, call.request["group_id"]


def commit(call: Call, values: Registers) -> None:
    """Record OffsetCommit, and TxnOffsetCommit, which takes effect when its transaction ends."""
    group_id = call.request["group_id"]
    done = {
        (each.get("name") or each.get("topic_id"), part["partition_index"]): part["error_code"]
        for each in listed(call.response, "topics") for part in listed(each, "partitions")
    }  # fmt: skip
    for each in listed(call.request, "topics"):
        sent = each.get("name") or each.get("topic_id")
        name = each.get("name") or values.names.get(sent)
        if name is None:
            values.reset(("committed offset", group_id), call.start_us)
            continue
        for part in listed(each, "partitions"):
            place = (sent, part["partition_index"])
            if done.get(place, NONE) != NONE:
                continue
            reported = [
                part["committed_offset"],
                part["committed_leader_epoch"] if call.version >= 6 else -1,  # of OffsetCommit (KIP-320)
                part["committed_metadata"] or "",
            ]
            value: object = ANY if call.api == "TxnOffsetCommit" else canonical(reported)
            key = ("committed offset", group_id, f"{name}-{part['partition_index']}")
            certain = place in done and call.api == "OffsetCommit"
            values.write(key, value, call.start_us, call.end_us, certain=certain)


def fetched_offsets(call: Call, names: Mapping[str, str]) -> Reported:
    """Yield the offsets of OffsetFetch. `names` resolves topic ids; topics with an unknown id are left out."""
    for one in listed(call.response, "groups"):
        if one["error_code"] != NONE:
            continue
        for each in listed(one, "topics"):
            name = each.get("name") or names.get(each.get("topic_id", ""))
            for part in listed(each, "partitions") if name else ():
                if part["error_code"] == NONE and call.version >= 5:  # with leader epochs (KIP-320)
                    reported = [part["committed_offset"], part["committed_leader_epoch"], part["metadata"] or ""]
                    value = UNSET if part["committed_offset"] < 0 else canonical(reported)
                    key = ("committed offset", one["group_id"], f"{name}-{part['partition_index']}")
                    yield key, value, name, one["group_id"]


def delete_offsets(call: Call, values: Registers) -> None:
    """Record OffsetDelete."""
    done = {
        (each["name"], part["partition_index"]): part["error_code"]
        for each in listed(call.response, "topics") for part in listed(each, "partitions")
    }  # fmt: skip
    for each in listed(call.request, "topics") if call.response.get("error_code", NONE) == NONE else ():
        for part in listed(each, "partitions"):
            place = (each["name"], part["partition_index"])
            if done.get(place, NONE) == NONE:
                key = ("committed offset", call.request["group_id"], f"{place[0]}-{place[1]}")
                values.write(key, UNSET, call.start_us, call.end_us, certain=place in done)


def delete_groups(call: Call, values: Registers) -> None:
    """Record DeleteGroups."""
    for group_id in listed(call.request, "groups_names"):
        values.reset(("committed offset", group_id), call.start_us)
        values.reset(("setting", "32", group_id), call.start_us)
        values.reset(("group", group_id), call.start_us)
