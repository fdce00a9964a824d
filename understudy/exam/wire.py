"""Rules of the wire, checked after each scenario: each client's requests beside its options and what it was granted.

They are what a journal alone does not show, as it does not hold the options that the application chose, and what
decides who may commit and which records are read. `understudy conformance` has the other invariants of the protocol.
A request is compared only with responses that its client has received: one that may have crossed a response is no
violation.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from understudy.exam import witnesses
from understudy.exam.level import Level
from understudy.results import JournalEntry

LIMIT: Final = 10_000
"""Requests of a scenario that are looked at: ours, five times what most send. A client with more is in a storm."""
CROSSING_US: Final = 300_000
"""A request that arrives within this (arbitrary) time of a response may have been sent before the client read it."""
REFUSED_PER_S: Final = 30
"""Refused requests of one API, with one error, within a second: with a back-off of 50 ms there are at most 20."""
IDLE_PER_S: Final = 60
"""Fetches without records, or Metadata, within a second: arbitrary, more than a client needs that polls every 50 ms."""
SECOND_US: Final = 1_000_000
FIRST_WITH_SESSIONS, FIRST_WITH_LEADER_EPOCH = 7, 9  # versions of Fetch
FIRST_WITH_EPOCH: Final = 9  # version of OffsetFetch: the member and its epoch
NEVER_US: Final = 2**63
REPEATED: Final = 10  # arbitrary: fewer may be the attempts of one call
HASTY: Final = 10
"""Fetches in a row that wait for nothing and bring nothing: arbitrary, a few may follow a seek or a rebalance."""
FINAL: Final = frozenset(
    {
        "CLUSTER_AUTHORIZATION_FAILED",
        "FENCED_INSTANCE_ID",
        "INVALID_PRODUCER_EPOCH",
        "INVALID_RECORD",
        "INVALID_REQUIRED_ACKS",
        "INVALID_TRANSACTION_TIMEOUT",
        "INVALID_TXN_STATE",
        "MESSAGE_TOO_LARGE",
        "OFFSET_METADATA_TOO_LARGE",
        "POLICY_VIOLATION",
        "PRODUCER_FENCED",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "TRANSACTION_ABORTABLE",
        "UNRELEASED_INSTANCE_ID",
    }
)
"""Errors that Kafka's own clients never answer by repeating the request."""
REMOVED: Final = frozenset({"UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"})
"""Errors after which a member joins again, and a transaction with its offsets can only be aborted."""
READ_COMMITTED: Final = 1
JOINS, LEAVES, LEAVES_FOR_A_WHILE = 0, -1, -2
OUT: Final = frozenset({"UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH"})
MEMBERSHIP: Final = ("SyncGroup", "Heartbeat", "OffsetCommit")
Options = Mapping[str, Any]
Place = tuple[str, int]
"""A topic id and a partition."""
Rule = Callable[[Sequence[JournalEntry]], Iterator["Problem"]]


@dataclass(frozen=True)
class Client:
    """A client of a scenario: the command that created it, and its options."""

    name: str
    kind: str
    options: Options
    commands: set[str] = field(default_factory=set)
    """Commands after which requests are expected that the client does not send by itself."""


@dataclass(frozen=True)
class Problem:
    """A request that breaks a rule."""

    entry: JournalEntry
    text: str
    level: Level = Level.MUST
    habit: bool = False
    """Whether the client does so in each run: it is reported in its area's scenario without a fault only."""

    def __str__(self) -> str:
        return f"request {self.entry.id}, {self.entry.api} v{self.entry.version} of {self.entry.client_id}: {self.text}"


