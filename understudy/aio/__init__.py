"""A cluster, steered from Python without blocking, on asyncio or trio.

`understudy.client` is made from this package by tools/generate_client.py. Each method is one verb of
`understudy.verbs`, whose words it names.
"""

from understudy.aio.cluster import AsyncCluster, aconnect, astart
from understudy.aio.steering import AsyncFault

__all__ = ["AsyncCluster", "AsyncFault", "aconnect", "astart"]
