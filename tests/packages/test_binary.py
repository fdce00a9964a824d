"""The self-contained server: in a Debian root that has no Python, whole `serve` and `ctl`, with real clients."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import urllib.request
import venv
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from tests.docker_rehearsal import mounted
from tests.serving import until

ROOT = Path(__file__).resolve().parents[2]
MOST_MB = 60


def archive(folder: Path) -> Path:
    """Built as `make binary` builds it, of the installed wheel: PYTHONPATH may have a checkout, which comes first."""
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    pip: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt"]
    subprocess.run([*pip, f"{ROOT}[security]", "pyinstaller"], env=bare, check=True)
    subprocess.run([python, ROOT / "tools" / "build_binary.py", folder / "dist"], env=bare, check=True)
    (tarball,) = (folder / "dist").glob("*.tar.gz")
    return tarball


@pytest.mark.nightly
@pytest.mark.timeout(1200)
def test_the_binary_serves_in_a_root_without_python(tmp_path: Path) -> None:
    """In Debian as debootstrap makes it, as a user without rights: records through each codec, ctl, SIGTERM."""
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        pytest.fail("needs root and debootstrap (apt-get install debootstrap)")
    root = tmp_path / "root"
    tarball = archive(tmp_path)
    release = subprocess.run(["sh", "-c", ". /etc/os-release; echo $VERSION_CODENAME"], capture_output=True, check=True)
    bare = ["debootstrap", "--variant=minbase", release.stdout.decode().strip(), str(root)]
    subprocess.run(bare, check=True, stdout=subprocess.DEVNULL)
    assert [*root.glob("usr/bin/python*")] == []
    with tarfile.open(tarball) as packed:
        packed.extractall(root / "opt", filter="data")
    files = [path for path in (root / "opt").rglob("*") if path.is_file() and not path.is_symlink()]
    assert sum(path.stat().st_size for path in files) < MOST_MB * 1_000_000

    inside = ["chroot", "--userspec=65534:65534", str(root), "/opt/understudy/understudy"]
    serve = [*inside, "serve", "--port", "0", "--control-port", "0", "--topic", "orders:2", "--lifeline"]
    (root / "tmp" / "journal").mkdir(mode=0o777)
    (root / "tmp" / "journal").chmod(0o777)
    serve += ["--journal", "/tmp/journal"]
    with mounted(root):
        with subprocess.Popen(serve, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            try:
                checked(process, inside)
            finally:
                process.kill()
        refused = subprocess.run([*inside, "audit", "/data"], capture_output=True, text=True, check=False)
        journal = b"".join(path.read_bytes() for path in (root / "tmp" / "journal").rglob("*.jsonl"))
    assert b'"Produce"' in journal
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "audit is not part of the self-contained binary" in refused.stderr


def checked(process: "subprocess.Popen[str]", inside: list[str]) -> None:
    """A server that has been started: records, the shell's verbs, the console's page, SIGTERM."""
    printed = banner(process)
    clients(printed["bootstrap.servers"])
    control = printed["control"]
    listed = subprocess.run(
        [*inside, "ctl", "--control", control, "--json", "topics", "show", "orders"],
        capture_output=True,
        check=True,
    )
    assert len(json.loads(listed.stdout)["partitions"]) == 2
    with urllib.request.urlopen(f"{control}/") as page:  # noqa: S310 - on loopback
        assert b"<title>" in page.read()
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0


def banner(process: "subprocess.Popen[str]") -> dict[str, str]:
    """The addresses that a server prints when it is ready."""
    addresses: dict[str, str] = {}
    for line in process.stdout or ():
        name, _, value = line.strip().partition("=")
        addresses[name] = value
        if name == "control":
            return addresses
    raise AssertionError(f"it ended with {process.wait()} instead of getting ready")


def clients(servers: str) -> None:
    """A record in each codec, read by a group."""
    codecs = ["none", "gzip", "snappy", "lz4", "zstd"]
    for codec in codecs:
        producer = Producer({"bootstrap.servers": servers, "compression.type": codec})
        producer.produce("orders", codec.encode() * 100)
        assert producer.flush(60) == 0
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    values = [until(lambda: consumer.poll(0.1), "a record").value() for _ in codecs]
    consumer.close()
    assert sorted(filter(None, values)) == sorted(codec.encode() * 100 for codec in codecs)


def test_the_binary_is_built_of_a_wheel_only() -> None:
    """From a checkout, the tool refuses with a sentence that has the command."""
    tool = [sys.executable, str(ROOT / "tools" / "build_binary.py"), "unused"]
    done = subprocess.run(tool, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install ." in done.stderr
