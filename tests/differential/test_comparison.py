"""What the comparison is made of: rules, differences, shortening. No broker is needed."""

from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from comparison.difference import Difference, differences
from comparison.exchange import Pair
from comparison.histories import fields, shares
from comparison.histories.drawing.fields import PLAYED
from comparison.histories.generate import KINDS, Generator
from comparison.histories.multi_broker import spread
from comparison.histories.shrink import shrunk
from comparison.histories.topic_ids import hash_order
from comparison.known_differences import Known
from comparison.rules import Names, comparable
from comparison.target import Target
from protocol.apis import ApiKey
from protocol.codec import encode_request, known_versions
from protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tests.differential.kinds import with_run
from tests.differential.row_tables import ranges

VERSIONS = dict.fromkeys(ApiKey, (0, 13))


def test_every_field_that_differs_is_reported() -> None:
    """With its path; and no other field is."""
    kafka = {"code": 0, "topics": [{"name": "a"}, {"name": "b"}], "same": [1, 2]}
    ours = {"code": 0, "topics": [{"name": "a"}, {"name": "c"}, {"name": "d"}], "same": [1, 2], "more": 1}
    by_path = {
        difference.path: (difference.kafka, difference.understudy) for difference in differences("X", kafka, ours)
    }
    assert by_path == {"topics.length": (2, 3), "topics[1].name": ("b", "c"), "more": ("(absent)", 1)}
    assert list(differences("X", {"a": True}, {"a": 1})) == [Difference("X", "a", True, 1)]


def test_what_each_cluster_draws_is_compared_by_its_order() -> None:
    """Ids, ports and the time of day get names; a text that holds them too."""
    kafka, ours = Names("h.1.", 1_700_000_000_000), Names("h.1.", 1_700_000_000_000)
    theirs = {"producer_id": 77, "port": 9092, "error_message": "h.1.t0: producerId=77", "timestamp": 1_700_000_001_000}
    mine = {"producer_id": 5, "port": 31000, "error_message": "h.1.t0: producerId=5", "timestamp": 1_700_000_001_000}
    named = comparable(kafka, "X", theirs)
    assert named == comparable(ours, "X", mine)
    assert named["error_message"] == "t0: producerId=producer-1"
    text = "Initialize share group parameters has invalid partitionId - h.1.g {} -1"
    shown = comparable(kafka, "X", {"error_message": text.format("fHoZefEaSuKWBFyOI7GmIQ")})
    assert shown == comparable(ours, "X", {"error_message": text.format("T0skW3kaRASbHJnfRvv7MA")})
    assert shown["error_message"].endswith("- g topic-1 -1")
    assert named["timestamp"] == "+1000"
    assert comparable(ours, "X", {"timestamp": 1_700_009_000_000, "producer_id": 6}) == {
        "timestamp": "now",
        "producer_id": "producer-2",
    }
    assert comparable(ours, "X", {"producer_id": -1, "offset": 12}) == {"producer_id": -1, "offset": 12}


def test_a_time_that_no_clock_shows_is_compared_as_it_is() -> None:
    """A cluster that leaves a time at 0, or counts it in seconds, is not like one that answers with its clock."""
    names = Names("h.1.", 1_700_000_000_000)
    clock = {"log_append_time_ms": 1_700_003_600_123, "error_message": "the range is [1700003600123, 1700608400123]"}
    assert comparable(names, "X", clock) == {"log_append_time_ms": "now", "error_message": "the range is [now, now]"}
    for odd in (0, 1, 1_700_003_600, 1_700_003_600_123_000):
        assert comparable(names, "X", {"log_append_time_ms": odd}) == {"log_append_time_ms": odd}


def test_the_order_of_a_list_counts_unless_a_rule_exempts_it() -> None:
    """Metadata's topics come out of a hash map; records do not."""
    names = Names()
    topics = [{"name": "b", "topic_id": "two"}, {"name": "a", "topic_id": "one"}]
    assert [each["name"] for each in comparable(names, "Metadata", {"topics": topics})["topics"]] == ["a", "b"]
    assert [each["name"] for each in comparable(names, "Fetch", {"topics": topics})["topics"]] == ["b", "a"]


