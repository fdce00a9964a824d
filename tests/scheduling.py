"""The distribution of tests to the workers of pytest-xdist."""

from xdist.scheduler import LoadGroupScheduling


class FileScheduling(LoadGroupScheduling):  # type: ignore[misc]  # a library without types
    """As `--dist loadgroup`, but a test that is in no group is in that of its file."""

    def _split_scope(self, nodeid: str) -> str:
        scope: str = super()._split_scope(nodeid)
        return nodeid.partition("::")[0] if scope == nodeid else scope
