"""Prepares the most common APIs shortly after the start, and sets up memory management.

Otherwise the first request of each API waits for imports: 0.2 to 1 ms, and several ms if Python must compile the
modules because it cannot keep bytecode. This is done while clients connect, in small steps, so that no request waits
for more than one of them.
"""

import gc

from broker.clock import soon
from broker.cluster.heap import keep_freed_memory
from protocol.apis import ApiKey
from protocol.codec import prepare

_FIRST_MS = 100
_PAUSE_MS = 20
COMMON = (
    ApiKey.API_VERSIONS,
    ApiKey.METADATA,
    ApiKey.FIND_COORDINATOR,
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.OFFSET_FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.FETCH,
    ApiKey.PRODUCE,
    ApiKey.OFFSET_COMMIT,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.INIT_PRODUCER_ID,
)
"""The APIs that clients use, in about the order in which a test needs them."""


def warm_up() -> None:
    """Begin in a later turn of the event loop."""
    left = iter(COMMON)

    def begin() -> None:
        keep_freed_memory()
        step()

    def step() -> None:
        following = next(left, None)
        if following is None:
            gc.freeze()  # again, for what was imported meanwhile
        else:
            soon(_PAUSE_MS, step)
            prepare([following])

    soon(_FIRST_MS, begin)
