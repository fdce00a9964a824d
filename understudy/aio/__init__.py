"""Asynchronous Python client of a cluster, on asyncio or trio.

`verbs` is generated from `control_api.verbs`, and `understudy.client` from this package, by
tools/generate_client.py.
"""

from understudy.aio.cluster import AsyncCluster, aconnect, astart
from understudy.aio.steering import AsyncFault

__all__ = ["AsyncCluster", "AsyncFault", "aconnect", "astart"]
