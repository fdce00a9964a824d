from collections.abc import Callable, Iterator
from typing import Any

import pytest

import understudy
from control_api.verbs import BY_NAME, VERBS
from tests.understudy.fake import FakeControl, FakeProcess
from understudy import results
from understudy.client import Cluster
from understudy.client import cluster as cluster_module
from understudy.launcher import command_line
from understudy.transport import Address

FAULT = {"id": "f1", "hits": 0, "match": {"api": "EndTxn"}, "do": {"drop": True}}

ANSWERS = {
    "GET /v1/cluster": {"cluster_id": "abc", "controller": 1,
                        "brokers": [{"id": 1, "host": "h", "port": 1, "up": True, "later": 0},
                                    {"id": 2, "host": "h", "port": 2}]},
    "GET /v1/clock": {"now_ms": 5, "frozen": True},
    "POST /v1/clock/advance": {"now_ms": 905_000, "ahead_ms": 900_000},
    "POST /v1/clock/freeze": {"now_ms": 5, "frozen": True},
    "POST /v1/clock/thaw": {"now_ms": 5},
    "GET /v1/topics": {"topics": [{"name": "t", "partitions": [{"partition": 0, "isr": [1, 2]}]}]},
    "GET /v1/topics/t": {"name": "t"},
    "GET /v1/topics/t/partitions/0": {"partition": 0, "producers": [{"producer_id": 4000}]},
    "POST /v1/topics/t/partitions/0/leader": {"partition": 0, "leader": -1, "leader_epoch": 1},
    "POST /v1/topics/t/partitions/0/isr": {"partition": 0, "leader": 1, "isr": [1], "held": [2]},
    "GET /v1/topics/t/partitions/0/records": {
        "records": [{"offset": 3, "key": "k", "value": {"base64": "/w=="}, "headers": [{"key": "h", "value": None}]}]
    },
    "POST /v1/topics/t/records": {"written": [{"partition": 0, "offset": 4}]},
    "GET /v1/transactions": {"transactions": [{"transactional_id": "x y/z", "state": "Ongoing"}]},
    "GET /v1/transactions/x": {"transactional_id": "x", "timeline": [{"at_ms": 1, "event": "InitProducerId"}]},
    "POST /v1/transactions/a%20b%2Fc/abort": {"transactional_id": "a b/c", "state": "CompleteAbort"},
    "PUT /v1/transactions/x/producer": {"transactional_id": "x", "producer_epoch": 32766},
    "GET /v1/transactions/x/why": {"why": "fenced: by b", "error": "PRODUCER_FENCED"},
    "GET /v1/producers": {"producers": [{"producer_id": 4000, "partitions": [{"partition": "t-0"}]}]},
    "GET /v1/producers/4000": {"producer_id": 4000, "timeline": [{"at_ms": 1, "event": "duplicate"}]},
    "GET /v1/producers/4000/why": {"why": "a gap"},
    "GET /v1/groups": {"groups": [{"group_id": "g"}]},
    "POST /v1/groups/g/rebalance": {"group_id": "g", "state": "PreparingRebalance"},
    "POST /v1/groups/g/members/m/evict": {"group_id": "g"},
    "GET /v1/groups/g": {"group_id": "g", "members": [{"member_id": "m"}]},
    "GET /v1/versions": {"as_version": "4.3", "apis": {"Produce": {"min": 0, "max": 13}}},
    "POST /v1/faults": FAULT,
    "GET /v1/faults": {"faults": [FAULT]},
    "GET /v1/faults/f1": {**FAULT, "hits": 1},
    "GET /v1/journal": {"entries": [{"id": 1, "at_ms": 2, "api": "Produce", "error": None}]},
    "GET /v1/groups/g/why": {"why": "so"},
    "POST /v1/brokers": {"id": 2, "host": "h", "port": 2},
    "POST /v1/controllers": {"id": 3003, "host": "h", "port": 3},
    "POST /v1/journal/rotate": {"file": "wire-R-000001.jsonl"},
    "GET /v1/journal.pcap": b"\xd4\xc3",
    "DELETE /v1/clusters/2": {"id": "2", "status": "ok"},
    "GET /v1/snapshots": {"snapshots": [{"id": "s1", "at_ms": 1}]},
    "POST /v1/snapshots": {"id": "s1"},
    "GET /metrics": b"up 1\n",
}  # fmt: skip


@pytest.fixture
def control() -> Iterator[FakeControl]:
    """A control plane that answers a little of everything."""
    with FakeControl(ANSWERS) as fake:
        yield fake


@pytest.fixture
def kafka(control: FakeControl) -> Cluster:
    """A client of it."""
    return Cluster(Address(control.url), ["h:1"])


