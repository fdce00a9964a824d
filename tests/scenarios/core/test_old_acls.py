"""Hosts of ACLs before 4.4, and before its metadata.version: any text, compared as such."""

import pytest

from broker.settings.releases import Behaviour
from protocol.acls import AclOperation as Op
from protocol.acls import ResourceType as Kind
from tests.conftest import BrokerWith
from tests.scenarios.guarded import SETTINGS, Guarded, acl, created


@pytest.mark.parametrize("host", ["", "10.0.0.0/33", "127.0.0.0/8"])
def test_any_text_is_a_host_before_4_4(broker_with: BrokerWith, host: str) -> None:
    """No machine has such an address (ACL_HOSTS_CHECKED)."""
    assert Behaviour.ACL_HOSTS_CHECKED.since == "4.4"
    stage = Guarded(broker_with(settings=SETTINGS, as_version="4.3"))
    stage.begin()
    (result,) = created(stage.admin, acl(Op.READ, Kind.TOPIC, "foo", host=host))
    assert result.error_code == 0


def test_a_subnet_needs_metadata_that_can_hold_it(broker_with: BrokerWith) -> None:
    """An ACL for a subnet needs metadata.version 4.4-IV1; one for an address does not."""
    stage = Guarded(broker_with(settings=SETTINGS, features={"metadata.version": 31}))
    stage.begin()
    wanted = [acl(Op.READ, Kind.TOPIC, "foo", host=host) for host in ("127.0.0.0/8", "127.0.0.1")]
    refused, taken = created(stage.admin, *wanted)
    text = "CIDR-based ACL host patterns require metadata version 4.4-IV1 or higher."
    assert (refused.error_code, refused.error_message) == (35, text)
    assert taken.error_code == 0
