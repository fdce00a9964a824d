"""The packages for other languages: one version, calls that the control plane has, archives that can be installed."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from control_api.answers.faults import FaultState
from control_api.answers.report import Report, ReportedRefusal, ReportedRequest
from control_api.faults import FaultConditions, FaultEffects
from control_api.fields import fields_of
from control_api.journal import JournalQuery
from control_api.verbs import VERBS
from tests.clients.drivers import command
from tests.clients.targets import CACHE
from tests.examples.running import SETUP, needs, ran
from tools import build_packages
from understudy.version import __version__

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "packages"
SOURCES = {
    "node": PACKAGES / "node" / "lib" / "index.js",
    "go": PACKAGES / "go" / "understudytest" / "client.go",
    "java": PACKAGES / "java" / "src" / "main" / "java" / "understudy" / "junit" / "Cluster.java",
    "rust": PACKAGES / "rust" / "src" / "verbs.rs",
}
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
ANY = r"(?:\$\{(?:[^{}]|\{[^{}]*\})*\}|%[sd]|\{\w*\})"
"""A value within a text of JavaScript, Go or Rust."""


def test_each_package_has_the_version_of_the_server() -> None:
    """Each package has the server's version where its language looks for it."""
    assert json.loads((PACKAGES / "node" / "package.json").read_text(encoding="utf-8"))["version"] == __version__
    assert f'const Version = "{__version__}"' in (PACKAGES / "go/understudytest/version.go").read_text(encoding="utf-8")
    java = f"<artifactId>understudy-junit</artifactId>\n  <version>{__version__}</version>"
    assert java in (PACKAGES / "java" / "pom.xml").read_text(encoding="utf-8")
    assert f'version = "{__version__}"\nedition' in (PACKAGES / "rust" / "Cargo.toml").read_text(encoding="utf-8")
    examples = {
        "node/package.json": "file:../../packages/node",
        "go/go.mod": f"v{__version__}",
        "junit/pom.xml": f"<artifactId>understudy-junit</artifactId>\n      <version>{__version__}</version>",
        "rust/Cargo.toml": f'understudy-kafka-test = {{ version = "{__version__}"',
    }
    for example, text in examples.items():
        assert text in (ROOT / "examples" / example).read_text(encoding="utf-8")


def calls(text: str) -> Iterator[tuple[str, str]]:
    """Method and path of each call in a source: `/v1/topics/*`, `*` for a value; the query is left out."""
    for method, path in re.findall(
        r"""["'](GET|POST|PUT|DELETE)["'], (?:fmt\.Sprintf\(|&format!\()?[`"'](/v1/[^`"']*)""", text
    ):
        plain = re.sub(r"\$\{query\((?:[^{}]|\{[^{}]*\})*\)\}", "", path)
        yield method, re.sub(ANY, "*", plain).partition("?")[0]


def is_known(method: str, path: str) -> bool:
    """Whether a verb has that path; one that ends with a slash is the beginning of one."""
    for verb in VERBS:
        known = re.sub(r"\{\w+\}", "*", verb.path)
        if verb.method == method and (known == path or (path.endswith("/") and known.startswith(f"{path}*"))):
            return True
    return False


@pytest.mark.parametrize("language", SOURCES)
def test_each_call_is_one_that_the_control_plane_has(language: str) -> None:
    """Method and path; a path that it does not have would be noticed."""
    called = list(calls(SOURCES[language].read_text(encoding="utf-8")))
    assert len(called) > 10
    assert [call for call in called if not is_known(*call)] == []
    assert not is_known("POST", "/v1/clock/forward")
    assert not is_known("POST", "/v1/report")


def interface(name: str) -> set[str]:
    """The fields of an interface of TypeScript."""
    text = (PACKAGES / "node" / "lib" / "index.d.ts").read_text(encoding="utf-8")
    (body,) = re.findall(rf"export interface {name} \{{\n(.*?)\n\}}", text, re.DOTALL)
    return set(re.findall(r"^  (\w+)\??:", body, re.MULTILINE))


