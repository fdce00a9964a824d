"""Client quotas (core G.10): how they are set and removed, and how they are found."""

import pytest

from broker.handlers import alter_client_quotas, describe_client_quotas
from protocol.errors import ErrorCode
from tests.scenarios.limits import (
    DEFAULT,
    EXACT,
    SPECIFIED,
    Entity,
    altered,
    client,
    described,
    entry,
    limit,
    quotas_of,
    refusal,
)
from tests.server import Server
from tests.versions import every_version
from tests.wire import Wire


@pytest.fixture
def admin(broker: Server) -> Wire:
    """A connection that sets quotas."""
    return broker.wire()


# --- setting ---------------------------------------------------------------------------------------------------------


def test_QUO_01_a_quota_is_a_whole_number_above_zero(admin: Wire) -> None:
    """A quota is a whole number above zero, and is described as it was set."""
    user = {"user": "a"}
    assert refusal(admin, user, ("producer_byte_rate", 0)) == (42, "Quota producer_byte_rate must be greater than 0")
    assert refusal(admin, user, ("producer_byte_rate", 1.5)) == (
        42,
        "producer_byte_rate cannot be a fractional value.",
    )
    assert refusal(admin, user, ("producer_byte_rate", 1000)) == (0, None)
    assert quotas_of(described(admin, ("user", EXACT, "a"), strict=True)) == {
        (("user", "a"),): {"producer_byte_rate": 1000.0}
    }


@every_version(alter_client_quotas.API, describe_client_quotas.API)
def test_QUO_01_a_quota_is_altered_and_described_in_every_version(admin: Wire, version: int) -> None:
    """A quota is set and described in every version."""
    (answer,) = altered(admin, entry({"user": "a"}, ("request_percentage", 12.5)), version=version)
    assert answer.error_code is ErrorCode.NONE
    assert quotas_of(described(admin, version=version)) == {(("user", "a"),): {"request_percentage": 12.5}}


def test_QUO_01_every_key_has_its_entities_and_its_numbers(admin: Wire) -> None:
    """A key that its entity cannot have, and a number out of its range, are refused with Kafka's message."""
    both, ip, rate = {"user": "a", "client-id": "c"}, {"ip": "127.0.0.9"}, "connection_creation_rate"
    for entity, key, value, problem in (
        ({"user": "a"}, rate, 1, "Invalid configuration key connection_creation_rate"),
        (both, "nonsense", 1, "Invalid configuration key nonsense"),
        (ip, "producer_byte_rate", 1, "Invalid configuration key producer_byte_rate"),
        (both, "request_percentage", -1, "Quota request_percentage must be greater than 0"),
        (both, "consumer_byte_rate", 2.0**64, "Proposed value for consumer_byte_rate is too large for a LONG."),
        (ip, rate, 2.0**31, "Proposed value for connection_creation_rate is too large for an INT."),
        (ip, rate, 0.5, "connection_creation_rate cannot be a fractional value."),
    ):  # fmt: skip
        assert refusal(admin, entity, (key, value)) == (42, problem)
    limit(admin, both, controller_mutation_rate=0.1, consumer_byte_rate=1, request_percentage=0.001)
    limit(admin, ip, connection_creation_rate=100)
    assert quotas_of(described(admin)) == {
        (("client-id", "c"), ("user", "a")): {
            "controller_mutation_rate": 0.1,
            "consumer_byte_rate": 1,
            "request_percentage": 0.001,
        },
        (("ip", "127.0.0.9"),): {"connection_creation_rate": 100},
    }


def test_QUO_01_what_is_refused_changes_nothing_and_the_others_are_set(admin: Wire) -> None:
    """Each entity is altered by itself, with all its keys or none; ValidateOnly alters none."""
    good = entry({"user": "a"}, ("producer_byte_rate", 5))
    bad = entry({"user": "b"}, ("consumer_byte_rate", 5), ("producer_byte_rate", 0))
    results = altered(admin, good, bad, validate_only=True)
    assert sorted(each.error_code for each in results) == [0, 42]
    assert quotas_of(described(admin)) == {}
    altered(admin, good, bad)
    assert quotas_of(described(admin)) == {(("user", "a"),): {"producer_byte_rate": 5}}


def test_QUO_01_an_entity_that_is_listed_twice_is_refused(admin: Wire) -> None:
    """Quirk: the first entry is applied all the same; a key that is listed twice is not applied at all."""
    (twice,) = altered(
        admin, entry({"user": "a"}, ("producer_byte_rate", 5)), entry({"user": "a"}, ("producer_byte_rate", 6))
    )
    sentence = "Ignoring duplicate entity ClientQuotaEntity(entries={user=a})"
    assert (twice.error_code, twice.error_message) == (42, sentence)
    key_twice = refusal(admin, {"user": None}, ("producer_byte_rate", 5), ("producer_byte_rate", 5))
    assert key_twice == (42, "Ignoring duplicate entity ClientQuotaEntity(entries={user=null})")
    assert quotas_of(described(admin)) == {(("user", "a"),): {"producer_byte_rate": 5}}


