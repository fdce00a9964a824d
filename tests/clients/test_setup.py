"""setup.sh makes each part once, however many drivers ask for it at the same time."""

import os
import subprocess
from pathlib import Path

SETUP = Path(__file__).with_name("setup.sh")

# A python3 whose `venv --clear` empties the folder as the real one does, and then writes down how many locks are left.
PYTHON = """#!/usr/bin/env bash
case "$*" in
    "-m venv --clear "*)
        folder=${@: -1}
        rm -rf "$folder"; mkdir -p "$folder/bin"
        printf '#!/bin/sh\\n' > "$folder/bin/python"; chmod +x "$folder/bin/python"
        locks=$(find "$INTEROP_CACHE" -name "*$(basename "$folder")*.lock" | wc -l)
        echo "made $(basename "$folder"), locked: $locks" >> "$STORY" ;;
esac
"""


def test_an_environment_is_made_once_and_stays_locked_while_it_is(tmp_path: Path) -> None:
    """Its lock outlives the emptying of its folder: else a second driver would begin again while the first is at it."""
    tools, cache, story = tmp_path / "bin", tmp_path / "cache", tmp_path / "story"
    tools.mkdir()
    (tools / "python3").write_text(PYTHON)
    (tools / "python3").chmod(0o755)
    path = f"{tools}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "INTEROP_CACHE": str(cache), "STORY": str(story)}

    for _ in range(2):
        subprocess.run(["bash", SETUP, "python"], env=environment, check=True, capture_output=True, timeout=30)

    assert story.read_text().splitlines() == ["made confluent-2.3, locked: 1", "made kafka-python, locked: 1"]
