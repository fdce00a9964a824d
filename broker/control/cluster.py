"""Verbs about the cluster as a whole."""

from typing import Any

from broker.anew import KEPT
from broker.anew import reset as reset_cluster
from broker.control.asked import Asked
from broker.control.brokers import told
from broker.control.problems import nearest, unprocessable

RESET = {
    "type": "object",
    "properties": {
        "keep": {"type": "array", "items": {"enum": list(KEPT)}, "description": "what is to survive"},
    },
    "additionalProperties": False,
}


async def health(asked: Asked) -> dict[str, Any]:  # noqa: ARG001
    """Alive."""
    return {"status": "ok"}


async def describe(asked: Asked) -> dict[str, Any]:
    """Brokers, controller, features, the release that is emulated, the seed."""
    cluster = asked.cluster
    return {
        "cluster_id": cluster.cluster_id,
        "controller": 1,
        "brokers": [told(cluster, node) for node in cluster.nodes.values()],
        "features": dict(cluster.image.features),
        "as_version": cluster.release.name,
        "seed": cluster.seed,
        "topics": len(cluster.image.topics),
    }


async def reset(asked: Asked) -> dict[str, Any]:
    """Everything as just started: topics of the command line come back, all else is gone."""
    asked.only("keep")
    keep = asked.body.get("keep", [])
    if not isinstance(keep, list):
        raise unprocessable(f"'keep' must be a list of names, such as [\"topics\"], not {keep!r}", "keep")
    for each in keep:
        if each not in KEPT:
            raise unprocessable(f"there is no {each!r} to keep{nearest(str(each), KEPT)}", "keep")
    await reset_cluster(asked.cluster, frozenset(keep))
    return {"status": "ok"}


async def run_retention(asked: Asked) -> dict[str, Any]:
    """Delete now what time, size and log start allow."""
    return {"segments_deleted": asked.cluster.upkeep.run_retention()}


async def run_compaction(asked: Asked) -> dict[str, Any]:
    """Compact now whatever can be compacted."""
    return {"logs_cleaned": await asked.cluster.upkeep.run_cleaner(force=True)}
