"""The wheel: one name at the top, the server's packages inside, and a server that starts from it."""

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from understudy.server_path import ALL_PACKAGES, SERVER_PACKAGES

ROOT = Path(__file__).resolve().parents[2]
PAGE = {".html", ".css", ".js", ".svg"}
DATA = {
    ".json",
    ".sql",
    ".txt",
    ".pem",
}  # releases, the queries of the audits, the order of settings, the exam's certificates


def build(kind: str, source: Path, folder: Path) -> Path:
    """Build an archive with the declared backend, without asking any index."""
    code = f"import hatchling.build as b, sys; print(b.build_{kind}(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", code, folder], cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / done.stdout.split()[-1]


def bare() -> dict[str, str]:
    """The environment without PYTHONPATH, by which a checkout could be imported instead of what is installed."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, as a release makes it: from the source archive, not from the checkout."""
    folder = tmp_path_factory.mktemp("release")
    with tarfile.open(build("sdist", ROOT, folder)) as archive:
        archive.extractall(folder, filter="data")
    (source,) = [path for path in folder.iterdir() if path.is_dir()]
    return build("wheel", source, folder)


def test_the_wheel_installs_one_name(wheel: Path) -> None:
    """`understudy`, with the server's packages and the specification below understudy/_server; sources and metadata."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"understudy"}
    packages = {name.split("/")[2] for name in names if name.startswith("understudy/_server/")}
    assert packages == {*SERVER_PACKAGES, "docs"}
    ours = [Path(name) for name in names if name.startswith("understudy/")]
    rules = {path for path in ours if path.is_relative_to("understudy/_server/docs/specification")}
    assert {path.suffix for path in rules} == {".md"}
    assert len(rules) == len(list((ROOT / "docs" / "specification").rglob("*.md")))
    ours = [path for path in ours if path not in rules]
    assert [path for path in ours if path.suffix not in {".py", ".typed", *DATA, *PAGE}] == []
    pages = {path.name for path in ours if path.suffix in PAGE}
    folders = (ROOT / "broker/control/console", ROOT / "pipeline/rendering/templates")
    assert pages == {path.name for folder in folders for path in folder.iterdir() if path.suffix in PAGE}
    assert {"index.html", "page.html"} <= pages


def test_a_server_comes_out_of_the_wheel(wheel: Path, tmp_path: Path) -> None:
    """Unpacked somewhere else, with a folder of the user's in front that holds a package named broker."""
    site, home = tmp_path / "site", tmp_path / "home"
    (home / "broker").mkdir(parents=True)
    (home / "broker" / "__init__.py").write_text("raise ImportError('the user\\'s own')\n")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)  # noqa: S202 - just built from this checkout
    script = (
        f"import sys; sys.path.insert(1, {str(site)!r})\n"
        "import understudy\n"
        "with understudy.start() as kafka: print(kafka.health().status, understudy.__file__)\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=home, env=bare(), capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, f"ok {site / 'understudy' / '__init__.py'}\n"), done.stderr


def test_an_installed_wheel_serves(wheel: Path, tmp_path: Path) -> None:
    """In an environment of its own, by the command that it installs, answered by its own `ctl`."""
    home = tmp_path / "environment"
    venv.create(home, symlinks=True, with_pip=False)
    (site,) = home.glob("lib/python*/site-packages")
    install = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python"), "install"]
    subprocess.run([*install, "--quiet", "--no-deps", "--no-index", wheel], cwd=tmp_path, check=True)
    # What it depends on comes from the environment of the tests, after its own site-packages.
    (site / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    code = (
        "import understudy\n"
        "with understudy.start(topics={'orders': 3}) as kafka: print(kafka.topics['orders'].show().name)\n"
        "print(understudy.__file__)\n"
    )
    command = [str(home / "bin" / "python"), "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=bare(), capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, f"orders\n{site / 'understudy' / '__init__.py'}\n"), done.stderr
    answer = subprocess.run([home / "bin" / "understudy", "--version"], capture_output=True, text=True, check=True)
    assert answer.stdout.split()[0] == "understudy"


def test_every_list_of_packages_is_the_same() -> None:
    """The image, the import contracts and `understudy.server_path` name the same packages."""
    copied = re.findall(r"^COPY (\w+) \1$", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(copied) == set(ALL_PACKAGES)
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").split() if line[0] == "!"}
    assert {*ALL_PACKAGES, "hatch_build.py"} <= allowed
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert set(project["tool"]["importlinter"]["root_packages"]) == set(ALL_PACKAGES)
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"benchmarks", "tests"}
    assert packages == set(ALL_PACKAGES)


def test_no_document_has_people_install_another_project() -> None:
    """`understudy` on the package index is another project: documents and messages name `understudy-kafka`."""
    stranger = re.compile(r"""\b(?:install|add)\b[^#]*["' ]understudy(?![\w/.-])(?! serve)|\bunderstudy\[[a-z]""")
    for text in ("pip install 'understudy[spark]'", "uv add understudy", "pip install -U understudy"):
        assert stranger.search(text)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    wrong = []
    for name in filter(None, listed.split("\0")):
        text = (ROOT / name).read_text(encoding="utf-8", errors="replace") if (ROOT / name).is_file() else ""
        own = name in {"tests/understudy/test_packaging.py", "tests/understudy/test_ctl.py"}
        wrong += [f"{name}:{n}" for n, line in enumerate(text.splitlines(), 1) if stranger.search(line) and not own]
    assert wrong == []
    assert tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"] == "understudy-kafka"


def test_the_constraints_are_names_and_versions() -> None:
    """No address, no path: they come from the index that the machine uses."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9.+!-]+", line)] == []
    names = [line.partition("==")[0].lower().replace("_", "-") for line in lines]
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    wanted = re.findall(r'^    "([A-Za-z0-9-]+)[>=\[]', project, re.MULTILINE)
    assert {name.lower() for name in wanted} - set(names) - {"python", "understudy-kafka"} == set()


def test_an_older_python_is_refused_in_one_sentence(wheel: Path) -> None:
    """Before pip resolves anything: by the build of a checkout or source archive, and by a wheel's first dependency."""
    code = (
        "import runpy, sys; sys.version_info = (3, 10, 1); sys.version = '3.10.1 x'; runpy.run_path('hatch_build.py')"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"Understudy needs Python 3.11 or newer, and this is 3.10.1 ({sys.executable}); ")
    assert done.stderr.count("\n") == 1
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        required = re.findall(r"^Requires-Dist: (.*)$", archive.read(metadata).decode(), re.MULTILINE)
    assert "python==3.11+or.newer; python_version < '3.11'" in required
