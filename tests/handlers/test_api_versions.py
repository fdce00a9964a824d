"""ApiVersions: core A.5, CON-04 to CON-07."""

import pytest

from broker.handlers import create_topics
from broker.handlers.api_versions import API, _finalized
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.handlers.admin_harness import AdminStage
from tests.versions import every_version

CLIENT = ApiVersionsRequest("librdkafka", "2.11.0-rc.1")


async def answered(version: int = 4, request: ApiVersionsRequest = CLIENT) -> ApiVersionsResponse:
    """What a fresh broker answers."""
    answer = await AdminStage().ask(API, request, version)
    assert isinstance(answer, ApiVersionsResponse)
    return answer


@pytest.mark.parametrize(
    ("name", "version", "right"),
    [
        ("apache-kafka-java", "4.3.1", True),
        ("a", "1", True),
        ("my client", "1", False),
        ("a", "", False),
        ("-a", "1", False),
        ("a", "1.", False),
    ],
)
async def test_CON_05_software_names_are_checked(name: str, version: str, right: bool) -> None:
    """KIP-511; a wrong one is an INVALID_REQUEST with no API listed, a right one is remembered with the connection."""
    stage = AdminStage()
    answer = await stage.ask(API, ApiVersionsRequest(name, version), 3)
    assert answer.error_code is (ErrorCode.NONE if right else ErrorCode.INVALID_REQUEST)
    assert bool(answer.api_keys) is right
    assert (stage.connection.software_name == name) is right


@every_version(API)
async def test_versions_before_3_name_no_software(version: int) -> None:
    """The newer ones do, and are answered with features."""
    stage = AdminStage()
    answer = await stage.ask(API, CLIENT, version)
    assert answer.error_code is ErrorCode.NONE
    assert bool(answer.finalized_features) is (version >= 3)
    assert stage.connection.software_name == ("librdkafka" if version >= 3 else "unknown")


async def test_CON_06_finalized_levels_come_with_the_offset_that_they_are_of() -> None:
    """The epoch grows with the metadata."""
    stage = AdminStage()
    first = await stage.ask(API, CLIENT)
    levels = {f.name: (f.min_version_level, f.max_version_level) for f in first.finalized_features}
    assert levels["transaction.version"] == (2, 2)
    assert levels["metadata.version"] == (33, 33)
    assert first.finalized_features_epoch == stage.image.offset >= 0
    await stage.ask(create_topics.API, CreateTopicsRequest([CreatableTopic("t", 1, 1)]))
    second = await stage.ask(API, CLIENT)
    assert second.finalized_features_epoch > first.finalized_features_epoch


async def test_features_come_in_the_order_of_hash_tables_of_javas() -> None:
    """As a broker of 4.4.0 listed them."""
    answer = await answered()
    known = ["share.version", "streams.version", "transaction.version", "eligible.leader.replicas.version"]
    assert [f.name for f in answer.supported_features] == ["group.version", "kraft.version", "metadata.version", *known]
    assert _finalized(("metadata.version", "group.version", *known)) == [
        *("group.version", "streams.version", "transaction.version", "eligible.leader.replicas.version"),
        *("share.version", "metadata.version"),
    ]