def test_an_entry_of_the_ledger_explains_what_it_names_and_nothing_else() -> None:
    """By API, field and the values of each side."""
    entry = Known("x", "Produce", "responses[].code", "1", "2", "why", "0.1", kafka_values=frozenset({1}))
    assert entry.covers(Difference("Produce", "responses[4].code", 1, 2))
    assert not entry.covers(Difference("Produce", "responses[4].code", 3, 2))
    assert not entry.covers(Difference("Produce", "responses[4].text", 1, 2))
    assert not entry.covers(Difference("Fetch", "responses[4].code", 1, 2))


def _sized(size: int) -> dict[str, Any]:
    partition = {"partition_index": 0, "partition_size": size}
    return {"results": [{"topics": [{"name": "h.1.t0", "partitions": [partition]}]}]}


CREATED = CreateTopicsRequest([CreatableTopic("h.1.t0", configs=[CreatableTopicConfig("compression.type", "zstd")])])


def _altered(kind: int, name: str, value: str) -> AlterConfigsRequest:
    return AlterConfigsRequest([AlterConfigsResource(kind, name, [AlterableConfig("compression.type", value)])])


@pytest.mark.parametrize(
    ("request_", "recompresses", "is_known"),
    [
        (None, False, False),
        (None, True, True),
        (CREATED, False, True),
        (_altered(2, "h.1.t0", "gzip"), False, True),
        (_altered(2, "h.1.t1", "gzip"), False, False),
        (_altered(2, "h.1.t0", "producer"), False, False),
        (_altered(2, "h.1.t0", "uncompressed"), False, False),
        (_altered(4, "1", "lz4"), False, True),
    ],
)
def test_a_size_may_differ_where_brokers_compress_again(request_: Any, recompresses: bool, is_known: bool) -> None:
    """Of a topic with a codec in its settings, or with one in the broker's; any other size has to be the same."""
    targets = [SimpleNamespace(names=Names("h.1.", 1_700_000_000_000)) for _ in range(2)]
    pair = Pair(*cast("list[Target]", targets), recompresses=recompresses)
    if request_ is not None:
        pair.note(request_)
    differences = pair.compare("0", "DescribeLogDirs", [_sized(70), _sized(71)])
    assert [each.path for each in differences] == (
        [] if is_known else ["results[0].topics[0].partitions[0].partition_size"]
    )
    assert pair.met == ({"compressed-size": 1} if is_known else {})


def test_a_seed_makes_the_same_history_again() -> None:
    """Another seed makes another history."""
    first, again, other = (Generator(VERSIONS, seed).history(40) for seed in (1, 1, 2))
    assert len(first) == 40
    assert first == again != other


def test_a_history_is_shortened_to_the_steps_that_matter() -> None:
    """The shortest is found with few plays."""
    steps = [{"do": "x", "n": number} for number in range(40)]
    plays = 0

    def shows(tried: object) -> bool:
        nonlocal plays
        plays += 1
        return {3, 29}.issubset({step["n"] for step in tried})  # type: ignore[attr-defined]

    assert [step["n"] for step in shrunk(steps, shows)] == [3, 29]
    assert plays < 80


def test_topic_ids_have_orders_in_hash_tables() -> None:
    """Of two partitions either may come first; what the high half of the hash does to the low bits decides."""
    orders = {tuple(hash_order(UUID(int=number), 2)[0]) for number in (0, 1 << 16)}
    assert orders == {(0, 1), (1, 0)}


