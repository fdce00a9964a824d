"""The servers that tests start: forks, but where the start itself is tested."""

import pytest

import understudy
from tests.forking import CAN_FORK, ForkedServer, fork_server_process, parent_of
from understudy.launcher import command_line

pytestmark = pytest.mark.skipif(not CAN_FORK, reason="only Linux waits for processes that are not its children")


def test_a_cluster_that_a_test_starts_is_forked() -> None:
    """Without a change to what starts it."""
    with understudy.start() as kafka:
        assert kafka.process is not None
        assert parent_of(kafka.process.ready.pid) == fork_server_process()._process.pid


def test_a_fork_ends_as_it_is_asked_to() -> None:
    """With code 0, its folder removed."""
    started = ForkedServer(command_line(port=0, control_port=0))
    assert started.alive
    started.stop()
    assert not started.alive
    assert started.process.returncode == 0
    assert not started.folder.exists()
