"""File descriptors: how many this process may have, and how many of them are for connections."""

try:
    import resource
except ImportError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

_MOST_KEPT = 1024
"""Kept back for the files of the logs, at most."""
_UNLIMITED = 1 << 20


def raise_limit() -> None:
    """Ask for as many descriptors as the system allows, as the JVM does."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):  # macOS says unlimited and means less
            return


def for_connections(brokers: int) -> int:
    """How many connections each of the process's brokers may have."""
    if resource is None:
        return _UNLIMITED
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft in {resource.RLIM_INFINITY, -1}:
        return _UNLIMITED
    return max((soft - min(soft // 4, _MOST_KEPT)) // brokers, 1)