def struct(name: str) -> set[str]:
    """The JSON fields of a struct of Go."""
    (body,) = re.findall(rf"type {name} struct \{{\n(.*?)\n\}}", SOURCES["go"].read_text(encoding="utf-8"), re.DOTALL)
    return set(re.findall(r'json:"(\w+)', body))


def rust_fields(name: str) -> set[str]:
    """The fields of a struct of Rust, by their JSON names."""
    text = "".join(path.read_text(encoding="utf-8") for path in SOURCES["rust"].parent.glob("*.rs"))
    (body,) = re.findall(rf"pub struct {name} \{{\n(.*?)\n\}}", text, re.DOTALL)
    fields = re.findall(r'(?:#\[serde\(rename = "(\w+)"\)\]\n)?    pub (\w+):', body)
    return {renamed or name for renamed, name in fields}


@pytest.mark.parametrize(
    ("typescript", "go", "described"),
    [
        ("FaultMatch", "FaultMatch", FaultConditions),
        ("FaultDo", "Effect", FaultEffects),
        ("FaultState", "FaultState", FaultState),
        ("Report", "Report", Report),
        ("ReportedRequest", "ReportedRequest", ReportedRequest),
        ("ReportedRefusal", "ReportedRefusal", ReportedRefusal),
        ("JournalQuery", None, JournalQuery),
    ],
)
def test_types_have_the_fields_of_the_control_plane(typescript: str, go: str | None, described: type) -> None:
    """In each language that has the type."""
    assert interface(typescript) == set(fields_of(described))
    assert go is None or struct(go) == set(fields_of(described))
    assert typescript == "FaultDo" or rust_fields(typescript) == set(fields_of(described))


def test_rust_has_a_constructor_for_each_effect() -> None:
    """By the names of the control plane."""
    text = (PACKAGES / "rust" / "src" / "faults.rs").read_text(encoding="utf-8")
    assert set(re.findall(r'\b(?:one|and)\("(\w+)"', text)) == set(fields_of(FaultEffects))


def test_an_archive_is_the_same_each_time(tmp_path: Path) -> None:
    """That of Go, whose checksum its users keep; its license and its README are in it."""
    first, second = (build_packages.go(tmp_path / name) for name in ("first", "second"))
    name = f"{build_packages.GO_MODULE}/@v/v{__version__}.zip"
    assert (first / name).read_bytes() == (second / name).read_bytes()
    assert b"LICENSE" in (first / name).read_bytes()
    assert b"README.md" in (first / name).read_bytes()


def test_what_this_machine_cannot_build_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the reason; it fails only for a package that was named, and for one that does not exist."""
    monkeypatch.setenv("PATH", str(tmp_path))
    target = f"{tmp_path}/packages"
    assert build_packages.main([target]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"go: {target}/go",
        "java: left out, because mvn is not installed",
        "node: left out, because npm is not installed",
        "rust: left out, because cargo is not installed",
    ]
    assert build_packages.main([target, "go", "node"]) == 1
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\nexit 7\n", encoding="utf-8")
    npm.chmod(0o755)
    assert build_packages.main([target, "node"]) == 1
    assert "node: left out, because npm ended with code 7; its output is above" in capsys.readouterr().out
    assert build_packages.main(["noode"]) == 2
    assert capsys.readouterr().err == "there is no package noode; there are go, java, node, rust\n"


def test_the_server_of_the_checkout_is_put_where_the_packages_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Again and again, but not over a file of the user's, and not where it cannot be written."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file = tmp_path / "understudy" / __version__ / "understudy"
    for _ in range(2):
        assert str(file) in build_packages.link(Path("/bin/echo"))
        assert subprocess.run([file, "a b"], capture_output=True, text=True, check=True).stdout == "a b\n"
    file.write_text("a binary of the user's")
    assert build_packages.link(Path("/bin/echo")).endswith("to use this checkout, set UNDERSTUDY_COMMAND=/bin/echo")
    assert file.read_text() == "a binary of the user's"
    monkeypatch.setenv("XDG_CACHE_HOME", str(file))
    assert "cannot be written (Not a directory)" in build_packages.link(Path("/bin/echo"))


CONTAINER = """#!/bin/sh
# Docker's `run` for a container with the host's network: variables and the command, the image left out.
case "$*" in *"${UNDERSTUDY_CONTROL_TOKEN:?}"*) echo "each user can read the token" >&2; exit 1;; esac
shift
while [ "$1" != orders/understudy ]; do
    case $1 in -e) export "$2"; shift 2;; -p) shift 2;; *) shift;; esac
