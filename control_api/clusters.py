"""Verbs about the clusters of a process: the one of the command line, and those made while it runs, one for each test.

The verbs of the others act on the cluster under whose control URL they are requested; these act on the process.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, NotRequired, TypedDict

from control_api.fields import About
from control_api.verb import Verb


class NewCluster(TypedDict, total=False):
    """A cluster to make. Its data is in memory, its ports are free ones."""

    # 250 characters: long names of tests fit, and a list stays readable.
    name: Annotated[
        str, About("a name for people, such as that of a test; by default cluster-ID", least=1, most=250, such="test_a")
    ]
    # Arbitrary: more than tests need; each broker opens its ports.
    brokers: Annotated[int, About("number of brokers", least=1, most=100, default=1)]
    # Nine: a larger quorum is of no use, as it survives four losses.
    controllers: Annotated[
        int, About("number of controllers; with 1 the first broker is the controller", least=1, most=9, default=1)
    ]
    topics: Annotated[
        # Arbitrary: more than one process serves well.
        Mapping[str, Annotated[int, About(least=1, most=100_000, such=3)]],
        About("topics to create: name -> number of partitions", such={"orders": 3}),
    ]
    settings: Annotated[
        Mapping[str, Annotated[str | float | bool, About(such="1000")]],
        About("Kafka broker settings, by their Kafka names", such={"log.retention.ms": "60000"}),
    ]
    as_version: Annotated[str, About("behave like this Kafka release", such="3.9")]
    for_tests: Annotated[
        bool, About("use shorter defaults than Kafka's for settings that make clients pause", default=True)
    ]
    schema_registry: Annotated[bool, About("serve a schema registry beside its brokers, too, on a free port")]
    seed: Annotated[
        int, About("seed of all random choices (ids, leaders, jitter)", least=-(2**63), most=2**64 - 1, such=42)
    ]
    # 250 characters, as of a name.
    owner: Annotated[
        str, About("who is to end it, such as a user of `understudy shared`; shown in the list", least=1, most=250)
    ]
    lease_seconds: Annotated[
        int,
        About(
            "end the cluster after this time without a request, to its control plane or its brokers; "
            "by default it ends when it is deleted, or with the process",
            least=1,
            most=86_400,  # a day: what must live longer has no lease
            such=60,
        ),
    ]


class ClusterMade(TypedDict):
    """A new cluster: where clients and commands reach it."""

    id: str
    name: str
    bootstrap_servers: Sequence[str]
    control_url: Annotated[str, About("the whole control plane of this cluster: control_url + /v1/clock, ...")]
    schema_registry_url: NotRequired[str]


class ClusterDeleted(TypedDict):
    """The cluster that was ended."""

    id: str
    status: Literal["ok"]


VERBS = (
    Verb("clusters list", "GET", "/v1/clusters", "clusters.list()", "the clusters of this process",
         answer="clusters.Clusters", items="clusters",
         columns=("id", "name", "brokers", "topics", "bootstrap_servers", "control_url"), example={}),
    Verb("clusters create", "POST", "/v1/clusters", "clusters.create(...)",
         "make a cluster in this process, with brokers, clock, faults and data of its own", body=NewCluster,
         answer=ClusterMade, status=201,
         example={"name": "test_checkout", "brokers": 3, "topics": {"orders": 3}}),
    Verb("clusters delete", "DELETE", "/v1/clusters/{id}", "clusters.delete(id)",
         "end a cluster: its connections are closed, its data is gone", answer=ClusterDeleted),
)  # fmt: skip
