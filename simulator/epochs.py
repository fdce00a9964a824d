"""Where leader epochs end, asked of each replica: what a consumer relies on when its leader has changed (KIP-320)."""

from collections.abc import Mapping

from broker.coordination.coordinators import GROUP_TOPIC, TRANSACTION_TOPIC
from simulator.clients.client import Client, World
from simulator.clients.consumer import Fetcher
from simulator.cluster import Servers
from simulator.history import Place
from simulator.loop import sleep_ms

_MOVES_MS = 100  # between two moves: enough for a marker on its way to meet the next leader


async def validate_on_all_replicas(
    servers: Servers, world: World, positions: Mapping[Place, int], epochs: Mapping[Place, Mapping[int, int]]
) -> None:
    """Let each in-sync replica lead its partition in turn, and ask it where the epochs end that a reader has seen.

    ``positions`` are the ends of the clients' logs, ``epochs`` the first offsets of their epochs. Logs of coordinators
    are read here.
    """
    reader = Client(world, "auditor")
    fetcher = Fetcher(reader)
    fetcher.positions = dict(positions)
    fetcher.epochs = {place: dict(own) for place, own in epochs.items()}
    for place in sorted(each for each in servers.cluster.partitions if each[0] in (GROUP_TOPIC, TRANSACTION_TOPIC)):
        fetcher.positions[place], position = 0, -1
        while fetcher.positions[place] != position:
            position = fetcher.positions[place]
            await fetcher.fetch(place)
    for place in sorted(fetcher.positions):
        state = servers.cluster.partitions[place].state
        for broker in (each for each in state.isr if each != state.leader):
            if servers.move_leader(*place, broker):
                await sleep_ms(_MOVES_MS)
                reader.forget_leader(place)
                await fetcher.validate_epochs(place, read_to_the_end=True)
    reader.close()
