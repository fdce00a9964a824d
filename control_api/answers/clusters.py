"""Answers about the clusters of a process."""

from dataclasses import dataclass
from typing import Annotated, TypedDict

from control_api.fields import About


@dataclass(frozen=True, slots=True)
class RunningCluster:
    """A cluster of the process; the first is that of the command line."""

    id: str
    name: str
    bootstrap_servers: list[str]
    control_url: Annotated[str, About("the whole control plane of this cluster: control_url + /v1/clock, ...")]
    brokers: Annotated[int, About("number of brokers")] = 0
    topics: Annotated[int, About("number of topics")] = 0
    owner: Annotated[str, About("who is to end it; empty without one")] = ""
    lease_seconds: Annotated[
        int | None, About("it ends after this time without a request; null: when it is deleted")
    ] = None


class Clusters(TypedDict):
    """The clusters of the process, in the order in which they were made."""

    clusters: list[RunningCluster]