def problems(clients: Iterable[Client], entries: Sequence[JournalEntry], *, habits: bool = True) -> list[Problem]:
    """Return the broken rules, the most binding first, then in the order of the requests; `habits`: these, too."""
    every_problem: list[Problem] = []
    if len(entries) >= LIMIT:  # what was granted at first may be missing
        return [each for client in clients for each in _load([e for e in entries if e.client_id == client.name])]
    granted = _memberships(entries)
    for client in clients:
        mine = [entry for entry in entries if entry.client_id == client.name]
        every_problem += _options(client, mine)
        for rule in RULES:
            every_problem += rule(mine)
        every_problem += _commits(client, mine)
        if client.kind == "producer":
            every_problem += _batches(client, mine)
            every_problem += _offsets_in_transactions(mine, granted)
    return sorted(
        (each for each in every_problem if habits or not each.habit),
        key=lambda each: (list(Level).index(each.level), each.entry.id),
    )


def broken_rules(entries: Sequence[JournalEntry]) -> list[Problem]:
    """Return the MUST rules that a process has broken with any options, in the order of its requests.

    Commits without a generation are left out: brokers accept them for groups without members only, and a process may
    commit beside its members. aiokafka sends them while a member joins again.
    """
    members = [each for each in entries if each.api != "OffsetCommit" or _generation(each) >= 0]
    broken = [problem for rule in RULES for problem in rule(members)]
    sent = list(witnesses.batches(entries))
    for batch, text in [*witnesses.broken_sequences(sent), *witnesses.wrong_epochs(sent)]:
        broken.append(Problem(batch.entry, text))
    broken += _producer_ids(entries, sent)
    return sorted((each for each in broken if each.level is Level.MUST), key=lambda each: each.entry.id)


# --- options ----------------------------------------------------------------------------------------------------------


def _acks(options: Options) -> int:
    return -1 if options["acks"] == "all" or options["idempotent"] else int(options["acks"])


@dataclass(frozen=True)
class Wanted:
    """The value of a request's field that follows from an option, since a version of the API."""

    api: str
    field: str
    value: Callable[[Options], Any]
    level: Level = Level.MUST
    since: int = 0
    when: Callable[[Options], bool] = lambda _options: True
    only: Callable[[JournalEntry], bool] = lambda _entry: True


def _option(name: str) -> Callable[[Options], Any]:
    return lambda options: options[name]


def _transactional(options: Options) -> bool:
    return bool(options["transactional_id"])


def _committed(options: Options) -> bool:
    return bool(options["isolation"] == "read_committed")


def _isolation(options: Options) -> int:
    return READ_COMMITTED if _committed(options) else 0


def _in_group(options: Options) -> bool:
    """Return whether the application asked for a group: a library that reads in groups only makes one without."""
    return options["group"] is not None


def _joins(entry: JournalEntry) -> bool:
    return bool(entry.request.get("member_epoch") == JOINS)


def _has_id(entry: JournalEntry) -> bool:
    """Return whether a request has a transactional id: a client may also get a producer id that it does not use."""
    return bool(entry.request.get("transactional_id"))


STATIC_SINCE: Final = {"JoinGroup": 5, "SyncGroup": 3, "Heartbeat": 3, "OffsetCommit": 7}
"""API -> the version since which a member sends its instance id (KIP-345)."""
_ID, _INSTANCE = _option("transactional_id"), _option("instance_id")
WANTED: Final[Mapping[str, Sequence[Wanted]]] = {
    "producer": (
        Wanted("Produce", "acks", _acks),
        Wanted("Produce", "transactional_id", _ID, since=3),
        Wanted("InitProducerId", "transactional_id", _ID, only=_has_id),
        Wanted("InitProducerId", "transaction_timeout_ms", _option("transaction_timeout_ms"), when=_transactional),
        Wanted("TxnOffsetCommit", "transactional_id", _ID),
        Wanted("AddOffsetsToTxn", "transactional_id", _ID),
        Wanted("EndTxn", "transactional_id", _ID),
    ),
    "consumer": (
        Wanted("Fetch", "isolation_level", _isolation, since=4),
        Wanted("ListOffsets", "isolation_level", _isolation, Level.SHOULD, since=2),
        Wanted("OffsetFetch", "require_stable", lambda _options: True, Level.SHOULD, since=7, when=_committed),
        Wanted("JoinGroup", "session_timeout_ms", _option("session_timeout_ms")),
        *(Wanted(api, "group_id", _option("group"), when=_in_group) for api in STATIC_SINCE),
        *(
            # With KIP-848 its epoch fences a static member.
            Wanted(
                api, "group_instance_id", _INSTANCE, since=since, when=lambda options: options["protocol"] == "classic"
            )
            for api, since in STATIC_SINCE.items()
        ),
        Wanted("LeaveGroup", "group_id", _option("group"), when=_in_group),
        Wanted("ConsumerGroupHeartbeat", "group_id", _option("group"), when=_in_group),
        Wanted("ConsumerGroupHeartbeat", "instance_id", _INSTANCE, only=_joins),
    ),
    "share_consumer": (
        Wanted("ShareGroupHeartbeat", "group_id", _option("group")),
        Wanted("ShareFetch", "group_id", _option("group")),
        Wanted("ShareAcknowledge", "group_id", _option("group")),
    ),
}


