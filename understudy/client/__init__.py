"""Blocking Python client of a cluster.

Most of it is generated from `understudy.aio` by tools/generate_client.py. Each method is one verb of
`control_api.verbs`, whose arguments it passes on.
"""

from understudy.client.cluster import Cluster, connect, start
from understudy.client.steering import Fault

__all__ = ["Cluster", "Fault", "connect", "start"]