done
shift
exec SERVER "$@"
"""
THROUGH_NODE = """
const { start } = require('LIB');
start({ brokers: 2, image: 'orders/understudy' }).then(async (kafka) => {
  const before = kafka.bootstrapServers;
  await kafka.reset();
  const { brokers } = await kafka.ask('GET', '/v1/cluster');
  const there = brokers.map(({ host, port }) => `${host}:${port}`).join(',');
  console.log(JSON.stringify([before, kafka.bootstrapServers, there]));
  await kafka.stop();
});
"""
THROUGH_GO = """package understudytest

import (
	"fmt"
	"strings"
	"testing"
)

func TestContainer(t *testing.T) {
	kafka := StartWith(t, Options{Image: "orders/understudy"}, "--brokers", "2")
	before := kafka.BootstrapServers()
	if err := kafka.Reset(); err != nil {
		t.Fatal(err)
	}
	var cluster struct {
		Brokers []struct {
			Host string
			Port int
		}
	}
	if err := kafka.Ask("GET", "/v1/cluster", nil, &cluster); err != nil {
		t.Fatal(err)
	}
	there := []string{}
	for _, each := range cluster.Brokers {
		there = append(there, fmt.Sprintf("%s:%d", each.Host, each.Port))
	}
	fmt.Printf("[%q, %q, %q]\\n", before, kafka.BootstrapServers(), strings.Join(there, ","))
}
"""


THROUGH_RUST = """fn main() -> Result<(), understudy::Error> {
    let kafka = understudy::builder().image("orders/understudy").brokers(2).start()?;
    let before = kafka.bootstrap_servers();
    kafka.reset()?;
    let cluster = kafka.ask("GET", "/v1/cluster", None)?;
    let brokers = cluster["brokers"].as_array().into_iter().flatten();
    let there = brokers.map(|each| format!("{}:{}", each["host"].as_str().unwrap_or_default(), each["port"]));
    println!("{:?}", [before, kafka.bootstrap_servers(), there.collect::<Vec<_>>().join(",")]);
    Ok(())
}
"""


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "language",
    [
        pytest.param("node", marks=pytest.mark.interop),
        pytest.param("go", marks=pytest.mark.nightly),
        pytest.param("rust", marks=pytest.mark.nightly),
    ],
)
def test_a_container_is_the_last_resort(language: str, tmp_path: Path) -> None:
    """No command anywhere, but Docker: ports that are chosen here, advertised, and kept by a reset; a token."""
    needs("cargo" if language == "rust" else language)
    folder = tmp_path / "bin"
    folder.mkdir()
    docker = folder / "docker"
    docker.write_text(CONTAINER.replace("SERVER", str(Path(sys.executable).with_name("understudy"))), encoding="utf-8")
    docker.chmod(0o755)
    env = {"PATH": f"{folder}:/usr/bin:/bin", "XDG_CACHE_HOME": str(tmp_path), "UNDERSTUDY_COMMAND": ""}
    if language == "node":
        text = THROUGH_NODE.replace("LIB", str(PACKAGES / "node" / "lib" / "index.js"))
        printed = ran(["node", "-e", text], ROOT, **env)
    elif language == "rust":
        source, built = crate()
        (source / "examples").mkdir()
        (source / "examples" / "container.rs").write_text(THROUGH_RUST, encoding="utf-8")
        ran(["cargo", "build", "--quiet", "--example", "container"], source, CARGO_TARGET_DIR=str(built))
        printed = ran([built / "debug" / "examples" / "container"], source, **env)
    else:
        command([SETUP, "go"])
        source = tmp_path / "source"
        shutil.copytree(PACKAGES / "go", source)
        (source / "understudytest" / "container_test.go").write_text(THROUGH_GO, encoding="utf-8")
        ran([CACHE / "go" / "go", "test", "-c", "-o", "tests", "./understudytest"], source, GOTOOLCHAIN="auto")
        printed = ran(["./tests", "-test.run", "TestContainer$"], source, **env)
    before, after, there = json.loads(next(line for line in printed.splitlines() if line.startswith("[")))
    assert before == after == there
    assert len(set(there.split(","))) == 2


@pytest.mark.interop
@pytest.mark.timeout(200)
def test_the_tests_of_the_package_for_node() -> None:
    """Hooks, methods, refusals, time limits; by node:test."""
    needs("node")
    printed = ran(["node", "--test", "--test-reporter=tap", "test/"], PACKAGES / "node", PATH=PATH)
    assert re.search(r"^# pass 23\n# fail 0$", printed, re.MULTILINE), printed


@pytest.mark.interop
@pytest.mark.timeout(300)
def test_the_tests_of_the_package_for_go() -> None:
    """The same, by Go's testing; and what gofmt and vet find."""
    needs("go")
    command([SETUP, "go"])
    go = CACHE / "go" / "go"
    assert subprocess.run(["gofmt", "-l", PACKAGES / "go"], capture_output=True, check=True).stdout == b""
    ran([go, "vet", "./..."], PACKAGES / "go", PATH=PATH, GOTOOLCHAIN="auto")
    printed = ran([go, "test", "-count=1", "-v", "./..."], PACKAGES / "go", PATH=PATH, GOTOOLCHAIN="auto")
    assert printed.count("\n--- PASS: Test") == 20


