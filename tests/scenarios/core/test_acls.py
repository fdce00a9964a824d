"""ACLs (core G.7 to G.9): what they decide, and how they are made, found and removed."""

import pytest

from protocol.acls import AclOperation as Op
from protocol.acls import PatternType, PermissionType
from protocol.acls import ResourceType as Kind
from protocol.apis import ApiKey
from protocol.messages.create_acls import CreateAclsRequest
from protocol.messages.metadata import MetadataRequest
from tests.conftest import BrokerWith
from tests.scenarios.conftest import LastingWith
from tests.scenarios.core.asking import create, fetch, metadata, metadata_by_id, produce, topic
from tests.scenarios.core.batches import batch
from tests.scenarios.guarded import (
    ADMIN,
    ANONYMOUS,
    CLIENT,
    SETTINGS,
    Guarded,
    acl,
    acls_of,
    created,
    deleted,
    described,
    filtered,
    guarded_by,
)
from tests.server import Server

LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED


def may_read(stage: Guarded, name: str) -> int:
    """The error of the client's Fetch."""
    return fetch(stage.client, name).error_code


def may_describe(stage: Guarded, name: str) -> int:
    """The error of the client's Metadata."""
    (topic,) = metadata(stage.client, name)
    return topic.error_code


def test_ACL_01_without_an_authorizer_there_are_no_acls(broker: Server) -> None:
    """SECURITY_DISABLED, at the top or on each entry."""
    wire = broker.wire()
    answer = described(wire)
    assert (answer.error_code, answer.error_message) == (54, "No Authorizer is configured on the broker")
    for results in (created(wire, *[acl(Op.READ, Kind.TOPIC, "foo")] * 2), deleted(wire, *[filtered()] * 2)):
        assert [(each.error_code, each.error_message) for each in results] == [(54, "No Authorizer is configured.")] * 2


@pytest.mark.parametrize(
    ("host", "code"),
    [("127.0.0.0/8", 0), ("127.255.0.3/8", 0), ("0.0.0.0/0", 0), ("10.0.0.0/8", 29), ("::/0", 29), (CLIENT, 0)],
)
def test_a_subnet_matches_the_hosts_of_an_acl(guarded: Guarded, host: str, code: int) -> None:
    """CidrUtils, of 4.4; bits beyond the prefix are ignored, and families do not mix."""
    (result,) = created(guarded.admin, acl(Op.READ, Kind.TOPIC, "foo", host=host))
    assert result.error_code == 0
    assert may_read(guarded, "foo") == code


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("", "Host pattern cannot be null or empty"),
        ("10.0.0.0/33", "Invalid CIDR notation '10.0.0.0/33': Value [33] not in range [0,32]"),
        ("10.0.0.256/8", "Invalid CIDR notation '10.0.0.256/8': Value [256] not in range [0,255]"),
        ("10.0.0/8", "Invalid CIDR notation '10.0.0/8': Could not parse [10.0.0/8]"),
        ("::/x", "Invalid CIDR notation '::/x': Could not parse [::/x] - invalid prefix length"),
        (
            "::/129",
            "Invalid CIDR notation '::/129': Could not parse [::/129] - prefix length must be between 0 and 128",
        ),
    ],
)
def test_a_host_that_is_no_pattern_is_refused(guarded: Guarded, host: str, message: str) -> None:
    """AclControlManager.validateHostPattern, of 4.4; a name is none either, but is taken."""
    (refused,) = created(guarded.admin, acl(Op.READ, Kind.TOPIC, "foo", host=host))
    assert (refused.error_code, refused.error_message) == (42, message)
    (taken,) = created(guarded.admin, acl(Op.READ, Kind.TOPIC, "foo", host="a.name"))
    assert taken.error_code == 0


def test_ACL_02_what_may_be_written_may_be_described(guarded: Guarded) -> None:
    """The right to write a topic includes describing it, and does not include reading it."""
    assert produce(guarded.client, "foo", batch(b"a")).error_code == 29
    assert (may_describe(guarded, "foo"), may_read(guarded, "foo")) == (29, 29)
    guarded.allow((Op.WRITE, Kind.TOPIC, "foo"))
    assert produce(guarded.client, "foo", batch(b"a")).error_code == 0
    assert (may_describe(guarded, "foo"), may_read(guarded, "foo")) == (0, 29)


