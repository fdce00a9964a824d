"""What a program takes from its surroundings: time, random numbers, ids. Within a block, all of it is the simulation's.

Names that modules have imported (``from time import time``) are replaced too. The replacements remain usable after the
block, and in other threads: there they are the originals. Compiled code that calls the operating system itself, without
Python's functions, is not reached; :func:`_reset_aiokafka` does it for the producer of aiokafka.
"""

import asyncio
import ctypes
import datetime as dt
import gc
import importlib.util
import itertools
import os
import random
import socket
import sys
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from types import ModuleType
from typing import Any

from simulator.loop import VirtualLoop
from simulator.process import replaced
from simulator.program import CURRENT, refuse

_OURS = ("broker", "control_api", "protocol", "simulator", "storage", "asyncio", "threading", "_pytest")
"""Packages whose names are left alone: the brokers have a clock and a generator of their own."""
_ORIGINALS: dict[Any, Callable[..., Any]] = {}
"""Replacement -> original."""
_BLOCKING = {
    "confluent_kafka.cimpl": ("Producer", "Consumer", "ShareConsumer", "_AdminClientImpl"),
    "kafka": ("KafkaProducer", "KafkaConsumer", "KafkaAdminClient"),
}
"""Clients that wait in threads, or block the loop; classes that inherit from them do so, too."""


class Surroundings:
    """What one run gives to its program."""

    def __init__(self, loop: VirtualLoop, seed: int) -> None:
        self.loop = loop
        self.random = Random(f"{seed} program")  # noqa: S311 - replayed from the seed
        self.thread = threading.get_ident()

    def time_ns(self) -> int:
        """Return ns since 1970."""
        return self.loop.time_ns()

    def since_start_ns(self) -> int:
        """Return ns of a monotonic clock."""
        return self.loop.now_us * 1000

    def urandom(self, size: int) -> bytes:
        """Return bytes that the seed determines."""
        return self.random.randbytes(size)


_current: Surroundings | None = None