def crate() -> tuple[Path, Path]:
    """A copy of the crate, because its lock file names registries, and the folder for what is built of it."""
    folder = CACHE / "build" / "rust-package"
    source = folder / "crate"
    for part in ("src", "tests", "examples"):
        shutil.rmtree(source / part, ignore_errors=True)
    shutil.copytree(PACKAGES / "rust", source, dirs_exist_ok=True, ignore=shutil.ignore_patterns("target"))
    return source, folder / "target"


@pytest.mark.interop
@pytest.mark.timeout(600)
def test_the_tests_of_the_package_for_rust() -> None:
    """The same, by Cargo's tests; the code in its documentation; and what rustfmt and clippy find, if installed."""
    needs("cargo")
    source, built = crate()
    env = {"PATH": PATH, "CARGO_TARGET_DIR": str(built)}
    if shutil.which("cargo-fmt"):
        ran(["cargo", "fmt", "--check"], source, **env)
    if shutil.which("cargo-clippy"):
        ran(["cargo", "clippy", "--quiet", "--all-targets", "--", "-D", "warnings"], source, **env)
    printed = ran(["cargo", "test"], source, **env)
    results = re.findall(r"^test result: ok\. (\d+) passed; 0 failed; (\d+) ignored", printed, re.MULTILINE)
    assert results == [("3", "0"), ("15", "4"), ("5", "0")], printed


@pytest.mark.nightly
@pytest.mark.timeout(1200)
def test_the_tests_of_the_package_for_java(tmp_path: Path) -> None:
    """The extension, methods, refusals, time limits, how a server is found, the variables of the container."""
    needs("javac", "mvn")
    source = tmp_path / "java"
    shutil.copytree(PACKAGES / "java", source, ignore=shutil.ignore_patterns("target"))
    printed = ran(["mvn", "--batch-mode", "-Dstyle.color=never", "test"], source, PATH=PATH)
    assert re.search(r"Tests run: 22, Failures: 0, Errors: 0, Skipped: 0\n", printed), printed


