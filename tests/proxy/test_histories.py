"""Random histories, played on one cluster directly and on another one through the proxy: nothing differs."""

import pytest

from tests.differential.targets import SETTINGS
from tests.proxy.conftest import ProxyTo
from tests.serving import start
from understudy.cli import main

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(900)]


def test_histories_through_the_proxy_show_no_difference(proxy_to: ProxyTo, capsys: pytest.CaptureFixture[str]) -> None:
    """Every answer, log and record is compared field by field, as with a real Kafka (`understudy compare`)."""
    direct, behind = start(settings=SETTINGS), start(settings=SETTINGS)
    try:
        proxy = proxy_to(behind.ready.bootstrap_servers[0])
        addresses = ["--kafka", direct.ready.bootstrap_servers[0], "--understudy", proxy.addresses[0]]
        code = main(["compare", *addresses, "--histories", "60"])
        assert code == 0, capsys.readouterr().out
        assert len(proxy.control("GET", "/v1/journal?limit=100")["entries"]) == 100
    finally:
        direct.stop()
        behind.stop()
