"""The simulation of the service.

understudy simulate --application simulated_service:main --topic orders:2 --topic payments:2 --topic shipments:2
"""

import json

from service import create_app

ORDERS = range(100)


async def main(sim):
    """Each order is paid and shipped, and nothing else is, however much went wrong meanwhile."""
    sim.process("shop", lambda: create_app(sim.bootstrap_servers).run())
    await sim.feed("orders", (json.dumps({"number": number, "price": 2}) for number in ORDERS))
    await sim.calm()
    payments = {json.loads(each.value)["number"] for each in await sim.read("payments")}
    shipments = {int(each.value) for each in await sim.read("shipments")}
    assert payments == shipments == set(ORDERS), (set(ORDERS) - payments, set(ORDERS) - shipments)