def _options(client: Client, entries: Sequence[JournalEntry]) -> Iterator[Problem]:
    """Return fields that differ from what the application asked for."""
    for wanted in WANTED[client.kind]:
        if not wanted.when(client.options):
            continue
        value = wanted.value(client.options)
        for entry in entries:
            if entry.api == wanted.api and entry.version >= wanted.since and entry.request and wanted.only(entry):
                sent = entry.request.get(wanted.field)
                if (sent or None) != (value or None):
                    yield Problem(entry, f"{wanted.field} is {sent!r}, where the application asked for {value!r}",
                                  wanted.level, habit=wanted.level is not Level.MUST)  # fmt: skip


def _commits(client: Client, entries: Sequence[JournalEntry]) -> Iterator[Problem]:
    """Return commits of a consumer that is not to commit by itself."""
    if client.kind != "consumer" or not _in_group(client.options):
        return
    if not client.options["auto_commit"] and "commit_offsets" not in client.commands:
        for entry in entries:
            if entry.api == "OffsetCommit":
                yield Problem(entry, "the application has not asked for a commit, and disabled automatic ones",
                              Level.SHOULD, habit=True)  # fmt: skip


# --- producers --------------------------------------------------------------------------------------------------------


def _batches(client: Client, entries: Sequence[JournalEntry]) -> Iterator[Problem]:
    """Return batches whose header contradicts the options, or whose producer id, epoch or sequence is wrong."""
    idempotent, transactional = client.options["idempotent"], _transactional(client.options)
    codecs = {"none", client.options["compression"]}
    sent = list(witnesses.batches(entries))
    for entry in entries:
        if entry.api == "Produce" and entry.request and entry.request.get("timeout_ms", 1) <= 0:
            yield Problem(entry, "timeout_ms leaves no time for replication", Level.SHOULD)
    for batch in sent:
        if idempotent and batch.producer_id < 0:
            yield Problem(batch.entry, "a batch of an idempotent producer has no producer id")
        if batch.transactional != transactional:
            has = "has" if batch.transactional else "does not have"
            yield Problem(batch.entry, f"a batch {has} the transactional bit, and the producer's transactional id is "
                                       f"{client.options['transactional_id']!r}")  # fmt: skip
        if batch.compression not in codecs:
            yield Problem(batch.entry, f"a batch is compressed by {batch.compression}, "
                                       f"where the application asked for {client.options['compression']}")  # fmt: skip
    if idempotent:
        for batch, text in [*witnesses.broken_sequences(sent), *witnesses.wrong_epochs(sent)]:
            yield Problem(batch.entry, text)
        yield from _producer_ids(entries, sent)


