"""Scenarios and copied code in the console, in a headless Chromium."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from selenium.common.exceptions import JavascriptException

import understudy
from tests.control.chromium import Page
from tests.control.harness import ControlPlane
from tests.examples.running import needs
from tests.serving import start, until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]


def shown(page: Page) -> list[str]:
    """The code of each step."""
    return list(page.script("return [...document.querySelectorAll('.steps pre')].map((e) => e.textContent)"))


def faults(plane: ControlPlane) -> list[dict[str, Any]]:
    """Of the server."""
    return [{name: each[name] for name in ("match", "do")} for each in plane.http("GET", "/v1/faults")["faults"]]


def copied(page: Page) -> str:
    """Press Copy all, and take what would be on the clipboard."""
    page.script("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.script("delete window.copied")
    page.press("Copy all")
    return str(until(lambda: page.script("return window.copied"), "a text on the clipboard"))


def run(language: str, code: str, page: Page, folder: Path) -> None:
    """Run what was copied; raises unless it ends well."""
    if language == "Python":
        exec(code, {})  # what the page has made of our own answer  # noqa: S102
    elif language == "JavaScript":
        page.script(f"return (async () => {{ {code} }})()")
    elif language == "Node":
        (folder / "steps.mjs").write_text(code, encoding="utf-8")
        subprocess.run(["node", str(folder / "steps.mjs")], check=True, capture_output=True, timeout=60)
    elif language in {"Java", "Go"}:
        file = folder / ("Steps.java" if language == "Java" else "steps.go")
        file.write_text(code, encoding="utf-8")
        command = ["java", str(file)] if language == "Java" else ["go", "run", str(file)]
        subprocess.run(command, check=True, capture_output=True, timeout=250)
    else:
        line = code.replace("understudy ", f"{sys.executable} -m understudy ")
        subprocess.run(["bash", "-e", "-c", line], check=True, capture_output=True, timeout=60)


LANGUAGES = ("Python", "understudy ctl", "curl", "JavaScript", "Java", "Go")


@pytest.mark.timeout(600)  # go compiles its library of HTTP where it has not yet
def test_what_was_pressed_is_copied_as_code_that_does_the_same(page: Page, plane: ControlPlane, tmp_path: Path) -> None:
    """In each language: all steps are run, and make the faults that the page made."""
    needs("go", "java", "node")
    page.open(plane.url, "faults")
    page.press("The response to a commit is lost")
    page.write("Transactional id", 'it\'s "x" $HOME')
    page.press("Add the fault")
    page.sees("The fault is added")
    page.named("a", "Copy it as code").click()
    page.sees("Scenario", "faults add")
    plane.kafka.faults.add(api="Fetch", topic="t", delay_ms=1, times=None, optional=True)
    wanted = faults(plane)
    page.sees("Fetch")
    codes = {}
    for language in LANGUAGES:
        page.choose("As", language)
        codes[language] = copied(page)
    for language, code in (*codes.items(), ("Node", codes["JavaScript"])):
        plane.kafka.reset()
        run(language, code, page, tmp_path)
        assert faults(plane) == wanted, code


def test_copied_code_fails_where_the_server_refuses(page: Page, plane: ControlPlane, tmp_path: Path) -> None:
    """It used to end well in a shell and in JavaScript, as if all had been done."""
    plane.kafka.topics.create("made")
    page.open(plane.url, "scenario")
    page.sees("topics create")
    for language, error in (("curl", subprocess.CalledProcessError), ("JavaScript", JavascriptException)):
        page.choose("As", language)
        with pytest.raises(error):
            run(language, copied(page), page, tmp_path)


def test_code_for_a_server_with_a_token_reads_it_from_the_environment(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python, a shell and curl do what was pressed; none of the texts has the token itself."""
    process = start(control_token="secret-token")
    kafka = understudy.connect(str(process.ready.control_url), token="secret-token")
    monkeypatch.setenv("UNDERSTUDY_CONTROL_TOKEN", "secret-token")
    try:
        page.open(str(process.ready.control_url), "faults")
        page.write("Token", "secret-token")
        page.press("Open")
        page.press("The response to a commit is lost")
        page.press("Add the fault")
        page.sees("The fault is added")
        page.named("a", "Copy it as code").click()
        page.sees("Scenario", "faults add")
        codes = []
        for language in LANGUAGES:
            page.choose("As", language)
            codes.append(copied(page))
        assert "secret-token" not in "".join(codes)
        assert [code for code in codes if "UNDERSTUDY_CONTROL_TOKEN" not in code] == [codes[1]]  # the command reads it
        for code in codes[:3]:
            kafka.reset()
            if code.startswith("import"):
                exec(code, {})  # what the page has made of our own answer  # noqa: S102
            else:
                line = code.replace("understudy ", f"{sys.executable} -m understudy ", 1)
                subprocess.run(["bash", "-c", line], check=True, capture_output=True, timeout=60)
            assert [each.match["api"] for each in kafka.faults.list()] == ["EndTxn"], code
    finally:
        process.stop()


def test_a_scenario_is_saved_and_done_again_from_its_file(page: Page, plane: ControlPlane, tmp_path: Path) -> None:
    """Also what other programs did; a mistake in the file is shown with its step."""
    page.open(plane.url, "scenario")
    page.sees("No steps yet")
    plane.kafka.topics.create("made")
    plane.kafka.faults.add(api="EndTxn", error="NOT_COORDINATOR", optional=True)
    page.sees("topics create", "faults add")
    assert shown(page)[0] == 'kafka.topics.create("made")'
    file = tmp_path / "scenario.json"
    file.write_text(plane.ctl_text("scenario", "record", "--json"), encoding="utf-8")
    plane.kafka.reset()
    page.sees("No steps yet")
    page.named("input", "Scenario file").send_keys(str(file))
    page.press("Run the steps")
    page.sees("The steps of scenario.json have run")
    assert [fault["match"]["api"] for fault in faults(plane)] == ["EndTxn"]
    file.write_text(json.dumps({"scenario": 1, "steps": [{"verb": "clock advanse"}]}), encoding="utf-8")
    page.named("input", "Scenario file").send_keys(str(file))
    page.press("Run the steps")
    page.sees("step 1 (clock advanse): there is no verb", "did you mean clock advance?")
