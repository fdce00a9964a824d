"""Random requests of clients apart from data: versions, telemetry, resources with configs, lists of transactions.

How numbers are chosen: `pieces`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from comparison.histories.drawing.administration import Administration
from comparison.histories.drawing.pieces import Known, Versions
from comparison.histories.drawing.transactions import Transactions
from comparison.histories.step_request import Step
from protocol.apis import ApiKey

UNLISTED = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: (0, 0), ApiKey.PUSH_TELEMETRY: (0, 0)}
"""APIs that a broker without a metrics plugin serves, but does not list."""
INSTANCES = ("a", "a", "a", "b", "n0", "n0", "n1")
METRICS, GROUP = 16, 32  # ConfigResource.Type
NAMES = ("s0", "s0", "s1", "s2")
SHORT = ("100", "101")
LONG = ("300000", "200000", "3600000", "150000")
WRONG = ("99", "3600001", "x", "", "-1")
MATCHES: Sequence[str] = (
    "",
    "client_id=compare",
    "client_id=comp.*",
    "client_id=other",
    "client_instance_id={a}",
    "client_software_name=soft",
    "client_software_name=unknown,client_software_version=unknown",
    "client_software_version=1\\..*",
    "client_source_address=127[.]0.0.1",
    "client_source_port=[0-9]+",
    "client_id=(?<n>c).*",
    " client_id = compare , client_source_port=\\d*",
    "client_id=other,client_id=compare",
)
WRONG_MATCHES: Sequence[str] = (
    "client_id",
    "client_id=",
    "=compare",
    "client_id=a=b",
    "client_id=compare=",
    "client_id==",
    "client_id=(",
    "client_id=*",
    "client_port=1",
    "client_id= ,client_id",
    "client_id=a,client_id=a",
    ",",
)
PREFIXES: Sequence[str] = (
    "",
    "*",
    "org.apache.kafka.producer.",
    "org.apache.kafka.consumer.,org.apache.kafka.producer.",
    "a,b,c",
    "c,a",
    "a,*",
    "b , d",
    "Aa,BB",
    "a,a",
    "a,,b",
)
SOFTWARE = (("soft", "1.0"), ("soft", "2"), ("comparison", "1"), ("soft", "1.1"))
ODD_SOFTWARE = (("", ""), ("-a", "1"), ("a b", "1"), ("a", ""), ("é", "1"), ("a.", "1"), ("a", "1-"), ("x" * 300, "1"))
BODIES = ("otlp", "otlp", "otlp", "empty", "garbage", "cut", "longer")
OF_GROUPS = {"consumer.session.timeout.ms": "46000", "share.auto.offset.reset": "earliest", "no.such.setting": "1"}
STATES = ("Ongoing", "Empty", "CompleteCommit", "CompleteAbort", "PrepareCommit", "Dead", "ongoing", "Wondering", "")
PATTERNS = ("{own}.*", "{own}x0", ".*x1", "", ".*", "x", "(", "[", None, None)
FIRST_NAMED, FIRST_NAMED_TARGET = 3, 5  # versions of ApiVersions (KIP-511, KIP-1242)
FIRST_WITH_DURATION, FIRST_WITH_PATTERN = 1, 2


class Clients(Administration, Transactions):
    """Generates histories of such requests."""

    def __init__(self, versions: Versions, seed: object) -> None:
        super().__init__({**versions, **UNLISTED}, seed)
        self._intervals = (*LONG, *SHORT, *SHORT) if self._rarely(2) else LONG
        self._short = False
        self._draws: Mapping[Callable[[], dict[str, Any]], int] = {
            self._ask_versions: 5,
            self._ask_subscription: 16,
            self._push: 20,
            self._subscribe: 8,
            self._replace_subscription: 2,
            self._describe_subscription: 3,
            self._list_resources: 5,
            self._group_settings: 1,
            self._list_some_transactions: 8,
            self._init_producer: 5,
            self._add_partitions: 4,
            self._end_transaction: 3,
            self._create_topic: 1,
            self._disconnect: 2,
        }

    def history(self, length: int, *, restarts: int = 0) -> list[Step]:
        """Generate the next history: a topic first, then random steps, with `restarts` restarts among them."""
        self._known = Known()
        first = self._create_topic(sound=True)
        # The first step is not drawn; restarts come when there is something to lose.
        drawn = [draw() for draw in self._chance.choices(list(self._draws), list(self._draws.values()), k=length - 1)]
        for _ in range(restarts):
            drawn.insert(self._chance.randrange(length // 4, length - 1), {"do": "restart", "clean": self._rarely(2)})
        return [first, *drawn]

    def _disconnect(self) -> dict[str, Any]:
        return {"do": "disconnect", "c": self._chance.choice(("0", "1"))}

    # --- versions and telemetry --------------------------------------------------------------------------------------

    def _ask_versions(self) -> dict[str, Any]:
        step = self._step("ask_versions", ApiKey.API_VERSIONS)
        if step["v"] >= FIRST_NAMED or self._rarely(3):
            step["name"], step["version"] = self._chance.choice(ODD_SOFTWARE if self._rarely(4) else SOFTWARE)
        if step["v"] >= FIRST_NAMED_TARGET:
            step["cluster"] = self._chance.choice(("own", "own", None, None, "another", ""))
            step["node"] = self._chance.choice((1, 1, -1, -1, 2))
        return step

    def _later(self) -> dict[str, Any]:
        """Draw whether to wait for the shortest push interval: always once a subscription has it."""
        return {"later": True} if self._short else {}

    def _ask_subscription(self) -> dict[str, Any]:
        instance = self._chance.choice(INSTANCES) if not self._rarely(12) else self._chance.choice(("zero", "one"))
        step = self._step("ask_subscription", ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, instance=instance)
        return {**step, **self._later()}

    def _push(self) -> dict[str, Any]:
        instance = self._chance.choice(INSTANCES) if not self._rarely(12) else self._chance.choice(("zero", "one"))
        step = self._step(
            "push",
            ApiKey.PUSH_TELEMETRY,
            instance=instance,
            subscription=self._chance.choice(("last", "last", "last", "last", "stale", "none")),
            terminating=self._rarely(6) or None,
            compression=self._chance.choice((0, 0, 1, 2, 3, 4) if not self._rarely(5) else (5, -1, 127)),
            body=self._chance.choice(BODIES),
        )
        if self._rarely(12):
            step["body"] = self._chance.choice(("most", "large"))
        return {**step, **self._later()}

    # --- resources with settings -------------------------------------------------------------------------------------

    def _value(self, name: str) -> str:
        if name == "interval.ms":
            interval = self._chance.choice(self._intervals if not self._rarely(6) else WRONG)
            self._short = self._short or interval in SHORT
            return interval
        if name == "match":
            return self._chance.choice(MATCHES if not self._rarely(6) else WRONG_MATCHES)
        return self._chance.choice(PREFIXES)

    def _settings(self, most: int = 3) -> list[str]:
        names = self._chance.sample(("metrics", "metrics", "interval.ms", "match"), self._chance.randint(1, most))
        return [*dict.fromkeys(names), *(["no.such.setting"] if self._rarely(20) else [])]

    def _name(self) -> str:
        return "=" if self._rarely(25) else self._chance.choice(NAMES)

    def _subscribe(self) -> dict[str, Any]:
        changes: list[list[Any]] = []
        for name in self._settings():
            operation = self._chance.choice((0, 0, 0, 0, 0, 1, 2, 3)) if not self._rarely(25) else 9
            changes.append([name, operation, None if operation == 1 else self._value(name)])
        if self._rarely(20):
            changes.append(changes[0])
        fields = {"kind": METRICS, "name": self._name(), "changes": changes, "validate": self._rarely(10) or None}
        return self._step("subscribe", ApiKey.INCREMENTAL_ALTER_CONFIGS, **fields)

    def _replace_subscription(self) -> dict[str, Any]:
        configs = {} if self._rarely(2) else {name: self._value(name) for name in self._settings()}
        fields = {"kind": METRICS, "name": self._name(), "configs": configs, "validate": self._rarely(10) or None}
        return self._step("replace_subscription", ApiKey.ALTER_CONFIGS, **fields)

    def _group_settings(self) -> dict[str, Any]:
        name = self._chance.choice(sorted(OF_GROUPS))
        changes = [[name, 1, None] if self._rarely(3) else [name, 0, OF_GROUPS[name]]]
        fields = {"kind": GROUP, "name": self._chance.choice(("g0", "g1")), "changes": changes}
        return self._step("subscribe", ApiKey.INCREMENTAL_ALTER_CONFIGS, **fields)

    def _describe_subscription(self) -> dict[str, Any]:
        keys = self._chance.choice((None, None, [], ["metrics"], ["match", "interval.ms"], ["no.such.setting"]))
        fields = {"kind": METRICS, "name": self._name(), "keys": keys, "synonyms": self._rarely(2) or None}
        return self._step("describe_subscription", ApiKey.DESCRIBE_CONFIGS, **fields)

    def _list_resources(self) -> dict[str, Any]:
        kinds = self._chance.choice(([], [16], [16, 32], [2], [4, 16], [8], [32], [16, 16], [3], [16, 0], [-1], [2, 4]))
        return self._step("list_resources", ApiKey.LIST_CONFIG_RESOURCES, kinds=kinds)

    # --- transactions ------------------------------------------------------------------------------------------------

    def _list_some_transactions(self) -> dict[str, Any]:
        states = self._chance.sample(STATES, self._chance.choice((0, 0, 0, 1, 1, 2, 3)))
        producers = self._chance.choice(([], [], [], ["p-x0"], ["p-x1", "p-x0"], ["stranger"], ["q0"]))
        step = self._step("list_some_transactions", ApiKey.LIST_TRANSACTIONS, states=states, producers=producers)
        step["duration"] = -1
        if step["v"] >= FIRST_WITH_DURATION:
            step["duration"] = self._chance.choice((-1, -1, -1, 0, 1, 3_600_000, -2, 2**62))
        if step["v"] >= FIRST_WITH_PATTERN:
            step["pattern"] = self._chance.choice(PATTERNS)
        return step
