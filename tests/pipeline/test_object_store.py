"""Logs and exports in an object store: Arrow's S3 client against a server of that protocol on this machine."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.reading import read_segments
from tests.pipeline import log_faults
from tests.pipeline.fault_files import Planting
from tests.pipeline.s3_server import s3_server

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(1200), pytest.mark.xdist_group("spark")]

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """A folder whose folders are buckets, and the environment in which `s3://` means it."""
    folder = tmp_path / "store"
    (folder / "bucket").mkdir(parents=True)
    with s3_server(folder) as url:
        yield (
            folder,
            {
                "AWS_ENDPOINT_URL": url,
                "AWS_ACCESS_KEY_ID": "key",
                "AWS_SECRET_ACCESS_KEY": "secret",
                "AWS_REGION": "us-east-1",
            },
        )


def understudy(environment: dict[str, str], *arguments: str) -> tuple[int, str]:
    """Run a command; its exit code, and its output."""
    done = subprocess.run(
        [sys.executable, "-m", "understudy", *arguments, "--master", "local[2]"],
        capture_output=True, text=True, check=False, timeout=400, cwd=ROOT,
        env={**os.environ, **environment, "SPARK_LOCAL_IP": "127.0.0.1"},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_logs_and_exports_may_lie_in_an_object_store(tmp_path: Path, store: tuple[Path, dict[str, str]]) -> None:
    """An audit of s3:// finds a flipped bit and nothing before; an export from there to there is loaded from there."""
    folder, environment = store
    where = Planting(folder / "bucket" / "data")
    log_faults.clean(where)
    data = where.close()
    code, output = understudy(environment, "audit", "s3://bucket/data")
    assert code == 0, output
    code, output = understudy(environment, "export", "s3://bucket/data", "s3://bucket/out")
    assert code == 0, output
    exported = re.search(r"(\d+) records of (\d+) topics", output)
    topics = {path.name.rpartition("-")[0] for path in data.glob("[!_]*-*/")}
    committed = read_segments(data, topics=sorted(topics), isolation="read_committed")
    assert exported is not None
    assert int(exported[1]) == sum(rows.num_rows for rows in committed) > 50
    assert (folder / "bucket" / "out" / "_manifest.json").exists()
    code, output = understudy(environment, "load", "s3://bucket/out", "--to", str(tmp_path / "again"))
    assert code == 0, output
    assert f"{exported[1]} records of {exported[2]} topics" in output
    log = next(path for path in sorted((data / "orders-0").glob("*.log")) if path.stat().st_size)
    log.write_bytes(log.read_bytes()[:-1] + b"\xff")
    code, output = understudy(environment, "audit", "s3://bucket/data", "--only", "batch-crc")
    assert (code, "batch-crc" in output) == (1, True), output
