"""Known differences from Apache Kafka, with their reasons. `docs/GAPS.md` has this table."""

from dataclasses import dataclass
from fnmatch import fnmatchcase

from comparison.difference import Difference


@dataclass(frozen=True, slots=True)
class Known:
    """Known difference: API and field, both behaviours, the reason, and the first version of Understudy that has it."""

    id: str
    api: str
    field: str  # a pattern of fnmatch, in which `[` and `]` are literal
    kafka: str
    understudy: str
    why: str
    since: str
    kafka_values: frozenset[object] | None = None
    understudy_values: frozenset[object] | None = None
    of_recompressed_topics: bool = False

    def covers(self, difference: Difference, *, is_recompressed: bool = False) -> bool:
        """Whether a difference is this one. `is_recompressed`: of a topic whose records the brokers compress again."""
        return (
            (is_recompressed or not self.of_recompressed_topics)
            and fnmatchcase(difference.api, self.api)
            and fnmatchcase(difference.field.replace("[]", ""), self.field.replace("[]", ""))
            and (self.kafka_values is None or difference.kafka in self.kafka_values)
            and (self.understudy_values is None or difference.understudy in self.understudy_values)
        )


KNOWN: tuple[Known, ...] = (
    Known(
        "compressed-size",
        "DescribeLogDirs",
        "results[].topics[].partitions[].partition_size",
        "the bytes that its own libraries compress to",
        "the bytes that ours compress to",
        "`compression.type` of the topic or the broker makes the broker compress again; the records are the same, the "
        "bytes are not. Sizes of other topics are compared.",
        "0.1.0",
        of_recompressed_topics=True,
    ),
    Known(
        "controller",
        "*",
        "controller_id",
        "a broker that it draws for each answer",
        "the first alive broker",
        "In KRaft no broker is the controller, and clients send its requests to any (GAPS.md).",
        "0.1.0",
        kafka_values=frozenset({1, 2, 3}),
        understudy_values=frozenset({1}),
    ),
)


def explained(difference: Difference, *, is_recompressed: bool = False) -> Known | None:
    """Return the known difference that explains a difference, if there is one."""
    return next((known for known in KNOWN if known.covers(difference, is_recompressed=is_recompressed)), None)