def test_ACL_03_deny_takes_precedence_over_allow(guarded: Guarded) -> None:
    """A denied READ denies no DESCRIBE."""
    guarded.create(acl(Op.ALL, Kind.TOPIC, "*", principal="User:*", host="*"))
    assert may_read(guarded, "foo") == 0
    guarded.deny((Op.READ, Kind.TOPIC, "foo"))
    assert (may_read(guarded, "foo"), may_read(guarded, "bar")) == (29, 0)
    assert may_describe(guarded, "foo") == 0
    assert fetch(guarded.admin, "foo").error_code == 0


def test_ACL_04_a_prefix_speaks_of_all_that_begin_so(guarded: Guarded) -> None:
    """A prefixed ACL applies to all names that begin with it, and to no other."""
    guarded.create(acl(Op.READ, Kind.TOPIC, "fo", pattern=PREFIXED))
    assert (may_read(guarded, "foo"), may_read(guarded, "bar")) == (0, 29)


def test_ACL_05_a_resource_without_acls_is_open_if_the_broker_allows_it(broker_with: BrokerWith) -> None:
    """One ACL for any principal closes it to all others."""
    with guarded_by(broker_with) as stage:
        create(stage.admin, topic("foo"), topic("bar"))
        deleted(stage.admin, filtered(Kind.TOPIC))
        assert (may_read(stage, "foo"), may_read(stage, "bar")) == (0, 0)
        stage.create(acl(Op.READ, Kind.TOPIC, "foo", principal="User:b", host="*"))
        assert (may_read(stage, "foo"), may_read(stage, "bar")) == (29, 0)


def test_ACL_06_how_a_filter_finds_names(guarded: Guarded) -> None:
    """MATCH finds what would be asked about a resource; the others compare names."""
    names = [("foo", LITERAL), ("*", LITERAL), ("fo", PREFIXED), ("foobar", PREFIXED)]
    guarded.create(*(acl(Op.READ, Kind.TOPIC, name, pattern=pattern) for name, pattern in names))

    def matching(name: str | None, pattern: PatternType) -> set[str]:
        return {each[1] for each in acls_of(described(guarded.admin, Kind.TOPIC, name, pattern, host=CLIENT))}

    assert matching("foo", PatternType.MATCH) == {"foo", "*", "fo"}
    assert matching("foo", LITERAL) == {"foo"}
    assert matching("*", LITERAL) == {"*"}
    assert matching("foo", PatternType.ANY) == {"foo"}
    assert matching(None, PREFIXED) == {"fo", "foobar"}
    assert matching(None, PatternType.MATCH) == {"foo", "*", "fo", "foobar"}
    assert matching("foo", PREFIXED) == set()


def test_ACL_07_an_acl_that_cannot_be_is_refused_by_itself(guarded: Guarded) -> None:
    """The others of the request are made; what is there already is no error."""
    good = acl(Op.READ, Kind.TOPIC, "foo")
    bad = {
        "The only valid name for the CLUSTER resource is kafka-cluster": acl(Op.READ, Kind.CLUSTER, "x"),
        "Invalid empty resource name": acl(Op.READ, Kind.TOPIC, ""),
        "Invalid resourceType UNKNOWN": acl(Op.READ, 99, "x"),
        "Invalid patternType UNKNOWN": acl(Op.READ, Kind.TOPIC, "x", pattern=99),
        "Invalid operation UNKNOWN": acl(99, Kind.TOPIC, "x"),
        "Invalid permissionType UNKNOWN": acl(Op.READ, Kind.TOPIC, "x", permission=99),
        "Could not parse principal from `a` (no colon is present separating the principal type from the principal "
        "name)": acl(Op.READ, Kind.TOPIC, "x", principal="a"),
    }
    results = created(guarded.admin, good, *bad.values(), good)
    assert [(each.error_code, each.error_message) for each in results] == [
        (0, ""),
        *((42, problem) for problem in bad),
        (0, ""),
    ]
    assert created(guarded.admin, good)[0].error_code == 0
    assert acls_of(described(guarded.admin, host=CLIENT)) == {(2, "foo", 3, ANONYMOUS, CLIENT, 3, 3)}


@pytest.mark.parametrize(
    "odd",
    [
        acl(Op.ANY, Kind.TOPIC, "x"),
        acl(Op.READ, Kind.ANY, "x"),
        acl(Op.READ, Kind.TOPIC, "x", pattern=PatternType.MATCH),
        acl(Op.READ, Kind.TOPIC, "x", pattern=PatternType.ANY),
        acl(Op.READ, Kind.TOPIC, "x", permission=PermissionType.ANY),
    ],
)
def test_ACL_07_one_filter_among_them_spoils_all(guarded: Guarded, odd: object) -> None:
    """Quirk: the controller cannot read such a request."""
    request = CreateAclsRequest([acl(Op.READ, Kind.TOPIC, "foo"), odd])  # type: ignore[list-item]
    results = guarded.admin.call(ApiKey.CREATE_ACLS, 3, request).results
    assert [(each.error_code, each.error_message) for each in results] == [(-1, None), (-1, None)]
    assert not acls_of(described(guarded.admin, host=CLIENT))


