"""Base class of the asynchronous cluster; its blocking counterpart is `understudy.client.bridge`."""

from understudy.aio.verbs import ClusterVerbs


class AsyncBridge(ClusterVerbs):
    """Base class that is empty here; the blocking cluster's one gives access to the asynchronous cluster."""
