"""The Dockerfiles and compose.yaml: what no container engine is needed for to see."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docker_rehearsal import Instruction, read, variables
from tests.docker_rehearsal import main as rehearse
from tests.understudy.serving import serve
from understudy.serve import OPTIONS
from understudy.server_path import ALL_PACKAGES
from understudy.version import __version__

ROOT = Path(__file__).resolve().parent.parent
DOCKERFILES = [ROOT / "Dockerfile", ROOT / "examples" / "compose" / "Dockerfile"]
OPTION_VARIABLES = {option.variable for option in OPTIONS}


def steps(path: Path, keyword: str) -> list[Instruction]:
    """The instructions with this keyword."""
    return [step for step in read(path) if step.keyword == keyword]


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_an_image_is_small_and_reproducible_in_its_steps(path: Path) -> None:
    """Tagged bases, no recommended packages, package lists removed in the layer that fetched them, no ADD."""
    images = [step.rest.partition(" AS ")[0] for step in steps(path, "FROM")]
    assert [image for image in images if ":" not in image or image.endswith(":latest")] == []
    for step in steps(path, "RUN"):
        if "apt-get install" in step.rest:
            assert "--no-install-recommends" in step.rest
            assert "rm -rf /var/lib/apt/lists/*" in step.rest
        if "pip install" in step.rest:
            assert "--no-cache-dir" in step.rest
    assert steps(path, "ADD") == []


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_an_image_runs_one_process_that_is_not_root(path: Path) -> None:
    """A number as the last USER, and the exec form, so that signals reach the process itself."""
    assert steps(path, "USER")[-1].rest.isdigit()
    assert steps(path, "USER")[-1].rest != "0"
    for step in [*steps(path, "ENTRYPOINT"), *steps(path, "CMD")]:
        assert step.argv


def test_the_image_sets_variables_that_the_server_knows() -> None:
    """Every UNDERSTUDY_* of the Dockerfile and of compose.yaml is an option's twin."""
    text = (ROOT / "examples" / "compose" / "compose.yaml").read_text(encoding="utf-8")
    names = set(re.findall(r"\bUNDERSTUDY_[A-Z_]+\b", text))
    for step in steps(ROOT / "Dockerfile", "ENV"):
        names |= {name for name in variables(step.rest) if name.startswith("UNDERSTUDY_")}
    assert names
    assert names - OPTION_VARIABLES == set()


def test_the_image_can_be_reached_and_asked_how_it_is() -> None:
    """Ports exposed are the ports served; the health check asks the control plane."""
    path = ROOT / "Dockerfile"
    env = {name: value for step in steps(path, "ENV") for name, value in variables(step.rest).items()}
    exposed = steps(path, "EXPOSE")[0].rest.split()
    assert exposed == [env["UNDERSTUDY_PORT"], env["UNDERSTUDY_CONTROL_PORT"]]
    assert steps(path, "HEALTHCHECK")[0].rest == 'CMD ["understudy-health"]'
    assert steps(path, "VOLUME")[0].rest == "/data"


@pytest.mark.parametrize("control", ["0", "off"])
def test_the_health_check_finds_a_server_on_any_port(control: str, tmp_path: Path) -> None:
    """By the ready file: unhealthy before and after, healthy while it serves, with and without a control plane."""
    check, ready = ROOT / "tools" / "health-check", tmp_path / "ready.json"
    env = {"PATH": "/usr/bin:/bin", "UNDERSTUDY_READY_FILE": str(ready)}

    def healthy() -> bool:
        return subprocess.run([check], env=env, capture_output=True, timeout=10, check=False).returncode == 0

    assert not healthy()
    last = "bootstrap.servers=" if control == "off" else "control="
    options = ("--port", "0", "--advertise", "127.0.0.1:1", "--control-port", control, "--ready-file", str(ready))
    with serve(*options, last=last):
        assert healthy()
        kept = ready.read_text(encoding="utf-8")
    ready.write_text(kept, encoding="utf-8")  # as a server that was killed leaves it
    assert not healthy()


def test_what_the_image_copies_is_there_and_is_not_ignored() -> None:
    """A package that is added to the wheel is added here too."""
    copied = {name for step in steps(ROOT / "Dockerfile", "COPY") if not step.flags for name in step.rest.split()[:-1]}
    assert [name for name in sorted(copied) if not (ROOT / name).exists()] == []
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert [name for name in sorted(copied) if f"!{name}" not in ignored] == []
    assert {*ALL_PACKAGES, "hatch_build.py"} <= copied


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("HEALTHCHECK --interval=1s --start-interval=1s CMD true", "unknown flag: --start-interval=1s"),
        ("RUN --mount=type=cache,target=/root true", "unknown flag: --mount=type=cache,target=/root"),
        ("COPY --chmod=755 a /b", "unknown flag: --chmod=755"),
        ("COPYY a /b", "unknown instruction: COPYY"),
    ],
)
def test_what_not_all_builders_know_is_refused(text: str, problem: str, tmp_path: Path) -> None:
    """As Docker 20 without BuildKit does; what they know is read."""
    file = tmp_path / "Dockerfile"
    file.write_text(f"FROM --platform=linux/amd64 debian:trixie-slim\nCOPY --from=0 --chown=1 a /b\n{text}\n")
    with pytest.raises(SystemExit, match=f"line 3: {re.escape(problem)}"):
        read(file)
    file.write_text("FROM debian:trixie-slim\nHEALTHCHECK --interval=1s --retries=3 CMD true\n")
    assert [step.keyword for step in read(file)] == ["FROM", "HEALTHCHECK"]


def test_a_folder_without_a_dockerfile_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder without a Dockerfile is named in one sentence."""
    assert rehearse([str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"rehearsal: there is no {tmp_path}/Dockerfile; name a folder that has one\n"


def test_the_image_of_compose_is_the_one_that_the_packages_start() -> None:
    """Once built, a container of it is the last place where they look."""
    text = (ROOT / "examples" / "compose" / "compose.yaml").read_text(encoding="utf-8")
    assert f"\n    image: understudy:{__version__}\n" in text


def test_hadolint_finds_nothing() -> None:
    """Hadolint's rules, save DL3008: versions of Debian's packages cannot be pinned, old ones leave the mirrors."""
    hadolint = Path(sys.executable).with_name("hadolint")
    command = [str(path) for path in (hadolint, "--ignore", "DL3008", "--no-color", *DOCKERFILES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_the_image_can_be_built_and_does_what_it_promises() -> None:
    """Each step of the Dockerfile in a Debian root, then: ready, not root, healthy, speaks Kafka, stops."""
    command = [sys.executable, "-m", "tests.docker_rehearsal"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
