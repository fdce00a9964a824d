"""How one comes from page to page in the console, in a headless Chromium, with real clients behind it."""

import re
from functools import partial
from urllib.parse import parse_qsl

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from protocol.apis import ApiKey
from protocol.messages.api_versions import ApiVersionsRequest
from tests.control.chromium import Page
from tests.control.harness import ControlPlane
from tests.control.test_console_in_chromium import transactor
from tests.serving import until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]


def test_the_overview_leads_to_what_it_shows(page: Page, plane: ControlPlane) -> None:
    """A refusal, an error, a client, a group, an open transaction, a fault: each is a link to its page."""
    first = transactor(plane, **{"client.id": "first"})
    transactor(plane, **{"client.id": "second"})
    with pytest.raises(KafkaException):
        first.commit_transaction(60)
    fault = plane.kafka.faults.add(api="Heartbeat", delay_ms=1, optional=True)
    page.open(plane.url)
    page.sees("Refusals of the last minutes", "fenced: at", "Errors in the last two minutes", "confluent-kafka-python")
    page.row("InitProducerId", "CONCURRENT_TRANSACTIONS").find_elements("tag name", "a")[1].click()
    page.sees("Journal", "CONCURRENT_TRANSACTIONS")
    assert page.named("input", "API").get_attribute("value") == "InitProducerId"
    page.press("Clear filters")
    page.sees("EndTxn")
    for section, name, shown in (
        ("Refusals", "x", "Diagram of transactional id x"),
        ("Open transactions", "x", "Transactions / x"),
        ("Clients", "second", "Clients / second"),
        ("Faults", f"fault {fault.id}", "Add a fault"),
    ):
        page.open(plane.url)
        page.sees("Refusals of the last minutes", "Ongoing")
        page.linked(section, name).click()
        page.sees(shown)


def chosen(page: Page) -> str:
    """The cluster that the header's list shows."""
    return str(page.script("return document.querySelector('select[name=cluster]')?.selectedOptions[0].text ?? ''"))


def test_the_header_leads_to_other_clusters(page: Page, plane: ControlPlane) -> None:
    """The list is there while there are several; each has its own topics, and a command there changes only that one."""
    page.open(plane.url, "topics")
    page.row("t")
    assert chosen(page) == ""
    with plane.kafka.clusters.create(name="night shift", topics={"orders": 3}) as other:
        page.open(plane.url, "topics")
        until(lambda: chosen(page) == "cluster-1", "the list of clusters")
        page.choose("Cluster", "night shift")
        page.row("orders", "3")
        assert page.driver.current_url.startswith(f"{other.control_url}/")
        until(lambda: chosen(page) == "night shift", "the name of this cluster in the list")
        assert not any("u" in row.split() for row in page.rows())
        page.open(other.control_url, "cluster")
        page.sees("127.0.0.1", "running")
        page.press("Add a broker")
        page.row("2", "running")
        assert (len(other.info().brokers), len(plane.kafka.info().brokers)) == (2, 1)
        assert page.violations() == []
        page.keep("clusters")
        page.choose("Cluster", "cluster-1")
        until(lambda: chosen(page) == "cluster-1", "the name of the first cluster in the list")
        page.open(plane.url, "topics")
        page.row("u", "1")
    page.open(plane.url, "topics")
    page.row("t")
    until(lambda: chosen(page) == "", "no list any more")


def test_an_exhausted_fault_is_counted_apart(page: Page, plane: ControlPlane) -> None:
    """The figure has both numbers, and the API of an error is in one line."""
    plane.kafka.faults.add(api="FindCoordinator", error="COORDINATOR_NOT_AVAILABLE")
    page.open(plane.url)
    assert "exhausted" not in page.sees("Faults\n1")
    transactor(plane)
    page.sees("Faults\n0\nand 1 exhausted", "COORDINATOR_NOT_AVAILABLE")
    cell = page.row("FindCoordinator", "COORDINATOR_NOT_AVAILABLE").find_element("tag name", "a")
    assert page.script("return arguments[0].getClientRects().length", cell) == 1


def has_rows(page: Page, count: int) -> bool:
    """Whether the journal shows so many requests."""
    return len(page.rows()) == count


def test_counted_errors_lead_to_these_requests(page: Page, plane: ControlPlane) -> None:
    """The number of errors is a link to a journal with so many rows; so is each count by API and code."""
    first = transactor(plane, **{"client.id": "first"})
    transactor(plane, **{"client.id": "second"})
    with pytest.raises(KafkaException):
        first.commit_transaction(60)
    expected = plane.kafka.overview().errors
    one = {"errors": "true", "api": "EndTxn", "error": "INVALID_PRODUCER_EPOCH"}
    for count, filters in ((expected, {"errors": "true"}), (1, one)):
        page.open(plane.url)
        page.sees("fenced: at")
        links = page.driver.find_elements("xpath", "//table[@aria-label='Errors']//tr[contains(., 'EndTxn')]//a")
        (links[2] if filters is one else page.linked("Figures", str(count))).click()
        page.sees("Only errors", "INVALID_PRODUCER_EPOCH")
        until(partial(has_rows, page, count), f"{count} rows")
        assert all(re.search("[A-Z]+_[A-Z_]+", row) for row in page.rows())
        address = str(page.script("return location.hash"))
        assert filters.items() <= dict(parse_qsl(address.partition("?")[2])).items()
        assert page.named("input", "Only errors: any error code, or no response").is_selected()
    page.press("Clear filters")
    page.sees("ApiVersions")
    assert page.script("return location.hash") == "#/journal"


