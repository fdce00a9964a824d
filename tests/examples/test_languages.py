"""The examples for JUnit 5, Spring, Go, Node and Rust, each by its language's own runner, in a copy of its folder."""

import os
import re
import select
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.clients.drivers import JAVAC, command
from tests.clients.targets import CACHE
from tests.examples.running import EXAMPLES, SETUP, needs, ran
from tools import build_packages

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]
JAVA = ("junit", "spring")
# The command is the one that belongs to this Python.
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def copied(name: str) -> Path:
    """The example where it may be built: a project that gets the package from its archive, not from the checkout."""
    folder = CACHE / "build" / "examples" / name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(EXAMPLES / name, folder, ignore=shutil.ignore_patterns("node_modules"))
    archives = CACHE / "build" / "archives"
    archive = built(name)
    if name == "node":
        described = folder / "package.json"
        text = described.read_text(encoding="utf-8")
        described.write_text(text.replace("../../packages/node", str(archive)), encoding="utf-8")
    if name in JAVA:
        described = folder / "pom.xml"
        text = described.read_text(encoding="utf-8")
        place = f"file://{archives / 'maven'}"
        described.write_text(re.sub(r"file://.*(?=</url>)", place, text), encoding="utf-8")
    if name == "rust":
        described = folder / "Cargo.toml"
        text = described.read_text(encoding="utf-8")
        ran(["tar", "xf", archive], archives)
        described.write_text(text.replace("../../packages/rust", str(archive.with_suffix(""))), encoding="utf-8")
        command([SETUP, "rust"])
        # The versions of tests/clients/rust, whose librdkafka is used here too.
        shutil.copy(CACHE / "build" / "rust" / "crate" / "Cargo.lock", folder)
    if name == "go":
        command([SETUP, "go"])
        ran(
            [CACHE / "go" / "go", "mod", "edit", f"-dropreplace={build_packages.GO_MODULE}"], folder, **go_environment()
        )
    return folder


@cache
def built(name: str) -> Path:
    """The archive of the example's package, once in a session, where an older one of the same version is forgotten."""
    archives = CACHE / "build" / "archives"
    archives.mkdir(parents=True, exist_ok=True)
    if name == "go":
        shutil.rmtree(CACHE / "build" / "modules", ignore_errors=True)
    if name in JAVA:
        shutil.rmtree(Path.home() / ".m2" / "repository" / "understudy-kafka" / "understudy-junit", ignore_errors=True)
    return build_packages.BUILDERS["java" if name in JAVA else name](archives)


def go_environment() -> dict[str, str]:
    """The archive before the usual source of modules, and a module cache of its own: an archive's version stays.

    Without Go's index of the modules in its build cache, which has the imports of the archive before.
    """
    command = ["go", "env", "GOPROXY", "GOMODCACHE"]
    usual, modules = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return {
        "PATH": PATH,
        "GOTOOLCHAIN": "auto",
        "GODEBUG": "goindex=0",
        "GOPROXY": f"file://{CACHE / 'build' / 'archives' / 'go'},file://{modules}/cache/download,{usual}",
        "GONOSUMDB": build_packages.GO_MODULE,
        "GOMODCACHE": str(CACHE / "build" / "modules"),
        "GOFLAGS": "-mod=mod -modcacherw",
    }


RUST = {"PATH": PATH, "CARGO_TARGET_DIR": str(CACHE / "build" / "rust" / "target"), "CFLAGS": "-O0"}
"""As tests/clients builds its driver."""


def test_junit() -> None:
    """All of it compiles; what needs no container engine runs."""
    needs("javac", "mvn")
    output = ran(["mvn", "--batch-mode", "-Dstyle.color=never", "test"], copied("junit"), PATH=PATH)
    by_class = dict(re.findall(r"Tests run: (\d+, Failures: 0, Errors: 0, Skipped: \d+), .* in (\w+)", output))
    answer = {name: counts for counts, name in by_class.items()}
    assert answer["OrdersTest"] == "2, Failures: 0, Errors: 0, Skipped: 0"
    assert answer["OrdersInContainerTest"].startswith("1, ")


@pytest.mark.nightly
def test_spring() -> None:
    """A context that is kept, with a listener, on a port that stays."""
    needs("javac", "mvn")
    output = ran(["mvn", "--batch-mode", "-Dstyle.color=never", "test"], copied("spring"), PATH=PATH)
    assert "Tests run: 2, Failures: 0, Errors: 0, Skipped: 0" in output


