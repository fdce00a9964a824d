"""Security records of ``__cluster_metadata``: ACLs, quotas, SCRAM credentials, delegation tokens."""

from uuid import UUID

from protocol.deferred import dataclass
from protocol.log_records.flexible import wire
from protocol.types import ZERO_UUID


@dataclass(frozen=True, slots=True)
class DelegationTokenRecord:
    """A delegation token (KIP-900). The HMAC is not stored: it follows from the id and the cluster's secret key."""

    owner: str = wire("string", "")
    requester: str = wire("string", "")
    renewers: tuple[str, ...] = wire("string", (), array=True)
    issue_timestamp_ms: int = wire("int64", 0)
    max_timestamp_ms: int = wire("int64", 0)
    expiration_timestamp_ms: int = wire("int64", 0)
    token_id: str = wire("string", "")


@dataclass(frozen=True, slots=True)
class RemoveDelegationTokenRecord:
    """Removal of a delegation token."""

    token_id: str = wire("string", "")


@dataclass(frozen=True, slots=True)
class UserScramCredentialRecord:
    """A SCRAM credential. ``mechanism``: 1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""

    name: str = wire("string", "")
    mechanism: int = wire("int8", 0)
    salt: bytes = wire("bytes", b"")
    stored_key: bytes = wire("bytes", b"")
    server_key: bytes = wire("bytes", b"")
    iterations: int = wire("int32", 0)


@dataclass(frozen=True, slots=True)
class RemoveUserScramCredentialRecord:
    """Removal of a SCRAM credential."""

    name: str = wire("string", "")
    mechanism: int = wire("int8", 0)


@dataclass(frozen=True, slots=True)
class QuotaEntity:
    """One part of a quota entity; a null name is the default entity."""

    entity_type: str = wire("string", "")
    entity_name: str | None = wire("string", None)


@dataclass(frozen=True, slots=True)
class ClientQuotaRecord:
    """Change or removal of an entity's quota."""

    entity: tuple[QuotaEntity, ...] = wire(QuotaEntity, (), array=True)
    key: str = wire("string", "")
    value: float = wire("float64", 0.0)
    remove: bool = wire("bool", False)


@dataclass(frozen=True, slots=True)
class AccessControlEntryRecord:
    """An ACL; codes as in core G.7."""

    id: UUID = wire("uuid", ZERO_UUID)
    resource_type: int = wire("int8", 0)
    resource_name: str = wire("string", "")
    pattern_type: int = wire("int8", 0)
    principal: str = wire("string", "")
    host: str = wire("string", "")
    operation: int = wire("int8", 0)
    permission_type: int = wire("int8", 0)


@dataclass(frozen=True, slots=True)
class RemoveAccessControlEntryRecord:
    """Removal of an ACL."""

    id: UUID = wire("uuid", ZERO_UUID)
