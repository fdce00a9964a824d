"""Runs the Dockerfile's steps without a container engine: in Debian roots made with debootstrap. Needs root.

Usage: python -m tests.docker_rehearsal [FOLDER]. Then starts the image's entry point as its user, runs its
health check, sends it a Kafka request, stops it with SIGTERM, examines franz-go with its `exam` (needs Go), and prints
the size. Exit code 0 if all of that succeeds.
"""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# ApiVersions v0, correlation id 7, client id "rehearsal": any broker answers it.
API_VERSIONS = bytes.fromhex("00000013 0012 0000 00000007 0009") + b"rehearsal"
API_NAME = re.compile(r"debian:(\w+)-slim")


KNOWN_FLAGS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(
        ("ARG", "CMD", "ENTRYPOINT", "ENV", "EXPOSE", "LABEL", "RUN", "USER", "VOLUME", "WORKDIR"), frozenset()
    ),
    "ADD": frozenset({"chown"}),
    "COPY": frozenset({"chown", "from"}),
    "FROM": frozenset({"platform"}),
    "HEALTHCHECK": frozenset({"interval", "retries", "start-period", "timeout"}),
}
"""Instructions and flags that all builders know: Docker 20 to 28 with and without BuildKit, Podman, buildah.

The reference is the classic builder (Docker's `builder/dockerfile/dispatchers.go`), which refuses all other flags.
"""


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction: its keyword in capitals, its flags (`--from=build`), the rest as written."""

    line: int
    keyword: str
    flags: tuple[str, ...]
    rest: str

    @property
    def argv(self) -> list[str] | None:
        """Return the arguments of the exec form (a JSON array), None for the shell form."""
        arguments: list[str] | None = json.loads(self.rest) if self.rest.startswith("[") else None
        return arguments

    def flag(self, name: str) -> str | None:
        """Return the value of a flag."""
        return next((flag.partition("=")[2] for flag in self.flags if flag.startswith(f"--{name}=")), None)


def read(path: Path) -> list[Instruction]:
    """Read the instructions of a file."""
    instructions: list[Instruction] = []
    pending, began = "", 0
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        began = began if pending else number
        pending += line.strip()
        if pending.endswith("\\"):
            pending = pending[:-1].rstrip() + " "
            continue
        instructions.append(instruction(pending, began))
        pending = ""
    return instructions


def instruction(text: str, line: int) -> Instruction:
    """Parse one instruction from its joined lines."""
    keyword, _, rest = text.partition(" ")
    flags = []
    while match := re.match(r"(--\S+)\s+", rest):
        flags.append(match[1])
        rest = rest[match.end() :]
    parsed = Instruction(line, keyword.upper(), tuple(flags), rest.strip())
    if parsed.keyword not in KNOWN_FLAGS:
        raise SystemExit(f"rehearsal: line {line}: unknown instruction: {parsed.keyword}")
    for flag in flags:
        if flag.removeprefix("--").partition("=")[0] not in KNOWN_FLAGS[parsed.keyword]:
            raise SystemExit(f"rehearsal: line {line}: unknown flag: {flag} (Docker 20 without BuildKit)")
    return parsed


def variables(rest: str) -> dict[str, str]:
    """Parse the variables of ENV."""
    pairs = (pair.partition("=") for pair in shlex.split(rest))
    return {name: value for name, _, value in pairs}


@dataclass
class Stage:
    """One stage of the build: its root file system and what its instructions have set so far."""

    root: Path
    env: dict[str, str] = field(default_factory=lambda: {"PATH": PATH})
    workdir: str = "/"
    user: str = "0"
    entrypoint: list[str] = field(default_factory=list)
    cmd: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)

    def command(self, argv: Sequence[str], *, user: str = "0") -> list[str]:
        """Return a command line that runs inside the root."""
        inside = ["env", "-i", *(f"{name}={value}" for name, value in {**machine_env(), **self.env}.items())]
        enter = ["sh", "-c", 'cd "$0" && exec "$@"', self.workdir, *argv]
        return ["chroot", f"--userspec={user}:{user}", str(self.root), *inside, *enter]


def machine_env() -> dict[str, str]:
    """Return the environment variables for package indexes: proxies and pip's, but no local folders."""
    kept = re.compile(r"(?i)(https?|no)_proxy|PIP_(?!FIND_LINKS|CONFIG_FILE).*")
    return {name: value for name, value in os.environ.items() if kept.fullmatch(name)}


def machine_files() -> list[Path]:
    """Return the files for package indexes: name resolution, pip's configuration and certificates."""
    paths = [Path("/etc/resolv.conf"), Path("/etc/pip.conf"), Path(os.environ.get("PIP_CERT", "/nowhere"))]
    return [path for path in paths if path.is_file()]


