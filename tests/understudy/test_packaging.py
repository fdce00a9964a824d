"""The wheel: one name at the top, the rooms inside, and a server that comes out of it."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = {".html", ".css", ".js", ".svg"}
DATA = {".json", ".sql"}  # the table of releases, the queries of the audits


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the checkout without asking any index."""
    folder = tmp_path_factory.mktemp("wheel")
    build = "import hatchling.build as b, sys; print(b.build_wheel(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", build, folder], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / done.stdout.split()[-1]


def test_the_wheel_installs_one_name(wheel: Path) -> None:
    """`understudy`, with every room below understudy/_server and nothing that is not source or metadata."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"understudy"}
    rooms = {name.split("/")[2] for name in names if name.startswith("understudy/_server/")}
    wanted = ("broker", "comparison", "protocol", "storage", "pipeline")
    present = {name for name in wanted if (ROOT / name / "__init__.py").exists()}
    assert rooms == present
    ours = [Path(name) for name in names if name.startswith("understudy/")]
    assert [path for path in ours if path.suffix not in {".py", ".typed", *DATA, *PAGE}] == []
    console = {path.name for path in ours if path.suffix in PAGE}
    assert console == {path.name for path in (ROOT / "broker/control/console").iterdir() if path.suffix in PAGE}
    assert "index.html" in console


def test_a_server_comes_out_of_the_wheel(wheel: Path, tmp_path: Path) -> None:
    """Unpacked somewhere else, with a folder of the user's in front that holds a package named broker."""
    site, home = tmp_path / "site", tmp_path / "home"
    (home / "broker").mkdir(parents=True)
    (home / "broker" / "__init__.py").write_text("raise ImportError('the user\\'s own')\n")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    script = (
        f"import sys; sys.path.insert(1, {str(site)!r})\n"
        "import understudy\n"
        "with understudy.start() as kafka: print(kafka.health().status, understudy.__file__)\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (0, f"ok {site / 'understudy' / '__init__.py'}\n"), done.stderr


def test_the_constraints_are_names_and_versions() -> None:
    """No address, no path: whatever index the machine uses has them."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9.+!-]+", line)] == []
    names = [line.partition("==")[0].lower().replace("_", "-") for line in lines]
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    wanted = re.findall(r'^    "([A-Za-z0-9-]+)[>=\[]', project, re.MULTILINE)
    assert {name.lower() for name in wanted} - set(names) - {"understudy"} == set()
