"""`understudy exam --upstream`: a cluster that is already running, behind an `understudy proxy` that injects faults.

A second proxy, without faults, serves the exam itself: topics, records written without the library, and the log as a
witness. So both reach a cluster with TLS or SASL by the same `--client-config`.
"""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any, Final, cast

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in its __all__

from understudy.client import Cluster, connect
from understudy.errors import UnderstudyError
from understudy.exam.exercise import BROKERS, TOPICS, NotExercised
from understudy.exam.log_of_upstream import UpstreamPartition
from understudy.launcher import ServerProcess, command_line

CREATED_TOPIC: Final = "made"
"""The topic that administration scenarios create."""
GROUPS: Final = frozenset({"g", "copier", "s"})
PATIENCE_S: Final = 120.0  # elections and reassignments of a cluster in use; ours, as they move data
REACHED_S: Final = 20.0  # for the first response; ours, for a cluster far away
PAUSE_S: Final = 0.1  # retry.backoff.ms of Kafka's clients
OFFERS: Final = frozenset({"clock"})
"""Steering of scenarios that is available: time passes, although it cannot be advanced."""


class Steering:
    """Steering that this cluster does not offer."""

    def __getattr__(self, name: str) -> Any:
        raise NotExercised("needs steering that a cluster elsewhere does not offer")

    def __getitem__(self, name: object) -> Any:
        raise NotExercised("needs steering that a cluster elsewhere does not offer")


class PassingClock:
    """The brokers' clock, which runs by itself."""

    def advance(self, *, seconds: float) -> None:
        """Wait for this time."""
        time.sleep(seconds)


class UpstreamTopic:
    """A topic: its partitions, and records written without the library."""

    def __init__(self, cluster: "UpstreamCluster", name: str) -> None:
        self.cluster, self.name = cluster, name
        count = TOPICS.get(name, 1)
        self.partitions = {number: cluster.partition(name, number) for number in range(count)}

    def write(self, *records: Mapping[str, Any]) -> None:
        """Append records. Raises NotExercised if the cluster does not accept them."""
        writer = Producer({**self.cluster.past, "linger.ms": 0})
        for record in records:
            writer.produce(self.name, record["value"], partition=record["partition"])
        if writer.flush(PATIENCE_S):
            raise NotExercised(f"the cluster took no records for topic {self.name} in {PATIENCE_S:.0f} s")


class UpstreamTopics:
    """The topics."""

    def __init__(self, cluster: "UpstreamCluster") -> None:
        self.cluster = cluster

    def __getitem__(self, name: str) -> UpstreamTopic:
        return UpstreamTopic(self.cluster, name)

    def create(self, name: str, *, partitions: int, replication_factor: int) -> None:
        """Create a topic. Raises KafkaException."""
        topic = NewTopic(name, partitions, replication_factor)
        self.cluster.admin.create_topics([topic])[name].result(PATIENCE_S)

    def list(self) -> Sequence[Any]:
        """Return names and partitions."""
        topics = self.cluster.admin.list_topics(timeout=PATIENCE_S).topics.values()
        return [SimpleNamespace(name=topic.topic, partitions=list(topic.partitions)) for topic in topics]


class UpstreamGroup:
    """A group: its members and committed offsets."""

    def __init__(self, cluster: "UpstreamCluster", name: str) -> None:
        self.admin, self.name = cluster.admin, name

    def show(self) -> Any:
        """Return the group like the control plane."""
        about = self.admin.describe_consumer_groups([self.name])[self.name].result(PATIENCE_S)
        futures = self.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(self.name)])
        offsets = [
            SimpleNamespace(topic=commit.topic, partition=commit.partition, offset=commit.offset)
            for commit in futures[self.name].result(PATIENCE_S).topic_partitions
        ]
        return SimpleNamespace(members=about.members, offsets=offsets)


class UpstreamGroups:
    """The groups."""

    def __init__(self, cluster: "UpstreamCluster") -> None:
        self.cluster = cluster

    def __getitem__(self, name: str) -> UpstreamGroup:
        return UpstreamGroup(self.cluster, name)