def first_test(language: str, project: Path) -> Iterator[str]:
    """Write the files of the README's first test into a folder; yield its commands, each block as a script."""
    text = (PACKAGES / language / "README.md").read_text(encoding="utf-8")
    section = text.partition("## First test\n")[2].partition("\n## ")[0]
    for name, body in re.findall(r"(?:`(\S+)`:\n\n)?```\w*\n(.*?)```", section, re.DOTALL):
        if name:
            (project / name).write_text(body, encoding="utf-8")
        else:
            yield body.replace("/path/to/understudy", "$PRINTED_CHECKOUT")


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("language", SOURCES)
def test_the_first_test_of_a_readme_runs_as_printed(language: str, tmp_path: Path) -> None:
    """From an empty folder, with the archive of `make packages`, and the server where it has put it."""
    needs({"node": "npm", "go": "go", "java": "mvn", "rust": "cargo"}[language])
    project, checkout = tmp_path / "orders", tmp_path / "checkout"
    project.mkdir()
    server = Path(sys.executable).with_name("understudy")
    path = [part for part in os.environ["PATH"].split(os.pathsep) if ".venv" not in part]
    env = {"XDG_CACHE_HOME": str(tmp_path), "PRINTED_CHECKOUT": str(checkout), "PATH": os.pathsep.join(path)}
    env |= {"GOTOOLCHAIN": "auto", "GOMODCACHE": str(tmp_path / "modules"), "GOFLAGS": "-modcacherw"}
    builder: list[str | Path] = [
        sys.executable,
        ROOT / "tools/build_packages.py",
        f"{checkout}/dist/packages",
        language,
    ]
    ran([*builder, "--link", server], ROOT, **env)
    shutil.rmtree(Path.home() / ".m2" / "repository" / "understudy-kafka" / "understudy-junit", ignore_errors=True)
    script = "set -e\n"
    for commands in first_test(language, project):
        script += commands
        printed = ran(
            ["bash", "-c", script if commands.startswith("export") else f"{variables(script)}{commands}"],
            project,
            **env,
        )
    assert {"node": "# pass 1", "go": "ok", "java": "", "rust": "test an_order_is_sent_once ... ok"}[
        language
    ] in printed


def variables(script: str) -> str:
    """The exports of a script, for the one that continues it."""
    return "".join(f"{line}\n" for line in script.splitlines() if line.startswith(("set ", "export ")))


RUNNERS = {
    "jest": ("jest@30", ["npx", "--no-install", "jest"], "const { useKafka } = require('understudy-kafka/jest');"),
    "jest-without-globals": (
        "jest@30",
        ["npx", "--no-install", "jest", "--injectGlobals=false"],
        "const { expect, test } = require('@jest/globals'); const { useKafka } = require('understudy-kafka/jest');",
    ),
    "vitest": (
        "vitest@3",
        ["npx", "--no-install", "vitest", "run"],
        "import { expect, test } from 'vitest'; import { useKafka } from 'understudy-kafka/vitest';",
    ),
}
RUNNER_TESTS = """
const kafka = useKafka({ topics: { orders: 1 } });
const ports = [];
test('first', async () => { ports.push(kafka.bootstrapServers); await kafka.write('orders', 'one order'); });
test('second', async () => {
  expect(ports).not.toContain(kafka.bootstrapServers);
  expect(await kafka.records('orders')).toEqual([]);
});
if (process.env.RED) {
  test('a red one', () => { expect(1).toBe(2); });
  test('one with a fault that no request met', () => kafka.addFault({ match: { api: 'EndTxn' }, do: { drop: true } }));
}
"""


@pytest.mark.nightly
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("runner", RUNNERS)
def test_other_runners_of_node(runner: str, tmp_path: Path) -> None:
    """From the archive, in an empty project: green, then a red test with its report and a fault that was not met."""
    needs("node", "npm")
    package, runner_command, imports = RUNNERS[runner]
    archive = build_packages.node(tmp_path)
    project = tmp_path / "project"
    project.mkdir()
    (project / "package.json").write_text('{"private": true}', encoding="utf-8")
    (project / "orders.test.js").write_text(imports + RUNNER_TESTS, encoding="utf-8")
    ran(["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", str(archive), package], project)
    ran(runner_command, project, PATH=PATH, CI="true")
    env = os.environ | {"PATH": PATH, "RED": "yes", "CI": "true", "NO_COLOR": "1"}
    done = subprocess.run(
        runner_command, cwd=project, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    printed = done.stdout + done.stderr
    assert done.returncode == 1, printed
    assert re.search(r"2 failed.{1,20}2 passed", printed), printed
    assert printed.count("understudy, last requests:") == 1
    assert "no request met these faults" in printed
