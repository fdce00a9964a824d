"""The client and the commands start their servers here as they do for a user: each in a fresh interpreter."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def forked_starts() -> None:
    """Nothing is forked."""
