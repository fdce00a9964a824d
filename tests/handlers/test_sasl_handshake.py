"""SaslHandshake where no authentication is asked for: core A.9, CON-16."""

import pytest

from broker.handlers.sasl_handshake import API
from protocol.errors import ErrorCode
from protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tests.handlers.admin_harness import AdminStage


@pytest.mark.parametrize("version", [0, 1])
async def test_CON_16_a_handshake_is_out_of_place(version: int) -> None:
    """ILLEGAL_SASL_STATE, and no mechanism on offer."""
    answer = await AdminStage().ask(API, SaslHandshakeRequest("PLAIN"), version)
    assert answer == SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE, ())
