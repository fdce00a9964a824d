"""AlterClientQuotas: sets quotas of users, client ids and addresses (KIP-546, addresses KIP-612).

Versions 0-1. Not done: client.quota.callback.class of Java.
"""

import asyncio
import ipaddress
from collections.abc import Mapping

from broker.coordination.metadata.quotas import IP, Alteration, Altered, in_map
from broker.request.api import Api, per_item
from broker.request.context import AclOperation, RequestContext
from broker.request.topology import may_on_cluster
from broker.settings.releases import Behaviour
from broker.time.clock import Slices
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    ResponseEntryData,
)


async def handle(request: AlterClientQuotasRequest, ctx: RequestContext) -> AlterClientQuotasResponse:
    """Alter the quotas of each entity, each with its own result (core G.10)."""
    if not may_on_cluster(ctx, AclOperation.ALTER_CONFIGS):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    wanted, slices = [], Slices()
    for entry in request.entries:
        await slices.pause()
        wanted.append(_wanted(entry))
    known = {name for each in wanted if (name := each.entity.get(IP)) and await _resolves(name)}
    finite = ctx.release.has(Behaviour.FINITE_QUOTAS)
    answers: list[Altered] = await ctx.cluster.metadata.ask(
        lambda machine, _now_ms, token: machine.alter_client_quotas(
            wanted, token, resolves=known.__contains__, finite=finite, validate_only=request.validate_only
        ),
        records=len(wanted),
    )
    parts = {each.key: each.entity for each in reversed(wanted)}
    return AlterClientQuotasResponse(entries=[_answer(parts[entity], error) for entity, error in answers])


def _wanted(entry: EntryData) -> Alteration:
    entity = {each.entity_type: each.entity_name for each in entry.entity}
    return Alteration(
        in_map(entity, len(entry.entity)), [(op.key, None if op.remove else op.value) for op in entry.ops]
    )


async def _resolves(name: str) -> bool:
    """Whether it is an address or the name of a host (InetAddress.getByName)."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        pass
    else:
        return True
    try:
        await asyncio.get_running_loop().getaddrinfo(name, None)
    except (OSError, ValueError):  # ValueError: not a valid host name
        return False
    return True


def _answer(entity: Mapping[str, str | None], error: KafkaError | None) -> ResponseEntryData:
    parts = [EntityData(kind, name) for kind, name in entity.items()]
    if error is None:
        return ResponseEntryData(ErrorCode.NONE, None, parts)
    return ResponseEntryData(error.code, error.message, parts)


API: Api[AlterClientQuotasRequest, AlterClientQuotasResponse] = Api(
    ApiKey.ALTER_CLIENT_QUOTAS,
    handle,
    per_item(
        lambda request: request.entries,
        lambda entry, error: _answer(_wanted(entry).entity, error),
        lambda entries: AlterClientQuotasResponse(entries=entries),
    ),
)
