"""What the comparison is made of: rules, differences, shortening. No broker is needed."""

from uuid import UUID

from comparison.difference import Difference, differences
from comparison.histories.generate import Generator
from comparison.histories.shrink import shrunk
from comparison.histories.topic_ids import hash_order
from comparison.known_differences import Known
from comparison.rules import Names, comparable
from protocol.apis import ApiKey

VERSIONS = dict.fromkeys(ApiKey, (0, 13))


def test_every_field_that_differs_is_reported() -> None:
    """With its path; and no other field is."""
    kafka = {"code": 0, "topics": [{"name": "a"}, {"name": "b"}], "same": [1, 2]}
    ours = {"code": 0, "topics": [{"name": "a"}, {"name": "c"}, {"name": "d"}], "same": [1, 2], "more": 1}
    found = {difference.path: (difference.kafka, difference.understudy) for difference in differences("X", kafka, ours)}
    assert found == {"topics.length": (2, 3), "topics[1].name": ("b", "c"), "more": ("(absent)", 1)}
    assert list(differences("X", {"a": True}, {"a": 1})) == [Difference("X", "a", True, 1)]


def test_what_each_cluster_draws_is_compared_by_its_order() -> None:
    """Ids, ports and the time of day get names; a text that holds them too."""
    kafka, ours = Names("h.1.", 1_700_000_000_000), Names("h.1.", 1_700_000_000_000)
    theirs = {"producer_id": 77, "port": 9092, "error_message": "h.1.t0: producerId=77", "timestamp": 1_700_000_001_000}
    mine = {"producer_id": 5, "port": 31000, "error_message": "h.1.t0: producerId=5", "timestamp": 1_700_000_001_000}
    made = comparable(kafka, "X", theirs)
    assert made == comparable(ours, "X", mine)
    assert made["error_message"] == "t0: producerId=producer-1"
    assert made["timestamp"] == "+1000"
    assert comparable(ours, "X", {"timestamp": 1_700_009_000_000, "producer_id": 6}) == {
        "timestamp": "now",
        "producer_id": "producer-2",
    }
    assert comparable(ours, "X", {"producer_id": -1, "offset": 12}) == {"producer_id": -1, "offset": 12}


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
