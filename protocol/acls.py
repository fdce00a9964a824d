"""The codes that ACLs speak in, on the wire and in the metadata log (core G.7; Kafka: common.acl, common.resource)."""

from enum import IntEnum


class AclOperation(IntEnum):
    """What may be allowed or denied on a resource. ANY stands in filters alone."""

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
    """The kinds of resources that ACLs speak of. ANY stands in filters alone."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How an ACL's name is meant; ANY and MATCH stand in filters alone (KIP-290)."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class PermissionType(IntEnum):
    """Whether an ACL allows or denies. ANY stands in filters alone."""

    ANY = 1
    DENY = 2
    ALLOW = 3


UNKNOWN = 0
"""What a code outside its enumeration is read as."""

WILDCARD = "*"
"""Any name (of a LITERAL pattern), any host."""

ANYBODY = "User:*"
"""Any principal."""

CLUSTER_NAME = "kafka-cluster"
"""The only name of the resource CLUSTER."""
