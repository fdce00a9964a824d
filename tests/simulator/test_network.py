"""The simulated network once the faults are over."""

import asyncio
from random import Random

import pytest

from simulator.loop import VirtualLoop, sleep_ms
from simulator.network import Disturbance, Link, Network
from simulator.trace import Trace


class Broker(asyncio.BufferedProtocol):
    """A broker's protocol that notes what arrives, and answers it with the same."""

    def __init__(self, arrived: list[bytes]) -> None:
        self._arrived = arrived
        self._buffer = bytearray(100)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport for the answers."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def get_buffer(self, _sizehint: int) -> bytearray:
        """Return the buffer, longer than all frames."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Note a frame, and answer it."""
        self._arrived.append(bytes(self._buffer[:nbytes]))
        self._transport.write(self._buffer[:nbytes])


@pytest.mark.parametrize("given_up", [True, False])
@pytest.mark.parametrize("kind", ["late request", "late answer", "stall"])
def test_nothing_is_late_after_the_faults(kind: str, given_up: bool) -> None:
    """Neither a request that its client gave up nor a response; what is under way without a disturbance arrives."""
    loop, arrived, answered, lost = VirtualLoop(), list[bytes](), list[bytes](), list[str]()
    network = Network(loop, Random(1), Trace())
    network.broker_of = {9092: 1}
    network._listen(lambda: Broker(arrived), "", 9092).serving = True

    async def connected(client: str) -> Link:
        link = await network.connect(client, 9092)
        link.received, link.lost = answered.append, lambda: lost.append(client)
        return link

    async def main() -> None:
        late, prompt = await connected("late"), await connected("prompt")
        network.disturbances.append(Disturbance(kind, 60_000_000, Random(2), 1.0, most_us=12_000_000))
        late.send(b"late")
        network.disturbances.clear()
        if kind == "late answer":
            await sleep_ms(10)  # time for the request
        prompt.send(b"prompt")
        if given_up:
            late.close()
        network.calm()
        await sleep_ms(60_000)

    loop.run_until_complete(main())
    loop.close()
    assert arrived == ([b"late", b"prompt"] if kind == "late answer" else [b"prompt"])
    assert answered == [b"prompt"]
    assert lost == ([] if given_up else ["late"])
