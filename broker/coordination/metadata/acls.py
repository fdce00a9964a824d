"""Decisions of CreateAcls, DescribeAcls and DeleteAcls (core G.9).

After Kafka's ``AclControlManager`` and ``AclBindingFilter``. The handlers check authorization.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import Any
from uuid import UUID

from broker.coordination.metadata.features import CIDR_LEVEL, METADATA_VERSION
from broker.coordination.metadata.image import ClusterImage
from protocol.acls import (
    CLUSTER_NAME,
    WILDCARD,
    AclOperation,
    PatternType,
    PermissionType,
    ResourceType,
)
from protocol.deferred import dataclass
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.metadata_security import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from protocol.pauses import pause
from protocol.subnets import subnet
from protocol.types import ZERO_UUID

MOST_AT_ONCE = 10_000
"""Largest number of records of one request (QuorumController.MAX_RECORDS_PER_USER_OP)."""

MOST_FOUND = 250_000
"""Largest number of ACLs in a response: many filters may each match all. Kafka has no limit and runs out of memory.

Ours, as each is an object in memory.
"""

Acl = AccessControlEntryRecord
Matches = list[Acl] | KafkaError
"""The ACLs that a filter of DeleteAcls matched, or its error."""


@dataclass(frozen=True, slots=True)
class AclFilter:
    """A filter of DescribeAcls and DeleteAcls, with the protocol's codes; ``None`` matches any text."""

    resource_type: int
    name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission_type: int

    def matches(self, acl: Acl) -> bool:
        """Return whether the ACL matches (core G.9.4). An unknown code matches nothing."""
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self._names(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (AclOperation.ANY, acl.operation)
            and self.permission_type in (PermissionType.ANY, acl.permission_type)
        )

    def _names(self, acl: Acl) -> bool:
        if self.pattern_type == PatternType.MATCH:
            if self.name is None:
                return True
            if acl.pattern_type == PatternType.PREFIXED:
                return self.name.startswith(acl.resource_name)
            return acl.resource_name in (self.name, WILDCARD)
        return self.pattern_type in (PatternType.ANY, acl.pattern_type) and self.name in (None, acl.resource_name)

    def check(self) -> None:
        """Raise INVALID_REQUEST if a code is unknown (AclControlManager.validateFilter)."""
        if not (_known(ResourceType, self.resource_type) and _known(PatternType, self.pattern_type)):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Unknown patternFilter.")
        if not (_known(AclOperation, self.operation) and _known(PermissionType, self.permission_type)):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Unknown entryFilter.")


def find(image: ClusterImage, wanted: AclFilter) -> list[Acl]:
    """Return the ACLs that match, in the order of their creation."""
    return [acl for acl in image.acls.values() if wanted.matches(acl)]


def create(
    image: ClusterImage, new_uuid: Callable[[], UUID], wanted: Iterable[Acl], *, check_hosts: bool = True
) -> tuple[list[KafkaError | None], list[Any]]:
    """Return each ACL's error or ``None``, and the records; an existing ACL is no error and has no record.

    ``check_hosts``: whether a host has to be a valid pattern, as since 4.4; before, it is any text.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR for all ACLs, if one has a code that only a filter may have (Quirk: Kafka's
            controller cannot read such a request).
    """
    wanted = [replace(acl, id=ZERO_UUID) for acl in wanted]
    if any(map(_is_filter, wanted)):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    known = {replace(acl, id=ZERO_UUID) for acl in image.acls.values()} if wanted else set()
    answers: list[KafkaError | None] = []
    records: list[Any] = []
    for acl in wanted:
        pause()
        try:
            _check(acl)
            if check_hosts:
                _check_host(image, acl.host)
        except KafkaError as error:
            answers.append(error)
            continue
        answers.append(None)
        if acl not in known:
            known.add(acl)
            records.append(replace(acl, id=new_uuid()))
    return answers, records


def delete(image: ClusterImage, filters: Sequence[AclFilter]) -> tuple[list[Matches], list[Any]]:
    """Return the matches of each filter, in order, and the records; an ACL that two filters match is listed twice.

    Raises:
        KafkaError: INVALID_REQUEST for all filters, if too many ACLs would be deleted.
    """
    answers: list[Matches] = []
    gone: dict[UUID, None] = {}
    left = MOST_FOUND
    for each in filters:
        pause()
        try:
            each.check()
        except KafkaError as error:
            answers.append(error)
            continue
        matches = find(image, each)
        gone.update((acl.id, None) for acl in matches)
        if len(gone) > MOST_AT_ONCE:
            problem = f"Cannot remove more than {MOST_AT_ONCE} acls in a single delete operation."
            raise KafkaError(ErrorCode.INVALID_REQUEST, problem)
        left -= len(matches)
        if left < 0:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"The answer would have more than {MOST_FOUND} ACLs.")
        answers.append(matches)
    return answers, [RemoveAccessControlEntryRecord(acl_id) for acl_id in gone]


def _known(kind: type[IntEnum], code: int) -> bool:
    return code in kind.__members__.values()


def _is_filter(acl: Acl) -> bool:
    """Return whether the ACL has a code that only a filter may have."""
    return (
        acl.resource_type == ResourceType.ANY
        or acl.pattern_type in (PatternType.ANY, PatternType.MATCH)
        or acl.operation == AclOperation.ANY
        or acl.permission_type == PermissionType.ANY
    )


def _check_host(image: ClusterImage, host: str) -> None:
    """Raise INVALID_REQUEST or UNSUPPORTED_VERSION for an invalid host pattern (validateHostPattern, 4.4)."""
    if not host:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Host pattern cannot be null or empty")
    if "/" not in host:
        return
    if image.features.get(METADATA_VERSION, 0) < CIDR_LEVEL:
        problem = "CIDR-based ACL host patterns require metadata version 4.4-IV1 or higher."
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, problem)
    try:
        subnet(host)
    except ValueError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Invalid CIDR notation '{host}': {error}") from error


def _check(acl: Acl) -> None:
    """Raise INVALID_REQUEST for an invalid ACL (core G.9.3), in the order of Kafka's checks.

    They are those of AclApis.handleCreateAcls, then of AclControlManager.validateNewAcl.
    """
    problem = None
    if acl.resource_type == ResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:
        problem = f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    elif not acl.resource_name:
        problem = "Invalid empty resource name"
    elif not _known(ResourceType, acl.resource_type):
        problem = "Invalid resourceType UNKNOWN"
    elif not _known(PatternType, acl.pattern_type):
        problem = "Invalid patternType UNKNOWN"
    elif not _known(AclOperation, acl.operation):
        problem = "Invalid operation UNKNOWN"
    elif not _known(PermissionType, acl.permission_type):
        problem = "Invalid permissionType UNKNOWN"
    elif ":" not in acl.principal:
        problem = (
            f"Could not parse principal from `{acl.principal}` (no colon is present separating the principal type "
            "from the principal name)"
        )
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, problem)
