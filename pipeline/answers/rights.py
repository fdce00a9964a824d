"""What requests write and responses report of quotas, SCRAM credentials and ACLs."""

from collections.abc import Iterator
from typing import Final

from pipeline.answers.calls import NONE, Body, Call, canonical, listed
from pipeline.answers.registers import Key, Registers

UNSET: Final = "not set"
Reported = Iterator[tuple[Key, str | None, str | None, str | None]]
"""Key, value, topic, group."""


def _entity(parts: list[Body]) -> str:
    return canonical(sorted((each["entity_type"], each["entity_name"] or "") for each in parts))


def alter_quotas(call: Call, values: Registers) -> None:
    """Record AlterClientQuotas."""
    done = {_entity(each["entity"]): each["error_code"] for each in listed(call.response, "entries")}
    for each in listed(call.request, "entries") if not call.request.get("validate_only") else ():
        entity = _entity(each["entity"])
        if done.get(entity, NONE) != NONE:
            continue
        for change in listed(each, "ops"):
            value = UNSET if change["remove"] else canonical(float(change["value"]))
            key = ("quota", entity, change["key"])
            values.write(key, value, call.start_us, call.end_us, certain=entity in done)


def described_quotas(call: Call) -> Reported:
    """Yield the quotas of DescribeClientQuotas, for the entities that are in the response or were requested."""
    names = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate",
             "connection_creation_rate")  # fmt: skip
    if call.response.get("error_code") != NONE:
        return
    reported = {
        _entity(each["entity"]): {one["key"]: one["value"] for one in each["values"]}
        for each in listed(call.response, "entries")
    }
    exact = [
        {"entity_type": each["entity_type"], "entity_name": each["match"]}
        for each in listed(call.request, "components")
    ]
    if exact and all(each["match_type"] == 0 for each in listed(call.request, "components")):
        reported.setdefault(_entity(exact), {})
    for entity, quotas in reported.items():
        for name in {*names, *quotas}:
            value = canonical(float(quotas[name])) if name in quotas else UNSET
            yield ("quota", entity, name), value, None, None


def alter_credentials(call: Call, values: Registers) -> None:
    """Record AlterUserScramCredentials."""
    done = {each["user"]: each["error_code"] for each in listed(call.response, "results")}
    changes = [
        (each["name"], each["mechanism"], str(each["iterations"])) for each in listed(call.request, "upsertions")
    ]
    changes += [(each["name"], each["mechanism"], UNSET) for each in listed(call.request, "deletions")]
    for user, mechanism, value in changes:
        if done.get(user, NONE) == NONE:
            key = ("credential", user, str(mechanism))
            values.write(key, value, call.start_us, call.end_us, certain=user in done)


def described_credentials(call: Call) -> Reported:
    """Yield the credentials of DescribeUserScramCredentials."""
    for each in listed(call.response, "results"):
        if each["error_code"] in (NONE, "RESOURCE_NOT_FOUND"):
            iterations = {one["mechanism"]: one["iterations"] for one in listed(each, "credential_infos")}
            for mechanism in {1, 2, *iterations}:
                key = ("credential", each["user"], str(mechanism))
                yield key, str(iterations.get(mechanism, UNSET)), None, None


def _rule(where: Body, rule: Body) -> str:
    pattern = where.get("pattern_type", where.get("resource_pattern_type"))
    names = ("principal", "host", "operation", "permission_type")
    return canonical([where["resource_type"], where["resource_name"], pattern, *(rule[name] for name in names)])


def create_acls(call: Call, values: Registers) -> None:
    """Record CreateAcls."""
    results = listed(call.response, "results")
    for at, each in enumerate(listed(call.request, "creations")):
        if at >= len(results) or results[at]["error_code"] == NONE:
            key = ("permission", _rule(each, each))
            values.write(key, "there", call.start_us, call.end_us, certain=at < len(results))


def delete_acls(call: Call, values: Registers) -> None:
    """Record DeleteAcls."""
    if not call.response:
        values.reset(("permission",), call.start_us)
    for result in listed(call.response, "filter_results"):
        for each in listed(result, "matching_acls"):
            if each["error_code"] == NONE:
                values.write(("permission", _rule(each, each)), "not there", call.start_us, call.end_us)


def described_acls(call: Call) -> Reported:
    """Yield the ACLs of DescribeAcls."""
    rules = {_rule(each, rule) for each in listed(call.response, "resources") for rule in listed(each, "acls")}
    for rule in rules:
        yield ("permission", rule), "there", None, None
