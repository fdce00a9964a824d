# Made from understudy/aio/__init__.py by tools/generate_client.py: change it there.
"""A cluster, steered from Python, waiting for each answer.

Each method is one verb of
`understudy.verbs`, whose words it names.
"""

from understudy.client.cluster import Cluster, connect, start
from understudy.client.steering import Fault

__all__ = ["Cluster", "Fault", "connect", "start"]
