"""A client that is restarted whenever it ends, each time as a new instance with a new name."""

import asyncio
import traceback
from collections.abc import Callable

from simulator.clients.client import Client, World
from simulator.loop import sleep_ms

_REST_MS = 500  # before a client tries again: longer than an election, shorter than a fault


class Actor:
    """Keeps one client running.

    ``make`` creates an instance with a name. ``lasting`` clients are never killed. Clients with ``feeds`` write to the
    topics, or do not depend on them: they stop first at the end of a run.
    """

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
        except Exception:  # noqa: BLE001 - a response on which a client fails is a finding
            where = traceback.format_exc().strip().splitlines()
            self.world.history.violate(f"{instance.name} failed: {where[-1]} at {where[-2].strip()}")
            self._stopping = True

    def kill(self, down_ms: int) -> None:
        """Kill the current instance; the next one starts after ``down_ms``."""
        if self._life is not None and not self._life.done():
            self._rest_ms = down_ms
            self._life.cancel()

    def replace(self) -> None:
        """Start another instance beside the current one, which continues as a zombie."""
        if not self._next.done() and not self._stopping:
            self._next.set_result(None)

    async def end_all(self) -> None:
        """End all instances; no new one starts before :meth:`begin_again`."""
        self._may_live.clear()
        self._worlds += 1
        lives = [life for _, life in self._zombies] + ([] if self._life is None else [self._life])
        for life in lives:
            life.cancel()
        if lives:
            await asyncio.wait(lives)

    def begin_again(self) -> None:
        """Start instances again, after the cluster has changed to another state."""
        self._may_live.set()

    def alive(self) -> list[Client]:
        """Return the running instances, zombies included."""
        zombies = [zombie for zombie, life in self._zombies if not life.done()]
        present = self.instance is not None and self._life is not None and not self._life.done()
        return [*zombies, self.instance] if present and self.instance is not None else zombies

    def stop(self) -> None:
        """Let all instances finish their work, and start no new one."""
        self._stopping = True
        if self.instance is not None:
            self.instance.stopping = True
        for zombie, _ in self._zombies:
            zombie.stopping = True
