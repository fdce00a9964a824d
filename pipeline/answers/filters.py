"""Checks that a response contains only what its request's filter matches."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pipeline.answers.calls import Body, Call, Fault, canonical, listed

_ANY: Final = 1
"""ANY in an ACL filter (ResourceType, PatternType, AclOperation, AclPermissionType)."""
_MATCH: Final = 2
"""PatternType MATCH."""
_EXACT, _DEFAULT = 0, 1
"""Match types of DescribeClientQuotas; the third matches any entity of the type."""


def faults_of(call: Call) -> Iterator[Fault]:
    """Yield the elements of a response that the request's filter excludes."""
    outside = _FILTERS.get(call.api)
    for item in outside(call) if outside is not None else ():
        yield Fault(call.id, "answer-items", f"not asked for: {item}")


def _groups(call: Call) -> Iterator[str]:
    for name in ("state", "type"):
        wanted = {each.lower() for each in listed(call.request, f"{name}s_filter")}
        for each in listed(call.response, "groups"):
            if wanted and each[f"group_{name}"].lower() not in wanted:
                yield f"{each['group_id']}, {each[f'group_{name}']}"


def _transactions(call: Call) -> Iterator[str]:
    states, ids = set(listed(call.request, "state_filters")), set(listed(call.request, "producer_id_filters"))
    for each in listed(call.response, "transaction_states"):
        if (states and each["transaction_state"] not in states) or (ids and each["producer_id"] not in ids):
            yield each["transactional_id"]


def _resources(call: Call) -> Iterator[str]:
    types = set(listed(call.request, "resource_types"))
    for each in listed(call.response, "config_resources"):
        if types and each["resource_type"] not in types:
            yield each["resource_name"]


def _settings(call: Call) -> Iterator[str]:
    keys = {
        (each["resource_type"], each["resource_name"]): set(listed(each, "configuration_keys"))
        for each in listed(call.request, "resources")
    }
    for result in listed(call.response, "results"):
        wanted = keys.get((result["resource_type"], result["resource_name"]), set())
        for each in listed(result, "configs"):
            if wanted and each["name"] not in wanted:
                yield each["name"]


def _rules(call: Call) -> Iterator[str]:
    for each in listed(call.response, "resources"):
        for rule in listed(each, "acls"):
            if not _is_wanted({**each, **rule}, call.request):
                yield f"{each['resource_name']}: {rule['principal']}"


def _deleted_rules(call: Call) -> Iterator[str]:
    filters = listed(call.request, "filters")
    for wanted, result in zip(filters, listed(call.response, "filter_results"), strict=False):
        for rule in listed(result, "matching_acls"):
            if not _is_wanted(rule, wanted):
                yield f"{rule['resource_name']}: {rule['principal']}"


def _quotas(call: Call) -> Iterator[str]:
    for entry in listed(call.response, "entries"):
        entity = {each["entity_type"]: each["entity_name"] for each in entry["entity"]}
        if not _has_components(entity, call.request):
            yield canonical(entity)


def _is_wanted(rule: Body, wanted: Body) -> bool:
    """Return whether an ACL matches a filter (KIP-140, KIP-290); a filter with PatternType MATCH is not checked."""
    numbers: dict[str, Any] = {
        "resource_type": wanted["resource_type_filter"], "operation": wanted["operation"],
        "permission_type": wanted["permission_type"],
    }  # fmt: skip
    if any(each not in (_ANY, rule[name]) for name, each in numbers.items()):
        return False
    texts = {"principal": wanted["principal_filter"], "host": wanted["host_filter"]}
    if wanted["pattern_type_filter"] not in (_ANY, _MATCH):
        if rule["pattern_type"] != wanted["pattern_type_filter"]:
            return False
        texts["resource_name"] = wanted["resource_name_filter"]
    elif wanted["pattern_type_filter"] == _ANY:
        texts["resource_name"] = wanted["resource_name_filter"]
    return all(each is None or each == rule[name] for name, each in texts.items())


def _has_components(entity: dict[str, Any], request: Body) -> bool:
    components = listed(request, "components")
    if request.get("strict") and entity.keys() != {each["entity_type"] for each in components}:
        return False
    for each in components:
        if each["entity_type"] not in entity:
            return False
        name = entity[each["entity_type"]]
        if each["match_type"] == _EXACT and name != each["match"]:
            return False
        if each["match_type"] == _DEFAULT and name is not None:
            return False
    return True


_FILTERS: Final[Mapping[str, Callable[[Call], Iterator[str]]]] = {
    "DeleteAcls": _deleted_rules, "DescribeAcls": _rules, "DescribeClientQuotas": _quotas, "DescribeConfigs": _settings,
    "ListConfigResources": _resources, "ListGroups": _groups, "ListTransactions": _transactions,
}  # fmt: skip
