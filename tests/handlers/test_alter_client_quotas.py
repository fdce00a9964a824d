"""AlterClientQuotas at the handler (core G.10); what a change does is tested at the machine."""

import pytest

from broker.handlers.alter_client_quotas import API
from protocol.errors import ErrorCode
from protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from tests.handlers.admin_harness import AdminStage

RATE = "connection_creation_rate"


@pytest.mark.parametrize("name", ["a\0b", "a..b", "x" * 64 + ".invalid"])
async def test_what_can_be_no_hosts_name_does_not_resolve(name: str) -> None:
    """INVALID_REQUEST, as for a name that is not found."""
    request = AlterClientQuotasRequest([EntryData([EntityData("ip", name)], [OpData(RATE, 5.0)])])
    (entry,) = (await AdminStage().ask(API, request)).entries
    assert entry.error_code is ErrorCode.INVALID_REQUEST
    assert entry.error_message == f"{name} is not a valid IP or resolvable host."
