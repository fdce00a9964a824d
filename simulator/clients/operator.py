"""An operator who aborts hanging transactions (``kafka-transactions.sh abort``, KIP-664) and creates topics."""

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from simulator.clients.client import RETRIABLE, Client, Lost
from simulator.history import Place

_TRIES = 20  # while a leader is away; faults last seconds; ours, with pauses some seconds


class Operator(Client):
    """Writes markers to partition leaders, and creates internal topics of streams groups."""

    async def abort(self, place: Place, producer_id: int, epoch: int, coordinator_epoch: int) -> None:
        """Abort a producer's transaction in one partition, with the epochs that DescribeProducers returns."""
        topics = [WritableTxnMarkerTopic(place[0], [place[1]])]
        marker = WritableTxnMarker(producer_id, epoch, False, topics, max(coordinator_epoch, 0), 0)
        what = f"abort of producer {producer_id} in {place[0]}-{place[1]}"
        for _ in range(_TRIES):
            try:
                leader = await self.leader(place)
                answer = await self.ask(leader, ApiKey.WRITE_TXN_MARKERS, 2, WriteTxnMarkersRequest([marker]), what)
            except Lost:
                await self.pause()
                continue
            ((result,),) = [each.topics for each in answer.markers]
            code: ErrorCode = result.partitions[0].error_code
            if code is ErrorCode.NONE:
                return
            if code not in RETRIABLE:
                self.history.violate(f"{self.name}: {what} got {code.name}")
                return
            self.forget_leader(place)
            await self.pause()
        self.history.violate(f"{self.name}: {what} does not succeed")

    async def create(self, topic: CreatableTopic) -> None:
        """Create a topic that a streams group needs, with the partitions and settings that it asks for."""
        answer = await self.ask_any(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([topic]), topic.name)
        code: ErrorCode = answer.topics[0].error_code
        if code not in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}:
            self.history.violate(f"{self.name}: creation of {topic.name} got {code.name}")
