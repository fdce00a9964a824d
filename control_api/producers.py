"""Verbs about producer ids."""

from typing import Literal, TypedDict

from control_api.fields import Int64
from control_api.verb import PARTITION, Verb


class ProducerForgotten(TypedDict):
    """A producer id whose state the partition has removed."""

    producer_id: Int64
    forgotten: Literal[True]


VERBS = (
    Verb("producers list", "GET", "/v1/producers", "producers.list()", "all producer ids, idempotent and transactional",
         answer="producers.Producers", items="producers",
         columns=("producer_id", "producer_epoch", "transactional_id", "client_id", "partitions")),
    Verb("producers show", "GET", "/v1/producers/{producer_id}", "producers[id].show()",
         "state of a producer id in each partition, and its timeline", answer="producers.ProducerLife",
         items="timeline",
         columns=("at_ms", "event", "partition", "epoch_before", "epoch_after", "first_sequence", "last_sequence",
                  "error", "citation")),
    Verb("producers why", "GET", "/v1/producers/{producer_id}/why", "producers[id].why()",
         "explanation of the last refusal", answer="common.Refusal"),
    Verb("producers forget", "DELETE", f"{PARTITION}/producers/{{producer_id}}",
         "topics[topic].partitions[partition].forget_producer(producer_id)",
         "remove a producer's state from a partition; clients recover by KIP-360", answer=ProducerForgotten),
)  # fmt: skip
