"""Verbs about the cluster as a whole: clock, API versions, snapshots, retention and compaction."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, NotRequired, TypedDict

from control_api.fields import About
from control_api.verb import Verb


class Reset(TypedDict, total=False):
    """Options of a reset."""

    keep: Annotated[
        Sequence[Literal["topics", "groups", "transactions", "faults", "clock", "journal", "versions"]],
        About("what to keep", like="a list of names", such=["topics"]),
    ]
    disconnect: Annotated[
        bool,
        About(
            "disconnect all clients, and move listeners on ports that the system chose, so that no client comes back "
            "by itself; they do not move if topics, groups or transactions are kept"
        ),
    ]


class ResetDone(TypedDict):
    """Result of a reset; after `disconnect`, with the new addresses for clients."""

    status: Literal["ok"]
    bootstrap_servers: NotRequired[Sequence[str]]


class Advance(TypedDict):
    """An advance of the clock."""

    # Three hundred years: arbitrary, longer than every retention.
    ms: Annotated[int, About("how far to advance", least=0, most=10**13)]


class VersionLimits(TypedDict):
    """The oldest and the newest version of an API."""

    min: int
    max: int


class VersionsChange(TypedDict, total=False):
    """Versions for new connections. ``{}`` reverts all changes."""

    as_version: Annotated[
        str | None,
        About("behave like this Kafka release, such as 2.8; null: the release that the server was started with"),
    ]
    apis: Annotated[
        Mapping[str, Annotated[VersionLimits | None, About(such={"min": 0, "max": 3})]],
        About(
            "API name -> versions; null: not served; other APIs do not change",
            such={"InitProducerId": {"min": 0, "max": 3}},
            spread=True,
        ),
    ]


class RetentionRun(TypedDict):
    """Result of a retention run."""

    segments_deleted: int


class CompactionRun(TypedDict):
    """Result of a run of the log cleaner."""

    logs_cleaned: int


class SnapshotTaken(TypedDict):
    """The snapshot's id."""

    id: str


class SnapshotRestored(TypedDict):
    """The snapshot that was restored."""

    id: str
    status: Literal["ok"]


VERBS = (
    Verb("health", "GET", "/v1/health", "health()", "whether the server is alive", answer="cluster.Health"),
    Verb("cluster", "GET", "/v1/cluster", "info()", "brokers, controller, features, emulated version, seed",
         answer="cluster.ClusterInfo", items="brokers", columns=("id", "host", "port", "up", "fenced", "epoch")),
    Verb("reset", "POST", "/v1/reset", "reset()", "return to the state right after the start", body=Reset,
         answer=ResetDone),
    Verb("metrics", "GET", "/metrics", "metrics()", "Prometheus metrics", media="text/plain"),
    Verb("clock show", "GET", "/v1/clock", "clock.show()", "time of the cluster's clock",
         answer="cluster.ClockState"),
    Verb("clock advance", "POST", "/v1/clock/advance", "clock.advance(minutes=15)",
         "advance the clock; returns after all timers that became due have run", body=Advance,
         answer="cluster.ClockState"),
    Verb("clock freeze", "POST", "/v1/clock/freeze", "clock.freeze()", "freeze the clock",
         answer="cluster.ClockState"),
    Verb("clock thaw", "POST", "/v1/clock/thaw", "clock.thaw()", "unfreeze the clock", answer="cluster.ClockState"),
    Verb("retention run", "POST", "/v1/retention/run", "retention.run()", "apply retention now",
         answer=RetentionRun),
    Verb("compaction run", "POST", "/v1/compaction/run", "compaction.run()", "run log compaction now",
         answer=CompactionRun),
    Verb("versions show", "GET", "/v1/versions", "versions.show()", "API versions offered to new connections",
         answer="cluster.Versions"),
    Verb("versions set", "PUT", "/v1/versions", "versions.set(...)", "change the API versions for new connections",
         body=VersionsChange, answer="cluster.Versions"),
    Verb("snapshots list", "GET", "/v1/snapshots", "snapshots.list()", "all snapshots",
         answer="cluster.Snapshots", items="snapshots", columns=("id", "at_ms")),
    Verb("snapshots take", "POST", "/v1/snapshots", "snapshots.take()", "take a snapshot of the whole cluster",
         answer=SnapshotTaken),
    Verb("snapshots restore", "POST", "/v1/snapshots/{snapshot}/restore", "snapshots[id].restore()",
         "restore a snapshot",
         answer=SnapshotRestored),
)  # fmt: skip
