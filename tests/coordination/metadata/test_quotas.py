"""Quotas in the metadata log: what is written, what a snapshot holds, who hears of it."""

from math import inf, nan

import pytest

from broker.coordination.metadata.effects import QuotasChanged
from broker.coordination.metadata.quotas import Alteration, MatchType, find
from broker.coordination.metadata.snapshot import records_of
from protocol.log_records.metadata_security import ClientQuotaRecord, QuotaEntity
from tests.coordination.metadata.harness import TOKEN, Bench, answer, changes

BOTH = (("client-id", "c"), ("user", None))


def alteration(**changes: float | None) -> Alteration:
    """Of the default user's client c."""
    return Alteration({"user": None, "client-id": "c"}, list(changes.items()))


def alter(bench: Bench, *wanted: Alteration) -> list[ClientQuotaRecord]:
    """The records."""
    return list(bench.do(bench.machine.alter_client_quotas(wanted, resolves=bool)))


def test_what_changes_is_written_and_nothing_else() -> None:
    """One record for each key, in the order of a map made for them; its entity sorted by type, as Kafka writes it."""
    bench = Bench()
    entity = (QuotaEntity("client-id", "c"), QuotaEntity("user", None))
    assert alter(bench, alteration(producer_byte_rate=5.0, request_percentage=1.5)) == [
        ClientQuotaRecord(entity, "producer_byte_rate", 5.0),
        ClientQuotaRecord(entity, "request_percentage", 1.5),
    ]
    assert alter(bench, alteration(producer_byte_rate=5.0, consumer_byte_rate=None)) == []
    assert alter(bench, alteration(producer_byte_rate=None)) == [
        ClientQuotaRecord(entity, "producer_byte_rate", 0.0, remove=True)
    ]
    assert bench.image.quotas == {BOTH: {"request_percentage": 1.5}}


def test_quotas_outlive_a_restart_and_are_in_snapshots() -> None:
    """Quotas are in the log and in snapshots until they are removed."""
    bench = Bench()
    alter(bench, alteration(producer_byte_rate=5.0))
    assert bench.reloaded().image.quotas == bench.image.quotas == {BOTH: {"producer_byte_rate": 5.0}}
    written = [each for each in records_of(bench.image) if isinstance(each, ClientQuotaRecord)]
    assert [(each.key, each.value) for each in written] == [("producer_byte_rate", 5.0)]


def test_the_brokers_are_notified_once() -> None:
    """However many quotas changed; not at all where none changed, or where the request only validates."""
    bench = Bench()
    wanted = [alteration(producer_byte_rate=5.0, consumer_byte_rate=6.0)]
    tried = bench.machine.alter_client_quotas(wanted, TOKEN, resolves=bool, validate_only=True)
    assert (tried.records, answer(tried)) == ((), [(BOTH, None)])
    assert changes(tried) == []
    done = bench.machine.alter_client_quotas(wanted, TOKEN, resolves=bool)
    assert changes(done) == [QuotasChanged()]


def test_filtered_entities_are_listed_in_the_order_of_their_index() -> None:
    """The table of all entities has 16 buckets, the copy of the index 4; 4.3 has no index and filters the table."""
    bench = Bench()
    users = [Alteration({"user": f"u{number}"}, [("producer_byte_rate", 1.0)]) for number in range(6)]
    addresses = [Alteration({"ip": name}, [("connection_creation_rate", 1.0)]) for name in ("::1", "0:0:0:0:0:0:0:2")]
    alter(bench, *addresses, *users)

    def addresses_found(*, indexed: bool) -> list[str | None]:
        entities = find(bench.image, [("ip", MatchType.SPECIFIED, None)], strict=False, indexed=indexed)
        return [name for ((_, name),), _ in entities]

    assert addresses_found(indexed=True) == ["0:0:0:0:0:0:0:2", "::1"]
    assert addresses_found(indexed=False) == ["::1", "0:0:0:0:0:0:0:2"]


@pytest.mark.parametrize("value", [inf, -inf, nan])
def test_a_quota_is_a_finite_number(value: float) -> None:
    """Behaviour.FINITE_QUOTAS; 4.3.1 takes infinity and NaN where no integer is asked for. A removal has no value."""
    bench = Bench()

    def refused(key: str, *, finite: bool) -> str | None:
        wanted = [Alteration({"user": "u"}, [(key, value)])]
        ((_, error),) = answer(bench.machine.alter_client_quotas(wanted, TOKEN, resolves=bool, finite=finite))
        return None if error is None else str(error.message)

    for key in ("producer_byte_rate", "request_percentage"):
        assert refused(key, finite=True) == f"Quota {key} must be a finite number"
    assert refused("no_such", finite=True) == "Invalid configuration key no_such"
    below = "Quota request_percentage must be greater than 0" if value < 0 else None
    assert refused("request_percentage", finite=False) == below


def test_an_address_has_to_be_one() -> None:
    """The name has to resolve; the default entity is not looked up."""
    bench, looked_up = Bench(), []

    def resolves(name: str) -> bool:
        looked_up.append(name)
        return False

    wanted = [Alteration({"ip": name}, [("connection_creation_rate", 1.0)]) for name in ("nowhere", None)]
    (_, error), (_, none) = answer(bench.machine.alter_client_quotas(wanted, TOKEN, resolves=resolves))
    assert (error.message, none, looked_up) == ("nowhere is not a valid IP or resolvable host.", None, ["nowhere"])
