"""The loop, network, brokers and trace of a run, for our own clients and for a user's program."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractContextManager, ExitStack
from random import Random
from typing import Any

from simulator.cluster import Servers
from simulator.loop import Endless, NothingLeft, Spinning, VirtualLoop
from simulator.network import Network
from simulator.process import virtual
from simulator.trace import Trace


class Cut(Exception):
    """A run that is played only for its first broken promise is over."""


class Engine:
    """What the runs of a seed have in common. ``most_s``: the limit of virtual time."""

    def __init__(self, seed: int, most_s: float) -> None:
        self.seed = seed
        self.loop = VirtualLoop()
        self.loop.limit_s = most_s
        self.trace = Trace()
        self.network = Network(self.loop, Random(f"{seed} network"), self.trace)  # noqa: S311 - replayed
        self.servers: Servers

    def make_servers(self, brokers: int, topics: Mapping[str, int], settings: Mapping[str, str]) -> None:
        """Create the brokers; they are started by the run itself."""
        self.servers = Servers(self.loop, self.seed, brokers, topics, settings)
        self.network.broker_of = self.servers.ports

    def violate(self, what: str) -> None:
        """Note a broken promise."""
        raise NotImplementedError

    def play(self, main: Callable[[], Coroutine[Any, Any, None]], *around: AbstractContextManager[Any]) -> None:
        """Run ``main`` to its end within these contexts; what keeps it from its end is a broken promise."""
        asyncio.set_event_loop(self.loop)
        self.loop.set_exception_handler(self._unhandled)
        with ExitStack() as contexts:
            for each in (virtual(self.loop, self._logged), *around):
                contexts.enter_context(each)
            try:
                self.loop.run_until_complete(main())
            except Cut:
                pass
            except (Endless, NothingLeft, Spinning) as error:
                self.stuck(error)
            except Exception as error:  # noqa: BLE001 - a broker that cannot be started breaks a promise
                self.violate(f"the run ended with {error!r}")
            finally:
                self._close()

    def stuck(self, error: Exception) -> None:
        """Note that the loop cannot continue."""
        self.violate(f"the run cannot continue: {error}")

    def _close(self) -> None:
        self.loop.set_exception_handler(lambda _loop, _context: None)
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()
        self.loop.close()
        asyncio.set_event_loop(None)

    def _unhandled(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.violate(f"an unhandled error: {context['message']}: {error!r}")

    def _logged(self, event: dict[str, Any]) -> None:
        """Check a line of the brokers' log: internal errors are broken promises."""
        line = " ".join(f"{key}={value}" for key, value in event.items() if key not in {"exc_info", "level"})
        self.trace.add(self.network.now_us, "log", line)
        if event.get("exc_info"):
            self.violate(f"a broker failed: {line}")
