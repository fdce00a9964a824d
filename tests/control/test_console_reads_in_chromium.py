"""Messages and the journal's columns in the console, in a headless Chromium."""

import json
from contextlib import suppress

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicCollection
from confluent_kafka.admin import AdminClient

from protocol.apis import ApiKey
from protocol.messages.api_versions import ApiVersionsRequest
from tests.control.chromium import Page
from tests.control.harness import ControlPlane
from tests.serving import until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]
EXACT = 2**63 - 1


def lines(page: Page) -> list[str]:
    """The messages that are shown."""
    code = "return [...document.querySelectorAll('.messages > li')].map((e) => e.innerText)"
    return list(page.script(code))


def shows(page: Page, *texts: str) -> None:
    """Wait until just these are shown, in this order."""
    until(
        lambda: len(lines(page)) == len(texts) and all(w in line for w, line in zip(texts, lines(page), strict=True)),
        f"{texts} in:\n{page.text}",
    )


def test_messages_are_found_by_offset_time_and_text(page: Page, plane: ControlPlane) -> None:
    """The newest first; a search goes on while messages come."""
    topic = plane.kafka.topics["t"]
    for n in range(6):
        topic.write({"key": f"k{n}", "value": f"value {n}", "timestamp_ms": n * 1000, "partition": n % 2})
    page.open(plane.url, "topics", "t")
    shows(page, *(f"value {n}" for n in (5, 4, 3, 2, 1, 0)))
    page.choose("From partition", "1")
    shows(page, "value 5", "value 3", "value 1")
    page.choose("Order", "from an offset")
    page.write("Offset", "1")
    shows(page, "value 3", "value 5")
    page.choose("Order", "from a time")
    here = "new Date(3000 - new Date(3000).getTimezoneOffset() * 60000).toISOString().slice(0, 23)"
    local = page.script(f"return {here}")
    field = page.named("input", "Time")
    page.script("arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('change'))", field, local)
    shows(page, "value 3", "value 5")
    page.choose("From partition", "all")
    shows(page, "value 3", "value 4", "value 5")
    page.choose("Order", "newest first")
    page.write("Containing", "k4")
    shows(page, "value 4")
    topic.write({"key": "k4", "value": "again", "timestamp_ms": 9000, "partition": 1})
    shows(page, "again", "value 4")
    page.write("Containing", "nowhere")
    assert "k4" not in page.sees("No matching message")


def test_messages_that_are_being_read_stay_where_they_are(page: Page, plane: ControlPlane) -> None:
    """After *Pause*, until *Resume* or another search."""
    topic = plane.kafka.topics["u"]
    topic.write("first")
    page.open(plane.url, "topics", "u")
    shows(page, "first")
    page.press("Pause")
    page.named("button", "Resume")
    topic.write("second")
    ends = "return document.querySelector('table[aria-label=Partitions] tbody').innerText.trim().split(/\\s+/).at(-1)"
    until(lambda: page.script(ends) == "2", "a log end of 2")
    assert len(lines(page)) == 1
    page.press("Resume")
    shows(page, "second", "first")
    page.press("Pause")
    topic.write("third")
    page.write("Containing", "ir")
    shows(page, "third", "first")


def test_the_page_waits_while_the_pointer_is_down(page: Page, plane: ControlPlane) -> None:
    """A row that came meanwhile moved what was being clicked."""
    topic = plane.kafka.topics["u"]
    topic.write("first")
    page.open(plane.url, "topics", "u")
    shows(page, "first")
    page.script("document.body.dispatchEvent(new PointerEvent('pointerdown', {bubbles: true}))")
    topic.write("second")
    page.requested_urls()
    until(lambda: sum("/records" in url for url in page.requested_urls()) > 0, "the new message was asked for")
    until(lambda: sum(url.endswith("/v1/clock") for url in page.requested_urls()) > 0, "another second")
    assert len(lines(page)) == 1
    page.script("document.body.dispatchEvent(new PointerEvent('pointerup', {bubbles: true}))")
    shows(page, "second", "first")


def test_a_message_opens_as_json_with_exact_numbers(page: Page, plane: ControlPlane) -> None:
    """Indented as it was written: no number is rounded, no digit added; what is no JSON stays as it is."""
    value = json.dumps({"id": EXACT, "price": "PRICE", "list": [1, 2.5], "none": {}, "text": 'a{b}: "c"'})
    value = value.replace('"PRICE"', "1.10")
    plane.kafka.topics["u"].write({"key": "k", "value": value, "headers": [{"key": "trace", "value": "abc"}]})
    plane.kafka.topics["u"].write("{no json", b"\xff\xfe")
    page.open(plane.url, "topics", "u")
    page.row(str(EXACT)).find_element("tag name", "button").click()
    page.sees(
        f'  "id": {EXACT},\n  "price": 1.10,\n  "list": [\n    1,\n    2.5\n  ],\n  "none": {{}},', "Header trace"
    )
    shown = page.script("return [...document.querySelectorAll('.opened pre')].at(-1).textContent")
    assert json.loads(shown) == json.loads(value)
    page.row("{no json").find_element("tag name", "button").click()
    page.row("ff fe").find_element("tag name", "button").click()
    page.sees("Not text; its bytes:", "0000  ")


