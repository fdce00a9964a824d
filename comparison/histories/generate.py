"""Random histories: mostly requests of well-behaved clients, sometimes invalid ones. A seed reproduces its history.

They follow a rough model of existing resources, so that most requests succeed; no response is judged by the model.
Weights are ours: `drawing.pieces`. Of `length` steps as many less are drawn as are not drawn, such as the first ones;
restarts and ends come after a quarter or more of them, when there is something to lose.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from comparison.histories.drawing.administration import Administration
from comparison.histories.drawing.batches import BROKER, Batches
from comparison.histories.drawing.clients import Clients
from comparison.histories.drawing.consumers import Consumers
from comparison.histories.drawing.extremes import Extremes
from comparison.histories.drawing.fields import Fields
from comparison.histories.drawing.groups import Groups
from comparison.histories.drawing.partitions import Partitions
from comparison.histories.drawing.pieces import Known, Versions
from comparison.histories.drawing.security import Security
from comparison.histories.drawing.shares import ALLOW, QUEUE, Shares
from comparison.histories.drawing.streams import FURTHER_MEMBERS, Streams
from comparison.histories.drawing.tokens import Tokens
from comparison.histories.drawing.topologies import SOUND
from comparison.histories.drawing.transactions import Transactions
from comparison.histories.drawing.uncommon import Uncommon
from comparison.histories.step_request import Step
from protocol.apis import ApiKey


class Generator(Administration, Partitions, Transactions, Groups):
    """Generates histories."""

    def __init__(self, versions: Versions, seed: object) -> None:
        super().__init__(versions, seed)
        self._draws: dict[Callable[[], dict[str, Any]], int] = {
            self._produce: 22,
            self._fetch: 8,
            self._fetch_session: 4,
            self._list_offsets: 4,
            self._epoch_end: 1,
            self._describe_producers: 2,
            self._init_producer: 5,
            self._add_partitions: 4,
            self._add_offsets: 2,
            self._commit_in_transaction: 3,
            self._end_transaction: 6,
            self._write_marker: 1,
            self._describe_transaction: 2,
            self._list_transactions: 1,
            self._create_topic: 2,
            self._delete_topic: 1,
            self._create_partitions: 1,
            self._metadata: 2,
            self._describe_topic: 1,
            self._describe_configs: 2,
            self._alter_configs: 3,
            self._replace_configs: 1,
            self._delete_records: 2,
            self._elect_leaders: 1,
            self._join: 7,
            self._sync: 6,
            self._heartbeat: 3,
            self._leave: 2,
            self._commit: 4,
            self._fetch_offsets: 4,
            self._delete_offset: 1,
            self._delete_group: 1,
            self._describe_group: 2,
            self._find_coordinator: 1,
            self._list_groups: 1,
            self._describe_cluster: 1,
            self._describe_log_dirs: 1,
            self._list_config_resources: 1,
            self._reassign: 1,
            self._list_reassignments: 1,
        }

    def history(self, length: int, *, restarts: int = 0) -> list[Step]:
        """Generate the next history: a topic first, then random steps, with `restarts` restarts among them."""
        self._known = Known()
        first = self._create_topic(sound=True)
        draws, weights = list(self._draws), list(self._draws.values())
        drawn = [draw() for draw in self._chance.choices(draws, weights, k=length - 1)]
        for _ in range(restarts):
            at = self._chance.randrange(length // 4, length - 1)
            drawn.insert(at, {"do": "restart", "clean": self._chance.randrange(2) == 0})
        return [first, *drawn]


class ConsumerGenerator(Administration, Groups, Consumers):
    """Generates histories of consumer groups (KIP-848)."""

    def __init__(self, versions: Versions, seed: object) -> None:
        super().__init__(versions, seed)
        self._draws: dict[Callable[[], dict[str, Any]], int] = {
            self._consumer_joins: 12,
            self._consumer_beats: 16,
            self._consumer_changes: 6,
            self._consumer_leaves: 4,
            self._describe_consumers: 5,
            self._classic_joins: 3,
            self._classic_syncs: 2,
            self._classic_beats: 1,
            self._classic_leaves: 1,
            self._describe_classic: 1,
            self._create_topic: 1,
            self._create_partitions: 1,
            self._delete_topic: 1,
            self._list_groups: 1,
        }

    def history(self, length: int, *, restarts: int = 0) -> list[Step]:  # noqa: ARG002 - members do not outlive them
        """Generate the next history: a topic first, then random steps."""
        self._known = Known()
        first = self._create_topic(sound=True)
        drawn = self._chance.choices(list(self._draws), list(self._draws.values()), k=length - 1)
        return [first, *(draw() for draw in drawn)]


class ShareGenerator(Administration, Partitions, Transactions, Shares):
    """Generates histories of share groups (KIP-932)."""

    def __init__(self, versions: Versions, seed: object) -> None:
        super().__init__(versions, seed)
        self._draws: dict[Callable[[], dict[str, Any]], int] = {
            self._share_joins: 5,
            self._share_beats: 6,
            self._share_leaves: 2,
            self._describe_shares: 3,
            self._share_fetch: 22,
            self._share_ack: 16,
            self._share_config: 4,
            self._share_offsets: 4,
            self._alter_share_offsets: 2,
            self._delete_share_offsets: 1,
            self._delete_share_group: 1,
            self._list_groups: 1,
            self._other_kind: 1,
            self._produce: 14,
            self._init_producer: 3,
            self._add_partitions: 2,
            self._end_transaction: 4,
            self._create_topic: 1,
            self._create_partitions: 1,
            self._delete_topic: 1,
            self._delete_records: 1,
        }
        self._lock_waits = 0 if self._rarely(2) else 1

    def history(self, length: int, *, restarts: int = 0) -> list[Step]:  # noqa: ARG002 - members do not outlive them
        """Generate the next history: a topic, a group that reads from its start, and a member first."""
        self._known = Known()
        first = [self._create_topic(sound=True), self._share_config("share.auto.offset.reset")]
        if self._rarely(8):
            first.pop()
        first += [self._share_joins(), self._produce()]
        drawn = [draw() for draw in self._chance.choices(list(self._draws), list(self._draws.values()), k=length - 4)]
        for _ in range(self._lock_waits):
            drawn.insert(self._chance.randrange(len(drawn) // 3, len(drawn)), self._locks_end())
        return [*first, *drawn]


class ShareEndGenerator(ShareGenerator):
    """Generates histories of share groups with dead-letter queues, lost connections, silent members and restarts."""

    def __init__(self, versions: Versions, seed: object) -> None:
        super().__init__(versions, seed)
        self._draws |= {
            self._share_reject: 10,
            self._queue_named: 4,
            self._queue_created: 2,
            self._queue_deleted: 1,
            self._disconnect: 4,
        }

    def history(self, length: int, *, restarts: int = 0) -> list[Step]:
        """Generate the next history: mostly a queue early on, at most one silent member, and the restarts."""
        drawn = super().history(length - 2)
        if not self._rarely(5):
            drawn.insert(2, self._queue_named(QUEUE))
        if self._rarely(2):
            drawn.insert(3, self._queue_created())
        if self._rarely(3):
            drawn.insert(self._chance.randrange(len(drawn) // 2, len(drawn)), self._member_ends())
        for _ in range(restarts):
            at = self._chance.randrange(len(drawn) // 4, len(drawn) - 1)
            drawn.insert(at, {"do": "restart", "clean": self._rarely(2)})
        return drawn


class ShareAclGenerator(ShareGenerator):
    """Generates histories of share groups whose members and administrators need ACLs."""

    def __init__(self, versions: Versions, seed: object) -> None:
        super().__init__(versions, seed)
        self._draws[self._allow_shares] = 8

    def history(self, length: int, *, restarts: int = 0) -> list[Step]:
        """Generate the next history: some ACLs after the topic, then steps by users who may have them."""
        first, *drawn = super().history(length - 4, restarts=restarts)
        rights = [self._allow_shares(ALLOW) for _ in range(4)]
        return [first, *rights, *(self._by_someone(dict(step)) for step in drawn)]


class StreamsGenerator(Administration, Streams):
    """Generates histories of streams groups (KIP-1071)."""

    def __init__(self, versions: Versions, seed: object) -> None:
        super().__init__(versions, seed)
        self._draws: dict[Callable[[], dict[str, Any]], int] = {
            self._streams_joins: 12,
            self._streams_beats: 26,
            self._streams_leaves: 4,
            self._describe_streams: 6,
            self._describe_topology: 1,
            self._streams_commits: 5,
            self._streams_fetches: 2,
            self._streams_offset_deleted: 1,
            self._streams_config: 3,
            self._delete_streams_group: 1,
            self._streams_group_described: 1,
            self._other_kind: 1,
            self._list_groups: 1,
            self._create_topic: 2,
            self._create_partitions: 1,
            self._streams_topic: 1,
        }

    def history(self, length: int, *, restarts: int = 0) -> list[Step]:  # noqa: ARG002 - members do not outlive them
        """Generate the next history: two topics, most of the time, and a member first."""
        self._known = Known()
        self._sound = self._chance.choice(SOUND)
        if self._rarely(8):
            self._members = (*self._members, *FURTHER_MEMBERS)
        first = [self._create_topic(sound=True) for _ in range(1 if self._rarely(4) else 2)]
        first.append(self._streams_joins())
        drawn = self._chance.choices(list(self._draws), list(self._draws.values()), k=length - len(first))
        return [*first, *(draw() for draw in drawn)]


HIGHEST = (
    *(("metadata.version", level) for level in (30, 33)),
    *(("transaction.version", 2), ("group.version", 1), ("share.version", 1), ("share.version", 2)),
    ("streams.version", 1),
)
"""Highest feature levels in 4.3 and 4.4."""


BROKER_SETTINGS = {
    "log.cleanup.policy": ("compact", "compact,delete", "nonsense"),
    "log.index.interval.bytes": ("100", "-1"),
    "log.message.timestamp.after.max.ms": ("0", "-1"),
    "log.message.timestamp.before.max.ms": ("1800000", "x"),
    "log.message.timestamp.type": ("LogAppendTime", "Never"),
    "log.retention.bytes": ("1000000", "x"),
    "log.retention.ms": ("-1", "-2"),
    "log.segment.bytes": ("1048576", "13"),
    "message.max.bytes": ("400", "100000", "-1"),
    "producer.id.expiration.ms": ("86400001", "0"),
    "transaction.partition.verification.enable": ("false", "maybe"),
    "unclean.leader.election.enable": ("true", "x"),
}
"""Settings of brokers that may change at any time and that clients see, each with values it may and may not have.

