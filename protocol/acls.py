"""ACL codes, on the wire and in the metadata log (core G.7; Kafka: common.acl, common.resource)."""

from enum import IntEnum


class AclOperation(IntEnum):
    """Operation that an ACL allows or denies on a resource. ANY is valid only in filters."""

    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class ResourceType(IntEnum):
    """Resource type of an ACL. ANY is valid only in filters."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """Pattern type: how an ACL's resource name is matched. ANY and MATCH are valid only in filters (KIP-290)."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class PermissionType(IntEnum):
    """Whether an ACL allows or denies. ANY is valid only in filters."""

    ANY = 1
    DENY = 2
    ALLOW = 3


UNKNOWN = 0
"""Replaces a code outside its enumeration."""

WILDCARD = "*"
"""Matches any name (of a LITERAL pattern) and any host."""

ANY_PRINCIPAL = "User:*"
"""Matches any principal."""

CLUSTER_NAME = "kafka-cluster"
"""The only name of the resource CLUSTER."""