def log(text: str) -> None:
    """Print a line of progress."""
    sys.stdout.write(f"rehearsal: {text}\n")
    sys.stdout.flush()


def base(folder: Path, image: str) -> Path:
    """Return the root of the Debian release in the image's name, installed on first use."""
    match = API_NAME.fullmatch(image)
    if not match:
        raise SystemExit(f"rehearsal: FROM {image} is not a debian:*-slim")
    root = folder / f"base-{match[1]}"
    if not root.exists():
        log(f"debootstrap {match[1]}")
        command = ["debootstrap", "--variant=minbase", match[1], str(root)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return root


def build(folder: Path, steps: Sequence[Instruction], context: Path) -> Stage:
    """Build all stages; return the last one, which is the image."""
    stages: dict[str, Stage] = {}
    stage: Stage | None = None
    for step in steps:
        if step.keyword == "FROM":
            image, _, name = step.rest.partition(" AS ")
            root = folder / f"stage-{len(stages)}"
            subprocess.run(["cp", "-a", str(base(folder, image)), str(root)], check=True)
            stage = stages[name or str(len(stages))] = Stage(root)
            continue
        if stage is None:
            raise SystemExit("rehearsal: the first instruction is not FROM")
        log(f"{step.line}: {step.keyword} {step.rest[:90]}")
        perform(stage, step, stages, context)
    if stage is None:
        raise SystemExit("rehearsal: there is no FROM")
    return stage


def perform(stage: Stage, step: Instruction, stages: Mapping[str, Stage], context: Path) -> None:
    """Execute one instruction."""
    match step.keyword:
        case "RUN":
            run(stage, step.argv or ["sh", "-c", step.rest])
        case "COPY":
            origin = step.flag("from")
            copy(stage, step.rest.split(), stages[origin].root if origin else context)
        case "ENV":
            stage.env |= variables(step.rest)
        case "WORKDIR":
            stage.workdir = step.rest
            (stage.root / step.rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
        case "USER":
            stage.user = step.rest
        case "ENTRYPOINT":
            stage.entrypoint = step.argv or []
        case "CMD":
            stage.cmd = step.argv or []
        case "HEALTHCHECK":
            stage.health = Instruction(step.line, "CMD", (), step.rest.removeprefix("CMD").strip()).argv or []
        case "EXPOSE" | "LABEL" | "VOLUME":
            pass
        case _:
            raise SystemExit(f"rehearsal: line {step.line}: {step.keyword} is not rehearsed")


def copy(stage: Stage, paths: Sequence[str], origin: Path) -> None:
    """Execute COPY: files into a folder, a folder's contents into a folder."""
    sources, target = paths[:-1], paths[-1]
    place = stage.root / os.path.normpath(f"{stage.workdir}/{target}").lstrip("/")
    for source in sources:
        path = origin / source.lstrip("/")
        if path.is_dir():
            unwanted = shutil.ignore_patterns("__pycache__")
            shutil.copytree(path, place, symlinks=True, dirs_exist_ok=True, ignore=unwanted)
        elif target.endswith("/"):
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, place / path.name)
        else:
            shutil.copy2(path, place)


def run(stage: Stage, argv: Sequence[str]) -> None:
    """Execute RUN, with this machine's access to package indexes copied in temporarily."""
    copies = [(path, stage.root / str(path).lstrip("/")) for path in machine_files()]
    fresh = [(path, inside) for path, inside in copies if not inside.exists()]
    for path, inside in fresh:
        inside.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, inside)
    with mounted(stage.root):
        subprocess.run(stage.command(argv, user=stage.user), check=True, stdout=subprocess.DEVNULL)
    for _, inside in fresh:
        inside.unlink(missing_ok=True)


class mounted:  # noqa: N801 - reads as a sentence
    """Mounts the file systems that every container has."""

    def __init__(self, root: Path) -> None:
        self.places = [(name, root / name) for name in ("proc", "dev")]

    def __enter__(self) -> None:
        for name, place in self.places:
            subprocess.run(["mount", "--rbind", f"/{name}", str(place)], check=True)
            subprocess.run(["mount", "--make-rslave", str(place)], check=True)

    def __exit__(self, *raised: object) -> None:
        for _, place in self.places:
            subprocess.run(["umount", "--recursive", "--lazy", str(place)], check=True)