def _simulated(original: Callable[..., Any], replacement: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls the replacement, with the run's surroundings first, during a run in its thread."""

    def function(*args: Any, **options: Any) -> Any:
        if _current is None or threading.get_ident() != _current.thread:
            return original(*args, **options)
        return replacement(_current, *args, **options)

    function.__name__ = function.__qualname__ = getattr(original, "__name__", "function")
    _ORIGINALS[function] = original
    return function


def _sleep(_: Surroundings, seconds: float) -> None:
    raise refuse(f"time.sleep({seconds:g})", "use await asyncio.sleep, as this stops all other tasks too")


def _start_thread(_: Surroundings, thread: threading.Thread, *_args: Any) -> None:
    raise refuse(f"the thread {thread.name!r}", "use a task, or leave it out in the simulation")


def _connect(_: Surroundings, _socket: socket.socket, address: Any) -> None:
    raise refuse(f"a blocking connection to {address}", "replace that service by a coroutine in the simulation")


def _all_tasks(_: Surroundings, loop: Any = None) -> set[Any]:
    """Return the tasks of the current process: those of the brokers and of other processes are none of its business."""
    program = CURRENT.get()
    tasks = _ALL_TASKS(loop)
    return tasks if program is None else {each for each in program.tasks if not each.done()} & tasks


_ALL_TASKS = asyncio.all_tasks
_REPLACED: tuple[tuple[ModuleType | type, str, Callable[..., Any]], ...] = (
    (time, "time", lambda around: around.time_ns() / 1e9),
    (time, "time_ns", Surroundings.time_ns),
    (time, "monotonic", lambda around: around.loop.now_s),
    (time, "monotonic_ns", Surroundings.since_start_ns),
    (time, "perf_counter", lambda around: around.loop.now_s),
    (time, "perf_counter_ns", Surroundings.since_start_ns),
    (time, "sleep", _sleep),
    (os, "urandom", Surroundings.urandom),
    (threading.Thread, "start", _start_thread),
    (socket.socket, "connect", _connect),
    (socket.socket, "connect_ex", _connect),
    (asyncio, "all_tasks", _all_tasks),
    (asyncio.tasks, "all_tasks", _all_tasks),
)
_FUNCTIONS = [(owner, name, _simulated(getattr(owner, name), function)) for owner, name, function in _REPLACED]


@contextmanager
def surroundings(loop: VirtualLoop, seed: int) -> Iterator[Surroundings]:
    """Give the program of this thread the time of the loop, and random numbers from the seed, within the block."""
    global _current  # noqa: PLW0603 - functions of modules have no other place
    around = Surroundings(loop, seed)
    state, before, hook = random.getstate(), _current, sys.unraisablehook
    with ExitStack() as changes:
        for owner, name, function in _FUNCTIONS:
            changes.enter_context(replaced(owner, name, function))
        _replace_imported(changes)
        _patch_datetime(changes, around)
        _patch_ids(changes, around)
        _reset_aiokafka(changes, around)
        _order_weak_sets(changes)
        _serve_in_tasks(changes, loop)
        _current = around
        random.seed(f"{seed} global")  # noqa: TID251 - the generator that programs use
        try:
            yield around
        finally:
            _current = before
            random.setstate(state)
            sys.unraisablehook = hook


@contextmanager
def outside() -> Iterator[None]:
    """Give the machine's own time to what runs in the block: a process that is started and waited for."""
    global _current  # noqa: PLW0603 - as above
    before, _current = _current, None
    try:
        yield
    finally:
        _current = before


def _replace_imported(changes: ExitStack) -> None:
    """Replace what modules imported by name, and clients that cannot be simulated."""
    replacements: dict[int, Any] = {id(_ORIGINALS[each]): each for _, _, each in _FUNCTIONS}
    clients = {
        id(client): module.partition(".")[0]
        for module, names in _BLOCKING.items()
        for name in names
        if (client := getattr(sys.modules.get(module), name, None)) is not None
    }
    for imported, imported_module in list(sys.modules.items()):
        if imported.partition(".")[0] in _OURS or imported_module in (time, os):
            continue
        for name, value in list(getattr(imported_module, "__dict__", {}).items()):
            replacement = replacements.get(id(value))
            if clients and replacement is None and isinstance(value, type):
                of_client = next((clients[id(each)] for each in value.__mro__ if id(each) in clients), None)
                replacement = of_client and _refusing(f"{of_client}.{value.__name__}")
            if replacement is not None:
                changes.enter_context(replaced(imported_module, name, replacement))


def _refusing(client: str) -> Callable[..., Any]:
    def refusing(*_: Any, **__: Any) -> Any:
        raise refuse(client, "it works in threads or blocks; use a client on asyncio, such as aiokafka")

    return refusing


def _patch_datetime(changes: ExitStack, around: Surroundings) -> None:
    """Replace ``datetime.now`` and ``utcnow`` in the class itself; ``today`` calls :func:`time.time` already."""
    thread = around.thread

    def now(cls: type[dt.datetime], tz: dt.tzinfo | None = None) -> dt.datetime:
        ours = threading.get_ident() == thread
        return cls.fromtimestamp((around.time_ns() if ours else _ORIGINALS[time.time_ns]()) / 1e9, tz)

    def utcnow(cls: type[dt.datetime]) -> dt.datetime:
        return now(cls, dt.UTC).replace(tzinfo=None)

    namespace = gc.get_referents(dt.datetime.__dict__)[0]
    originals = {name: namespace[name] for name in ("now", "utcnow")}

    def put(functions: dict[str, Any]) -> None:
        namespace.update(functions)
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(dt.datetime))

    put({"now": classmethod(now), "utcnow": classmethod(utcnow)})
    changes.callback(put, originals)


def _patch_ids(changes: ExitStack, around: Surroundings) -> None:
    """Let unseeded generators, and the ids of :mod:`uuid`, depend on the seed alone."""
    seed = Random.seed

    def seeded(generator: Random, a: Any = None, version: int = 2) -> None:
        if a is None and threading.get_ident() == around.thread:
            a = around.random.getrandbits(128)
        seed(generator, a, version)

    for owner, name, value in (
        (Random, "seed", seeded),
        (uuid, "_generate_time_safe", None),
        (uuid, "_node", 0x02_00_00_00_00_01),  # a MAC address that no device has: the bit of local ones is set
        (uuid, "_last_timestamp", None),
    ):
        changes.enter_context(replaced(owner, name, value))


