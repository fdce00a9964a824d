"""The table of verbs, collected from the modules that describe them."""

from collections.abc import Iterator, Mapping

from control_api import (
    brokers,
    cluster,
    clusters,
    diagrams,
    faults,
    journal,
    overview,
    producers,
    report,
    scenario,
    security,
    topics,
    transactions,
    users,
)
from control_api import groups as consumer_groups
from control_api import registry as schema_registry
from control_api.verb import Verb

VERBS: tuple[Verb, ...] = (
    *cluster.VERBS,
    *clusters.VERBS,
    *overview.VERBS,
    *brokers.VERBS,
    *topics.VERBS,
    *producers.VERBS,
    *transactions.VERBS,
    *consumer_groups.VERBS,
    *schema_registry.VERBS,
    *faults.VERBS,
    *scenario.VERBS,
    *journal.VERBS,
    *diagrams.VERBS,
    *users.VERBS,
    *security.VERBS,
    *report.VERBS,
)
BY_NAME: Mapping[str, Verb] = {verb.name: verb for verb in VERBS}


def groups() -> Iterator[tuple[str, list[Verb]]]:
    """Group the verbs by the first part of their names, in the table's order."""
    by_group: dict[str, list[Verb]] = {}
    for verb in VERBS:
        by_group.setdefault(verb.name.partition(" ")[0], []).append(verb)
    yield from by_group.items()
