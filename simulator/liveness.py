"""Whether clients succeed, and partitions have owners, once no fault is under way."""

from simulator.clients.client import World
from simulator.clients.consumer_member import ConsumerMember
from simulator.history import Place
from simulator.loop import sleep_ms
from simulator.workload import Workload

CALM_MS = 12_000
"""Time after the faults within which each client must succeed: two of the clients' timeouts, and an election."""


async def check_liveness(world: World, workload: Workload) -> None:
    """Check that each client succeeds, and each partition has an owner, now that no fault is under way."""
    world.calm = True
    before = workload.progress()
    await sleep_ms(CALM_MS)
    for name, count in workload.progress().items():
        if count == before[name]:
            world.history.violate(f"{name} made no progress in {CALM_MS} ms without faults")
    if missing := _without_owner(world, workload):
        await sleep_ms(CALM_MS)  # a partition may be moving from one owner to the next
        for group, (topic, index) in sorted(missing & _without_owner(world, workload)):
            world.history.violate(f"{topic}-{index} has no owner in {group} although no fault is under way")


def _without_owner(world: World, workload: Workload) -> set[tuple[str, Place]]:
    """Return groups with partitions to which members subscribe, or that are tasks, but that no member has."""
    members = [each for each in workload.instances() if isinstance(each, ConsumerMember) and each.epoch > 0]
    wanted = {
        (each.group, (topic, i))
        for each in members
        for topic in each.subscription.topics
        for i in range(world.topics[topic])
    }
    return wanted - {(each.group, place) for each in members for place in each.owned}
