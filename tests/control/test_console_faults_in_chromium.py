"""The console's page of faults, in a headless Chromium."""

from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.control.chromium import Page
from tests.control.harness import ControlPlane
from tests.serving import until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]


def test_a_fault_is_added_met_and_removed(page: Page, plane: ControlPlane) -> None:
    """A real client meets it, and the page counts until nothing is left of it."""
    page.open(plane.url, "faults")
    page.sees("No faults.")
    page.choose("Requests of", "InitProducerId")
    page.choose("Effect", "serve it, then respond with an error")
    page.write("Transactional id", "x")
    page.choose("Error", "COORDINATOR_LOAD_IN_PROGRESS")
    page.press("Add the fault")
    page.row("InitProducerId", "COORDINATOR_LOAD_IN_PROGRESS", "unmet", "1")
    (fault,) = plane.http("GET", "/v1/faults")["faults"]
    assert fault["match"] == {"api": "InitProducerId", "transactional_id": "x"}
    Producer({"bootstrap.servers": plane.bootstrap, "transactional.id": "x"}).init_transactions(60)
    page.row("InitProducerId", "exhausted")
    page.press(f"again fault {fault['id']}")
    page.row("InitProducerId", "unmet")
    assert [each["remaining"] for each in plane.http("GET", "/v1/faults")["faults"]] == [0, 1]
    page.press("Remove all")
    page.sees("No faults.")
    assert plane.http("GET", "/v1/faults")["faults"] == []


def test_the_form_offers_what_fits_the_api(page: Page, plane: ControlPlane) -> None:
    """Conditions that its requests name, first the errors that Kafka gives, no throttle time where it has none."""
    labels = "return [...document.querySelectorAll('form.fault label')].filter((e) => e.checkVisibility())"
    offered = f"{labels}.map((e) => e.firstChild.textContent)"
    options = "return [...document.querySelector(`form.fault select[name=${arguments[0]}]`).options].map((e) => e.text)"
    page.open(plane.url, "faults")
    page.sees("Add a fault")
    assert {"Topic", "Partition", "Group", "Transactional id"} <= set(page.script(offered))
    page.choose("Requests of", "EndTxn")
    page.sees("More conditions")
    assert "Transactional id" in page.script(offered)
    assert not {"Topic", "Partition", "Group"} & set(page.script(offered))
    assert page.script(options, "value")[:2] == ["NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"]
    assert len(page.script(options, "value")) > 130
    assert "respond with a throttle time" in page.script(options, "way")
    page.choose("Requests of", "WriteTxnMarkers")
    assert "respond with a throttle time" not in page.script(options, "way")
    page.choose("Effect", "change a field of the response")
    page.choose("Field of the response", "markers.*.topics.*.partitions.*.error_code")
    page.write("New value, as JSON", '"NOT_LEADER_OR_FOLLOWER"')
    page.press("Add the fault")
    page.row("WriteTxnMarkers", 'error_code = "NOT_LEADER_OR_FOLLOWER"', "unmet")


def test_a_fault_that_is_often_wanted_takes_two_presses(page: Page, plane: ControlPlane) -> None:
    """Each of the library fills the form with a fault that is taken as it is."""
    page.open(plane.url, "faults")
    page.press("The response to a commit is lost")
    page.press("Add the fault")
    page.row("EndTxn of committed = true", "served, then the connection is reset")
    names = page.script("return [...document.querySelectorAll('.library button')].map((e) => e.textContent)")
    for name in names[1:]:
        page.press(name)
        page.press("Add the fault")
        page.sees("The fault is added")
    until(lambda: len(plane.http("GET", "/v1/faults")["faults"]) == len(names), "a fault of each")
    assert len(names) >= 10


def test_a_number_beyond_those_of_a_browser_is_sent_digit_by_digit(
    page: Page, plane: ControlPlane, tmp_path: Path
) -> None:
    """Of the form, of the fault when it is added again, and of a scenario file: 2^63 - 1 was sent as 2^63."""
    largest = 2**63 - 1
    page.open(plane.url, "faults")
    page.choose("Requests of", "Produce")
    page.choose("Effect", "change a field of the response")
    page.choose("Field of the response", "responses.*.partition_responses.*.base_offset")
    page.write("New value, as JSON", str(largest))
    page.press("As a request or as code")
    page.sees(f'"responses.*.partition_responses.*.base_offset": {largest}')
    page.press("Add the fault")
    page.row("Produce", str(largest))
    reported: list[int | None] = []
    producer = Producer({"bootstrap.servers": plane.bootstrap})
    producer.produce("t", b"v", on_delivery=lambda _, message: reported.append(message.offset()))
    assert producer.flush(60) == 0
    assert reported == [largest]
    page.press(f"again fault {plane.kafka.faults.list()[0].id}")
    page.row("Produce", str(largest), "unmet")
    page.open(plane.url, "scenario")
    page.sees("Steps since the start")
    page.script("URL.createObjectURL = (blob) => { window.kept = blob; return ''; }")
    page.script("HTMLAnchorElement.prototype.click = () => {}")  # it would be downloaded
    page.press("Save as a file")
    kept = str(until(lambda: page.script("return window.kept?.text()"), "a file"))
    plane.kafka.faults.clear()
    file = tmp_path / "largest.json"
    file.write_text(kept, encoding="utf-8")
    page.named("input", "Scenario file").send_keys(str(file))
    page.press("Run the steps")
    page.sees("The steps of largest.json have run")
    alterations = [fault.do["alter"] for fault in plane.kafka.faults.list()]
    assert alterations == [{"responses.*.partition_responses.*.base_offset": largest}] * 2


def test_a_fault_written_as_json(page: Page, plane: ControlPlane) -> None:
    """What the form cannot express; what is no JSON is shown, and nothing is sent."""
    page.open(plane.url, "faults")
    page.choose("Effect", "custom, as JSON")
    page.write("Effect, as JSON", '{"bytes": {"truncate": 3')
    page.press("Add the fault")
    page.sees("JSON")
    assert plane.http("GET", "/v1/faults")["faults"] == []
    page.write("Effect, as JSON", '{"bytes": {"truncate": 3}}')
    page.press("Add the fault")
    page.row("truncate 3")
