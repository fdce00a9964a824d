"""The console as people use it, in a headless Chromium, with real clients behind it."""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from broker.settings.releases import NEWEST
from control_api.times import local_time
from tests.control.chromium import Page
from tests.control.conftest import ControlPlaneOf
from tests.control.harness import ControlPlane
from tests.serving import start, until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]
VIEWS = (
    *("", "cluster", "clients", "clients/reader", "topics", "topics/t", "groups", "groups/g", "transactions"),
    *("transactions/x", "producers", "producers/0", "diagrams", "diagrams/transactions/x", "diagrams/groups/g"),
    *("journal", "faults", "security", "scenario"),
)


SLOW_MS = 600_000
"""Timeout of a transaction that is open while all pages are looked at, which takes minutes on a busy machine."""


def transactor(plane: ControlPlane, name: str = "x", **settings: Any) -> Producer:
    """A producer with an open transaction of one record."""
    producer = Producer({"bootstrap.servers": plane.bootstrap, "transactional.id": name, **settings})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("t", b"one", partition=0)
    producer.flush(60)
    return producer


def reads(consumer: Consumer) -> bool:
    """Whether a record comes now."""
    message = consumer.poll(0.1)
    return message is not None and message.error() is None


@pytest.fixture
def busy(plane: ControlPlane) -> Iterator[ControlPlane]:
    """A cluster in which there is something of everything."""
    plane.kafka.topics["t"].write({"key": "k", "value": "hello", "partition": 0}, {"value": "world", "partition": 1})
    producer = transactor(plane, "x", **{"transaction.timeout.ms": SLOW_MS})
    consumer = Consumer(
        {"bootstrap.servers": plane.bootstrap, "group.id": "g", "client.id": "reader", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["t"])
    until(lambda: reads(consumer), "a record")
    consumer.commit(asynchronous=False)
    plane.kafka.faults.add(api="EndTxn", error="NOT_COORDINATOR", times=2)
    yield plane
    consumer.close()
    producer.abort_transaction(60)


def test_a_seed_is_shown_as_the_server_has_it(page: Page, plane_of: ControlPlaneOf) -> None:
    """Digit by digit, also beyond 2^53."""
    page.open(plane_of(seed=2**63 + 1).url, "cluster")
    assert page.sees("Seed", str(2**63 + 1))


def test_times_are_local(page: Page, plane: ControlPlane) -> None:
    """Local ones, with milliseconds; the date is there where it is not today's, and where one points at a time."""
    Producer({"bootstrap.servers": plane.bootstrap, "client.id": "app"}).list_topics(timeout=60)
    at_ms = plane.http("GET", "/v1/journal?client_id=app")["entries"][-1]["at_ms"]
    page.open(plane.url, "journal")
    assert page.sees(local_time(at_ms)[11:23])
    assert page.script("return document.querySelector('.journal time').title.length") == len(local_time(at_ms))
    plane.kafka.clock.advance(days=2)
    assert page.sees(local_time(at_ms)[:19].replace("T", " "))


# --- the views, live -------------------------------------------------------------------------------------------------


def test_a_broker_is_killed_and_started(page: Page, plane_of: ControlPlaneOf) -> None:
    """The console's table follows a broker that is killed and started from it."""
    plane = plane_of(brokers=3)
    page.open(plane.url, "cluster")
    page.sees("127.0.0.1", "controller", "running", f"Apache Kafka {NEWEST}")
    page.press("kill broker 2")
    page.row("2", "down")
    assert [broker.up for broker in plane.kafka.info().brokers] == [True, False, True]
    page.press("start broker 2")
    page.sees_no("down")
    assert all(broker.up for broker in plane.kafka.info().brokers)
    first = page.named("button", "remove broker 1")
    assert (first.is_enabled(), page.named("button", "remove broker 2").is_enabled()) == (False, True)
    assert first.get_attribute("title") == "This broker holds the cluster's metadata and cannot be removed."
    page.press("Add a broker")
    page.row("4", "running")
    page.press("remove broker 4")
    page.sees("Broker 4 was removed")
    assert [broker.id for broker in plane.kafka.info().brokers] == [1, 2, 3]


def test_another_cluster_of_the_process_is_chosen(page: Page, plane: ControlPlane) -> None:
    """Its topics, and back; with one cluster there is nothing to choose."""
    page.open(plane.url, "topics")
    page.sees("Topics")
    assert page.script("return document.querySelector('#clusters').textContent") == ""
    with plane.kafka.clusters.create(name="theirs", topics={"only-there": 1}) as other:
        until(lambda: page.script("return document.querySelector('#clusters select') !== null"), "the chooser")
        page.choose("Cluster", "theirs")
        page.open(other.control_url, "topics")
        page.sees("only-there")
        assert page.script("return document.querySelector('#clusters select').value") == other.address.cluster_id
        page.choose("Cluster", "cluster-1")
        until(lambda: "/clusters/" not in page.script("return location.pathname"), "the first cluster")
    assert page.complaints() == []


def test_topics_show_offsets_and_lag_as_they_grow(page: Page, busy: ControlPlane) -> None:
    """What is written while the page is open appears; names lead on."""
    page.open(busy.url, "topics")
    assert "__consumer_offsets" not in page.sees("1 partition with an open transaction")
    page.named("a", "t").click()
    page.sees("Topics / t", "hello", "High watermark", "Messages")
    before = page.text
    busy.kafka.topics["t"].write({"value": "later <b>on</b>", "partition": 0})
    page.sees("later <b>on</b>")
    assert "later" not in before
    offset = busy.http("GET", "/v1/groups/g")["offsets"][0]
    page.row("g", str(offset["partition"]), str(offset["lag"]))


def test_a_group_shows_its_members_and_lets_one_go(page: Page, busy: ControlPlane) -> None:
    """Evicting takes effect in the cluster."""
    page.open(busy.url, "groups")
    page.row("g", "Stable", "classic").find_element("tag name", "a").click()
    page.sees("reader at 127.0.0.1", "t-0", "t-1", "range")
    (member,) = busy.kafka.groups["g"].show().members
    page.sees("all members have joined", "generation 0 → ")
    page.press(f"evict {member.member_id}")
    page.sees("Evicted")
    assert member.member_id not in [each.member_id for each in busy.kafka.groups["g"].show().members]


def test_the_clock_is_pushed_and_a_transaction_times_out(page: Page, plane: ControlPlane) -> None:
    """Its timeline shows that, and why its producer is refused."""
    producer = transactor(plane)
    page.open(plane.url, "transactions")
    page.row("x", "Ongoing", "in 5")
    assert "Times out" in page.text
    page.named("a", "x").click()
    page.sees("Transactions / x", "begun", "t-0")
    page.script("document.querySelector('#clock summary').click()")
    page.press("Advance by 15 min")
    page.sees("15 min ahead", "timed out", "CompleteAbort")
    with pytest.raises(KafkaException):
        producer.commit_transaction(60)
    page.sees("Why the last request was refused", "fenced: at", "open for longer than its timeout")
    page.write("Advance by", "2h")
    page.press("Advance")
    page.sees("2 h 15 min ahead")
    page.press("Freeze")
    page.sees("frozen")
    drawer = "const {left, right} = document.querySelector('#clock .drawer').getBoundingClientRect(); "
    assert page.script(drawer + "return left > 0 && right < innerWidth"), "with its states it may go into another line"
    assert plane.kafka.clock.show().frozen
    page.press("Thaw")
    page.sees_no("frozen")
    page.open(plane.url, "transactions")
    page.row("x", "CompleteAbort")
    assert "Times out" not in page.text, "a column in which no row has anything"


def test_a_commit_is_held_and_released(page: Page, plane: ControlPlane) -> None:
    """Between its decision and its markers, by two buttons."""
    producer = transactor(plane)
    page.open(plane.url, "transactions", "x")
    page.write("Loading for", "1h")
    page.press("Move")
    page.sees("Broker 1 is the coordinator now")
    page.sees("its coordinator is loading")
    plane.kafka.clock.advance(hours=1)
    page.choose("Hold at", "prepare")
    page.press("Hold")
    page.sees("not reached yet")
    plane.kafka.transactions["x"].abort()
    page.sees("a commit or abort is waiting there", "PrepareAbort")
    page.press("Release")
    page.sees("CompleteAbort")
    with pytest.raises(KafkaException):
        producer.commit_transaction(60)
    page.open(plane.url, "transactions")
    page.write("Transactional id", "y")
    page.choose("Hold at", "markers")
    page.write("After this many", "1")
    page.press("Hold")
    page.sees("will be held at markers")
    later = transactor(plane, "y")
    later.produce("t", b"two", partition=1)
    later.flush(60)
    later.commit_transaction(60)
    page.row("y", "PrepareCommit", "held")
    ends = [plane.kafka.topics["t"].partitions[number].records()[-1].control for number in (0, 1)]
    assert sorted(map(str, ends)) == ["None", "commit"]


def test_the_journal_is_filtered_and_an_entry_opened(page: Page, busy: ControlPlane) -> None:
    """By fields of requests; a mistake in a filter is explained with what to write."""
    page.open(busy.url, "journal")
    page.sees("InitProducerId", "JoinGroup", "reader")
    page.write("API", "InitProducerId")
    page.sees_no("JoinGroup")
    (row,) = page.rows()
    assert "InitProducerId" in row
    page.row("InitProducerId").find_element("tag name", "button").click()
    page.sees('"transactional_id": "x"', "Correlation id")
    page.write("API", "InitProducer")
    page.sees("did you mean InitProducerId?")
    page.press("Clear filters")
    page.sees("JoinGroup")
    page.write("Transactional id", "x")
    page.sees_no("JoinGroup")
    page.press("Clear filters")
    page.write("Group", "g")
    page.sees("JoinGroup")
    page.press("Pause")
    page.named("button", "Resume")
    busy.kafka.journal.clear()
    asking = Producer({"bootstrap.servers": busy.bootstrap})
    for _ in range(200):  # more than there was, so that only the entries themselves show it
        asking.list_topics(timeout=60)
    page.sees("JoinGroup")
    page.press("Resume")
    page.sees_no("JoinGroup")


def test_the_cluster_is_reset(page: Page, busy: ControlPlane) -> None:
    """The console resets the cluster after a confirmation."""
    page.open(busy.url, "cluster")
    page.press("Reset the cluster")
    page.sees("Reset the cluster?")
    page.press("Cancel")
    assert busy.http("GET", "/v1/faults")["faults"] != []
    page.press("Reset the cluster")
    page.press("Reset")
    page.sees("The cluster was reset")
    assert busy.http("GET", "/v1/faults")["faults"] == []


# --- what every view keeps -------------------------------------------------------------------------------------------


@pytest.mark.timeout(400)  # axe alone takes seconds for each view
@pytest.mark.parametrize(
    ("width", "height", "scheme"),
    [(1280, 900, "light"), (390, 844, "dark"), pytest.param(1920, 1080, "dark", marks=pytest.mark.nightly)],
)
def test_every_view_fits_can_be_read_by_everybody_and_asks_no_other_host(
    page: Page, busy: ControlPlane, width: int, height: int, scheme: str
) -> None:
    """No scrolling sideways, no broken name, nothing for axe to find: contrast, names, roles; no address but ours."""
    page.look(width, height, scheme)
    page.requested_urls()
    for view in VIEWS:
        page.open(busy.url, *view.split("/"))
        until(lambda: page.script("return document.querySelector('.view') !== null"), view)
        page.keep(f"{width}-{scheme}-{view.replace('/', '-') or 'overview'}")
        assert page.script("return document.documentElement.scrollWidth <= innerWidth"), view
        assert page.cut() == [], view
        assert page.violations() == [], view
    addresses = [address for address in page.requested_urls() if not address.startswith(("about:", "blob:"))]
    assert len(addresses) > 3 * len(VIEWS)
    assert [address for address in addresses if not address.startswith(f"{busy.url}/")] == []


def test_names_are_whole_beside_a_long_reason(page: Page, plane: ControlPlane) -> None:
    """The client and the error of a refusal, below the diagram."""
    for client_id in ("the-first-instance", "the-second-instance"):
        transactor(plane, **{"client.id": client_id})
    page.open(plane.url, "diagrams", "transactions", "x")
    page.row("the-second-instance", "CONCURRENT_TRANSACTIONS", "aborted first")
    assert page.cut() == []


def test_a_barrier_would_be_found(page: Page, plane: ControlPlane) -> None:
    """Axe runs, and finds what it is asked to find."""
    page.open(plane.url, "cluster")
    page.sees("Brokers")
    page.script("document.body.append(document.createElement('button'))")  # outside what is drawn each second
    assert [violation for violation in page.violations() if violation.startswith("button-name: <button>")]
    assert page.cut() == []
    wide = (
        "const p = document.querySelector('.panel p'); p.textContent = 'x'.repeat(999); p.style.overflowWrap = 'normal'"
    )
    page.script(f"{wide}; document.querySelector('th').textContent = 'y'.repeat(999)")
    page.script("Object.assign(document.querySelector('th').style, {overflowWrap: 'anywhere', whiteSpace: 'normal'})")
    assert {each[:7] for each in page.cut()} >= {"yyyyyyy", "wider t"}


def test_names_that_hold_markup_are_text(page: Page, plane: ControlPlane) -> None:
    """Names of clients, transactions, groups and topics, and records, are shown and not run."""
    evil = "<img src=x onerror=window.hit=1><b class=hit>'\"&amp;"
    producer = transactor(plane, evil, **{"client.id": evil})
    producer.produce("t", evil.encode(), key=evil.encode(), partition=0)
    producer.flush(60)
    reader = {
        "bootstrap.servers": plane.bootstrap,
        "group.id": evil,
        "client.id": evil,
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer({**reader, "group.instance.id": "instance"})
    consumer.subscribe(["u"])
    producer.list_topics(evil, 60)  # it can be asked for, though never made
    plane.kafka.topics["u"].write("v")
    until(lambda: reads(consumer), "a record")
    consumer.commit(asynchronous=False)
    plane.http("POST", "/v1/faults", {"match": {"transactional_id": evil, "api": "EndTxn"}, "do": {"delay_ms": 1}})
    views = [(view,) for view in ("groups", "transactions", "diagrams", "journal", "faults")]
    drawn = (("diagrams", "transactions", evil), ("diagrams", "groups", evil))
    for way in (*views, *drawn, ("topics", "t"), ("groups", evil), ("transactions", evil), ("topics", evil)):
        page.open(plane.url, *way)
        page.sees("<b class=hit>")
        assert page.script("return [document.querySelectorAll('img, b, .hit').length, window.hit ?? 0]") == [0, 0], way
    page.open(plane.url, "journal")
    page.write("Topic", evil)
    page.row("Metadata").find_element("tag name", "button").click()
    page.sees(f'"name": {page.script("return JSON.stringify(arguments[0])", evil)}')
    assert page.script("return [document.querySelectorAll('img, b, .hit').length, window.hit ?? 0]") == [0, 0]
    consumer.close()
    producer.abort_transaction(60)


def test_the_policy_stops_a_script_that_got_in(page: Page, plane: ControlPlane) -> None:
    """Were markup let in by mistake, nothing in it would run, and nothing could be sent elsewhere."""
    page.open(plane.url, "cluster")
    page.sees("Brokers")
    page.script("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.hit = 1\">')")
    blocked = page.script("return fetch('http://localhost:1/').then(() => 'sent', (error) => error.message)")
    assert blocked == "Failed to fetch"
    refusals = until(
        lambda: [line for line in page.complaints() if "Content Security Policy" in line][1:], "two refusals"
    )
    assert refusals
    assert page.script("return window.hit ?? 0") == 0


def test_what_is_being_written_is_left_alone(page: Page, plane: ControlPlane) -> None:
    """The page asks every second; the field keeps its focus and its text, an open part stays open."""
    page.open(plane.url, "faults")
    field = page.named("input", "Client id")
    field.send_keys("half a na")
    before = page.script("return document.querySelector('#clock time').textContent")
    until(lambda: page.script("return document.querySelector('#clock time').textContent") != before, "another second")
    field.send_keys("me")
    assert page.script("return [document.activeElement.name, document.activeElement.value]") == [
        "client_id",
        "half a name",
    ]


def test_a_token_is_asked_for_and_kept_for_the_tab(page: Page) -> None:
    """The console asks for a token, again after a wrong one, and keeps it for the tab."""
    process = start(control_token="secret")
    try:
        page.open(str(process.ready.control_url), "cluster")
        page.sees("This server requires a token")
        assert "127.0.0.1" not in page.text
        page.write("Token", "guess")
        page.press("Open")
        page.sees("The server does not accept this token")
        page.write("Token", "secret")
        page.press("Open")
        page.sees("Brokers", "127.0.0.1")
        page.open(str(process.ready.control_url), "topics")
        page.sees("No topics yet")
    finally:
        process.stop()


def test_a_server_that_is_gone_is_missed(page: Page) -> None:
    """Within a second of the server's end the console shows a message."""
    process = start()
    try:
        page.open(str(process.ready.control_url), "cluster")
        page.sees("Brokers")
    finally:
        process.stop()
    assert page.sees("The server does not respond")
