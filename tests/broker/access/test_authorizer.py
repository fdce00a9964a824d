"""What the authorizer decides (core G.7), beside what tests/scenarios/core/test_acls.py asks over the wire."""

from uuid import UUID

import pytest

from broker.access.authorizer import authorizer_of, java_host, speaks_as
from broker.coordination.metadata.image import ClusterImage
from broker.coordination.metadata.replay import apply
from broker.options import OptionError, parse
from broker.request.connection import Connection
from broker.settings import BrokerSettings
from protocol.acls import AclOperation as Op
from protocol.acls import PatternType, PermissionType
from protocol.acls import ResourceType as Kind
from protocol.log_records.metadata_security import AccessControlEntryRecord, RemoveAccessControlEntryRecord

CLASS = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ALLOW, DENY = PermissionType.ALLOW, PermissionType.DENY
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED


class Bench:
    """An authorizer and the ACLs that it looks at."""

    def __init__(self, **settings: str) -> None:
        texts = {name.replace("_", "."): value for name, value in settings.items()}
        authorizer = authorizer_of(BrokerSettings(1, {"authorizer.class.name": CLASS, **texts}))
        assert authorizer is not None
        self.authorizer, self.image = authorizer, ClusterImage()

    def add(
        self,
        permission: PermissionType,
        operation: Op,
        name: str,
        *,
        pattern: PatternType = LITERAL,
        principal: str = "User:a",
        host: str = "*",
    ) -> UUID:
        """A new ACL of a topic; its id."""
        uuid = UUID(int=self.image.acl_changes + 1)
        apply(
            self.image,
            AccessControlEntryRecord(uuid, Kind.TOPIC, name, pattern, principal, host, operation, permission),
        )
        return uuid

    def may(self, operation: Op, name: str, *, principal: str = "User:a", host: str = "10.0.0.1") -> bool:
        """Whether a principal may do that to a topic."""
        who = Connection("c", "PLAINTEXT", host, 1, principal)
        return self.authorizer.allows(self.image, who, operation, Kind.TOPIC, name)

    def may_somewhere(self) -> bool:
        """Whether ``User:a`` may write to some topic."""
        who = Connection("c", "PLAINTEXT", "10.0.0.1", 1, "User:a")
        return self.authorizer.allows_somewhere(self.image, who, Op.WRITE, Kind.TOPIC)


def test_without_a_class_there_is_none() -> None:
    """Without authorizer.class.name there is no authorizer, and no request is checked."""
    assert authorizer_of(BrokerSettings(1)) is None


def test_what_nothing_allows_is_denied() -> None:
    """Unless the broker allows it, as long as the resource has no ACL."""
    assert not Bench().may(Op.READ, "t")
    free = Bench(allow_everyone_if_no_acl_found="true")
    assert free.may(Op.READ, "t")
    free.add(ALLOW, Op.WRITE, "t", principal="User:b")
    assert not free.may(Op.READ, "t")
    assert free.may(Op.READ, "u")


def test_super_users_are_asked_nothing() -> None:
    """Several of them, with spaces around; a denial of them counts for nothing."""
    bench = Bench(super_users="User:root; User:a ;")
    bench.add(DENY, Op.ALL, "*", principal="User:*")
    assert bench.may(Op.READ, "t")
    assert bench.may(Op.READ, "t", principal="User:root")
    assert not bench.may(Op.READ, "t", principal="User:b")


@pytest.mark.parametrize("implying", [Op.READ, Op.WRITE, Op.DELETE, Op.ALTER, Op.DESCRIBE, Op.ALL])
def test_who_may_do_something_may_describe(implying: Op) -> None:
    """An allowance implies DESCRIBE; a denial denies what it names."""
    bench = Bench()
    bench.add(ALLOW, implying, "t")
    assert bench.may(Op.DESCRIBE, "t")
    bench.add(DENY, Op.READ, "t")
    assert bench.may(Op.DESCRIBE, "t")
    bench.add(DENY, Op.DESCRIBE, "t")
    assert not bench.may(Op.DESCRIBE, "t")


@pytest.mark.parametrize("other", [Op.CREATE, Op.DESCRIBE_CONFIGS, Op.ALTER_CONFIGS])
def test_other_operations_imply_no_description(other: Op) -> None:
    """ALTER_CONFIGS implies DESCRIBE_CONFIGS instead."""
    bench = Bench()
    bench.add(ALLOW, other, "t")
    assert not bench.may(Op.DESCRIBE, "t")
    assert bench.may(Op.DESCRIBE_CONFIGS, "t") is (other is not Op.CREATE)


def test_a_change_of_acls_is_seen_at_once() -> None:
    """What was decided before is forgotten, also where the whole image is another one."""
    bench = Bench()
    acl_id = bench.add(ALLOW, Op.READ, "t")
    assert bench.may(Op.READ, "t")
    apply(bench.image, RemoveAccessControlEntryRecord(acl_id))
    assert not bench.may(Op.READ, "t")
    other = Bench()
    other.add(ALLOW, Op.READ, "t")
    other.add(ALLOW, Op.WRITE, "u")
    bench.image = other.image
    assert bench.may(Op.READ, "t")


