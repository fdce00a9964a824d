"""The rows of the specification at the wire, through the proxy: what passes directly passes through it."""

import pytest

from tests.differential import rows

FOLDERS = ("core", "groups", "transactions")
KNOWN = {
    "test_CON_14_a_host_has_only_so_many_connections": "brokers see the proxy's address, not its clients'",
    "test_QUO_05_an_address_may_open_so_many_connections": "likewise",
    "test_a_cluster_may_begin_with_recorded_voters": "DescribeQuorum has the controllers' own addresses",
    "test_CON_09_answers_keep_the_order_of_requests": "the clock may go on before the request has passed",
    "test_SHR_44_the_most_sessions": "likewise",
    "test_a_share_coordinator_that_moves": "the proxy accepts connections to a broker that is down, and closes them",
}
"""Tests that may fail through the proxy -> why. GAPS.md lists the reasons."""


@pytest.mark.nightly
@pytest.mark.timeout(5400)
@pytest.mark.parametrize("folder", FOLDERS)
def test_rows_through_the_proxy_show_no_difference(folder: str) -> None:
    """Each scenario of tests/scenarios, asked of a server of ours directly and through `understudy proxy`."""
    direct, through = (rows.outcomes_of_run(target, "-k", folder) for target in ("understudy", "proxy"))
    passed = {test for test, (outcome, _) in direct.items() if outcome == "passed"}
    failed = {test: why for test, (outcome, why) in through.items() if test in passed and outcome == "failed"}
    assert len(passed) > 50
    assert [test for test in failed if test.rpartition("::")[2] not in KNOWN] == [], failed