def test_QUO_01_quotas_are_removed(admin: Wire) -> None:
    """One by one; an entity without any is gone, and what is not there may be removed."""
    limit(admin, client("c"), producer_byte_rate=5, consumer_byte_rate=6)
    limit(admin, client("c"), producer_byte_rate=None, request_percentage=None)
    assert quotas_of(described(admin)) == {(("client-id", "c"),): {"consumer_byte_rate": 6}}
    limit(admin, client("c"), consumer_byte_rate=None)
    assert quotas_of(described(admin)) == {}


def test_an_entitys_quotas_are_listed_in_the_order_of_tables_that_grow_with_each_append(admin: Wire) -> None:
    """Two keys in one bucket: what was there before comes first; set together, they have the order of a new table."""

    def keys() -> list[str]:
        (only,) = described(admin).entries or ()
        return [value.key for value in only.values]

    limit(admin, client("c"), producer_byte_rate=5)
    limit(admin, client("c"), request_percentage=5)
    assert keys() == ["producer_byte_rate", "request_percentage"]
    limit(admin, client("c"), producer_byte_rate=None, request_percentage=None)
    limit(admin, client("c"), producer_byte_rate=5, request_percentage=5)
    assert keys() == ["request_percentage", "producer_byte_rate"]


def test_QUO_05_entities_that_a_quota_can_have(admin: Wire) -> None:
    """Users, client ids and both; addresses alone."""
    change = "producer_byte_rate", 1
    for entity, problem in (
        ({}, "Invalid empty client quota entity"),
        ({"group": "g"}, "Unhandled client quota entity type: group"),
        ({"user": ""}, "Empty user not supported"),
        ({"client-id": ""}, "Empty client-id not supported"),
        ({"ip": ""}, "Empty ip not supported"),
        (
            {"ip": "127.0.0.1", "user": "a"},
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
        ),
        ({"ip": "no.such.host.invalid"}, "no.such.host.invalid is not a valid IP or resolvable host."),
    ):
        assert refusal(admin, entity, change) == (42, problem)
    assert quotas_of(described(admin)) == {}
    for kind in ("user", "client-id"):
        limit(admin, {kind: None}, producer_byte_rate=10**9)
    limit(admin, {"ip": None}, connection_creation_rate=10**6)
    assert quotas_of(described(admin)).keys() == {(("user", None),), (("client-id", None),), (("ip", None),)}


# --- finding ---------------------------------------------------------------------------------------------------------


def test_QUO_01_how_a_filter_finds_entities(admin: Wire) -> None:
    """By name, the default one, any; with no more parts than are asked for, where it is strict."""
    entities: list[Entity] = [{"user": "a"}, {"user": None}, {"user": "a", "client-id": "c"}, {"client-id": "c"}]
    for entity in entities:
        limit(admin, entity, request_percentage=10_000)
    limit(admin, {"ip": "127.0.0.9"}, connection_creation_rate=1)
    a, default, both, c = [tuple(sorted(each.items())) for each in entities]

    def matching(*components: tuple[str, int, str | None], strict: bool = False) -> set[object]:
        return set(quotas_of(described(admin, *components, strict=strict)))

    assert matching(("user", EXACT, "a")) == {a, both}
    assert matching(("user", EXACT, "a"), strict=True) == {a}
    assert matching(("user", DEFAULT, None)) == {default}
    assert matching(("user", SPECIFIED, None)) == {a, default, both}
    assert matching(("user", SPECIFIED, None), ("client-id", EXACT, "c")) == {both}
    assert matching(("client-id", EXACT, "c"), strict=True) == {c}
    assert matching(("ip", SPECIFIED, None)) == {(("ip", "127.0.0.9"),)}
    assert matching() == {a, default, both, c, (("ip", "127.0.0.9"),)}
    assert matching(strict=True) == set()


@pytest.mark.parametrize(
    ("components", "code", "problem"),
    [
        ([("user", EXACT, "a")] * 2, 42, "Entity type user cannot appear more than once in the filter."),
        ([("user", EXACT, None)], 42, "Request specified MATCH_TYPE_EXACT, but set match string to null."),
        ([("user", DEFAULT, "a")], 42, "Request specified MATCH_TYPE_DEFAULT, but also specified a match string."),
        ([("user", SPECIFIED, "a")], 42, "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string."),
        ([("user", 9, None)], 42, "Unknown match type 9"),
        ([("", EXACT, "a")], 42, "Invalid empty entity type."),
        ([("group", EXACT, "a")], 35, "Unsupported entity type group"),
        (
            [("ip", EXACT, "a"), ("user", EXACT, "a")],
            42,
            (
                "Invalid entity filter component combination. IP filter component should not be used with user or "
                "clientId filter component."
            ),
        ),
    ],
)  # fmt: skip
def test_QUO_05_invalid_filters_are_refused(
    admin: Wire, components: list[tuple[str, int, str | None]], code: int, problem: str
) -> None:
    """With a top-level error, and no list of entries."""
    answer = described(admin, *components)
    assert (answer.error_code, answer.error_message, answer.entries) == (code, problem, None)