def test_the_journal_has_columns_for_topic_group_and_id(page: Page, plane: ControlPlane) -> None:
    """In a row of their own, and as links where a request is opened."""
    producer = Producer({"bootstrap.servers": plane.bootstrap, "transactional.id": "payments"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("t", b"v", partition=0)
    producer.commit_transaction(60)
    consumer = Consumer({"bootstrap.servers": plane.bootstrap, "group.id": "readers"})
    consumer.subscribe(["t"])
    until(lambda: consumer.poll(0.1) or consumer.assignment(), "an assignment")
    page.open(plane.url, "journal")
    page.row("Produce v", "t", "payments")
    page.row("JoinGroup v", "readers")
    page.row("EndTxn v", "payments").find_element("tag name", "button").click()
    page.named("a", "payments").click()
    assert page.sees("Transactions / payments", "CompleteCommit")
    consumer.close()


def test_near_misses_are_beside_the_rows_of_the_journal(page: Page, plane: ControlPlane) -> None:
    """A topic of nearly the same name, and the fault of which one condition does not hold; no others have a hint."""
    plane.kafka.topics.create("orders")
    fault = plane.kafka.faults.add(api="Produce", topic="t", partition=1, drop=True, optional=True)
    admin = AdminClient({"bootstrap.servers": plane.bootstrap})
    for name in ("orders", "order"):
        with suppress(KafkaException):
            admin.describe_topics(TopicCollection([name]))[name].result(60)
    producer = Producer({"bootstrap.servers": plane.bootstrap})
    producer.produce("t", b"v", partition=0)
    assert producer.flush(60) == 0
    near = f"fault {fault.id} nearly matched this request: its partition is 1, the request's is 0"
    for width, scheme in ((1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")):
        page.look(width, 900, scheme)
        page.open(plane.url, "journal")
        page.row("Metadata v", "order", "topic 'order' does not exist; did you mean orders?")
        page.row("Produce v", "t", near)
        assert len([row for row in page.rows() if "did you mean" in row or "nearly" in row]) == 2
        assert page.script("return document.documentElement.scrollWidth") <= width
        assert page.violations() == []
        page.keep(f"journal-hints-{width}-{scheme}")
    page.row("Produce v", near).find_element("tag name", "button").click()
    page.named("ul", "Hints")


def test_the_journal_page_asks_for_what_is_new_only(page: Page, plane: ControlPlane) -> None:
    """Also where the filters let nothing through; bodies only of the request that is open."""
    with plane.server.wire() as wire:
        for _ in range(20):
            wire.call(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("walker", "1.2"))
    page.open(plane.url, "journal")
    page.driver.get(f"{plane.url}/#/journal?api=EndTxn")
    page.sees("No request ")
    page.requested_urls()

    def starts() -> list[int]:
        urls = [url for url in page.requested_urls() if "/v1/journal?" in url and "api=EndTxn" in url]
        assert all("bodies=false" in url for url in urls)
        return [int(url.partition("since=")[2].partition("&")[0]) for url in urls]

    first = until(starts, "a second look")
    assert first[0] > 20
    page.press("Clear filters")
    page.row("ApiVersions v3", "test")
    page.press("Pause")
    page.row("ApiVersions v3", "test").find_element("tag name", "button").click()
    page.sees("walker")
    page.row("ApiVersions v3", "test").find_element("tag name", "button").click()
    page.sees_no("client_software_name")


def test_a_journal_that_was_emptied_is_empty_on_the_page(page: Page, plane: ControlPlane) -> None:
    """What was shown before is gone, and what comes afterwards is shown."""
    producer = Producer({"bootstrap.servers": plane.bootstrap})
    producer.produce("t", b"v", partition=0)
    assert producer.flush(60) == 0
    page.open(plane.url, "journal")
    page.row("Produce v", "t")
    plane.kafka.journal.clear()
    page.sees_no("Produce v")
    producer.produce("t", b"v", partition=0)
    assert producer.flush(60) == 0
    page.row("Produce v", "t")


def test_what_is_open_stays_where_it_is(page: Page, plane: ControlPlane) -> None:
    """A message or a request that one reads was pushed down and out of the list within seconds of traffic."""
    topic = plane.kafka.topics["t"]
    topic.write({"value": "read this", "partition": 0})
    page.open(plane.url, "topics", "t")
    page.sees("read this")

    def opened() -> None:
        page.script("document.querySelector('.journal .entry').click()")

    opened()
    page.sees("Paused while a message is open.")
    topic.write(*({"value": f"value {n}", "partition": 0} for n in range(60)))
    page.sees("61")  # the partition's end, which is asked for each second
    assert [line.split()[-1] for line in lines(page) if "value" in line.split("\n")[0]] == []
    assert "read this" in lines(page)[0]
    opened()
    page.sees("value 59")
    page.sees_no("read this")

    asking = Producer({"bootstrap.servers": plane.bootstrap, "client.id": "asking"})
    asking.list_topics("t", 60)
    page.open(plane.url, "journal")
    page.write("Client id", "asking")
    page.row("Metadata")
    opened()
    page.sees("Paused while a request is open.", "Correlation id")
    first = page.rows()
    for _ in range(120):
        asking.list_topics("t", 60)
    seen = "return document.querySelector('.filters + .row .quiet').textContent"
    before = page.script(seen)
    assert len(page.rows()) == len(first)
    opened()
    until(lambda: len(page.rows()) == 100, "a hundred requests")
    assert page.script(seen) != before
