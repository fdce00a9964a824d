"""The one table of what a cluster can be told: HTTP path, Python name, words of `understudy ctl`, and help.

The Python client calls by the words, `ctl` and the shell completions are made from the rows, and a test holds the rows
against the server's OpenAPI document. A verb is added here and in the server's own table, nowhere else.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode


@dataclass(frozen=True, slots=True)
class Param:
    """A query parameter or a field of the body.

    `kind` is text, int, maybe (int or null), ints, float, flag, ms (a duration), names (repeatable text), json, or
    action (what a fault does).
    `place` is where it stands in the body, dots lead inwards; empty means its own name, * that it is the body itself.
    """

    name: str
    help: str
    kind: str = "text"
    required: bool = False
    choices: tuple[str, ...] = ()
    place: str = ""


@dataclass(frozen=True, slots=True)
class Verb:
    """One thing a cluster can be told or asked. `items` is the key of the list in the answer, `columns` its table."""

    words: str
    method: str
    path: str
    python: str
    help: str
    query: tuple[Param, ...] = ()
    body: tuple[Param, ...] = ()
    items: str = ""
    columns: tuple[str, ...] = ()
    media: str = "json"

    @property
    def places(self) -> tuple[str, ...]:
        """The names in the path, in order."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))

    def target(self, arguments: Mapping[str, Any]) -> str:
        """Path and query string, with the arguments that belong there."""
        path = self.path
        for name in self.places:
            path = path.replace(f"{{{name}}}", quote(str(arguments[name]), safe=""))
        query = {row.name: arguments[row.name] for row in self.query if arguments.get(row.name) is not None}
        said = {name: str(value).lower() if isinstance(value, bool) else value for name, value in query.items()}
        return f"{path}?{urlencode(said)}" if said else path

    def document(self, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """The JSON body, or None for a verb without one. An argument that was not given is left out, None is null."""
        if self.method in {"GET", "DELETE"}:
            return None
        body: dict[str, Any] = {}
        for row in self.body:
            if row.name not in arguments:
                continue
            if row.place == "*":  # the whole body
                body |= arguments[row.name]
                continue
            inner = body
            *way, name = (row.place or row.name).split(".")
            for step in way:
                inner = inner.setdefault(step, {})
            inner[name] = arguments[row.name]
        return body


TIME = "milliseconds, or 90s, 15m, 2h, 7d"

MATCH = (
    Param("api", "name of the API, such as EndTxn", place="match.api"),
    Param("versions", "first and last version of the request: 0,3", "ints", place="match.versions"),
    Param("broker", "id of the broker that is asked", "int", place="match.broker"),
    Param("listener", "name of the listener that it came through", place="match.listener"),
    Param("client_id", "client.id of the asker", place="match.client_id"),
    Param("topic", "topic", place="match.topic"),
    Param("partition", "partition", "int", place="match.partition"),
    Param("group", "group id", place="match.group"),
    Param("transactional_id", "transactional id", place="match.transactional_id"),
    Param("request", "fields of the request, as JSON", "json", place="match.request"),
)

DO = (
    Param("error", "answer this error instead of doing it", place="do.error"),
    Param("apply_then", "do it, then instead of the reply: error=CODE, disconnect=reset, drop, delay_ms=N", "action",
          place="do.apply_then"),
    Param("delay_ms", f"wait ({TIME})", "ms", place="do.delay_ms"),
    Param("where", "wait before or after doing it", choices=("before", "after"), place="do.where"),
    Param("drop", "never answer", "flag", place="do.drop"),
    Param("disconnect", "hang up", choices=("close", "reset"), place="do.disconnect"),
    Param("throttle_ms", "answer with this throttle time", "ms", place="do.throttle_ms"),
    Param("alter", "path.in.response -> value, as JSON", "json", place="do.alter"),
    Param("bytes", "truncate, corrupt, correlation_id, drip or extra, as JSON", "json", place="do.bytes"),
)  # fmt: skip

COUNT = (
    Param("skip", "let so many matching requests pass first", "int"),
    Param("times", "meet at most so many requests; null: all", "maybe"),
    Param("probability", "meet a matching request with this probability", "float"),
)

JOURNAL = (
    Param("api", "name of the API"),
    Param("client_id", "client.id"),
    Param("connection", "number of the connection", "int"),
    Param("broker", "id of the broker that was asked", "int"),
    Param("topic", "topic"),
    Param("group", "group id"),
    Param("transactional_id", "transactional id"),
    Param("error", "error code in the answer, by name"),
    Param("fault", "id of a fault that met the request"),
    Param("since", "not before this time of the cluster's clock (ms) or this entry's id", "int"),
    Param("limit", "at most so many, the newest", "int"),
)

ISOLATION = ("read_uncommitted", "read_committed")
PARTITION = "/v1/topics/{topic}/partitions/{partition}"
TRANSACTION = "/v1/transactions/{transactional_id}"

VERBS = (
    Verb("health", "GET", "/v1/health", "health()", "is the server alive"),
    Verb("cluster", "GET", "/v1/cluster", "info()", "brokers, controller, features, emulated version, seed",
         items="brokers", columns=("id", "host", "port", "up", "fenced", "epoch")),
    Verb("reset", "POST", "/v1/reset", "reset()", "as just started, within milliseconds",
         body=(Param("keep", "what stays: topics, groups, transactions, faults, clock, journal, versions", "names"),)),
    Verb("metrics", "GET", "/metrics", "metrics()", "Prometheus metrics", media="text"),
    Verb("clock show", "GET", "/v1/clock", "clock.show()", "what the cluster's clock shows"),
    Verb("clock advance", "POST", "/v1/clock/advance", "clock.advance(minutes=15)",
         "push the clock; returns after all that became due has run", body=(Param("ms", TIME, "ms", required=True),)),
    Verb("clock freeze", "POST", "/v1/clock/freeze", "clock.freeze()", "let the clock stand still"),
    Verb("clock thaw", "POST", "/v1/clock/thaw", "clock.thaw()", "let the clock go on"),
    Verb("topics list", "GET", "/v1/topics", "topics.list()", "all topics", items="topics",
         columns=("name", "id", "internal", "partitions")),
    Verb("topics show", "GET", "/v1/topics/{topic}", "topics[topic].show()", "one topic with its partitions",
         items="partitions", columns=("partition", "leader", "leader_epoch", "log_start_offset", "high_watermark",
                                      "last_stable_offset", "isr")),
    Verb("partitions show", "GET", PARTITION, "topics[topic].partitions[partition].show()",
         "offsets, epochs, segments, producers, open and aborted transactions"),
    Verb("records read", "GET", f"{PARTITION}/records", "topics[topic].partitions[partition].records()",
         "read records without a Kafka client", items="records",
         columns=("offset", "timestamp_ms", "key", "value", "transactional", "control"),
         query=(Param("offset", "first offset", "int"), Param("limit", "at most so many", "int"),
                Param("isolation", "which records are seen", choices=ISOLATION))),
    Verb("records write", "POST", "/v1/topics/{topic}/records", "topics[topic].write(...)",
         "write records without a Kafka client", items="written", columns=("partition", "offset"),
         body=(Param("records", 'as JSON: [{"key": "k", "value": "v", "partition": 0}]', "json", required=True),)),
    Verb("leader move", "POST", f"{PARTITION}/leader", "topics[topic].partitions[partition].move_leader(broker)",
         "move the leader, or remove it (null); the epoch goes up",
         body=(Param("broker", "id of the new leader, or null", "maybe", required=True),)),
    Verb("isr set", "POST", f"{PARTITION}/isr", "topics[topic].partitions[partition].set_isr(replicas)",
         "say who is in sync; who is not, or is held, replicates nothing",
         body=(Param("replicas", "ids of the brokers in sync: 1,2", "ints", required=True),
               Param("held", "followers that replicate nothing; by default those not in sync", "ints"))),
    Verb("producers list", "GET", "/v1/producers", "producers.list()", "all producer ids, idempotent and transactional",
         items="producers", columns=("producer_id", "producer_epoch", "transactional_id", "client_id", "partitions")),
    Verb("producers show", "GET", "/v1/producers/{producer_id}", "producers[id].show()",
         "what each partition knows of it, and its timeline", items="timeline",
         columns=("at_ms", "event", "partition", "epoch_before", "epoch_after", "first_sequence", "last_sequence",
                  "error", "rule")),
    Verb("producers why", "GET", "/v1/producers/{producer_id}/why", "producers[id].why()",
         "the last refusal told in words"),
    Verb("producers forget", "DELETE", f"{PARTITION}/producers/{{producer_id}}",
         "topics[topic].partitions[partition].forget_producer(producer_id)",
         "forget a producer's state, which is what KIP-360 recovers from"),
    Verb("retention run", "POST", "/v1/retention/run", "retention.run()", "apply retention now"),
    Verb("compaction run", "POST", "/v1/compaction/run", "compaction.run()", "compact now"),
    Verb("brokers add", "POST", "/v1/brokers", "brokers.add(...)", "one more broker, empty",
         body=(Param("id", "its id; by default the next one", "int"), Param("rack", "its rack"),
               Param("port", "port of its first listener; 0: a free one", "int"))),
    Verb("brokers remove", "DELETE", "/v1/brokers/{broker}", "brokers[broker].remove()",
         "take it out of the cluster for good: leaders move, and it is unregistered"),
    *(Verb(f"brokers {word}", "POST", f"/v1/brokers/{{broker}}/{word}", f"brokers[broker].{word}()", text)
      for word, text in (("kill", "reset its connections, lose its memory"), ("stop", "stop it in good order"),
                         ("start", "start it again, recovering its log"), ("pause", "let it accept and read nothing"),
                         ("resume", "end the pause"))),
    Verb("coordinators move", "POST", "/v1/coordinators/move", "coordinators.move(...)",
         "give a group or a transactional id another coordinator",
         body=(Param("type", "what the key names", required=True, choices=("group", "transaction")),
               Param("key", "group id or transactional id", required=True),
               Param("broker", "id of the new coordinator", "int", required=True),
               Param("loading_ms", f"answer COORDINATOR_LOAD_IN_PROGRESS for so long ({TIME})", "ms"))),
    Verb("transactions list", "GET", "/v1/transactions", "transactions.list()", "all transactional ids",
         items="transactions", columns=("transactional_id", "state", "producer_id", "producer_epoch", "partitions")),
    Verb("transactions show", "GET", TRANSACTION, "transactions[id].show()",
         "state, epochs, partitions, deadline and timeline", items="timeline",
         columns=("at_ms", "event", "state_before", "state_after", "epoch_before", "epoch_after", "error", "rule")),
    Verb("transactions why", "GET", f"{TRANSACTION}/why", "transactions[id].why()", "the last refusal told in words"),
    Verb("transactions hold", "POST", f"{TRANSACTION}/hold", "transactions[id].hold(at)", "stop a commit at a step",
         body=(Param("at", "the step", required=True, choices=("prepare", "markers", "complete")),
               Param("after_markers", "with markers: after so many of them", "int"))),
    Verb("transactions release", "POST", f"{TRANSACTION}/release", "transactions[id].release()",
         "let a held commit go on"),
    Verb("transactions abort", "POST", f"{TRANSACTION}/abort", "transactions[id].abort()",
         "abort it as its timeout would"),
    Verb("transactions set-epoch", "PUT", f"{TRANSACTION}/producer", "transactions[id].set_epoch(epoch)",
         "set the stored epoch, to reach exhaustion", body=(Param("epoch", "0 to 32767", "int", required=True),)),
    Verb("groups list", "GET", "/v1/groups", "groups.list()", "all groups", items="groups",
         columns=("group_id", "type", "state", "epoch", "members")),
    Verb("groups show", "GET", "/v1/groups/{group}", "groups[id].show()", "members, assignment, offsets, lag",
         items="members", columns=("member_id", "client_id", "instance_id", "assignment")),
    Verb("groups why", "GET", "/v1/groups/{group}/why", "groups[id].why()",
         "the last refusal of a member told in words"),
    Verb("groups rebalance", "POST", "/v1/groups/{group}/rebalance", "groups[id].rebalance()", "rebalance it now"),
    Verb("groups evict", "POST", "/v1/groups/{group}/members/{member}/evict", "groups[id].evict(member)",
         "remove a member as if its session had timed out"),
    Verb("versions show", "GET", "/v1/versions", "versions.show()", "the versions that new connections are told"),
    Verb("versions set", "PUT", "/v1/versions", "versions.set(...)", "takes effect for new connections",
         body=(Param("as_version", "behave like this Kafka release, such as 2.8"),
               Param("apis", 'per API, as JSON: {"InitProducerId": {"min": 0, "max": 3}}', "json", place="*"))),
    Verb("faults add", "POST", "/v1/faults", "faults.add(...)", "meet matching requests with a fault",
         body=(*MATCH, *COUNT, *DO)),
    Verb("faults list", "GET", "/v1/faults", "faults.list()", "all faults", items="faults",
         columns=("id", "hits", "match", "do", "skip", "times"),
         query=(Param("unmet", "only those that no request has met", "flag"),)),
    Verb("faults show", "GET", "/v1/faults/{fault}", "faults[id].show()", "one fault; can wait for its hits",
         query=(Param("wait_hits", "answer once it has so many hits", "int"),
                Param("timeout_ms", f"wait at most so long ({TIME})", "ms"))),
    Verb("faults remove", "DELETE", "/v1/faults/{fault}", "faults[id].remove()", "remove one fault"),
    Verb("faults clear", "DELETE", "/v1/faults", "faults.clear()", "remove all faults"),
    Verb("journal list", "GET", "/v1/journal", "journal.find(...)", "requests with their answers", items="entries",
         columns=("id", "at_ms", "broker", "connection", "client_id", "api", "version", "error", "fault"),
         query=JOURNAL),
    Verb("journal clear", "DELETE", "/v1/journal", "journal.clear()", "forget all requests"),
    Verb("journal rotate", "POST", "/v1/journal/rotate", "journal.rotate()",
         "finish the file of --journal DIR; returns its name"),
    Verb("journal pcap", "GET", "/v1/journal.pcap", "journal.pcap()", "the journal as a capture for Wireshark",
         media="bytes", query=JOURNAL),
    Verb("snapshots list", "GET", "/v1/snapshots", "snapshots.list()", "the states that were kept", items="snapshots",
         columns=("id", "at_ms")),
    Verb("snapshots take", "POST", "/v1/snapshots", "snapshots.take()", "keep the whole cluster's state"),
    Verb("snapshots restore", "POST", "/v1/snapshots/{snapshot}/restore", "snapshots[id].restore()", "back to it"),
)  # fmt: skip

BY_WORDS: Mapping[str, Verb] = {verb.words: verb for verb in VERBS}


def groups() -> Iterator[tuple[str, list[Verb]]]:
    """The verbs by their first word, in the table's order."""
    found: dict[str, list[Verb]] = {}
    for verb in VERBS:
        found.setdefault(verb.words.partition(" ")[0], []).append(verb)
    yield from found.items()
