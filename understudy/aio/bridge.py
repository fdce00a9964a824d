"""Base class of the asynchronous cluster; its blocking counterpart is `understudy.client.bridge`."""

from understudy.aio.verbs import ClusterVerbs


class AsyncBridge(ClusterVerbs):
    """Base class without a twin: asynchronous code needs no other cluster."""
