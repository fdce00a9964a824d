"""How many files a request passes: a ratchet, so that a reader can follow one request through the broker."""

from collections.abc import Awaitable, Callable

import pytest

from benchmarks import frames, inside
from benchmarks.inside import Peer, run
from broker.cluster.cluster import Cluster
from broker.steering.faults.actions import HangUp
from broker.steering.faults.match import Match
from protocol.apis import ApiKey
from protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from tools.request_path import WALKS, walked

MOST_FILES = {"produce": 26, "end-txn": 38, "clock-advance": 5}
FAULTS = "broker/steering/faults/rules.py"
QUOTAS = "broker/request/throttling.py"
AUTHENTICATION = "broker/request/authentication.py"
TRANSACTIONS = "broker/steering/timelines/transactions.py"


@pytest.mark.parametrize("walk", WALKS)
def test_a_request_passes_few_files(walk: str) -> None:
    """A new file on the way of every request has to be worth a reader's look at it.

    The functions of ``dataclasses`` have no file: an ``__init__`` that is written out counts its own.
    """
    assert run(WALKS[walk]).files <= MOST_FILES[walk]


def stages_around(change: Callable[[Cluster, Peer], Awaitable[None]]) -> tuple[set[str], set[str]]:
    """Return the files that a Produce passes before and after a change of the cluster."""

    async def files(peer: Peer, frame: bytes) -> set[str]:
        return set((await walked(lambda: peer.ask(frame))).stays)

    walks: list[set[str]] = []

    async def walk() -> None:
        async with inside.broker("t:1") as cluster:
            with Peer(cluster) as peer:
                frame = frames.produce("t", records=1, size=100)
                await peer.ask(frame)
                walks.append(await files(peer, frame))
                await change(cluster, peer)
                walks.append(await files(peer, frame))

    run(walk)
    return walks[0], walks[1]


async def set_quota(peer: Peer, *, remove: bool) -> None:
    """Alter a quota of all clients."""
    quota = EntryData([EntityData("client-id", None)], [OpData("producer_byte_rate", 1e12, remove)])
    await peer.call(ApiKey.ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequest([quota]))


def test_requests_pass_the_faults_while_there_is_one() -> None:
    """Even if it matches no request; not after its removal."""

    async def add(cluster: Cluster, _peer: Peer) -> None:
        cluster.faults.add(Match(ApiKey.FETCH), HangUp(reset=False), {})

    async def add_two_and_remove_them(cluster: Cluster, _peer: Peer) -> None:
        for _ in range(2):
            cluster.faults.add(Match(ApiKey.FETCH), HangUp(reset=False), {})
        for name in list(cluster.faults.faults):
            cluster.faults.remove(name)

    async def add_and_clear(cluster: Cluster, peer: Peer) -> None:
        await add(cluster, peer)
        cluster.faults.clear()

    before, after = stages_around(add)
    assert (FAULTS in before, FAULTS in after) == (False, True)
    assert FAULTS not in stages_around(add_two_and_remove_them)[1]
    assert FAULTS not in stages_around(add_and_clear)[1]


def test_requests_are_charged_while_there_is_a_quota() -> None:
    """The first quota in the metadata adds the stage, the removal of the last one takes it away."""

    async def add(_cluster: Cluster, peer: Peer) -> None:
        await set_quota(peer, remove=False)

    async def add_and_remove(_cluster: Cluster, peer: Peer) -> None:
        await set_quota(peer, remove=False)
        await set_quota(peer, remove=True)

    before, after = stages_around(add)
    assert (QUOTAS in before, QUOTAS in after) == (False, True)
    assert QUOTAS not in stages_around(add_and_remove)[1]


def test_a_request_passes_no_stage_that_cannot_act() -> None:
    """Neither authentication on a listener without SASL, nor the timeline of an id that the request does not have."""

    async def nothing(_cluster: Cluster, _peer: Peer) -> None: ...

    assert not {AUTHENTICATION, TRANSACTIONS} & stages_around(nothing)[0]