@pytest.mark.parametrize(
    ("address", "written"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("somewhere", "somewhere"),
    ],
)
def test_hosts_are_compared_as_java_writes_them(address: str, written: str) -> None:
    """IPv6 in full, without leading zeros."""
    assert java_host(address) == written
    bench = Bench()
    bench.add(ALLOW, Op.READ, "t", host=written)
    assert bench.may(Op.READ, "t", host=address)
    assert not bench.may(Op.READ, "t", host="10.0.0.2")


Pattern = tuple[PermissionType, str, PatternType]


@pytest.mark.parametrize(
    ("acls", "allowed"),
    [
        ([], False),
        ([(ALLOW, "t", LITERAL)], True),
        ([(ALLOW, "t", LITERAL), (DENY, "t", LITERAL)], False),
        ([(ALLOW, "t", PREFIXED), (DENY, "t", LITERAL)], True),
        ([(ALLOW, "top", PREFIXED), (DENY, "to", PREFIXED)], False),
        ([(ALLOW, "to", PREFIXED), (DENY, "top", PREFIXED)], True),
        ([(ALLOW, "top", LITERAL), (DENY, "to", PREFIXED)], False),
        ([(ALLOW, "*", LITERAL), (DENY, "t", PREFIXED)], True),
        ([(ALLOW, "t", LITERAL), (DENY, "*", LITERAL)], False),
        ([(ALLOW, "*", LITERAL), (DENY, "hardcode", LITERAL)], True),
    ],
)
def test_somewhere_is_a_pattern_that_no_denial_covers(acls: list[Pattern], allowed: bool) -> None:
    """Rule 5 (Authorizer.authorizeByResourceType)."""
    bench = Bench()
    for permission, name, pattern in acls:
        bench.add(permission, Op.WRITE, name, pattern=pattern)
    assert bench.may_somewhere() is allowed
    assert Bench(super_users="User:a").may_somewhere()
    assert Bench(allow_everyone_if_no_acl_found="true").may_somewhere()


@pytest.mark.parametrize("name", ["com.example.Own", "StandardAuthorizer"])
def test_a_class_that_is_not_there_is_refused_at_start(name: str) -> None:
    """Otherwise every client would be allowed everything."""
    with pytest.raises(OptionError, match=r"Only org.apache.kafka"):
        parse({"set": [f"authorizer.class.name={name}"]})
    with pytest.raises(OptionError, match=r"server.properties authorizer.class.name"):
        parse({"properties": [f"authorizer.class.name={name}"]})
    with pytest.raises(OptionError, match="expected a string in format principalType:principalName but got b"):
        parse({"set": ["super.users=User:a; b"]})


@pytest.mark.parametrize(
    ("client_id", "principal"),
    [("admin", "User:admin"), ("orders-1", "User:orders"), ("orders", "User:rest"), ("", "User:rest")],
)
def test_the_first_rule_that_fits_a_client_id_counts(client_id: str, principal: str) -> None:
    """Patterns are those of file names; a client that matches no rule keeps its principal."""
    assert speaks_as("admin=User:admin; orders-*=User:orders;*=User:rest", client_id) == principal
    assert speaks_as("other=User:b", client_id) is None


@pytest.mark.parametrize("rule", ["a", "a=b", "=User:b", "a=User:a;b"])
def test_a_malformed_rule_is_refused_at_start(rule: str) -> None:
    """With the format that it should have."""
    with pytest.raises(OptionError, match="clientIdPattern=principalType:principalName"):
        parse({"set": [f"understudy.principals={rule}"]})


def test_long_names_are_decided_as_fast_as_short_ones() -> None:
    """Each beginning of a name was looked for: of 2,000 names of 30,000 letters that took minutes. None is kept."""
    bench = Bench()
    bench.add(ALLOW, Op.READ, "x" * 20_000, pattern=PREFIXED)
    bench.add(DENY, Op.READ, "x" * 25_000, pattern=PREFIXED)
    names = ["x" * 19_999, "x" * 20_000, "x" * 24_999, "x" * 25_000, "x" * 30_000]
    assert [bench.may(Op.READ, name) for name in names] == [False, True, True, False, False]
    assert not any(bench.may(Op.READ, f"{number}" + "y" * 30_000) for number in range(2000))
    assert not bench.authorizer._decisions
    assert bench.may(Op.READ, "short") is False


def test_a_long_allowed_prefix_under_denied_ones() -> None:
    """Some pattern is allowed that no denial covers."""
    bench = Bench()
    for number in range(2000):
        bench.add(ALLOW, Op.WRITE, f"{number}" + "y" * 20_000, pattern=PREFIXED)
    bench.add(DENY, Op.WRITE, "1", pattern=PREFIXED)
    assert bench.may_somewhere()
    for first in "023456789":
        bench.add(DENY, Op.WRITE, first, pattern=PREFIXED)
    assert not bench.may_somewhere()