def _reset_aiokafka(changes: ExitStack, around: Surroundings) -> None:
    """Give records without a time that of the run, and producers the same client ids in each run.

    The compiled parts of aiokafka read the machine's clock, and its producers are numbered across all runs. It chooses
    among the brokers of a set, whose order depends on the hash of None: an address in memory, before Python 3.12.
    """
    if importlib.util.find_spec("aiokafka") is None:
        return
    builder = importlib.import_module("aiokafka.producer.message_accumulator").BatchBuilder
    append = builder.append

    def stamped(self: Any, *, timestamp: int | None, **fields: Any) -> Any:
        at_ms = around.time_ns() // 1_000_000 if timestamp is None else timestamp
        return append(self, timestamp=at_ms, **fields)

    changes.enter_context(replaced(builder, "append", stamped))
    metadata = importlib.import_module("aiokafka.cluster").ClusterMetadata
    brokers = metadata.brokers

    def in_order(self: Any) -> list[Any]:
        return sorted(brokers(self), key=lambda each: str(each.nodeId))

    changes.enter_context(replaced(metadata, "brokers", in_order))
    producer = importlib.import_module("aiokafka").AIOKafkaProducer
    changes.enter_context(replaced(producer, "_PRODUCER_CLIENT_ID_SEQUENCE", 0))


class _Ordered(set[Any]):
    """A set in the order in which its elements were added."""

    def __init__(self) -> None:
        super().__init__()
        self._order: dict[Any, None] = {}

    def __iter__(self) -> Iterator[Any]:
        return iter(self._order)

    def add(self, element: Any) -> None:
        super().add(element)
        self._order.setdefault(element)

    def discard(self, element: Any) -> None:
        super().discard(element)
        self._order.pop(element, None)

    def remove(self, element: Any) -> None:
        super().remove(element)
        del self._order[element]

    def pop(self) -> Any:
        element = next(iter(self._order), None)
        self.remove(element)
        return element

    def clear(self) -> None:
        super().clear()
        self._order.clear()


def _order_weak_sets(changes: ExitStack) -> None:
    """Let new weak sets, such as of FastStream's subscribers, have the order of additions, not of addresses."""
    create = weakref.WeakSet.__init__

    def created(self: Any, data: Any = None) -> None:
        create(self)
        self.data = _Ordered()
        for each in () if data is None else data:
            self.add(each)

    changes.enter_context(replaced(weakref.WeakSet, "__init__", created))


def _serve_in_tasks(changes: ExitStack, loop: VirtualLoop) -> None:
    """Let services of mode that have a thread and a loop of their own, as the consumer of Faust, be tasks of this loop.

    They exchange nothing with their parent but calls between the loops.
    """
    if "faust" not in sys.modules:
        return
    service = importlib.import_module("mode.threads").ServiceThread
    create = service.__init__

    class Worker:
        """Takes the place of the thread."""

        def __init__(self, served: Any) -> None:
            self._served = served

        def start(self) -> None:
            self._task = loop.create_task(self._served._serve())  # noqa: SLF001 - what the thread runs

        def stop(self) -> None:
            """Do nothing: the service has ended before the thread is waited for."""

    def created(self: Any, *, thread_loop: Any = None, **options: Any) -> None:
        create(self, thread_loop=thread_loop or loop, **options)

    async def nothing(_: Any) -> None:
        """Do nothing: the other tasks of the loop are not the thread's."""

    for name, value in (("__init__", created), ("Worker", Worker), ("_gather_remaining_tasks", nothing)):
        changes.enter_context(replaced(service, name, value))
    for module, name in (("faust.channels", "Channel"), ("mode.services", "ServiceBase")):
        changes.enter_context(replaced(getattr(importlib.import_module(module), name), "__hash__", _numbered()))


def _numbered() -> Callable[[Any], int]:
    """Return a hash by the order in which objects are first hashed: sets of them have the same order in each run."""
    numbers = itertools.count()

    def number(self: Any) -> int:
        if "_simulated_hash" not in self.__dict__:
            self.__dict__["_simulated_hash"] = next(numbers)
        own: int = self.__dict__["_simulated_hash"]
        return own

    return number