def test_go() -> None:
    """The Go example passes `go vet`, and both of its tests pass."""
    needs("go")
    folder = copied("go")
    for verb in (["vet"], ["test", "-count=1", "-v"]):
        output = ran([CACHE / "go" / "go", *verb, "./..."], folder, **go_environment())
    assert output.count("--- PASS: Test") == 2


def test_node() -> None:
    """The page's first test for Node passes with node:test."""
    needs("node", "npm")
    folder = copied("node")
    ran(["npm", "install", "--no-package-lock", "--no-audit", "--no-fund"], folder)
    output = ran(["node", "--test", "--test-reporter=tap"], folder, PATH=PATH)
    assert re.search(r"^# pass 2\n# fail 0$", output, re.MULTILINE), output


def test_rust() -> None:
    """The page's first test for Rust passes with cargo test."""
    needs("cargo", "g++", "make")
    output = ran(["cargo", "test", "--quiet"], copied("rust"), **RUST)
    assert "test result: ok. 2 passed; 0 failed" in output, output


WAITING = {
    "junit": (
        "src/main/java/Outlive.java",
        """public final class Outlive {
    public static void main(String[] arguments) throws Exception {
        System.out.println("pid=" + understudy.junit.Cluster.start().pid());
        Thread.currentThread().join();
    }
}
""",
    ),
    "go": (
        "outlive_test.go",
        """package orders

import (
	"fmt"
	"testing"
	"time"

	"understudy.example/go/understudytest"
)

func TestOutlive(t *testing.T) {
	fmt.Printf("pid=%d\\n", understudytest.Start(t).PID())
	<-time.After(time.Minute)
}
""",
    ),
    "node": (
        "outlive.js",
        """const { start } = require('understudy-kafka');
start().then((kafka) => console.log(`pid=${kafka.server.process.pid}`));
setTimeout(() => {}, 60_000);
""",
    ),
    "rust": (
        "examples/outlive.rs",
        """fn main() {
    let kafka = understudy::builder().start().unwrap();
    println!("pid={}", kafka.pid());
    std::thread::park_timeout(std::time::Duration::from_secs(60));
}
""",
    ),
}
"""A program in each language that starts a server by the example's helper, prints its process id, and waits."""


@pytest.mark.parametrize("name", list(WAITING))
def test_no_server_outlives_a_test_process_that_is_killed(name: str) -> None:
    """SIGKILL to the test process, and the server that its helper started ends as well."""
    needs(*{"junit": ("javac", "mvn"), "go": ("go",), "node": ("node",), "rust": ("cargo", "g++", "make")}[name])
    folder = copied(name)
    file, text = WAITING[name]
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(text, encoding="utf-8")
    path = ""
    if name == "junit":
        listed = ["dependency:build-classpath", "-Dmdep.outputFile=classpath", "-Dmdep.includeScope=test"]
        ran(["mvn", "--batch-mode", "--quiet", *listed], folder)
        path = (folder / "classpath").read_text(encoding="utf-8")
        ran([*JAVAC, "-cp", path, "-d", "classes", file], folder)
    if name == "node":
        ran(["npm", "install", "--no-package-lock", "--no-audit", "--no-fund"], folder)
    if name == "go":
        ran([CACHE / "go" / "go", "test", "-c", "-o", "outlive", "."], folder, **go_environment())
    if name == "rust":
        ran(["cargo", "build", "--quiet", "--example", "outlive"], folder, **RUST)
    commands = {
        "junit": ["java", "-cp", f"classes:{path}", "Outlive"],
        "go": ["./outlive", "-test.run", "TestOutlive"],
        "node": ["node", "outlive.js"],
        "rust": [f"{RUST['CARGO_TARGET_DIR']}/debug/examples/outlive"],
    }[name]
    with subprocess.Popen(
        commands, cwd=folder, env=os.environ | {"PATH": PATH}, stdout=subprocess.PIPE, text=True
    ) as done:
        assert done.stdout is not None
        server = int(next(line for line in done.stdout if line.startswith("pid=")).removeprefix("pid="))
        ended = os.pidfd_open(server)
        try:
            done.kill()
            assert select.select([ended], [], [], 20)[0], "the server runs on"
        finally:
            os.close(ended)