def test_histories_of_ends_have_restarts_queues_and_lost_connections() -> None:
    """As many restarts as asked for; over a hundred seeds all that ends."""
    histories = [KINDS["share_ends"](VERSIONS, seed).history(40, restarts=2) for seed in range(100)]
    assert all(sum(step["do"] == "restart" for step in steps) == 2 for steps in histories)
    done = {step["do"] for steps in histories for step in steps}
    assert {"disconnect", "share_member_ends", "share_ack", "group_config", "create_topic", "delete_topic"} <= done
    named = {step.get("queue") for steps in histories for step in steps if step["do"] == "group_config"}
    assert {"d0", "=__internal", "=outside-the-prefix"} <= named
    assert not any(step["do"] == "disconnect" for step in KINDS["share"](VERSIONS, 1).history(400))


def test_topics_of_several_brokers_have_their_replicas_assigned() -> None:
    """Otherwise each cluster places them by chance; numbers that are refused stay as they are."""
    step = {
        "do": "create_topics",
        "topics": [
            {"topic": "t0", "partitions": 2, "factor": 1},
            {"topic": "t1", "partitions": 0, "factor": 1},
            {"topic": "t2", "partitions": -1, "factor": -1},
        ],
    }
    more = {"do": "create_more", "topics": [["t0", 4, None], ["t2", 1, None]]}
    created, grown = spread([step, more], 1, 3)
    first, refused, by_default = created["topics"]
    assert [index for index, _ in first["assign"]] == [0, 1]
    assert all(set(replicas) <= {1, 2, 3} for _, replicas in first["assign"])
    assert (first["partitions"], first["factor"]) == (-1, -1)
    assert refused == step["topics"][1]
    assert len(by_default["assign"]) == 1
    assert [len(assign) for _, _, assign in grown["topics"]] == [2, 1]


def test_a_run_is_kept_once() -> None:
    """Its counts are added; seeds that were kept before are refused."""
    run = {"seeds": [[0, 5]], "histories": 5, "steps": 200, "found": [{"steady": True}, {"steady": False}]}
    first = with_run(
        {"runs": [], "seen": [["Fetch", 4, "NONE", 2]]}, {**run, "seen": [["Fetch", 4, "NONE", 3]]}, "share", 0, 1
    )
    assert first["seen"] == [["Fetch", 4, "NONE", 5]]
    assert (first["runs"][0]["steady"], first["runs"][0]["once"]) == (1, 1)
    other_kind = with_run(first, {**run, "seen": []}, "share", 1, 1)
    assert len(other_kind["runs"]) == 2
    with pytest.raises(ValueError, match="kept already"):
        with_run(first, {**run, "seeds": [[4, 6]], "seen": []}, "share", 0, 1)


def test_versions_are_listed_as_ranges() -> None:
    """Neighbouring versions are listed as a range."""
    assert ranges({0, 1, 2, 5, 7, 8}) == "0-2, 5, 7-8"
    assert ranges(set()) == ""


def test_partitions_that_are_not_loaded_are_fetched_one_by_one() -> None:
    """Of several, chance decides which one Kafka loads first; those that are only acknowledged count (seed -929825)."""
    target = Target("localhost:1", topics={"t1": UUID(int=7)})
    step = {"do": "share_fetch", "v": 1, "c": "1", "group": "h0", "member": "S0", "epoch": "own", "topics": []}
    step |= {"max_records": 1, "batch_size": 2, "acks": [["t1", 0, "each", [1, 2]], ["t1", 1, "first", [2]]]}
    request = shares.fetch(target, step).request
    assert [len(topic.partitions) for topic in request.topics] == [1]
    target.shared.update({("h0", (UUID(int=7), partition)) for partition in (0, 1)})
    request = shares.fetch(target, step).request
    assert [len(topic.partitions) for topic in request.topics] == [2]


def test_each_value_that_is_drawn_for_a_field_can_be_sent() -> None:
    """Of each API that is played, in the versions that both have, with the symbols that a cluster replaces."""
    versions = {key: both for key in ApiKey if (both := known_versions(key)) is not None}
    sent = set()
    for seed in range(40):
        for step in KINDS["fields"](versions, seed).history(40):
            if step["do"] == "fields":
                request = fields.fields(Target("localhost:1"), step)
                assert encode_request(request.key, request.version, 1, "compare", request.request)
                sent.add(request.key)
    assert sent == set(PLAYED)
