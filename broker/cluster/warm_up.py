"""What a server does shortly after its start: readers and writers of what most clients ask, and settings of memory.

They are made of kio's schemas, whose import takes longest, when a version is first needed: 5 to 20 ms of the first
request of each API. A server that is up has time for that, while its clients connect; in small steps, so that no
request waits for more than one of them.
"""

import gc
from collections.abc import Iterator

from broker.clock import soon
from broker.cluster.heap import keep_freed_memory
from broker.handlers import APIS
from protocol.apis import ApiKey
from protocol.codec import prepare

_FIRST_MS = 100
_PAUSE_MS = 20
_LIBRDKAFKA = {
    ApiKey.API_VERSIONS: 3,
    ApiKey.METADATA: 12,
    ApiKey.FIND_COORDINATOR: 2,
    ApiKey.JOIN_GROUP: 5,
    ApiKey.SYNC_GROUP: 3,
    ApiKey.OFFSET_FETCH: 9,
    ApiKey.LIST_OFFSETS: 7,
    ApiKey.FETCH: 16,
    ApiKey.PRODUCE: 10,
    ApiKey.OFFSET_COMMIT: 9,
    ApiKey.HEARTBEAT: 3,
    ApiKey.LEAVE_GROUP: 1,
    ApiKey.INIT_PRODUCER_ID: 4,
}
"""The versions that librdkafka 2.16 asks for, in about the order in which a test needs them."""


def common_versions() -> Iterator[tuple[ApiKey, int]]:
    """Return API keys and versions: those of librdkafka, then the newest ones, which Java's client asks for."""
    yield from _LIBRDKAFKA.items()
    newest = {api.key: api.versions[1] for api in APIS}
    yield from ((key, newest[key]) for key in _LIBRDKAFKA)


def warm_up() -> None:
    """Begin, in a later turn of the loop."""
    left = common_versions()

    def begin() -> None:
        keep_freed_memory()
        step()

    def step() -> None:
        following = next(left, None)
        if following is None:
            gc.freeze()  # once more: the imported schemas are a fifth of all objects
        else:
            soon(_PAUSE_MS, step)
            prepare(*following)

    soon(_FIRST_MS, begin)