def part(kafka: Cluster) -> Any:
    """Partition 0 of topic t."""
    return kafka.topics["t"].partitions[0]


# Name of the verb -> the call in Python, the request that it sends, and what it returns.
CALLS: dict[str, tuple[Callable[[Cluster], Any], tuple[str, str, Any], Any]] = {
    "health": (lambda k: k.health(), ("GET", "/v1/health", None), results.Health("ok")),
    "cluster": (lambda k: k.info().brokers[0], ("GET", "/v1/cluster", None), results.Broker(1, "h", 1)),
    "reset": (lambda k: k.reset(keep=["topics"]), ("POST", "/v1/reset", {"keep": ["topics"]}), None),
    "metrics": (lambda k: k.metrics(), ("GET", "/metrics", None), "up 1\n"),
    "report": (lambda k: str(k.report(limit=3)), ("GET", "/v1/report?limit=3", None), "last requests:\n  none"),
    "clock show": (lambda k: k.clock.show().frozen, ("GET", "/v1/clock", None), True),
    "clock advance": (
        lambda k: k.clock.advance(minutes=14, seconds=60).now_ms,
        ("POST", "/v1/clock/advance", {"ms": 900_000}),
        905_000,
    ),
    "clock freeze": (lambda k: k.clock.freeze().frozen, ("POST", "/v1/clock/freeze", {}), True),
    "clock thaw": (lambda k: k.clock.thaw().frozen, ("POST", "/v1/clock/thaw", {}), False),
    "acls remove": (lambda k: k.acls["7"].remove(), ("DELETE", "/v1/acls/7", None), None),
    "topics list": (lambda k: k.topics.list()[0].partitions[0].isr, ("GET", "/v1/topics", None), (1, 2)),
    "topics show": (lambda k: k.topics["t"].show().name, ("GET", "/v1/topics/t", None), "t"),
    "partitions show": (
        lambda k: part(k).show().producers[0].producer_id,
        ("GET", "/v1/topics/t/partitions/0", None),
        4000,
    ),
    "records read": (
        lambda k: part(k).records(offset=3, isolation="read_committed"),
        ("GET", "/v1/topics/t/partitions/0/records?offset=3&isolation=read_committed", None),
        [results.Record(3, key=b"k", value=b"\xff", headers=(results.Header("h"),))],
    ),
    "records write": (
        lambda k: k.topics["t"].write("v", {"key": b"\xff", "value": None, "partition": 0}),
        (
            "POST",
            "/v1/topics/t/records",
            {"records": [{"value": "v"}, {"key": {"base64": "/w=="}, "value": None, "partition": 0}]},
        ),
        [results.Written(0, 4)],
    ),
    "leader move": (
        lambda k: part(k).move_leader(None).leader,
        ("POST", "/v1/topics/t/partitions/0/leader", {"broker": None}),
        -1,
    ),
    "isr set": (
        lambda k: part(k).set_isr([1], held=[2]).isr,
        ("POST", "/v1/topics/t/partitions/0/isr", {"replicas": [1], "held": [2]}),
        (1,),
    ),
    "producers forget": (
        lambda k: part(k).forget_producer(4000),
        ("DELETE", "/v1/topics/t/partitions/0/producers/4000", None),
        None,
    ),
    "retention run": (lambda k: k.retention.run(), ("POST", "/v1/retention/run", {}), None),
    "compaction run": (lambda k: k.compaction.run(), ("POST", "/v1/compaction/run", {}), None),
    "brokers add": (
        lambda k: k.brokers.add(rack="r").id,
        ("POST", "/v1/brokers", {"rack": "r"}),
        2,
    ),
    "brokers remove": (lambda k: k.brokers[2].remove(), ("DELETE", "/v1/brokers/2", None), None),
    "brokers kill": (lambda k: k.brokers[2].kill(), ("POST", "/v1/brokers/2/kill", {}), None),
    "brokers stop": (lambda k: k.brokers[2].stop(), ("POST", "/v1/brokers/2/stop", {}), None),
    "brokers start": (lambda k: k.brokers[2].start(), ("POST", "/v1/brokers/2/start", {}), None),
    "brokers fail-log-dir": (
        lambda k: k.brokers[2].fail_log_dir(directory="/b"),
        ("POST", "/v1/brokers/2/log-dir/fail", {"directory": "/b"}),
        None,
    ),
    "brokers repair-log-dir": (
        lambda k: k.brokers[2].repair_log_dir(),
        ("POST", "/v1/brokers/2/log-dir/repair", {}),
        None,
    ),
    "brokers pause": (lambda k: k.brokers[2].pause(), ("POST", "/v1/brokers/2/pause", {}), None),
    "brokers resume": (lambda k: k.brokers[2].resume(), ("POST", "/v1/brokers/2/resume", {}), None),
    "controllers add": (lambda k: k.controllers.add(id=3003).id, ("POST", "/v1/controllers", {"id": 3003}), 3003),
    "controllers remove": (lambda k: k.controllers[3003].remove(), ("DELETE", "/v1/controllers/3003", None), None),
    "controllers kill": (lambda k: k.controllers[3000].kill(), ("POST", "/v1/controllers/3000/kill", {}), None),
    "controllers stop": (lambda k: k.controllers[3000].stop(), ("POST", "/v1/controllers/3000/stop", {}), None),
    "controllers start": (lambda k: k.controllers[3000].start(), ("POST", "/v1/controllers/3000/start", {}), None),
    "controllers pause": (lambda k: k.controllers[3000].pause(), ("POST", "/v1/controllers/3000/pause", {}), None),
    "controllers resume": (lambda k: k.controllers[3000].resume(), ("POST", "/v1/controllers/3000/resume", {}), None),
    "coordinators move": (
        lambda k: k.coordinators.move(type="group", key="g", broker=2, loading_ms=9),
        ("POST", "/v1/coordinators/move", {"type": "group", "key": "g", "broker": 2, "loading_ms": 9}),
        None,
    ),
    "transactions list": (lambda k: k.transactions.list()[0].state, ("GET", "/v1/transactions", None), "Ongoing"),
    "transactions show": (
        lambda k: k.transactions["x"].show().timeline,
        ("GET", "/v1/transactions/x", None),
        (results.TimelineEvent(1, "InitProducerId"),),
    ),
    "transactions why": (
        lambda k: str(k.transactions["x"].why()),
        ("GET", "/v1/transactions/x/why", None),
        "fenced: by b",
    ),
    "transactions hold": (
        lambda k: k.transactions["x"].hold("markers", after_markers=1),
        ("POST", "/v1/transactions/x/hold", {"at": "markers", "after_markers": 1}),
        None,
    ),
    "transactions release": (lambda k: k.transactions["x"].release(), ("POST", "/v1/transactions/x/release", {}), None),
    "transactions abort": (
        lambda k: k.transactions["a b/c"].abort().state,
        ("POST", "/v1/transactions/a%20b%2Fc/abort", {}),
        "CompleteAbort",
    ),
    "transactions set-epoch": (
        lambda k: k.transactions["x"].set_epoch(32766).producer_epoch,
        ("PUT", "/v1/transactions/x/producer", {"epoch": 32766}),
        32766,
    ),
    "producers list": (lambda k: k.producers.list()[0].producer_id, ("GET", "/v1/producers", None), 4000),
    "producers show": (
        lambda k: k.producers[4000].show().timeline,
        ("GET", "/v1/producers/4000", None),
        (results.ProducerEvent(1, "duplicate"),),
    ),
    "producers why": (lambda k: k.producers[4000].why().why, ("GET", "/v1/producers/4000/why", None), "a gap"),
    "groups list": (lambda k: k.groups.list()[0].group_id, ("GET", "/v1/groups", None), "g"),
    "groups show": (lambda k: k.groups["g"].show().members, ("GET", "/v1/groups/g", None), (results.Member("m"),)),
    "groups why": (lambda k: k.groups["g"].why().why, ("GET", "/v1/groups/g/why", None), "so"),
    "groups rebalance": (
        lambda k: k.groups["g"].rebalance().state,
        ("POST", "/v1/groups/g/rebalance", {}),
        "PreparingRebalance",
    ),
    "groups evict": (
        lambda k: k.groups["g"].evict("m").group_id,
        ("POST", "/v1/groups/g/members/m/evict", {}),
        "g",
    ),
    "versions show": (
        lambda k: k.versions.show(),
        ("GET", "/v1/versions", None),
        {"Produce": results.VersionRange(0, 13)},
    ),
    "versions set": (
        lambda k: k.versions.set(as_version="2.8", EndTxn=(0, 1)),
        ("PUT", "/v1/versions", {"as_version": "2.8", "EndTxn": {"min": 0, "max": 1}}),
        None,
    ),
    "faults add": (
        lambda k: k.faults.add(api="EndTxn", times=None, apply_then=understudy.Disconnect("reset")).id,
        (
            "POST",
            "/v1/faults",
            {"match": {"api": "EndTxn"}, "times": None, "do": {"apply_then": {"disconnect": "reset"}}},
        ),
        "f1",
    ),
    "faults list": (lambda k: k.faults.list(unmet=True)[0].met, ("GET", "/v1/faults?unmet=true", None), False),
    "faults show": (
        lambda k: k.faults.add(api="EndTxn", drop=True).wait_hits(1, timeout_ms=50).met,
        ("GET", "/v1/faults/f1?wait_hits=1&timeout_ms=50", None),
        True,
    ),
    "faults remove": (
        lambda k: k.faults.add(api="EndTxn", drop=True).remove(),
        ("DELETE", "/v1/faults/f1", None),
        None,
    ),
    "faults clear": (lambda k: k.faults.clear(), ("DELETE", "/v1/faults", None), None),
    "journal list": (
        lambda k: k.journal.find(api="Produce", client_id="app"),
        ("GET", "/v1/journal?api=Produce&client_id=app", None),
        [results.JournalEntry(1, 2, "Produce")],
    ),
    "journal clear": (lambda k: k.journal.clear(), ("DELETE", "/v1/journal", None), None),
    "journal rotate": (
        lambda k: k.journal.rotate(),
        ("POST", "/v1/journal/rotate", {}),
        "wire-R-000001.jsonl",
    ),
    "journal pcap": (
        lambda k: k.journal.pcap(api="Produce"),
        ("GET", "/v1/journal.pcap?api=Produce", None),
        b"\xd4\xc3",
    ),
    "clusters delete": (lambda k: k.clusters.delete("2"), ("DELETE", "/v1/clusters/2", None), None),
    "snapshots list": (lambda k: k.snapshots.list()[0].id, ("GET", "/v1/snapshots", None), "s1"),
    "snapshots take": (lambda k: bool(k.snapshots.take()), ("POST", "/v1/snapshots", {}), True),
    "snapshots restore": (lambda k: k.snapshots["s1"].restore(), ("POST", "/v1/snapshots/s1/restore", {}), None),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_verb_is_called_in_python_as_the_table_has_it(name: str, kafka: Cluster, control: FakeControl) -> None:
    """Method, path, body and the typed answer; the calls that are rows' examples test_steering.py makes."""
    call, sent, answer = CALLS[name]
    assert call(kafka) == answer
    assert control.seen[-1] == sent


def test_the_table_names_no_verb_twice() -> None:
    """Names and requests of the control plane's commands are unique."""
    assert len(BY_NAME) == len(VERBS) == len({(verb.method, verb.path) for verb in VERBS})


def test_a_problem_document_becomes_an_error_that_names_the_field(kafka: Cluster, control: FakeControl) -> None:
    """RFC 9457: the detail is what people read."""
    problem = {"title": "Unprocessable", "detail": "no such API: EndTx (did you mean EndTxn?)", "field": "match.api"}
    control.answers["POST /v1/faults"] = (422, problem)
    with pytest.raises(understudy.ControlError, match=r"no such API: EndTx .* \(field match.api\)") as refused:
        kafka.faults.add(api="EndTx", drop=True)
    assert (refused.value.status, refused.value.field) == (422, "match.api")


def test_connect_asks_for_the_addresses(control: FakeControl) -> None:
    """A cluster that another process started returns its brokers' addresses."""
    assert understudy.connect(control.url).bootstrap_servers == "h:1,h:2"


def test_a_fault_that_no_request_met_is_remembered_when_it_is_taken_back(kafka: Cluster, control: FakeControl) -> None:
    """Leaving the with block removes the fault, not the fact; an optional one may miss."""
    control.answers["GET /v1/faults/f1"] = FAULT
    with kafka.faults.add(api="EndTxn", drop=True):
        pass
    control.answers["GET /v1/faults"] = {"faults": []}
    assert [state.id for state in kafka.faults.unmet()] == ["f1"]
    kafka.reset()
    assert kafka.faults.unmet() == []
    with kafka.faults.add(optional=True, api="EndTxn", drop=True):
        pass
    assert kafka.faults.unmet() == []


def test_a_reset_that_keeps_the_faults_keeps_what_is_known_of_them(kafka: Cluster, control: FakeControl) -> None:
    """Which may be missed, and which were removed unmet."""
    control.answers["GET /v1/faults/f1"] = {**FAULT, "id": "f0"}
    kafka.faults.add(optional=True, api="EndTxn", drop=True).remove()
    assert [state.id for state in kafka.faults.unmet()] == ["f0"]
    kafka.reset(keep=["faults"])
    assert [state.id for state in kafka.faults.unmet()] == ["f0"]


def test_waiting_for_hits_that_do_not_come_is_a_timeout(kafka: Cluster, control: FakeControl) -> None:
    """The message has the number of hits so far."""
    control.answers["GET /v1/faults/f1"] = FAULT
    with pytest.raises(TimeoutError, match="0 of 2 requests met the fault"):
        kafka.faults.add(api="EndTxn", drop=True).wait_hits(2, timeout_ms=1)


def test_a_misspelt_keyword_is_refused_with_the_nearest_name(kafka: Cluster) -> None:
    """A misspelt keyword is refused with the nearest name before anything is sent."""
    with pytest.raises(
        TypeError, match=r"faults.add has no option 'transaction_id' \(did you mean transactional_id\?\)"
    ):
        kafka.faults.add(transaction_id="x", drop=True)  # type: ignore[call-arg]
    with pytest.raises(
        TypeError, match=r"'match'; its contents are keywords here, such as api='EndTxn', topic='orders'"
    ):
        kafka.faults.add(match={"api": "EndTxn"}, drop=True)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"understudy.start has no option 'broker' \(did you mean brokers\?\)"):
        understudy.start(broker=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"journal\.find has no option 'apis'"):
        kafka.journal.find(apis="Produce")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda k: k.faults.add(api="EndTxn"), "faults.add needs an effect, one of alter, apply_then, bytes"),
        (lambda k: k.faults.add("EndTxn"), r"pass 'EndTxn' by keyword, such as faults.add\(api="),
        (lambda k: k.faults.add(apply_then="disconnect"), r"such as understudy.Disconnect\(\), not 'disconnect'"),
        (lambda k: k.faults.add(apply_then=understudy.Drop), r"apply_then needs an action: write Drop\(\), with"),
        (lambda k: k.clock.advance(15), r"pass 15 by keyword, such as clock.advance\(minutes=15\)"),
        (lambda k: k.journal.find("EndTxn"), r"pass 'EndTxn' by keyword, such as journal.find\(api="),
        (lambda k: k.versions.set("2.8"), r"pass '2.8' by keyword, such as versions.set\(as_version="),
        (lambda k: k.versions.set(EndTxn=3), r"EndTxn needs \(least, most\), such as \(0, 3\), not 3"),
    ],
)
def test_invalid_arguments_are_refused_with_valid_ones(
    call: Callable[[Any], Any], message: str, kafka: Cluster, control: FakeControl
) -> None:
    """Invalid arguments are refused with the valid ones before anything is sent."""
    with pytest.raises(TypeError, match=message):
        call(kafka)
    assert control.seen == []


