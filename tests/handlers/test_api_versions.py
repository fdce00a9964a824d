"""ApiVersions: core A.5, CON-04 to CON-07."""

import struct

import pytest

from broker.handlers import APIS, create_topics
from broker.handlers.api_versions import API, _finalized
from broker.server.dispatcher import unsupported_version
from protocol.apis import ApiKey
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


def test_CON_04_an_unknown_version_is_answered_with_the_range() -> None:
    """A v0 body behind a v0 header, with the one entry that a client needs to ask again."""
    frame = b"".join(unsupported_version(5, AdminStage().connection, API.versions))
    size, correlation_id, code, count, key, low, high = struct.unpack(">iiHihhh", frame)
    assert (size, correlation_id, code, count) == (len(frame) - 4, 5, ErrorCode.UNSUPPORTED_VERSION, 1)
    assert (key, low, high) == (ApiKey.API_VERSIONS, 0, 5)


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


async def test_CON_06_features_with_a_zero_minimum_are_listed_from_v4_on() -> None:
    """Older readers refuse them."""
    reported = [f.name for f in (await answered(3)).supported_features]
    assert reported == ["metadata.version"]
    ranges = {f.name: (f.min_version, f.max_version) for f in (await answered(4)).supported_features}
    assert ranges == {
        "eligible.leader.replicas.version": (0, 1),
        "group.version": (0, 1),
        "kraft.version": (0, 1),
        "metadata.version": (7, 33),
        "share.version": (0, 2),
        "streams.version": (0, 1),
        "transaction.version": (0, 2),
    }


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


async def test_CON_07_the_list_is_that_of_the_handlers() -> None:
    """In key order; Produce from 0 (core A.5.4); telemetry is served but not listed."""
    listed = {entry.api_key: (entry.min_version, entry.max_version) for entry in (await answered()).api_keys}
    assert list(listed) == sorted(listed)
    assert listed[ApiKey.PRODUCE] == (0, 13)
    assert listed[ApiKey.FETCH] == (4, 18)
    served = {int(api.key): api for api in APIS}
    assert set(served) - set(listed) == {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
    assert all(served[key].versions == listed[key] for key in listed if key != ApiKey.PRODUCE)


async def test_features_come_in_the_order_of_hash_tables_of_javas() -> None:
    """As a broker of 4.4.0 listed them."""
    answer = await answered()
    known = ["share.version", "streams.version", "transaction.version", "eligible.leader.replicas.version"]
    assert [f.name for f in answer.supported_features] == ["group.version", "kraft.version", "metadata.version", *known]
    assert _finalized(("metadata.version", "group.version", *known)) == [
        *("group.version", "streams.version", "transaction.version", "eligible.leader.replicas.version"),
        *("share.version", "metadata.version"),
    ]