def free_port() -> int:
    """Return a port that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def play(image: Stage, *, control_off: bool = False) -> None:
    """Start the image as an engine would, with its data in the volume, and check its behaviour."""
    port = free_port()
    control = "off" if control_off else str(free_port())
    image.env |= {"UNDERSTUDY_PORT": str(port), "UNDERSTUDY_CONTROL_PORT": control, "UNDERSTUDY_DATA_DIR": "/data"}
    with mounted(image.root):
        if (
            subprocess.run(
                image.command(image.health, user=image.user), stdout=subprocess.DEVNULL, check=False
            ).returncode
            == 0
        ):
            raise SystemExit("rehearsal: healthy before it was started")
        command = image.command([*image.entrypoint, *image.cmd], user=image.user)
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            began = time.monotonic()
            for line in process.stdout or ():
                log(line.rstrip())
                if line.startswith("bootstrap.servers=" if control_off else "control="):
                    break
            else:
                raise SystemExit(f"rehearsal: it ended with {process.wait()} instead of getting ready")
            log(f"ready after {time.monotonic() - began:.2f} s")
            check_process(process.pid, image.user)
            check_version(image)
            check_kafka(port)
            began = time.monotonic()
            subprocess.run(image.command(image.health, user=image.user), check=True, stdout=subprocess.DEVNULL)
            log(f"healthy, found out within {1000 * (time.monotonic() - began):.0f} ms")
            if not (image.root / "data" / "meta.properties").exists():
                raise SystemExit("rehearsal: nothing was written to /data")
            process.send_signal(signal.SIGTERM)
            if process.wait(5) != 0:
                raise SystemExit(f"rehearsal: SIGTERM ended it with {process.returncode}")
        finally:
            process.kill()
            process.wait()
    log("stopped cleanly")


def check_process(pid: int, user: str) -> None:
    """Check that there is one process, which does not run as root."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    uid = re.search(r"^Uid:\s+(\d+)", status, re.MULTILINE)
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
    if uid is None or uid[1] != user or user == "0" or children:
        raise SystemExit(f"rehearsal: runs as {uid and uid[1]} with children {children}")
    log(f"one process, user {user}")


def check_version(image: Stage) -> None:
    """Check that the server is a compiled one."""
    command = image.command([*image.entrypoint, "--version"], user=image.user)
    version = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    if not version.endswith("(compiled)"):
        raise SystemExit(f"rehearsal: it is {version}")
    log(version)


def check_kafka(port: int) -> None:
    """Check that the server responds to ApiVersions."""
    with socket.create_connection(("127.0.0.1", port), 5) as wire:
        wire.sendall(API_VERSIONS)
        answer = wire.recv(4096)
    if answer[4:8] != API_VERSIONS[8:12]:
        raise SystemExit(f"rehearsal: the response is not Kafka's but {answer[:20]!r}")
    log("speaks Kafka")


def examine(image: Stage) -> None:
    """Examine a client library as in docs/exam.md: the driver is in a user's folder, the working directory."""
    built = [sys.executable, "-m", "tests.exam.libraries", "franz-go"]
    driver = subprocess.run(built, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    if len(driver) != 1:
        raise SystemExit(f"rehearsal: the driver of franz-go is not one file: {driver}")
    work = image.root / "work"
    work.mkdir()
    shutil.copy2(driver[0], work / "exam-driver")
    image.workdir = "/work"
    argv = [*image.entrypoint, "exam", "--only", "produce/*", "--format", "markdown", "--", "./exam-driver"]
    with mounted(image.root):
        done = subprocess.run(image.command(argv, user=image.user), capture_output=True, text=True, check=False)
    passed = done.stdout.count("| MUST | pass |")
    if done.returncode != 0 or not passed:
        raise SystemExit(f"rehearsal: the exam ended with {done.returncode}: {done.stdout[-500:]}{done.stderr[-1500:]}")
    log(f"examined franz-go: {passed} scenarios of level MUST passed")


def size(folder: Path) -> int:
    """Return the size of a folder in megabytes."""
    output = subprocess.run(["du", "-sm", str(folder)], check=True, capture_output=True, text=True).stdout
    return int(output.split()[0])


def main(argv: Sequence[str]) -> int:
    """Rehearse the Dockerfile of the repository, or of the given folder."""
    context = Path(argv[0]) if argv else ROOT
    if not (context / "Dockerfile").is_file():
        sys.stderr.write(f"rehearsal: there is no {context / 'Dockerfile'}; name a folder that has one\n")
        return 2
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        sys.stderr.write("rehearsal: needs root and debootstrap (apt-get install debootstrap)\n")
        return 2
    folder = Path(tempfile.mkdtemp(prefix="rehearsal-"))
    try:
        image = build(folder, read(context / "Dockerfile"), context)
        play(image)
        play(image, control_off=True)
        examine(image)
        unwanted = [str(image.root / name) for name in ("work", "var/cache/apt/archives")]  # Debian's images have none
        subprocess.run(["rm", "-rf", *unwanted], check=True)
        whole, bare = size(image.root), min(map(size, folder.glob("base-*")))
        log(f"{whole - bare} MB more than its base")
    finally:
        # If a mount remains, do not delete beyond this file system: it includes /dev.
        subprocess.run(["rm", "-rf", "--one-file-system", str(folder)], check=False)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