def test_what_can_only_mean_one_thing_is_taken(kafka: Cluster, control: FakeControl) -> None:
    """One name where a list is expected, an action where its code is, an address without http."""
    kafka.reset(keep="topics")
    kafka.faults.add(api="EndTxn", error=understudy.Error("NOT_COORDINATOR"))
    assert [body for _, _, body in control.seen] == [
        {"keep": ["topics"]},
        {"match": {"api": "EndTxn"}, "do": {"error": "NOT_COORDINATOR"}},
    ]
    assert command_line(topics="orders") == command_line(topics=["orders"]) == ["--topic", "orders"]
    assert understudy.connect(control.url.removeprefix("http://")).control_url == control.url


def test_start_passes_its_options_on_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ports are free ones by default; the process ends with the context."""
    monkeypatch.setattr(cluster_module, "ServerProcess", FakeProcess)
    settings = {"a.b": True}
    with understudy.start(brokers=2, topics={"t": 3}, settings=settings, features={"f": 1}, read_only=False) as kafka:
        assert kafka.process is not None
        assert kafka.bootstrap_servers == "127.0.0.1:1,127.0.0.1:2"
        assert kafka.control_url.startswith("http://127.0.0.1:")
        assert kafka.process.options == [
            *(
                "--port",
                "0",
                "--control-port",
                "0",
                "--for-tests",
                "--brokers",
                "2",
                "--topic",
                "t:3",
                "--set",
                "a.b=true",
            ),
            *("--feature", "f=1"),
        ]
        process = kafka.process
    assert not process.alive


def test_a_server_without_what_this_client_needs_is_an_error(kafka: Cluster, control: FakeControl) -> None:
    """Missing fields without a default are an error, unknown ones are not."""
    control.answers["GET /v1/clock"] = {"ahead_ms": 0}
    with pytest.raises(TypeError, match="ClockState of the control plane has no 'now_ms'"):
        kafka.clock.show()


def test_a_cluster_without_a_control_plane_refuses_control_calls() -> None:
    """Its brokers can be used; the error names the call that needs a control plane."""
    kafka = Cluster(Address(""), ["h:1"])
    with pytest.raises(understudy.Unreachable, match="started without a control plane, which 'reset' needs"):
        kafka.reset()
