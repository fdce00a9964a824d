"""Negotiation of API versions (KIP-35, KIP-511)."""

from collections.abc import Mapping
from typing import Any

from protocol.apis import ApiKey
from protocol.client.steps import Step, Steps
from protocol.codec import known_versions
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.api_versions import ApiVersionsRequest

_NEWEST = 99  # above every version, so that the broker's maximum decides
Ranges = Mapping[int, tuple[int, int]]
"""API key -> lowest and highest version that the broker serves."""


def negotiate(software: str, software_version: str, version: int = 3) -> Steps[Ranges]:
    """Request ApiVersions, in version 0 of a broker that is too old for ``version``. Raises KafkaError.

    Version 3 is the first that names the software (KIP-511).
    """
    response = yield Step(ApiKey.API_VERSIONS, version, ApiVersionsRequest(software, software_version))
    if response.error_code is ErrorCode.UNSUPPORTED_VERSION and version > 0:
        response = yield Step(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
    if response.error_code is not ErrorCode.NONE:
        raise KafkaError(response.error_code)
    return ranges(response)


def ranges(response: Any) -> Ranges:
    """Return the versions that an ApiVersions response lists."""
    return {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}


def newest(served: Ranges, key: int, *, at_least: int = 0, at_most: int = _NEWEST) -> int | None:
    """Return the newest version that the broker and this library know; None if there is none."""
    low, high = served.get(key, (1, 0))
    known_low, known_high = known_versions(key) or (1, 0)
    version = min(high, known_high, at_most)
    return version if version >= max(low, known_low, at_least) else None
