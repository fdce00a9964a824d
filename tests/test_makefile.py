"""What the Makefile promises beside its targets."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_servers_started_by_make_keep_their_bytecode() -> None:
    """A container image often forbids bytecode; a server that compiles its sources at each start is twice as slow."""
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "OTHER": "kept"}
    make = ["make", "--no-print-directory", "--eval", "probe: ; @echo [$$PYTHONDONTWRITEBYTECODE] $$OTHER", "probe"]
    answer = subprocess.run(make, cwd=ROOT, env=environment, check=True, capture_output=True, text=True, timeout=120)
    assert answer.stdout.split() == ["[]", "kept"]


def test_a_served_cluster_does_not_make_clients_pause_unless_that_is_wanted(tmp_path: Path) -> None:
    """`make serve` sets UNDERSTUDY_FOR_TESTS, and keeps a value of the user's."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("understudy", '#!/bin/sh\necho "$UNDERSTUDY_FOR_TESTS $@"\n'), ("python", "")):
        (programs / name).write_text(text, encoding="utf-8")
        (programs / name).chmod(0o755)
    (tmp_path / ".server").touch()
    environment = {name: value for name, value in os.environ.items() if name != "UNDERSTUDY_FOR_TESTS"}
    for variables, value in ((), "true"), (("UNDERSTUDY_FOR_TESTS=false",), "false"):
        make = ["make", "--no-print-directory", "--silent", "serve", f"VENV={tmp_path}", *variables]
        answer = subprocess.run(
            make, cwd=ROOT, env=environment, check=True, capture_output=True, text=True, timeout=120
        )
        assert answer.stdout == f"{value} serve --port 9092 --control-port 9099\n"