def test_ACL_07_a_code_of_zero_closes_the_connection(guarded: Guarded) -> None:
    """An unknown enum code in an ACL request closes the connection in all three APIs."""
    for ask in (
        lambda wire: wire.send(ApiKey.CREATE_ACLS, 3, CreateAclsRequest([acl(0, Kind.TOPIC, "foo")])),
        lambda wire: wire.send(ApiKey.CREATE_ACLS, 3, CreateAclsRequest([acl(Op.READ, Kind.TOPIC, "f", pattern=0)])),
    ):
        wire = guarded.server.wire(source=ADMIN)
        ask(wire)  # type: ignore[no-untyped-call]
        wire.check_closed()


def test_ACL_08_an_acl_that_two_filters_match_is_in_both_results(guarded: Guarded) -> None:
    """An ACL that two filters match is deleted once, and listed in both results."""
    guarded.allow((Op.READ, Kind.TOPIC, "foo"), (Op.WRITE, Kind.TOPIC, "foo"))
    first, second = deleted(
        guarded.admin, filtered(Kind.TOPIC, "foo", LITERAL), filtered(host=CLIENT, operation=Op.READ)
    )
    assert (first.error_code, first.error_message) == (0, None)
    read = (0, None, 2, "foo", 3, ANONYMOUS, CLIENT, 3, 3)
    assert {
        (a.error_code, a.error_message, a.resource_type, a.resource_name, a.pattern_type, a.principal, a.host,
         a.operation, a.permission_type)
        for a in second.matching_acls
    } == {read}  # fmt: skip
    assert {each.operation for each in first.matching_acls} == {Op.READ, Op.WRITE}
    assert not acls_of(described(guarded.admin, host=CLIENT))
    (again,) = deleted(guarded.admin, filtered(host=CLIENT))
    assert (again.error_code, list(again.matching_acls)) == (0, [])


def test_ACL_08_a_filter_of_unknown_types_is_refused(guarded: Guarded) -> None:
    """The other filters of the request are applied."""
    odd = filtered()
    odd.pattern_type_filter = 99
    entry = filtered(operation=99)
    results = deleted(guarded.admin, odd, entry, filtered(host=CLIENT))
    assert [(each.error_code, each.error_message) for each in results] == [
        (42, "Unknown patternFilter."),
        (42, "Unknown entryFilter."),
        (0, None),
    ]
    assert not acls_of(described(guarded.admin, 99))


def test_acls_outlive_a_restart(lasting_with: LastingWith) -> None:
    """They are in the metadata log, and decide from the first request on."""
    lasting = lasting_with(SETTINGS)
    before = Guarded(lasting.server)
    before.begin()
    before.deny((Op.READ, Kind.TOPIC, "foo"))
    before.allow((Op.WRITE, Kind.TOPIC, "foo"))
    create(before.admin, topic("foo"))
    known = acls_of(described(before.admin))
    after = Guarded(lasting.restart())
    assert acls_of(described(after.admin)) == known
    assert (may_describe(after, "foo"), may_read(after, "foo")) == (0, 29)
    assert produce(after.client, "foo", batch(b"a")).error_code == 0
    deleted(after.admin, filtered())


def test_MET_10_topics_that_may_not_be_described_are_hidden(guarded: Guarded) -> None:
    """Absent from the list of all topics; refused by name without the id, and by id without the name."""
    ids = {str(each.name): each.topic_id for each in metadata(guarded.admin, "foo", "bar")}
    guarded.allow((Op.DESCRIBE, Kind.TOPIC, "bar"))
    everything = guarded.client.call(ApiKey.METADATA, 12, MetadataRequest(None)).topics
    assert [each.name for each in everything] == ["bar"]
    (named,) = metadata(guarded.client, "foo")
    assert (named.error_code, named.name, named.topic_id) == (29, "foo", None)
    assert ids["foo"] is not None
    (by_id,) = metadata_by_id(guarded.client, ids["foo"])
    assert (by_id.error_code, by_id.name, by_id.topic_id) == (29, None, ids["foo"])