def _producer_ids(entries: Sequence[JournalEntry], sent: Sequence[witnesses.Batch]) -> Iterator[Problem]:
    """Return requests with a producer id or epoch that was not granted, or after a newer one was granted and used."""
    granted: dict[int, list[tuple[int, int]]] = defaultdict(list)
    transactional = {each.producer_id for each in sent if each.transactional}
    for entry in entries:
        if entry.api in {"InitProducerId", "EndTxn"} and _succeeded(entry):
            answer = entry.response or {}
            if answer.get("producer_id", -1) >= 0:
                granted[answer["producer_id"]].append((answer["producer_epoch"], _answered_us(entry)))
    uses = [(each.entry, each.producer_id, each.epoch) for each in sent if each.producer_id >= 0]
    uses += [
        (entry, entry.request.get("producer_id", -1), entry.request.get("producer_epoch", -1))
        for entry in entries
        if entry.api in {"EndTxn", "TxnOffsetCommit", "AddOffsetsToTxn"} and entry.request
    ]
    for entry, producer_id, epoch in uses:
        bumps = producer_id not in transactional  # one that is only idempotent may raise its epoch itself, KIP-360
        epochs = [each for each, _ in granted.get(producer_id, ())]
        if not epochs or not (epoch in epochs or (bumps and epoch > min(epochs))):
            yield Problem(entry, f"producer id {producer_id} with epoch {epoch} was not granted to this producer")
        elif not bumps:
            newest = max(each for each, at in granted[producer_id] if at <= entry.ts_us or each == epoch)
            if newest > epoch:
                yield Problem(entry, f"epoch {epoch} is used after epoch {newest} was granted")


def _memberships(entries: Sequence[JournalEntry]) -> Mapping[tuple[str, str], set[int]]:
    """Return group and member id -> the generations or member epochs that it was granted."""
    epochs: dict[tuple[str, str], set[int]] = defaultdict(set)
    for entry in entries:
        if entry.api in {"JoinGroup", "ConsumerGroupHeartbeat"} and _succeeded(entry):
            answer = entry.response or {}
            granted = int(answer.get("generation_id", answer.get("member_epoch", -1)))
            epochs[entry.request["group_id"], answer.get("member_id") or entry.request["member_id"]].add(granted)
    return epochs


def _offsets_in_transactions(
    entries: Sequence[JournalEntry], granted: Mapping[tuple[str, str], set[int]]
) -> Iterator[Problem]:
    """Return TxnOffsetCommit without the member and generation of the consumer (KIP-447)."""
    groups = {group for group, _ in granted}
    for entry in entries:
        if entry.api != "TxnOffsetCommit" or entry.request.get("group_id") not in groups:
            continue
        member, generation = entry.request.get("member_id") or "", entry.request.get("generation_id", -1)
        if not member or generation not in granted.get((entry.request["group_id"], member), ()):
            yield Problem(
                entry,
                f"member {member!r} and generation {generation} are not those of a member, "
                "so that the offsets of a member that was removed would not be refused",
                Level.SHOULD,
                habit=True,
            )


# --- members ----------------------------------------------------------------------------------------------------------


@dataclass
class _Member:
    """What a member of a classic group was granted: generations by member id; ids that the broker does not know now.

    Generations are in the order of their grants: a coordinator that fails before SyncGroup has not stored the newest,
    and its successor grants a lower one.
    """

    granted: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    dead: dict[str, int] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    """Member id -> the place in `granted` of the newest generation that it has used."""

    def joins(self, entry: JournalEntry) -> Iterator[Problem]:
        """Judge the member id of a JoinGroup."""
        member, answer = entry.request.get("member_id") or "", entry.response or {}
        if member and member not in self.granted:
            yield Problem(entry, f"member id {member!r} was not granted to this client")
        elif entry.ts_us > self.dead.get(member, entry.ts_us) + CROSSING_US:
            text = f"joins with member id {member!r}, which the broker does not know any more"
            yield Problem(entry, text, Level.SHOULD)
        if _answered(entry) and answer.get("member_id"):
            self.dead.pop(answer["member_id"], None)
            self.granted[answer["member_id"]] += [answer["generation_id"]] if _succeeded(entry) else []

    def uses(self, entry: JournalEntry) -> Iterator[Problem]:
        """Judge member id and generation of another request of a member."""
        member = entry.request.get("member_id") or ""
        generation = _generation(entry)
        if not any(self.granted.values()):
            return  # it never became a member, such as one that only commits offsets
        granted = self.granted.get(member, [])
        if generation not in granted:
            yield Problem(entry, f"member {member!r} was not granted generation {generation}")
            return
        place, newest = max(at for at, each in enumerate(granted) if each == generation), self.used.get(member, 0)
        if place < newest:
            yield Problem(entry, f"generation {generation} is used after generation {granted[newest]}")
        self.used[member] = max(place, newest)

    def leaves(self, entry: JournalEntry) -> Iterator[Problem]:
        """Judge the member ids of a LeaveGroup."""
        left = {entry.request.get("member_id"), *(each.get("member_id") for each in entry.request.get("members", ()))}
        if self.granted and not left & self.granted.keys():
            yield Problem(entry, f"none of the members {left} was this client")


