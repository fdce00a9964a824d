"""SaslAuthenticate where no authentication is asked for: core A.9, CON-16."""

import pytest

from broker.handlers.sasl_authenticate import API
from protocol.errors import ErrorCode
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from tests.handlers.admin_harness import AdminStage


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_CON_16_an_authentication_is_out_of_place(version: int) -> None:
    """ILLEGAL_SASL_STATE with Kafka's message, and no bytes."""
    answer = await AdminStage().ask(API, SaslAuthenticateRequest(b"\0a\0b"), version)
    sentence = "SaslAuthenticate request received after successful authentication"
    assert (answer.error_code, answer.error_message) == (ErrorCode.ILLEGAL_SASL_STATE, sentence)
    assert (bytes(answer.auth_bytes), answer.session_lifetime_ms) == (b"", 0)
