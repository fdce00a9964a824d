"""Topologies of streams groups, in the form of steps: valid ones, and ones that a coordinator refuses.

How numbers are chosen: `pieces`.
"""

from collections.abc import Mapping
from typing import Any

Topology = Mapping[str, Any]
COMPACTED = {"cleanup.policy": "compact"}


def _stored(*names: str, partitions: int = 0) -> list[list[Any]]:
    """Return changelog topics in the form of steps."""
    return [[name, partitions, 0, COMPACTED] for name in names]


SOUND: tuple[Topology, ...] = tuple(
    {"epoch": 0, "subtopologies": subtopologies}
    for subtopologies in (
        [{"id": "0", "sources": ["t0"]}],
        [{"id": "0", "sources": ["t0"], "changelogs": _stored("c0")}],
        [
            {"id": "0", "sources": ["t0"], "sinks": ["r0"]},
            {"id": "1", "repartitions": [["r0", 0, 0, {}]], "changelogs": _stored("c1")},
        ],
        [
            {
                "id": "0",
                "sources": ["t0", "t1"],
                "changelogs": _stored("c0", "c1"),
                "copartitions": [[[0, 1], []]],
            }
        ],
        [
            {"id": "0", "sources": ["t0"]},
            {"id": "1", "sources": ["t1"], "changelogs": _stored("c1")},
        ],
        [
            {"id": "0", "sources": ["t1"], "sinks": ["r0"]},
            {
                "id": "1",
                "sources": ["t0"],
                "repartitions": [["r0", 0, 1, {"retention.ms": "-1"}]],
                "changelogs": _stored("c1"),
                "copartitions": [[[0], [0]]],
            },
        ],
        [
            {"id": "a", "sources": ["t0"], "sinks": ["r1", "r0"]},
            {
                "id": "b",
                "repartitions": [["r0", 2, 0, {}], ["r1", 0, 0, {}]],
                "changelogs": _stored("c1", "c0"),
                "copartitions": [[[], [0, 1]]],
            },
        ],
        [
            {"id": "0", "sources": ["t0"], "sinks": ["r0"], "changelogs": _stored("c0")},
            {"id": "1", "repartitions": [["r0", 3, 0, {}]], "sinks": ["r1"], "changelogs": _stored("c1")},
            {"id": "2", "sources": ["t1"], "repartitions": [["r1", 0, 0, {}]]},
        ],
        [
            {"id": "0", "sources": ["t0"], "sinks": ["r0", "r1", "r2"], "changelogs": _stored("c0", "c1", "c2", "c3")},
            {"id": "10", "repartitions": [["r1", 0, 0, {}]], "sinks": ["r3"], "changelogs": _stored("c4", "c5", "c6")},
            {"id": "2", "repartitions": [["r0", 0, 0, {}], ["r2", 0, 0, {}]], "changelogs": _stored("c7", "c8")},
            {"id": "é", "repartitions": [["r3", 5, 0, {}]], "changelogs": _stored("c9")},
        ],
    )
)
ODD: tuple[Topology, ...] = (
    {"epoch": 1, "subtopologies": SOUND[0]["subtopologies"]},
    {"epoch": -1, "subtopologies": SOUND[0]["subtopologies"]},
    *(
        {"epoch": 0, "subtopologies": subtopologies}
        for subtopologies in (
            [],
            [{"id": "0"}],
            [{"id": "", "sources": ["t0"]}],
            [{"id": "0", "sources": ["t0"]}, {"id": "0", "sources": ["t1"]}],
            [{"id": "0", "sources": ["t0"]}, {"id": "1", "sources": ["t0"]}],
            [{"id": "0", "sources": ["t0", "t0"]}],
            [{"id": "0", "sources": ["t0"], "changelogs": _stored("c0", partitions=2)}],
            [{"id": "0", "sources": ["t0"], "changelogs": _stored("t1")}],
            [{"id": "0", "sources": ["t0"], "regex": ["t.*"]}],
            [{"id": "0", "sources": ["t0", "t9", "t8", "t7", "t6"]}],
            [{"id": "0", "sources": ["=__consumer_offsets"]}],
            [{"id": "0", "sources": ["=bad name", "=", "t0"]}],
            [{"id": "0", "changelogs": _stored("c0")}],
            [{"id": "0", "sources": ["t0"]}, {"id": "1", "repartitions": [["r0", 0, 0, {}]]}],
            [{"id": "0", "sources": ["t0"]}, {"id": "1", "repartitions": [["r9", 2, 0, {}]]}],
            [
                {"id": "0", "repartitions": [["r0", 0, 0, {}]], "sinks": ["r1"]},
                {"id": "1", "repartitions": [["r1", 0, 0, {}]], "sinks": ["r0"]},
            ],
            [{"id": "0", "sources": ["t0"], "copartitions": [[[0, 3], []]]}],
            [{"id": "0", "sources": ["t0"], "copartitions": [[[], []]]}],
            [{"id": "0", "sources": ["t0"], "copartitions": [[[-1], []]]}],
            [{"id": "0", "sources": ["t0"], "copartitions": [[[0], [0]]]}],
            [{"id": "0", "sources": ["t0"], "changelogs": _stored("c0", "c0")}],
            [
                {
                    "id": "0",
                    "sources": ["t0"],
                    "changelogs": [["c0", 0, 0, [["retention.ms", "1"], ["retention.ms", "2"]]]],
                }
            ],
            [{"id": "0", "sources": ["t0"], "sinks": ["r0"]}, {"id": "1", "repartitions": [["r0", 0, 0, {}]] * 2}],
            [{"id": "0", "sources": ["t0"], "sinks": ["t0"]}],
            [{"id": "0", "sources": ["t0", "r0"], "sinks": ["r0"]}, {"id": "1", "repartitions": [["r0", -1, 0, {}]]}],
            [{"id": "0", "sources": ["t0"], "repartitions": [["t1", 2, 0, {}]]}],
            [{"id": "0", "sources": ["t0", "t1", "t2"], "copartitions": [[[0, 1], []], [[1, 2], []]]}],
            [{"id": "0", "sources": ["t0"], "changelogs": [["c9", 0, 3, {}], ["c8", 0, -1, {"no.such": "1"}]]}],
        )
    ),
)