def _generation(entry: JournalEntry) -> int:
    """Return the generation or member epoch of a request of a member; -1: none."""
    return int(entry.request.get("generation_id", entry.request.get("generation_id_or_member_epoch", -1)))


def _classic(entries: Sequence[JournalEntry]) -> Iterator[Problem]:
    """Return requests of a member with a member id or generation that it was not granted, or that has ended."""
    member = _Member()
    rules = {"JoinGroup": member.joins, "LeaveGroup": member.leaves, **dict.fromkeys(MEMBERSHIP, member.uses)}
    for entry in entries:
        if entry.api in rules:
            yield from rules[entry.api](entry)
            if entry.error == "UNKNOWN_MEMBER_ID" and _answered(entry) and entry.request.get("member_id"):
                member.dead[entry.request["member_id"]] = _answered_us(entry)


@dataclass
class _ModernMember:
    """The epochs and partitions that members of consumer and share groups were granted, and when they left."""

    granted: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    assigned: set[Place] = field(default_factory=set)
    left: dict[str, int] = field(default_factory=dict)

    def beats(self, entry: JournalEntry) -> Iterator[Problem]:
        """Judge a heartbeat."""
        member, epoch = entry.request.get("member_id") or "", entry.request.get("member_epoch")
        owned = _assigned(entry.request.get("topic_partitions"))
        if epoch != LEAVES and self.left.get(member, NEVER_US) < entry.ts_us:
            text = f"member {member} joins again after it has left: it was not to leave before it is closed"
            yield Problem(entry, text, Level.SHOULD)
        if epoch not in {JOINS, LEAVES, LEAVES_FOR_A_WHILE, *self.granted[member]}:
            yield Problem(entry, f"member {member} was not granted epoch {epoch}")
        elif epoch == JOINS and owned:
            yield Problem(entry, f"joins with partitions that it does not have: {len(owned)}")
        elif owned - self.assigned:
            yield Problem(entry, f"reports partitions that it was not assigned: {len(owned - self.assigned)}")
        if epoch == JOINS and entry.request.get("rebalance_timeout_ms", 1) <= 0:
            yield Problem(entry, "joins without a rebalance timeout")
        if _succeeded(entry):
            answer = entry.response or {}
            self.left[member] = entry.ts_us if epoch == LEAVES else NEVER_US
            self.granted[answer.get("member_id") or member].add(answer["member_epoch"])
            self.assigned |= _assigned((answer.get("assignment") or {}).get("topic_partitions"))


def _epochs(entries: Sequence[JournalEntry]) -> Iterator[Problem]:
    """Return requests of a member of a consumer or share group with a member epoch that it was not granted."""
    members = _ModernMember()
    for entry in entries:
        member = entry.request.get("member_id") or ""
        if entry.api in {"ConsumerGroupHeartbeat", "ShareGroupHeartbeat"}:
            yield from members.beats(entry)
        elif entry.api == "ShareFetch" and entry.ts_us > members.left.get(member, NEVER_US) + CROSSING_US:
            yield Problem(entry, f"member {member} has left its group")
        elif entry.api in {"OffsetCommit", "OffsetFetch"} and members.granted:
            yield from _carries_epoch(entry, members.granted)