def test_a_diagram_is_zoomed_filtered_and_followed_into_the_journal(page: Page, plane: ControlPlane) -> None:
    """From the transactional id to its picture, with the reason of a refusal, and on to the request itself."""
    first = transactor(plane, **{"client.id": "first"})
    transactor(plane, **{"client.id": "second"})
    with pytest.raises(KafkaException):
        first.commit_transaction(60)
    page.open(plane.url, "transactions", "x")
    page.named("a", "Sequence diagram").click()
    page.sees("Diagram of transactional id x", "transaction coordinator", "ABORT marker", "fenced: at")
    width = "return document.querySelector('svg.diagram').clientWidth"
    before = page.script(width)
    page.press("Larger")
    page.sees("125 %")
    assert page.script(width) > before
    page.press("Fit the width")
    assert page.script(
        "return document.querySelector('.drawing').scrollWidth <= document.querySelector('.drawing').clientWidth"
    )
    page.named("input", "Only errors, faults and missing responses").click()
    page.sees_no("ABORT marker")
    page.sees("INVALID_PRODUCER_EPOCH")
    request = page.driver.find_elements("css selector", "svg.diagram a")[-1]
    assert str(request.get_attribute("aria-label")).startswith("EndTxn v")
    page.script("arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", request)
    page.sees("Journal / ", '"transactional_id": "x"', "INVALID_PRODUCER_EPOCH")
    page.open(plane.url, "diagrams")
    page.row("transactional id", "x").find_element("tag name", "a").click()
    page.sees("Diagram of transactional id x")


def test_a_transaction_is_chosen_from_the_list_of_its_id(page: Page, plane: ControlPlane) -> None:
    """From its row on the page of the id, or in the diagram; the address names it, so that it can be linked to."""
    producer = transactor(plane)
    producer.commit_transaction(60)
    producer.begin_transaction()
    producer.produce("t", b"v", partition=1)
    assert producer.flush(60) == 0
    producer.abort_transaction(60)
    committed, aborted = plane.kafka.transactions["x"].history()
    page.open(plane.url, "transactions", "x")
    page.row("committed", "commit decided").find_element("tag name", "a").click()
    page.sees("Diagram of transactional id x", "COMMIT marker")
    page.sees_no("ABORT marker")
    assert page.script("return location.hash") == f"#/diagrams/transactions/x?transaction={committed.id}"
    option = next(each for each in page.script(OPTIONS) if "aborted" in each)
    page.choose("Transaction", option)
    page.sees("ABORT marker")
    page.sees_no("COMMIT marker")
    assert page.script("return location.hash") == f"#/diagrams/transactions/x?transaction={aborted.id}"
    page.choose("Transaction", "all (newest requests)")
    page.sees("COMMIT marker", "ABORT marker")


def test_a_long_list_is_searched_and_shown_in_parts(page: Page, plane: ControlPlane) -> None:
    """Fifty rows at first, the open transaction on top; the search finds rows that are not shown."""
    names = [f"id-{each:03d}" for each in range(59)]
    for name in names:
        Producer({"bootstrap.servers": plane.bootstrap, "transactional.id": name}).init_transactions(60)
    transactor(plane, "z")
    for view in ("transactions", "producers"):
        page.open(plane.url, view)
        page.sees("10 more")
        until(partial(has_rows, page, 50), "50 rows")
        assert ("z" in page.rows()[0].split(), "id-058" in page.text) == (True, view == "producers")
        field = page.named("input", "Containing")
        field.send_keys("ID-05")
        until(partial(has_rows, page, 9), "9 rows")
        page.sees_no("more")
        field.clear()
        field.send_keys("no such id")
        page.sees("No row contains this text.")
        field.clear()
        field.send_keys(" ")
        page.press("Show more")
        until(partial(has_rows, page, 60), "60 rows")


def test_a_generation_is_chosen_from_the_list_of_its_group(page: Page, plane: ControlPlane) -> None:
    """In the diagram of the group; the address names it."""
    consumer = Consumer({"bootstrap.servers": plane.bootstrap, "group.id": "g", "client.id": "reader"})
    consumer.subscribe(["t"])
    until(lambda: consumer.poll(0.1) or consumer.assignment(), "an assignment")
    plane.kafka.groups["g"].rebalance()
    until(lambda: consumer.poll(0.1) or plane.kafka.groups["g"].show().epoch == 2, "another generation")
    until(lambda: consumer.poll(0.1) or plane.kafka.groups["g"].show().state == "Stable", "its assignment")
    page.open(plane.url, "groups", "g")
    page.named("a", "Sequence diagram").click()
    page.sees("Diagram of group g", "generation 1", "generation 2")
    options = "return [...document.querySelectorAll('select[name=generation] option')].map((each) => each.text)"
    assert [each.split(",")[0] for each in page.script(options)] == ["all (newest requests)", "2", "1"]
    page.choose("Generation", page.script(options)[1])
    page.sees_no("PreparingRebalance -> CompletingRebalance, generation 1")
    page.sees("all members have joined: PreparingRebalance", "CompletingRebalance, generation 2")
    assert page.script("return location.hash") == "#/diagrams/groups/g?generation=2"
    consumer.close()


OPTIONS = "return [...document.querySelectorAll('select[name=transaction] option')].map((each) => each.text)"


def test_the_first_page_shows_how_to_connect_until_a_client_has(page: Page, plane: ControlPlane) -> None:
    """With the addresses of the brokers."""
    page.open(plane.url)
    page.sees("No client has connected yet", f"bootstrap.servers={plane.server.addresses[0]}")
    with plane.server.wire() as wire:
        wire.call(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("walker", "1.2"))
        page.sees_no("No client has connected yet")
        assert "walker" in page.text
