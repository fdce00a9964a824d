"""Setup of the Spark worker that runs a task."""

import gc
from functools import cache


@cache
def settle() -> None:
    """Take what is loaded by now out of the garbage collector's sight, once in a process.

    Spark's worker collects garbage after each task. To look through the objects of all loaded packages takes some 60 ms
    each time, as long as it takes to decode 200,000 records.
    """
    gc.freeze()
