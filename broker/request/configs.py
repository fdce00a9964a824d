"""Shared by AlterConfigs and IncrementalAlterConfigs: decides on the current configs, then stores (core C.4)."""

from collections.abc import Sequence
from functools import partial

from broker.coordination.metadata.configs import NewConfigs
from broker.coordination.metadata.features import ELR_VERSION
from broker.coordination.metadata.topics import check_records
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.settings import ConfigResourceType
from broker.settings.alter import Alteration, Decision, World, decide
from broker.settings.releases import Behaviour
from protocol.acls import CLUSTER_NAME
from protocol.topic_names import check_topic_name

_ACL_RESOURCES = {ConfigResourceType.TOPIC: ResourceType.TOPIC, ConfigResourceType.GROUP: ResourceType.GROUP}


def config_allowed(ctx: RequestContext, operation: AclOperation, resource_type: int, name: str) -> bool:
    """Whether the principal may read or alter a resource's configs, by its rights on topic, group or cluster."""
    acl_resource = _ACL_RESOURCES.get(ConfigResourceType(resource_type))
    if acl_resource is None:
        return ctx.authorized(operation, ResourceType.CLUSTER, CLUSTER_NAME)
    return ctx.authorized(operation, acl_resource, name)


async def alter(
    ctx: RequestContext, alterations: Sequence[Alteration], *, incremental: bool, validate_only: bool
) -> list[Decision]:
    """Decide on each resource and store what is valid; a long metadata operation in progress is completed first.

    Raises:
        KafkaError: POLICY_VIOLATION if there are more changes than Kafka's controller stores in one operation.
    """
    check_records(sum(len(one.changes) for one in alterations))
    ctx.cluster.metadata.finish()  # else a topic being deleted would still be found, and its new configs would remain
    image = ctx.cluster.image
    world = World(
        settings=ctx.node.settings,
        stored=image.config,
        topic_exists=image.topics.__contains__,
        check_topic_name=check_topic_name,
        broker_exists=image.brokers.__contains__,
        at_controller=ctx.at_controller,
        authorizes_first=ctx.release.has(Behaviour.BROKER_CONFIGS_AUTHORIZED_FIRST),
        may_alter=partial(config_allowed, ctx, AclOperation.ALTER_CONFIGS),
        eligible_leader_replicas=image.features.get(ELR_VERSION, 0) > 0,
    )
    decisions = decide(alterations, world, incremental=incremental, validate_only=validate_only)
    if not validate_only:
        await _store(ctx, list(zip(alterations, decisions, strict=True)))
    return decisions


async def _store(ctx: RequestContext, decided: Sequence[tuple[Alteration, Decision]]) -> None:
    """Store configs in the metadata, all in one operation, and log levels at this broker."""
    new = [
        NewConfigs(one.type, one.name, decision.configs, [change.name for change in one.changes])
        for one, decision in decided
        if decision.configs is not None
    ]
    if new:
        await ctx.cluster.metadata.ask(lambda machine, _now_ms, to: machine.alter_configs(new, to))
    for one, decision in decided:
        if one.type == ConfigResourceType.BROKER_LOGGER and not decision.error:
            for change in one.changes:
                ctx.node.settings.loggers.alter(change.name, change.operation, change.value)
