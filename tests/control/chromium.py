"""The console in a headless Chromium, as a person uses it: by what is written on the page."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from axe_core_python.selenium import Axe
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from tests.serving import until

TOOLS = ("chromium", "chromedriver")
# A fresh browser that makes no connections of its own; as root it has no sandbox of its own.
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--lang=en"),
    *("--no-first-run", "--disable-sync", "--disable-background-networking", "--disable-component-update"),
)
_NAMED = """
    const name = (e) => (e.getAttribute("aria-label") ?? e.labels?.[0]?.textContent ?? e.textContent ?? "").trim();
    return [...document.querySelectorAll(arguments[0])].find((e) => name(e) === arguments[1] && e.checkVisibility());
"""

# Names, states and titles that go on in another line, and parts whose text is wider than they are.
_CUT = r"""
    const found = [];
    const range = document.createRange();
    for (const element of document.querySelectorAll("th, .state, button, label > span, dt, time, td a")) {
      const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
      while (texts.nextNode()) {
        for (const {0: name, index} of texts.currentNode.data.matchAll(/[^\s-]+-?/g)) {
          range.setStart(texts.currentNode, index);
          range.setEnd(texts.currentNode, index + name.length);
          if (new Set([...range.getClientRects()].map((each) => each.top)).size > 1) found.push(`${name} is broken`);
        }
      }
    }
    for (const part of document.querySelectorAll(".panel, .panel p, header")) {
      const isWide = part.scrollWidth > part.clientWidth + 1 && part.clientWidth > 1;
      if (isWide) found.push(`wider than its part: ${part.textContent.slice(0, 90)}`);
    }
    return found;
"""


class Page:
    """The browser's one tab."""

    def __init__(self, driver: Chrome) -> None:
        self.driver = driver
        self.url = ""

    # --- where -------------------------------------------------------------------------------------------------------

    def open(self, url: str, *way: str) -> None:
        """Load a view of a server's console: ``open(url, "topics", "orders")``."""
        self.url = url
        self.driver.get("about:blank")
        self.driver.get(f"{url}/#/{'/'.join(quote(part, safe='') for part in way)}")

    def look(self, width: int, height: int, scheme: str = "light") -> None:
        """The window's size in CSS pixels, and light or dark."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        feature = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", feature)

    def script(self, code: str, *arguments: Any) -> Any:
        """What a piece of JavaScript returns."""
        return self.driver.execute_script(code, *arguments)

    # --- seeing ------------------------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """All that can be read."""
        return str(self.script("return document.body.innerText"))

    def sees(self, *texts: str) -> str:
        """Wait until each of these texts is on the page; returns the page's text."""

        def complete_text() -> str:
            text = self.text
            return text if all(each in text for each in texts) else ""

        try:
            return until(complete_text, f"{texts}")
        except AssertionError:
            raise AssertionError(f"{texts} are not in:\n{self.text}") from None

    def sees_no(self, gone: str) -> None:
        """Wait until this text is not on the page any more."""
        until(lambda: gone not in self.text, f"{gone} to go from:\n{self.text}")

    def row(self, *texts: str) -> WebElement:
        """The table's row, or the line of the journal, that has all of these texts."""

        def matching_row() -> WebElement | None:
            for row in self.driver.find_elements(By.CSS_SELECTOR, "tbody tr, .journal li, .timeline li"):
                try:
                    if all(each in row.text for each in texts):
                        return row
                except StaleElementReferenceException:
                    continue
            return None

        return until(matching_row, f"a row with {texts} in:\n{self.text}")

    def rows(self) -> list[str]:
        """The rows' texts."""
        return list(
            self.script("return [...document.querySelectorAll('tbody tr, .journal li')].map((e) => e.innerText)")
        )

    # --- doing -------------------------------------------------------------------------------------------------------

    def named(self, kind: str, name: str) -> WebElement:
        """The visible element of this kind whose label or text is just this."""
        element: WebElement = until(lambda: self.script(_NAMED, kind, name), f"{kind} {name!r} in:\n{self.text}")
        return element

    def linked(self, region: str, text: str) -> WebElement:
        """The link with this text in the region of this name."""

        def matching_link() -> WebElement | None:
            links = self.driver.find_elements(By.CSS_SELECTOR, f"[aria-label^='{region}'] a")
            with suppress(StaleElementReferenceException):  # the page was drawn again meanwhile
                return next((each for each in links if each.text == text), None)
            return None

        return until(matching_link, f"a link {text!r} in {region!r} of:\n{self.text}")

    def follow(self, region: str, text: str) -> None:
        """Click a link of a region."""

        def clicked() -> bool:
            with suppress(StaleElementReferenceException):
                self.linked(region, text).click()
                return True
            return False

        until(clicked, f"a link {text!r} in {region!r}")

    def press(self, name: str) -> None:
        """A button, by its accessible name."""

        def pressed() -> bool:
            try:
                self.named("button, summary", name).click()
            except StaleElementReferenceException:  # the page was drawn again meanwhile
                return False
            return True

        until(pressed, f"a button {name!r}")

    def write(self, label: str, text: str) -> WebElement:
        """Into the field of this label, and out of it."""
        field = self.named("input, textarea", label)
        field.clear()
        field.send_keys(text + "\t")
        return field

    def choose(self, label: str, option: str) -> None:
        """An option of the list of this label."""
        code = """
            const [list, text] = arguments;
            list.value = [...list.options].find((option) => option.text === text).value;
            list.dispatchEvent(new Event("change", {bubbles: true}));
        """
        named = "[...document.querySelectorAll('label')].find((e) => e.innerText.startsWith(arguments[0]))"
        find = f"return {named}?.control"
        field = until(lambda: self.script(find, label), f"a list {label!r} in:\n{self.text}")
        self.script(code, field, option)

    # --- judging -----------------------------------------------------------------------------------------------------

    def complaints(self) -> list[str]:
        """What the browser's console holds since it was last asked: errors of scripts, refusals of the policy."""
        return [row["message"] for row in self.driver.get_log("browser") if row["level"] == "SEVERE"]  # type: ignore[no-untyped-call]

    def requested_urls(self) -> list[str]:
        """The addresses that were asked since this was last called."""
        messages = [json.loads(row["message"])["message"] for row in self.driver.get_log("performance")]  # type: ignore[no-untyped-call]
        return [row["params"]["request"]["url"] for row in messages if row["method"] == "Network.requestWillBeSent"]

    def violations(self) -> list[str]:
        """What axe finds against WCAG 2.1 A and AA."""
        options = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}
        rule_violations = Axe().run(self.driver, options=options)["violations"]
        return [
            f"{rule['id']}: {node['html']} {node['failureSummary']}"
            for rule in rule_violations
            for node in rule["nodes"]
        ]

    def cut(self) -> list[str]:
        """Names that are broken in two where they mean nothing then, and what is too wide for its part of the page."""
        return list(self.script(_CUT))

    def keep(self, name: str) -> None:
        """Save a screenshot for people, if CONSOLE_PICTURES names a folder."""
        if folder := os.environ.get("CONSOLE_PICTURES"):
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.driver.save_screenshot(str(Path(folder) / f"{name}.png"))


@contextmanager
def chromium(profile: Path) -> Iterator[Page]:
    """A browser with a profile of its own."""
    options = ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        yield Page(driver)
    finally:
        driver.quit()