def _carries_epoch(entry: JournalEntry, granted: Mapping[str, set[int]]) -> Iterator[Problem]:
    """Return a commit or a look-up of committed offsets that does not carry member and epoch (KIP-848)."""
    if entry.api == "OffsetCommit":
        member, epoch = entry.request.get("member_id") or "", entry.request.get("generation_id_or_member_epoch", -1)
        if epoch not in granted.get(member, ()):
            yield Problem(entry, f"member {member!r} was not granted epoch {epoch}")
        return
    for group in entry.request.get("groups", ()) if entry.version >= FIRST_WITH_EPOCH else ():
        member, epoch = group.get("member_id") or "", group.get("member_epoch", -1)
        if epoch not in granted.get(member, ()):
            yield Problem(entry, f"member {member!r} was not granted epoch {epoch}", Level.SHOULD, habit=True)


@dataclass
class _Owner:
    """What a member of a consumer group has been assigned, has fetched, and has reported as not its own."""

    assigned: set[Place] = field(default_factory=set)
    fetched: dict[Place, int] = field(default_factory=dict)
    disowned: dict[Place, int] = field(default_factory=dict)

    def reports(self, entry: JournalEntry) -> None:
        """Compare what a heartbeat reports with what was fetched before; then take over what it is answered."""
        reported = entry.request.get("topic_partitions")
        if reported is not None:
            early = {place for place, at in self.fetched.items() if at + CROSSING_US < entry.ts_us}
            missing = self.assigned & early - _assigned(reported)
            self.disowned = {each: self.disowned.get(each, entry.ts_us) for each in missing}
        answer = (entry.response or {}).get("assignment")
        if entry.error or entry.request.get("member_epoch") == LEAVES:
            self.assigned = set()
        elif answer:
            self.assigned = _assigned(answer["topic_partitions"])
        self.fetched = {place: at for place, at in self.fetched.items() if place in self.assigned}
        self.disowned = {place: at for place, at in self.disowned.items() if place in self.assigned}

    def fetches(self, place: Place, at_us: int) -> bool:
        """Return whether the member has reported the partition as not its own."""
        self.fetched.setdefault(place, at_us)
        return at_us > self.disowned.get(place, NEVER_US) + CROSSING_US


def _disowned(entries: Sequence[JournalEntry]) -> Iterator[Problem]:
    """Return Fetch requests of partitions that the member has reported as not its own (KIP-848).

    It had fetched them before it reported, and they were assigned to it all the time.
    """
    ids: dict[str, str] = {}
    owner = _Owner()
    for entry in entries:
        if entry.api == "Metadata":
            ids |= {each["name"]: each.get("topic_id", "") for each in (entry.response or {}).get("topics", ())}
        elif entry.api == "ConsumerGroupHeartbeat":
            owner.reports(entry)
        elif entry.api == "Fetch" and owner.assigned:
            for topic in entry.request.get("topics", ()):
                name = topic.get("topic") or ""
                for each in topic["partitions"]:
                    if owner.fetches((ids.get(name) or topic.get("topic_id", ""), each["partition"]), entry.ts_us):
                        text = f"fetches partition {each['partition']}, which it has reported as not its own"
                        yield Problem(entry, text)


def _assigned(topics: Any) -> set[Place]:
    return {(each["topic_id"], partition) for each in topics or () for partition in each["partitions"]}


# --- sessions and load ------------------------------------------------------------------------------------------------


def _fetch_sessions(entries: Sequence[JournalEntry]) -> Iterator[Problem]:
    """Return Fetch requests with a session that was not granted, or an epoch that is not the next one (KIP-227).

    Also those without the leader epoch, with which a broker that is behind or ahead would be noticed (KIP-320).
    """
    next_epochs: dict[tuple[int, int], int] = {}
    for entry in entries:
        if entry.api != "Fetch" or entry.version < FIRST_WITH_SESSIONS:
            continue
        session, epoch = entry.request.get("session_id", 0), entry.request.get("session_epoch", -1)
        known = next_epochs.get((entry.broker, session))
        epochs = [
            each["current_leader_epoch"] for topic in entry.request.get("topics", ()) for each in topic["partitions"]
        ]
        if entry.version >= FIRST_WITH_LEADER_EPOCH and epochs and max(epochs) < 0:
            yield Problem(entry, "no partition has a leader epoch", Level.MAY, habit=True)
        if session and epoch > 0:
            if known is None:
                yield Problem(entry, f"fetch session {session} was not granted by broker {entry.broker}")
            elif epoch != known:
                yield Problem(entry, f"epoch {epoch} of fetch session {session}, where {known} comes next")
        answer = entry.response or {}
        granted = answer.get("session_id", 0)
        if _answered(entry) and granted and answer.get("error_code") == "NONE":  # a partition may have an error
            next_epochs[entry.broker, granted] = max(epoch, 0) + 1


