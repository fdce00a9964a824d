"""Rows of `benchmarks.scale` at several sizes."""

from benchmarks.row import Figure, ScaleRow


def _cost(name: str, title: str, unit: str = "us") -> Figure:
    return Figure(name, title, unit, "lower")


_PRODUCE = _cost("produce_us", "produce one record")
_IDLE = _cost("idle_ms", "idle, each second", "ms")

ROWS = (
    ScaleRow(
        "scale_partitions",
        "Partitions, ten a topic",
        "partition",
        (10, 100, 1000, 10_000, 20_000),
        (
            _cost("create_us", "create one"),
            _cost("metadata_us", "metadata of all, each"),
            _cost("one_metadata_us", "metadata of one topic"),
            _PRODUCE,
            _IDLE,
        ),
    ),
    ScaleRow(
        "scale_connections",
        "Connections",
        "connection",
        (10, 100, 1000, 5000),
        (_cost("request_us", "one request, all of them asking"), _IDLE),
    ),
    ScaleRow(
        "scale_members",
        "Members of one group",
        "member",
        (2, 10, 100, 1000),
        (_cost("rebalance_us", "a whole rebalance, each member"), _cost("heartbeat_us", "one heartbeat"), _IDLE),
    ),
    ScaleRow(
        "scale_transactions",
        "Transactional ids, each with an open transaction",
        "transaction",
        (10, 100, 1000, 10_000, 100_000),
        (
            _cost("open_us", "a new id and its first transaction"),
            _cost("commit_us", "another id: add a partition, commit"),
            _PRODUCE,
            _IDLE,
        ),
    ),
    ScaleRow(
        "scale_brokers",
        "Brokers in the process",
        "broker",
        (1, 3, 5, 9),
        (
            _PRODUCE,
            _cost("replicated_us", "produce one record with a replica on each broker, each replica"),
            _cost("start_ms", "start of the cluster", "ms"),
            _IDLE,
        ),
    ),
    ScaleRow(
        "scale_journal",
        "Journal off (0) and on (100,000 requests)",
        "request",
        (0, 100_000),
        (_PRODUCE, _cost("fetch_us", "fetch from the log's start")),
    ),
)
