"""Rules of a company's Kafka cluster as plugins of Understudy; test_company_rules.py runs a cluster with them."""

from typing import Any

TEAMS = ("orders", "billing")


def check_topic(topic: Any) -> str | None:
    """Refuse topics without a team's prefix, and fewer partitions than three (create.topic.policy.class.name).

    Kafka asks about its internal topics, too: without the first line no group gets a coordinator.
    """
    if topic.topic.startswith("__"):
        return None
    if topic.topic.partition(".")[0] not in TEAMS:
        return f"{topic.topic}: the name must begin with a team, {' or '.join(TEAMS)}"
    if topic.num_partitions is not None and topic.num_partitions < 3:
        return f"{topic.topic}: at least 3 partitions are needed"
    return None


def check_configs(altered: Any) -> str | None:
    """Refuse a retention beyond a week (alter.config.policy.class.name)."""
    retention_ms = altered.configs.get("retention.ms")
    if retention_ms is not None and not 0 <= int(retention_ms) <= 604_800_000:
        return "retention.ms may be a week at most"
    return None


def authorize(action: Any) -> bool:
    """Let clients of a team write to its topics only (authorizer.class.name)."""
    if action.operation != "WRITE" or action.resource_type != "TOPIC":
        return True
    return bool(action.principal == f"User:{action.resource_name.partition('.')[0]}")


def principal(client: Any) -> str:
    """Let service accounts of a team be the team (principal.builder.class)."""
    if client.name is None:
        return "User:ANONYMOUS"
    return f"User:{client.name.partition('-')[0]}"


def limit(client: Any) -> int | None:
    """Give batch jobs a kilobyte per second (client.quota.callback.class)."""
    return 1_000 if client.quota_type == "PRODUCE" and client.client_id.startswith("batch") else None


def first_takes_all(group: Any) -> dict[str, dict[str, range]]:
    """Assign everything to the member with the first id (group.consumer.assignors)."""
    first = min(group.members)
    return {first: {topic: range(count) for topic, count in group.partitions.items()}}
