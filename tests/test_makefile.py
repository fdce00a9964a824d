"""What the Makefile promises beside its targets."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_servers_started_by_make_keep_their_bytecode() -> None:
    """A container image often forbids bytecode; a server that compiles its sources at each start is twice as slow."""
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "OTHER": "kept"}
    make = ["make", "--no-print-directory", "--eval", "probe: ; @echo [$$PYTHONDONTWRITEBYTECODE] $$OTHER", "probe"]
    answer = subprocess.run(make, cwd=ROOT, env=environment, check=True, capture_output=True, text=True, timeout=30)
    assert answer.stdout.split() == ["[]", "kept"]
