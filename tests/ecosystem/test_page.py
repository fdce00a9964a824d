"""docs/ecosystem.md names the versions that are tested."""

import re
from pathlib import Path

import pytest

from tests.clients.targets import ROOT
from tests.ecosystem.programs import HERE

PAGE = ROOT / "docs" / "ecosystem.md"
PINS = sorted([*HERE.glob("python/*.txt"), *HERE.glob("java/*/pom.xml"), *HERE.glob("go/*/go.mod")])


@pytest.mark.parametrize("pin", PINS, ids=lambda pin: str(pin.relative_to(HERE)))
def test_the_version_of_the_page_is_the_one_tested(pin: Path) -> None:
    """A requirements file, a pom or a module names the software first."""
    pattern_match = re.search(
        r"==(.+)|<version>([^1<][^<]*|1\..+?)</version>|^\s+\S+ v(\S+)$", pin.read_text(), re.MULTILINE
    )
    assert pattern_match is not None
    version = next(filter(None, pattern_match.groups()))
    cell = rf"\|[^|\n]*(?<![\d.]){re.escape(version)}"  # alone, or with other versions of the same software
    assert re.search(cell, PAGE.read_text(encoding="utf-8"))
