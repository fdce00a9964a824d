"""A client that is started again whenever it ends: each life is another instance, with a name of its own."""

import asyncio
import traceback
from collections.abc import Callable

from simulator.clients.client import Client, World
from simulator.loop import sleep_ms

_REST_MS = 500


class Actor:
    """Keeps one client running. ``make`` makes an instance of a name; ``lasting`` clients are never killed."""

    def __init__(
        self, world: World, name: str, make: Callable[[str], Client], *, lasting: bool = False, feeds: bool = False
    ) -> None:
        self.world, self.name, self.lasting, self.feeds = world, name, lasting, feeds
        self._make = make
        self.lives = 0
        self.instance: Client | None = None
        self._rest_ms = _REST_MS
        self._stopping = False
        self._worlds = 0
        self._may_live = asyncio.Event()
        self._may_live.set()
        self._life: asyncio.Task[None] | None = None
        self._zombies: list[tuple[Client, asyncio.Task[None]]] = []
        self._next: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.task = asyncio.get_running_loop().create_task(self._keep_going())

    async def _keep_going(self) -> None:
        while not self._stopping:
            self.lives += 1
            self.instance = self._make(self._name_of_life())
            self._life = asyncio.get_running_loop().create_task(self._live(self.instance))
            self._next = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._life, self._next], return_when=asyncio.FIRST_COMPLETED)
            if not self._life.done():
                self._zombies.append((self.instance, self._life))
                continue
            self.instance.close()
            rest_ms, self._rest_ms = self._rest_ms, _REST_MS
            await sleep_ms(rest_ms)
            await self._may_live.wait()
        for zombie, life in self._zombies:
            await asyncio.wait([life])
            zombie.close()

    def _name_of_life(self) -> str:
        if not self.lasting:
            return f"{self.name}.{self.lives}"
        return f"{self.name}-{self._worlds}" if self._worlds else self.name

    async def _live(self, instance: Client) -> None:
        try:
            await instance.run()
        except asyncio.CancelledError:
            instance.note("   is killed")
        except Exception:  # noqa: BLE001 - an answer that breaks a client is a finding
            where = traceback.format_exc().strip().splitlines()
            self.world.history.violate(f"{instance.name} broke: {where[-1]} at {where[-2].strip()}")
            self._stopping = True

    def kill(self, down_ms: int) -> None:
        """End it in the middle of what it does; it comes back after so long."""
        if self._life is not None and not self._life.done():
            self._rest_ms = down_ms
            self._life.cancel()

    def replace(self) -> None:
        """Start another instance beside the present one, which goes on as a zombie."""
        if not self._next.done() and not self._stopping:
            self._next.set_result(None)

    async def end_all(self) -> None:
        """End all instances; none comes back before :meth:`begin_again`."""
        self._may_live.clear()
        self._worlds += 1
        lives = [life for _, life in self._zombies] + ([] if self._life is None else [self._life])
        for life in lives:
            life.cancel()
        if lives:
            await asyncio.wait(lives)

    def begin_again(self) -> None:
        """Let it live again, in another state of the cluster."""
        self._may_live.set()

    def alive(self) -> list[Client]:
        """The instances that are at work, zombies included."""
        zombies = [zombie for zombie, life in self._zombies if not life.done()]
        present = self.instance is not None and self._life is not None and not self._life.done()
        return [*zombies, self.instance] if present and self.instance is not None else zombies

    def stop(self) -> None:
        """Let all instances finish what they do, and not come back."""
        self._stopping = True
        if self.instance is not None:
            self.instance.stopping = True
        for zombie, _ in self._zombies:
            zombie.stopping = True
