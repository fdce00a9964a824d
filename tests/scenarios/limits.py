"""Client quotas over the wire: short ways to alter and describe them."""

from collections.abc import Mapping, Sequence

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
    ResponseEntryData,
)
from protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from tests.wire import Wire

EXACT, DEFAULT, SPECIFIED = 0, 1, 2
Entity = Mapping[str, str | None]
Quotas = dict[tuple[tuple[str, str | None], ...], dict[str, float]]


def client(name: str | None = "test") -> Entity:
    """A client id; by default that of the tests' connections."""
    return {"client-id": name}


def entry(entity: Entity, *changes: tuple[str, float | None]) -> EntryData:
    """The changes of an entity's quotas; ``None`` removes a quota."""
    ops = [OpData(key, value or 0.0, value is None) for key, value in changes]
    return EntryData([EntityData(kind, name) for kind, name in entity.items()], ops)


def altered(wire: Wire, *entries: EntryData, version: int = 1, validate_only: bool = False) -> list[ResponseEntryData]:
    """AlterClientQuotas; the result of each entity."""
    request = AlterClientQuotasRequest(entries, validate_only)
    return list(wire.call(ApiKey.ALTER_CLIENT_QUOTAS, version, request).entries)


def refusal(wire: Wire, entity: Entity, *changes: tuple[str, float | None]) -> tuple[int, str | None]:
    """Error code and message of the only entity that is altered."""
    (answer,) = altered(wire, entry(entity, *changes))
    assert {each.entity_type: each.entity_name for each in answer.entity} == entity
    return answer.error_code, answer.error_message


def limit(wire: Wire, entity: Entity, **quotas: float | None) -> None:
    """Alter quotas, and expect no error."""
    assert refusal(wire, entity, *quotas.items()) == (ErrorCode.NONE, None)


def described(
    wire: Wire, *components: tuple[str, int, str | None], strict: bool = False, version: int = 1
) -> DescribeClientQuotasResponse:
    """DescribeClientQuotas by type, match type and name."""
    request = DescribeClientQuotasRequest([ComponentData(*each) for each in components], strict)
    response: DescribeClientQuotasResponse = wire.call(ApiKey.DESCRIBE_CLIENT_QUOTAS, version, request)
    return response


def quotas_of(response: DescribeClientQuotasResponse) -> Quotas:
    """The quotas of a response, by entity."""
    assert response.error_code is ErrorCode.NONE, response.error_message
    assert response.entries is not None
    return {
        _sorted([(part.entity_type, part.entity_name) for part in each.entity]): {v.key: v.value for v in each.values}
        for each in response.entries
    }


def _sorted(parts: Sequence[tuple[str, str | None]]) -> tuple[tuple[str, str | None], ...]:
    return tuple(sorted(parts, key=lambda part: part[0]))