class UpstreamCluster:
    """The interface of scenarios to a running cluster: `proxy` injects faults, `witness` does not."""

    offers = OFFERS

    def __init__(self, proxy: Cluster, witness: Cluster) -> None:
        self.proxy, self.witness = proxy, witness
        self.past: dict[str, Any] = {"bootstrap.servers": witness.bootstrap_servers, "log_level": 0}
        self.admin = AdminClient(self.past)
        self.former: list[AdminClient] = []
        self.bootstrap_servers = proxy.bootstrap_servers
        self.faults, self.journal = proxy.faults, proxy.journal
        self.topics, self.groups = UpstreamTopics(self), UpstreamGroups(self)
        self.clock: Any = PassingClock()
        self.brokers: Any = Steering()
        self.coordinators: Any = Steering()
        self.versions: Any = Steering()

    def find_brokers(self) -> None:
        """Find all brokers, whose addresses libraries and witnesses get, even if the proxies were given only one."""
        self.bootstrap_servers = _all_brokers({**self.past, "bootstrap.servers": self.bootstrap_servers})
        self.past["bootstrap.servers"] = _all_brokers(self.past)

    def partition(self, topic: str, number: int) -> UpstreamPartition:
        """Return a partition in the form that scenarios use."""
        return UpstreamPartition(self.past, topic, number)

    def info(self) -> Any:
        """Return the brokers, without listeners besides the one that the proxy connects to."""
        return SimpleNamespace(as_version="", brokers=())

    def require_unused(self) -> None:
        """Raise UnderstudyError if the cluster has a topic or a group that the exam would delete."""
        taken = sorted({*TOPICS, CREATED_TOPIC} & set(self.admin.list_topics(timeout=REACHED_S).topics))
        leftovers = [f"a topic {name}" for name in taken]
        with warnings.catch_warnings():  # deprecated, but list_consumer_groups leaves out share groups
            warnings.simplefilter("ignore", DeprecationWarning)
            names = {each.id for each in self.admin.list_groups(timeout=PATIENCE_S)}
        leftovers += [f"a group {name}" for name in sorted(GROUPS & names)]
        if leftovers:
            raise UnderstudyError(
                f"the cluster has {', '.join(leftovers)}: the exam deletes what has these names between its scenarios, "
                "so it needs a cluster for tests on which they are free"
            )

    def reset(self, *, disconnect: bool) -> None:
        """Recreate the topics, delete groups, end transactions; clear the proxy's faults and journal."""
        self.end_transactions()
        self.proxy.reset(disconnect=disconnect)
        self.witness.reset(disconnect=False)
        self.delete()
        left = self.new_topics()
        until = time.monotonic() + PATIENCE_S
        while left:
            errors = {name: _error(future) for name, future in self.admin.create_topics(left).items()}
            left = [each for each in left if errors[each.topic] is not None]
            _require_time(
                until, "; ".join(f"topic {each.topic} cannot be created: {errors[each.topic]}" for each in left)
            )

    def new_topics(self) -> list[NewTopic]:
        """Return the topics of each scenario."""
        replicas = min(BROKERS, len(self.admin.list_topics(timeout=PATIENCE_S).brokers))
        return [NewTopic(name, count, replicas) for name, count in TOPICS.items()]

    def delete(self) -> None:
        """Delete the exam's topics and groups. Members of ended processes remain until their session expires."""
        for future in self.admin.delete_topics([*TOPICS, CREATED_TOPIC]).values():
            _error(future)
        until = time.monotonic() + PATIENCE_S
        left = set(GROUPS)
        while left:
            errors = {name: _error(future) for name, future in self.admin.delete_consumer_groups(sorted(left)).items()}
            left = {name for name, error in errors.items() if error not in {None, "GROUP_ID_NOT_FOUND"}}
            if "NOT_COORDINATOR" in errors.values():  # librdkafka keeps using the coordinator that it found first
                self.former.append(self.admin)  # and must not be destroyed while requests are pending
                self.admin = AdminClient(self.past)
            _require_time(until, "; ".join(f"group {name} cannot be deleted: {errors[name]}" for name in left))

    def end_transactions(self) -> None:
        """Abort transactions that a scenario left open, by producers with the same transactional ids."""
        # More than a scenario sends.
        entries = self.proxy.journal.find(api="InitProducerId", limit=10_000)
        names = {str(entry.request["transactional_id"]) for entry in entries if entry.request["transactional_id"]}
        for name in sorted(names):
            with suppress(KafkaException):
                Producer({**self.past, "transactional.id": name}).init_transactions(PATIENCE_S)


def _all_brokers(settings: Mapping[str, Any]) -> str:
    brokers = AdminClient(dict(settings)).list_topics(timeout=REACHED_S).brokers.values()
    return ",".join(sorted(f"{broker.host}:{broker.port}" for broker in brokers))


def _require_time(until: float, text: str) -> None:
    if not text:
        return
    if time.monotonic() > until:
        raise UnderstudyError(f"after {PATIENCE_S:.0f} s, {text}")
    time.sleep(PAUSE_S)


def _error(future: Any) -> str | None:
    """Return the name of the error, as librdkafka spells it; None if there was none."""
    try:
        future.result(PATIENCE_S)
    except KafkaException as error:
        return str(error.args[0].name())
    return None


@contextmanager
def opened(
    upstream: str,
    client_config: str | None = None,
    factory: Callable[[Cluster, Cluster], UpstreamCluster] = UpstreamCluster,
) -> Iterator[Cluster]:
    """Start both proxies in front of a cluster; delete the exam's topics and groups at the end.

    Raises UnderstudyError if the cluster cannot be reached, or has topics or groups with these names.
    """
    options = command_line(upstream=upstream, client_config=client_config, port=0, control_port=0)
    processes = [ServerProcess(options, "proxy")]
    try:
        processes.append(ServerProcess(options, "proxy"))
        proxy, witness = (connect(str(process.ready.control_url)) for process in processes)
        cluster = factory(proxy, witness)
        try:
            cluster.require_unused()
            cluster.find_brokers()
        except KafkaException as error:
            raise UnderstudyError(f"{upstream} cannot be examined: {error.args[0].str()}") from None
        try:
            yield cast("Cluster", cluster)
        finally:
            with suppress(UnderstudyError, KafkaException):
                cluster.delete()
    finally:
        for process in processes:
            process.stop()
