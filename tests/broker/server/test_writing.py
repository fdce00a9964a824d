"""Frames of several pieces, on Pythons with and without the defect of asyncio's ``writelines``."""

import asyncio

import pytest

from broker.server import writing

PARTS = (b"size", bytearray(b"header"), memoryview(b"records"))


class Recorded(asyncio.Transport):
    """What is written, and by which method."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = bytearray()
        self.methods: list[str] = []

    def write(self, data: object) -> None:
        """One piece."""
        assert isinstance(data, bytes | bytearray | memoryview)
        self.methods.append("write")
        self.sent += data

    def writelines(self, list_of_data: object) -> None:
        """All pieces."""
        assert isinstance(list_of_data, tuple)
        self.methods.append("writelines")
        self.sent += b"".join(list_of_data)


@pytest.mark.parametrize(("defect", "methods"), [(True, ["write"] * 3), (False, ["writelines"])])
def test_writelines_is_used_only_where_it_pauses(
    monkeypatch: pytest.MonkeyPatch, defect: bool, methods: list[str]
) -> None:
    """With CVE-2024-12254, each piece is written by itself, since ``write`` reports a full buffer."""
    monkeypatch.setattr(writing, "WRITELINES_NEVER_PAUSES", defect)
    transport = Recorded()
    writing.write_parts(transport, PARTS, join_below_bytes=17)
    assert transport.methods == methods
    assert transport.sent == b"sizeheaderrecords"


def test_small_pieces_are_joined() -> None:
    """One call of the system for a small frame."""
    transport = Recorded()
    writing.write_parts(transport, PARTS, join_below_bytes=18)
    assert transport.methods == ["write"]
    assert transport.sent == b"sizeheaderrecords"
