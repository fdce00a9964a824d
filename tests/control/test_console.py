"""The console's files, and who may ask the verbs, from a browser and otherwise.

What the page does: test_console_in_chromium.py.
"""

import re
from collections.abc import Mapping
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from broker.control.console import FILES, FOLDER, POLICY
from broker.settings.specification import link
from tests.control.harness import ControlPlane
from tests.serving import start

PATHS = ["/", *(f"/console/{name}" for name in FILES)]
KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml", "/": "text/html"}


def ask(url: str, method: str, path: str, headers: Mapping[str, str]) -> tuple[int, dict[str, str], bytes]:
    """Status, headers by their small names, content."""
    place = urlsplit(url)
    connection = HTTPConnection(str(place.hostname), place.port, timeout=60)
    try:
        connection.request(method, path, headers=dict(headers))
        response = connection.getresponse()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
    finally:
        connection.close()


@pytest.mark.parametrize("path", PATHS)
def test_each_file_is_served_as_it_is(plane: ControlPlane, path: str) -> None:
    """With its type, and with the policy that keeps scripts of others out."""
    status, headers, content = ask(plane.url, "GET", path, {})
    assert status == 200
    assert headers["content-type"].split(";")[0] == KINDS[path.rpartition(".")[2]]
    assert headers["content-security-policy"] == POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert content == (FOLDER / (path.rpartition("/")[2] or "index.html")).read_bytes()


@pytest.mark.parametrize("rule", ["transactions B.6", "transactions A.2 I5", "groups C.4 H8", "core D.2 V11"])
def test_the_link_of_a_citation_leads_to_the_rule(plane: ControlPlane, rule: str) -> None:
    """At this server, which has the specification; the page has the anchor, and no markup of the text but that."""
    page, _, anchor = link(rule).partition("#")
    status, headers, content = ask(plane.url, "GET", f"/{page}", {})
    assert (status, headers["content-type"].split(";")[0]) == (200, "text/html")
    assert headers["content-security-policy"] == POLICY
    text = content.decode()
    assert text.count(f'<span id="{anchor}">') == 1
    assert "<a " not in text
    assert ask(plane.url, "GET", f"/{page}x", {})[0] == 404


def test_nothing_else_is_served(plane: ControlPlane) -> None:
    """No file beside them, no way out of the folder."""
    for path in ("/console/", "/console/__init__.py", "/console/%2e%2e/app.py", "/console/../app.py"):
        assert ask(plane.url, "GET", path, {})[0] == 404


def test_the_policy_allows_scripts_of_this_server_only() -> None:
    """None in the page itself, none from elsewhere, and nothing is asked of another host."""
    rules = dict(rule.split(" ", 1) for rule in POLICY.split("; "))
    assert rules["default-src"] == "'none'"
    assert {rules[name] for name in ("script-src", "style-src", "connect-src", "img-src")} == {"'self'"}
    assert "unsafe" not in POLICY


def test_the_files_make_no_markup_of_data_and_name_no_other_host() -> None:
    """What parses text as HTML or as code does not occur, nor does an address."""
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|setHTML|srcdoc"
    for path in (FOLDER / name for name in [*FILES, "index.html"]):
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert re.findall(rf"{forbidden}|https?://|url\(", text) == [], path.name


def test_the_page_comes_without_the_token_and_the_verbs_do_not() -> None:
    """The page holds no data; it asks for the token itself."""
    process = start(control_token="secret")
    try:
        url = str(process.ready.control_url)
        assert ask(url, "GET", "/", {})[0] == 200
        assert ask(url, "GET", "/v1/cluster", {})[0] == 401
        # Who has it may come from anywhere.
        known = {"Authorization": "Bearer secret", "Origin": "https://other.example", "Host": "kafka.example"}
        assert ask(url, "GET", "/v1/cluster", known)[0] == 200
    finally:
        process.stop()


def test_pages_of_other_sites_steer_nothing(plane: ControlPlane) -> None:
    """A request that a browser sends for another site is refused, one of the console's is not."""
    own = urlsplit(plane.url).netloc
    for origin in ("https://other.example", f"http://other.example:{own.partition(':')[2]}", "null"):
        status, _, content = ask(plane.url, "POST", "/v1/clock/freeze", {"Origin": origin})
        assert (status, b"--control-token" in content) == (403, True)
    assert plane.http("GET", "/v1/clock")["frozen"] is False
    assert ask(plane.url, "POST", "/v1/clock/freeze", {"Origin": f"http://{own}"})[0] == 200
    assert plane.http("GET", "/v1/clock")["frozen"] is True


def test_a_foreign_host_name_that_resolves_to_this_machine_is_refused(plane: ControlPlane) -> None:
    """Otherwise a site could send requests under its own name, and read the answers (DNS rebinding)."""
    port = urlsplit(plane.url).port
    for host, status in (("other.example", 403), ("localhost", 200), ("127.0.0.1", 200), ("[::1]", 200), ("::1", 200)):
        assert ask(plane.url, "GET", "/v1/cluster", {"Host": f"{host}:{port}"})[0] == status


def test_an_offer_to_speak_http_2_is_not_taken_and_not_logged(plane: ControlPlane) -> None:
    """Java's client makes it with every first request."""
    before = plane.server.process.log_file.stat().st_size
    offer = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAEAAEAAAAIAAAAB"}
    assert ask(plane.url, "GET", "/v1/health", offer)[0] == 200
    assert plane.server.process.log_file.stat().st_size == before


def test_the_cluster_shows_the_state_of_each_broker(plane: ControlPlane) -> None:
    """Running, paused or down, as its own verbs name it."""
    answer = [plane.http("GET", "/v1/cluster")["brokers"][0]["state"]]
    for way in ("pause", "resume", "kill", "start"):
        state = plane.http("POST", f"/v1/brokers/1/{way}")["state"]
        answer.append(plane.http("GET", "/v1/cluster")["brokers"][0]["state"])
        assert state == answer[-1]
    assert answer == ["running", "paused", "running", "down", "running"]


def test_each_module_is_asked_for_at_once(plane: ControlPlane) -> None:
    """The page names all modules; without that a browser finds them one behind the other."""
    status, content = plane.raw("GET", "/")
    assert status == 200
    named = re.findall(rb'(?:modulepreload" href|script type="module" src)="console/(\w+\.js)"', content)
    assert sorted(each.decode() for each in named) == [name for name in FILES if name.endswith(".js")]