def _share_sessions(entries: Sequence[JournalEntry]) -> Iterator[Problem]:
    """Return share session epochs that are neither 0, -1 nor the next one (KIP-932)."""
    allowed: dict[tuple[int, str], set[int]] = {}
    for entry in entries:
        if entry.api not in {"ShareFetch", "ShareAcknowledge"}:
            continue
        place = entry.broker, entry.request.get("member_id") or ""
        epoch, known = entry.request.get("share_session_epoch", -1), allowed.get(place, {0})
        if epoch > 0 and epoch not in known:
            yield Problem(entry, f"share session epoch {epoch}, where {max(known)} comes next")
        if _answered(entry) and (entry.response or {}).get("error_code") == "NONE":
            allowed[place] = {epoch + 1}
        else:  # a request that was refused for another reason may count
            allowed[place] = {*known, epoch + 1}


def _load(entries: Sequence[JournalEntry]) -> Iterator[Problem]:
    """Return requests that are repeated without a back-off, or after an error that repeating does not change."""
    arrivals: dict[tuple[str, str], list[int]] = defaultdict(list)
    hasty = 0
    for entry in entries:
        idle = entry.api == "Metadata" or (entry.api in {"Fetch", "ShareFetch"} and not _has_records(entry))
        if entry.api in {"Fetch", "ShareFetch"}:
            hasty = hasty + 1 if idle and not entry.error and _waits_for_nothing(entry) else 0
            if hasty == HASTY:
                yield Problem(entry, f"sent {HASTY} times in a row without a wait for records", Level.MAY)
        if not entry.error and not idle:
            continue
        at = arrivals[entry.api, entry.error or ""]
        at.append(entry.ts_us)
        limit = REFUSED_PER_S if entry.error else IDLE_PER_S
        about = f"refused with {entry.error}" if entry.error else "without news"
        if len(at) > limit and at[-1] - at[-limit - 1] < SECOND_US:
            yield Problem(entry, f"sent more than {limit} times within a second, {about}", Level.MAY)
            at.clear()
        final = entry.error in FINAL or (entry.api == "TxnOffsetCommit" and entry.error in REMOVED)
        if final and len(at) == REPEATED:
            yield Problem(entry, f"sent {REPEATED} times, {about}, which does not change", Level.MAY)


def _waits_for_nothing(entry: JournalEntry) -> bool:
    """Return whether a broker answers a fetch at once; of share groups, it need not follow the numbers of bytes."""
    names = ("max_wait_ms", "min_bytes", "max_bytes") if entry.api == "Fetch" else ("max_wait_ms",)
    return any(entry.request.get(name, 1) <= 0 for name in names)


def _has_records(entry: JournalEntry) -> bool:
    return any(
        (partition.get("records") or {}).get("count")
        for topic in (entry.response or {}).get("responses", ())
        for partition in topic.get("partitions", ())
    )


def _answered(entry: JournalEntry) -> bool:
    return entry.outcome == "answered"


def _succeeded(entry: JournalEntry) -> bool:
    return _answered(entry) and not entry.error


def _answered_us(entry: JournalEntry) -> int:
    return entry.ts_us + round((entry.duration_ms or 0) * 1000)


RULES: Final[Sequence[Rule]] = (
    _classic,
    _epochs,
    _disowned,
    _fetch_sessions,
    _share_sessions,
    _load,
)