Not `min.insync.replicas`: with eligible leader replicas it cannot be removed again.
"""
SET, DELETE = 0, 1
PLACES = ("=1", "=")
"""Broker 1 alone, and all brokers."""


class SettingsGenerator(Security, Generator):
    """Generates histories in which settings of the broker and levels of features change between requests of clients."""

    def __init__(self, versions: Versions, seed: object) -> None:
        super().__init__(versions, seed)
        self._draws |= {
            self._broker_setting: 14,
            self._broker_described: 3,
            self._update_features: 5,
            self._features: 2,
        }

    def history(self, length: int, *, restarts: int = 0) -> list[Step]:
        """Generate the next history; first and last all settings get their defaults, first all levels are raised."""
        usual = {"do": "alter_resources", "v": 1, "c": "0"}
        changes = [[name, DELETE, None] for name in BROKER_SETTINGS]
        reset: Step = {**usual, "resources": [[BROKER, place, changes] for place in PLACES]}
        raised = [{"do": "update_features", "v": 1, "c": "0", "updates": [[*feature, False, 1]]} for feature in HIGHEST]
        return [reset, *raised, *super().history(length, restarts=restarts), reset]

    def _broker_setting(self) -> dict[str, Any]:
        changes: list[list[Any]] = []
        for name in self._chance.sample(sorted(BROKER_SETTINGS), self._chance.choice((1, 1, 2))):
            value = BROKER_SETTINGS[name][0]
            if not changes:  # of several wrong ones Kafka reports one, in the order of a hash map
                value = self._chance.choice(BROKER_SETTINGS[name])
            operation = DELETE if self._rarely(4) else SET
            changes.append([name, operation, None if operation == DELETE else value])
        resources = [[BROKER, self._chance.choice(PLACES), changes]]
        return self._step("alter_resources", ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=resources)

    def _broker_described(self) -> dict[str, Any]:
        keys = self._chance.sample(sorted(BROKER_SETTINGS), 3)
        fields = {"resources": [[BROKER, self._chance.choice(PLACES), keys]], "synonyms": self._rarely(2) or None}
        return self._step("describe_resources", ApiKey.DESCRIBE_CONFIGS, 1, **fields)


class _Security(Security):
    """Generates histories of one kind: random steps, then steps that read everything."""

    draws: ClassVar[dict[str, int]]
    last: ClassVar[dict[str, Any]]

    def history(self, length: int, *, restarts: int = 0) -> list[Step]:
        """Generate the next history, with `restarts` restarts among its steps."""
        self._known = Known()
        names = self._chance.choices(list(self.draws), list(self.draws.values()), k=length - 1)
        drawn: list[Step] = [getattr(self, f"_{name}")() for name in names]
        for _ in range(restarts):
            drawn.insert(self._chance.randrange(length // 4, length - 1), {"do": "restart", "clean": self._rarely(2)})
        return [*drawn, self.last]


class UserGenerator(_Security):
    """Generates histories of SCRAM users."""

    draws: ClassVar = {"alter_users": 3, "describe_users": 2}
    last: ClassVar = {"do": "describe_users", "v": 0, "c": "0", "users": None, "sorted": True}


class QuotaGenerator(_Security):
    """Generates histories of client quotas."""

    draws: ClassVar = {"alter_quotas": 3, "describe_quotas": 2}
    last: ClassVar = {"do": "describe_quotas", "v": 1, "c": "0", "components": []}


class AclGenerator(_Security):
    """Generates histories of ACLs, for clusters with an authorizer to which the client is a super user."""

    draws: ClassVar = {"create_acls": 4, "delete_acls": 1, "describe_acls": 3}
    last: ClassVar = {"do": "describe_acls", "v": 3, "c": "0", "filter": [1, None, 1, None, None, 1, 1]}


class FeatureGenerator(_Security):
    """Generates histories of finalized features."""

    draws: ClassVar = {"update_features": 4, "features": 1}
    last: ClassVar = {"do": "features", "v": 3, "c": "0"}

    def history(self, length: int, *, restarts: int = 0) -> list[Step]:
        """Generate the next history, which first raises all levels to the highest: levels outlive a history."""
        raised = [{"do": "update_features", "v": 1, "c": "0", "updates": [[*feature, False, 1]]} for feature in HIGHEST]
        return [*raised, *super().history(length, restarts=restarts)]


class TokenGenerator(Tokens, _Security):
    """Generates histories of delegation tokens, for clusters with a listener for users and an authorizer."""

    draws: ClassVar = {
        "create_token": 4,
        "renew_token": 3,
        "expire_token": 3,
        "describe_tokens": 5,
        "allow_tokens": 2,
    }
    last: ClassVar = {"do": "describe_tokens", "v": 3, "c": "as:admin", "owners": None}


class BatchGenerator(Batches):
    """Generates histories of an administrator whose requests have several entries."""

    def history(self, length: int, *, restarts: int = 0) -> list[Step]:
        """Generate the next history, with `restarts` restarts among its steps."""
        draws: dict[Callable[[], dict[str, Any]], int] = {
            self._create_many: 6,
            self._delete_many: 3,
            self._grow_many: 4,
            self._alter_many: 5,
            self._replace_many: 2,
            self._describe_many: 4,
            self._elect_many: 2,
            self._reassign_many: 3,
            self._delete_many_records: 2,
            self._describe_all: 3,
        }
        drawn: list[Step] = [draw() for draw in self._chance.choices(list(draws), list(draws.values()), k=length)]
        for _ in range(restarts):
            drawn.insert(self._chance.randrange(length // 4, length), {"do": "restart", "clean": self._rarely(2)})
        return drawn


class UncommonGenerator(Administration, Uncommon):
    """Generates histories of requests that clients hardly ever send."""

    def history(self, length: int, *, restarts: int = 0) -> list[Step]:
        """Generate the next history: a topic first, then random steps, with `restarts` restarts among them."""
        self._known = Known()
        first = self._create_topic(sound=True)
        draws: dict[Callable[[], dict[str, Any]], int] = {
            self._share_state: 20,
            self._quorum: 3,
            self._move_log_dirs: 3,
            self._topology: 4,
            self._handshake: 2,
            self._create_topic: 1,
            self._create_partitions: 1,
            self._delete_topic: 1,
        }
        drawn = [draw() for draw in self._chance.choices(list(draws), list(draws.values()), k=length - 1)]
        for _ in range(restarts):
            drawn.insert(self._chance.randrange(length // 4, length - 1), {"do": "restart", "clean": self._rarely(2)})
        return [first, *drawn]


class FieldGenerator(Fields, Generator):
    """Generates histories of requests with any value in any field, among those of well-behaved clients."""

    def __init__(self, versions: Versions, seed: object) -> None:
        super().__init__(versions, seed)
        usual = sum(self._draws.values())
        self._draws[self._fields] = 2 * usual


class ExtremeGenerator(Extremes, Generator):
    """Generates histories of requests with several entries and extreme numbers, among those of usual clients."""

    def __init__(self, versions: Versions, seed: object) -> None:
        super().__init__(versions, seed)
        usual = sum(self._draws.values())
        self._draws[self._extremes] = 2 * usual


KINDS: dict[
    str,
    type[Generator]
    | type[ConsumerGenerator]
    | type[ShareGenerator]
    | type[StreamsGenerator]
    | type[BatchGenerator]
    | type[UncommonGenerator]
    | type[SettingsGenerator]
    | type[Clients]
    | type[_Security],
] = {
    "records": Generator,
    "consumers": ConsumerGenerator,
    "share": ShareGenerator,
    "share_acls": ShareAclGenerator,
    "share_ends": ShareEndGenerator,
    "streams": StreamsGenerator,
    "users": UserGenerator,
    "quotas": QuotaGenerator,
    "acls": AclGenerator,
    "features": FeatureGenerator,
    "tokens": TokenGenerator,
    "batches": BatchGenerator,
    "settings": SettingsGenerator,
    "uncommon": UncommonGenerator,
    "fields": FieldGenerator,
    "extremes": ExtremeGenerator,
    "clients": Clients,
}
"""Kind of history -> its generator."""
