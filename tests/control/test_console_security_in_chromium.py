"""Users, ACLs and quotas in the console, and messages that are written there, in a headless Chromium."""

import re
from typing import get_args

import pytest

from broker.control.console import FOLDER
from broker.coordination.metadata import quotas
from control_api.security import Operation, ResourceKind
from tests.control.chromium import Page
from tests.control.conftest import ControlPlaneOf
from tests.control.harness import ControlPlane
from tests.control.test_security import AUTHORIZER

_LISTEN = "window.sent = []; const real = fetch; window.fetch = (...call) => (sent.push(call[1]?.body), real(...call));"


def listed(name: str) -> set[str]:
    """A list of names in the console's file."""
    text = (FOLDER / "security.js").read_text(encoding="utf-8")
    pattern_match = re.search(rf"export const {name} = [\[{{](.*)[\]}}];", text)
    assert pattern_match is not None
    return set(re.findall(r'(?:^|, ) ?"?(\w+)"?(?=: |, |$)', pattern_match[1]))


def test_the_lists_of_the_page_are_those_of_the_control_plane() -> None:
    """Operations, resources and quotas of the page are those that the control plane knows."""
    assert listed("OPERATIONS") == set(get_args(Operation))
    assert listed("RESOURCES") == set(get_args(ResourceKind))
    rates = (quotas.PRODUCER_BYTE_RATE, quotas.CONSUMER_BYTE_RATE, quotas.REQUEST_PERCENTAGE)
    assert listed("RATES") == {*rates, quotas.CONTROLLER_MUTATION_RATE, quotas.CONNECTION_CREATION_RATE}


@pytest.mark.interop
@pytest.mark.timeout(120)
def test_users_acls_and_quotas_are_added_and_removed(page: Page, plane_of: ControlPlaneOf) -> None:
    """Each by its form and its button; the password leaves its field, and has the blanks that it was typed with."""
    plane = plane_of(settings=AUTHORIZER)
    page.open(plane.url, "security")
    page.sees("No SCRAM user yet.", "No ACLs yet.", "No client quotas yet.")
    page.named("form[aria-label='Set a password'] input", "User").send_keys("alice")
    page.driver.execute_script(_LISTEN)
    page.write("Password", " alice-secret ")
    page.press("Set the password")
    page.sees("alice can log in with SCRAM-SHA-256.")
    assert '{"password":" alice-secret ","mechanism":"SCRAM-SHA-256"}' in page.driver.execute_script("return sent;")
    assert page.named("input", "Password").get_attribute("value") == ""
    page.write("Principal", "User:alice")
    page.choose("Permission", "DENY")
    page.write("Name", "pay")
    page.choose("The name is", "a prefix")
    page.press("Add the ACL")
    page.row("User:alice", "DENY", "READ", "TOPIC pay…")
    page.write("Client id", "slow")
    page.write("Value (empty: remove it)", "1024")
    page.press("Set the quota")
    page.row("client id slow", "producer_byte_rate 1024")
    assert [each.name for each in plane.kafka.users.list()] == ["alice"]
    assert [(each.pattern, each.permission) for each in plane.kafka.acls.list()] == [("PREFIXED", "DENY")]
    page.press("delete user alice")
    page.sees("No SCRAM user yet.")
    page.press("remove ACL of User:alice on pay")
    page.sees("No ACLs yet.")
    page.press("remove quotas")
    page.sees("No client quotas yet.")


@pytest.mark.interop
@pytest.mark.timeout(120)
def test_without_an_authorizer_the_page_shows_how_to_have_one(page: Page, plane: ControlPlane) -> None:
    """Without an authorizer the page shows the setting for one, and no form."""
    page.open(plane.url, "security")
    assert "Add the ACL" not in page.sees("The brokers have no authorizer", "authorizer.class.name")


@pytest.mark.interop
@pytest.mark.timeout(120)
def test_a_message_is_written(page: Page, plane: ControlPlane) -> None:
    """With key, headers and partition; then a tombstone, for which the fields are empty again."""
    page.open(plane.url, "topics", "t")
    page.press("Write a message")
    page.write("Key", "k")
    page.write("Value", '{"id": 9007199254740993}')
    page.write("Headers, one per line", "trace: 12:30\nempty:")
    page.choose("To partition", "1")
    page.press("Write")
    page.sees("Written to partition 1 at offset 0.")
    page.write("Key", "k")
    page.named("input", "Without a value (a tombstone)").click()
    page.press("Write")
    page.sees("Written to partition")
    (record, *_) = plane.kafka.topics["t"].partitions[1].records()
    assert (record.key, record.value) == (b"k", b'{"id": 9007199254740993}')
    assert [(each.key, each.value) for each in record.headers] == [("trace", b"12:30"), ("empty", b"")]
    values = [each.value for n in (0, 1) for each in plane.kafka.topics["t"].partitions[n].records()]
    assert sorted(values, key=str) == sorted([b'{"id": 9007199254740993}', None], key=str)
