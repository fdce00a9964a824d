"""Answers about the cluster: brokers, clock, versions, snapshots."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypedDict

from control_api.answers.common import TimeMs
from control_api.brokers import State
from control_api.fields import About, Int64


@dataclass(frozen=True, slots=True)
class Health:
    """The server is alive: GET /v1/health."""

    status: Literal["ok"] = "ok"


@dataclass(frozen=True, slots=True)
class Listener:
    """One listener of a broker: `host` and `port` are its advertised address, as in Metadata."""

    name: str
    protocol: str = "PLAINTEXT"
    host: str = ""
    port: int = 0
    bound_host: Annotated[str, About("address that it listens on; 0.0.0.0: all addresses")] = ""
    bound_port: Annotated[int, About("port that it listens on")] = 0


@dataclass(frozen=True, slots=True)
class Broker:
    """One broker identity; `up` is false after kill and stop, `fenced` once the cluster has noticed.

    `host` and `port` are those of its first listener.
    """

    id: int
    host: str = ""
    port: int = 0
    up: bool = True
    fenced: bool = False
    epoch: int = -1
    rack: str | None = None
    state: State = "running"
    log_dir_failed: bool = False
    listeners: tuple[Listener, ...] = ()


@dataclass(frozen=True, slots=True)
class Controller:
    """One controller of the quorum; `host` and `port` are those of its listener."""

    id: int
    host: str = ""
    port: int = 0
    up: bool = True
    voter: Annotated[bool, About("whether it votes; if not, it is an observer")] = True
    active: Annotated[bool, About("whether it leads the quorum")] = False
    directory_id: Annotated[str, About("id of its data directory, as AddRaftVoter and RemoveRaftVoter need it")] = ""


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """The cluster: GET /v1/cluster."""

    cluster_id: str
    controller: Annotated[int, About("id of the active controller; -1: there is none now")] = -1
    as_version: str = ""
    seed: Int64 = 0
    topics: Annotated[int, About("number of topics")] = 0
    features: dict[str, int] = field(default_factory=dict)
    brokers: tuple[Broker, ...] = ()
    controllers: tuple[Controller, ...] = ()


@dataclass(frozen=True, slots=True)
class ClockState:
    """The cluster's clock: its time, how far it is ahead of the machine's, and whether it is frozen."""

    now_ms: TimeMs
    ahead_ms: Annotated[int, About("ahead of the machine's clock by this time")] = 0
    frozen: bool = False
    expired: Annotated[
        dict[str, int],
        About(
            "what the advance ended, such as members, offsets, transactions, transactional_ids, producer_ids, records"
        ),
    ] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VersionRange:
    """The versions that ApiVersions advertises for an API."""

    min: int
    max: int


@dataclass(frozen=True, slots=True)
class SnapshotInfo:
    """A snapshot of the cluster."""

    id: str
    at_ms: Annotated[int, About("when it was taken, by the cluster's clock")] = -1


class Versions(TypedDict):
    """The API versions offered to new connections."""

    as_version: str
    releases: Annotated[list[str], About("Kafka releases that can be emulated")]
    apis: Mapping[str, VersionRange | None]


class Snapshots(TypedDict):
    """All snapshots, oldest first."""

    snapshots: list[SnapshotInfo]
