"""Which quota applies to which client, and what is remembered of its usage (core G.10)."""

import math

import pytest

from broker.access.quotas import FORGOTTEN_MS, BrokerQuotas, Quotas
from broker.access.rates import MOST_MS
from broker.request.throttling import user_of
from broker.settings import BrokerSettings

START_MS = 1_700_000_000_000


def quotas(**bounds: float) -> BrokerQuotas:
    """The default quotas of users."""
    broker_quotas = BrokerQuotas(BrokerSettings(1))
    broker_quotas.follow({(("user", None),): bounds})
    return broker_quotas


def test_usage_outlives_a_change_of_the_quota() -> None:
    """What was used before counts against the new bound; the default windows are eleven of a second."""
    broker_quotas = quotas(producer_byte_rate=10**6)
    assert broker_quotas.produce.charge("a", "c", 20_000, START_MS) == 0
    broker_quotas.follow({(("user", "a"),): {"producer_byte_rate": 1_000}})
    assert broker_quotas.produce.charge("a", "c", 1_000, START_MS) == 11_000


def test_the_windows_are_those_of_the_settings() -> None:
    """Two of five seconds: one full window is what a newcomer's rate is spread over."""
    broker_quotas = BrokerQuotas(BrokerSettings(1, {"quota.window.num": "2", "quota.window.size.seconds": "5"}))
    broker_quotas.follow({(("user", "a"),): {"producer_byte_rate": 1_000, "request_percentage": 0.000001}})
    assert broker_quotas.produce.charge("a", "c", 6_000, START_MS) == 1_000
    assert broker_quotas.request.charge("a", "c", 1, START_MS) == 5_000


def test_what_is_given_back_was_never_used() -> None:
    """As a fetch that is answered without data."""
    broker_quotas = quotas(consumer_byte_rate=1_000)
    assert broker_quotas.fetch.charge("a", "c", 20_000, START_MS) == 10_000
    broker_quotas.fetch.give_back("a", "c", 20_000, START_MS)
    assert broker_quotas.fetch.charge("a", "c", 10_000, START_MS) == 0


def test_who_was_silent_for_an_hour_owes_nothing() -> None:
    """Not even tokens that an hour would not have brought."""
    broker_quotas = quotas(controller_mutation_rate=1)
    assert broker_quotas.mutations.charge("a", "c", 10_000, START_MS, strict=True) == 0
    assert broker_quotas.mutations.charge("a", "c", 1, START_MS + 1, strict=True) > FORGOTTEN_MS
    assert broker_quotas.mutations.charge("a", "c", 1, START_MS + 2 + FORGOTTEN_MS, strict=True) == 0


def test_a_bound_at_once_is_all_full_windows() -> None:
    """And there is none where there is no quota."""
    broker_quotas = quotas(consumer_byte_rate=1_000)
    assert broker_quotas.fetch.most_at_once("a", "c") == 10_000
    broker_quotas.follow({(("user", "a"),): {"consumer_byte_rate": 2.0**62}})
    assert broker_quotas.fetch.most_at_once("a", "c") == 2**31 - 1
    assert broker_quotas.fetch.most_at_once("b", "c") is None


def test_a_quota_that_is_no_number_throttles_no_one() -> None:
    """Brokers before 4.4 take NaN, and round what they make of it to 0, as Java does; a Fetch gets what it must."""
    own = quotas(consumer_byte_rate=math.nan, request_percentage=math.inf)
    assert own.fetch.charge("alice", "c", 1_000_000, START_MS) == 0
    assert own.fetch.most_at_once("alice", "c") == 0
    assert own.request.charge("alice", "c", 1.0, START_MS) == 0
    assert own.request.most_at_once("alice", "c") == MOST_MS


def test_a_client_without_a_name_has_its_users_quota_alone() -> None:
    """Quirk: the quotas of default clients pass it by."""
    broker_quotas = BrokerQuotas(BrokerSettings(1))
    bound = {"producer_byte_rate": 1.0}
    quotas: Quotas = {(("client-id", None),): bound, (("client-id", None), ("user", "a")): bound}
    broker_quotas.follow(quotas)
    assert broker_quotas.produce.charge("a", "", 10**6, START_MS) == 0
    assert broker_quotas.produce.charge("a", "c", 10**6, START_MS) > 0
    broker_quotas.follow({**quotas, (("user", None),): bound})
    assert broker_quotas.produce.charge("a", "", 10**6, START_MS) > 0


def test_an_address_may_open_so_many_connections() -> None:
    """Its own quota before the default one; a connection that is not welcome does not count."""
    broker_quotas = BrokerQuotas(BrokerSettings(1))
    rates: dict[str | None, float] = {None: 100, "10.0.0.1": 1}
    broker_quotas.follow({(("ip", address),): {"connection_creation_rate": rate} for address, rate in rates.items()})
    welcome = [broker_quotas.connections.charge("10.0.0.1", START_MS) for _ in range(12)]
    assert welcome == [0] * 10 + [1_000] * 2
    assert broker_quotas.connections.charge("10.0.0.2", START_MS) == 0
    assert broker_quotas.connections.charge("10.0.0.1", START_MS + 11_000) == 0


@pytest.mark.parametrize(("principal", "user"), [("User:ANONYMOUS", "ANONYMOUS"), ("User:a:b", "a:b")])
def test_a_quota_knows_the_name_of_a_principal(principal: str, user: str) -> None:
    """The user of a quota is the principal's name without its type, further colons included."""
    assert user_of(principal) == user


def test_clients_that_make_up_names_are_not_remembered_without_end() -> None:
    """Of many meters the one that was not used for longest is forgotten; looking for it takes no time."""
    broker_quotas = quotas(producer_byte_rate=1_000)
    broker_quotas.follow({(("client-id", None),): {"producer_byte_rate": 1_000}})
    assert broker_quotas.produce.charge("a", "mine", 20_000, START_MS) == 10_000
    assert broker_quotas.produce.charge("a", "idle", 20_000, START_MS) == 10_000
    for number in range(30_000):
        broker_quotas.produce.charge("a", f"made up {number}", 1, START_MS)
        if not number % 5_000:
            assert broker_quotas.produce.charge("a", "mine", 0, START_MS) == 10_000
    assert broker_quotas.produce.charge("a", "mine", 0, START_MS) == 10_000
    assert broker_quotas.produce.charge("a", "idle", 0, START_MS) == 0
