"""What is known of findings of the exam: library and scenario -> a sentence or two for the library's authors."""

_SARAMA = (
    "`ConsumerGroupSession.Commit()` returns nothing; for this code `offsetManager.handleResponse` neither repeats "
    "the commit nor reports it to `ConsumerGroup.Errors()`, so an application that commits by hand cannot see that "
    "nothing was committed until a later `Commit()` sends the offset again."
)
_NO_DELIVERY_TIMEOUT = "The library has no delivery timeout; the driver gives it as many retries as fit into one."
_AFTER_METADATA = (
    "`Writer.WriteMessages` retries Produce, but not the Metadata request before it, whose error goes to the caller."
)

_RESOLVED = (
    "The promise of `commitOffsets` resolves without the broker's answer: it ends in librdkafka's `commitAsync` "
    "(`KafkaConsumer::Commit` in src/kafka-consumer.cc). An application that awaits it is not informed of a refusal."
)

_CONNECTS_FOR_30_S = (
    "`connect()` rejects after 30 s, which no setting shortens (also with `connectionTimeout` and "
    "`authenticationTimeout` of 1 s). `Producer` and `Consumer` in lib/kafkajs call "
    "`connect(null, ...)`, which asks for metadata with the default limit of `Connection::NodeGetMetadata` "
    "(src/connection.cc). Nothing polls librdkafka's events meanwhile: those of the refusal, which came within the "
    "first second, are all delivered when the 30 s are over, for a producer after its promise was rejected with "
    "ERR__TRANSPORT, so that it does not mention the cause. Polling during `connect()`, and rejecting at once with "
    "ERR__AUTHENTICATION or ERR__SSL, would fix it. KafkaJS, whose interface this is, rejects at once."
)

_KAFKAJS_ENDED = (
    "`eosManager.commit` changes the state to COMMITTING and sends EndTxn once (src/producer/eosManager/index.js). "
    "After a retriable error the state remains, in which `isActive()` is false (src/producer/index.js): an "
    "application can neither commit nor abort, both reject with `Cannot continue to use transaction once ended`. It "
    "has to make another producer, without knowing whether the transaction is committed. A retry around `endTxn`, as"
    " around `initProducerId`, would fix it."
)
_KAFKAJS_SAME_CONNECTION = (
    "A request that timed out is repeated on the same connection, which is never closed "
    "(`RequestQueue.scheduleRequestTimeoutCheck` rejects the request alone). A broker answers a connection's "
    "requests in order, so one that is stuck, or a peer that is gone without a FIN, is asked until the retries are "
    "used up."
)

_COMMITS_THE_REST = (
    "The promise of `transaction.send` rejects, and `transaction.commit()` commits the others. The Java client's "
    "`commitTransaction` throws if a send of the transaction failed; here an application has to await each send."
)
_KAFKAJS_READS_AGAIN = (
    "Records are read twice: after a Fetch error the library starts over, rejoins the group, and returns to the "
    "committed offsets, while the messages that it has already handed over cannot be committed any more "
    "(ILLEGAL_GENERATION). It has no consumers without a group. A group promises no more than that; the Java client "
    "retries only the Fetch of this partition."
)

_FENCED_FIRST = (
    " On Apache Kafka the driver does not get so far: its second process with this transactional id is refused, as in "
    "`transactions/fenced`."
)

_KRAFKA_UNREACHED = (
    "After a broker that cannot be reached, `fetch_round` (src/consumer/fetcher/mod.rs) backs the partitions off and "
    "asks for no metadata, and a consumer of assigned partitions asks for none by their age either, here 5 s. So it "
    "never learns of the new leader. A refresh where the Fetch failed would fix it."
)
_EPOCH_ERRORS = ("answer-lost", "not-leader", "fenced", "unknown")
_KRAFKA_BEYOND = (
    "A position without an epoch, as `seek` sets it, is validated with the leader's current one (`validate_position` "
    "in src/consumer/offsets/validate.rs). One beyond the end is then taken for truncated, and moves to the end: "
    "without an error, and without `auto_offset_reset`. The Java client validates only positions with an epoch."
)
_KRAFKA_NEW_COORDINATOR = (
    "`find_coordinator` (src/consumer/group/mod.rs) forgets member id and generation where the coordinator is another "
    "broker, which it assumes not to know them. It does: a group moves with its log. A heartbeat is sent meanwhile."
)

_LIBRDKAFKAS = ("librdkafka", "confluent-kafka-go", "rust-rdkafka")
_NO_BROKERS = (
    "The answer makes it close the connection to its last broker, whose thread then sets `rk_rebootstrap_in_progress` "
    "and starts the timer that begins again at bootstrap.servers (`rd_kafka_rebootstrap`). `rd_kafka_handle_Metadata` "
    "stops this timer when it has read the whole answer. If the thread was faster, the timer never fires, the flag "
    "remains set, no later attempt starts another timer, and the producer has no broker from then on. With one "
    "partition in the answer that is a race; with a thousand, the thread was faster in 12 of 12 producers of 2.15.0. "
    "Where a log callback held the main thread of 2.15.0 for 50 ms at that point, 3 of 3 were lost, and none of 4 of "
    "2.16.0. Known to its authors (librdkafka issue 5301)."
)
_REBOOTSTRAPS_BY_LUCK = (
    "The library goes back to bootstrap.servers (KIP-899) only if each broker is within its reconnect back-off at the "
    "moment at which Metadata is due (`DefaultMetadataUpdater.maybeUpdate` asks `leastLoadedNode` for a node to "
    "connect to). Each failed connection also puts off Metadata (`handleServerDisconnect` calls `failedUpdate`), soon "
    "by `retry.backoff.max.ms`, which is a second and as long as `reconnect.backoff.max.ms`. So when it is due again, "
    "one of several brokers has mostly served its back-off and is tried instead. The back-offs are random: with three "
    "brokers that refuse, a producer needed 1.6 to 13 s in four of ten plays and more than the 15 s of its "
    "`delivery.timeout.ms` in six; a consumer 2 to 12 s in nine of ten. Without luck it takes "
    "`metadata.recovery.rebootstrap.trigger.ms`, five minutes. To begin again once all brokers have failed since the "
    "last successful Metadata would fix it."
)
_NEVER_CLOSED = (
    "KAFKA-13388. The state becomes CHECKING_API_VERSIONS when the TCP connection is there "
    "(`NetworkClient.handleConnections`), which ends `socket.connection.setup.timeout.ms`, while "
    "`request.timeout.ms` begins with the first request after authentication. So nothing limits the wait for the "
    "answer to SaslAuthenticate: `send` blocks for `max.block.ms`, each time. Fixed in January 2022 for 3.0, 3.1 and "
    "later: the state changes when ApiVersions is sent. 4.4.0 passes."
)
_RUST_ENUM = (
    "The process ends by SIGILL, on Apache Kafka behind a proxy as well. rdkafka-sys declares librdkafka's "
    "`rd_kafka_resp_err_t` as an enum of Rust (`--rustified-enum` in update-bindings.sh). librdkafka passes on "
    "each code that a broker sends; one that is not in the enum (here 98, SNAPSHOT_NOT_FOUND; any of a later "
    "Kafka) is undefined behaviour as soon as `BorrowedMessage::from_dr_event` reads it (src/message.rs), and no "
    "application can catch it. A newtype (`--newtype-enum`), and another arm in "
    "`rd_kafka_resp_err_t_to_rdkafka_error`, would fix it."
)
_JOIN_FORGOTTEN = (
    "It does the same on Apache Kafka 4.3.1. A join that outlasts its poll is kept in `_join_task`, for the next poll "
    "to take up (`AbstractCoordinator.join_group_async`, coordinator/base.py). The next poll asks `need_rejoin()` "
    "first, and here that rests on `_joined_subscription` and `_assignment_snapshot`, which the join itself has "
    "renewed meanwhile (`group_protocols`, `_perform_assignment` in coordinator/consumer.py), while "
    "`rejoin_needed` is False since the previous join. So the finished join is never taken up: heartbeats stay "
    "disabled, nothing is fetched, no error is reported, and after `session_timeout_ms` the group continues without"
    " the member. The same happens at the start of a consumer whose first join is answered before its topics' "
    "metadata, more often on a busy machine. `self.rejoin_needed = True` before the join is scheduled, or `return"
    " self.rejoin_needed or self._join_task is not None` (the Java client's `rejoinNeededOrPending`), would fix "
    "it."
)

_ILLEGAL_INSTRUCTION = (
    "The process ends with SIGILL: `RDKafkaErrorCode` has no variant for codes that the librdkafka which the crate "
    "brings returns, such as TRANSACTION_ABORTABLE (KIP-890), and a value without variant is undefined behaviour. A "
    "conversion that maps unknown codes to `Unknown` would fix it."
)
_SUBSCRIPTIONS = (
    "The assigner spreads all topics of the leader over all members, or its own topics alone: it does not look at what "
    "each member subscribes to."
)
_WITHOUT_MEMBER = (
    "TxnOffsetCommit is sent without member id and generation (KIP-447), so the coordinator cannot refuse the offsets "
    "of a member that was removed."
)

NOTES: dict[tuple[str, str], str] = {
    **{
        ("kafkajs", f"transactions/{each}"): _KAFKAJS_ENDED
        for each in (
            "end-answer-lost",
            "end-request-lost",
            "end-not-coordinator",
            "end-coordinator-not-available",
            "end-coordinator-load-in-progress",
            "end-concurrent-transactions",
            "copy-end-answer-lost",
        )
    },
    **{
        ("kafkajs", each): _KAFKAJS_SAME_CONNECTION
        for each in ("produce/silent-broker", "idempotence/answer-too-late", "connection/metadata-unanswered")
    },
    ("kafkajs", "hostile/absurd-length"): (
        "The size is not checked, and the connection not closed when the request times out: it waits for the rest "
        "of the "
        "two gigabytes while each retry on it times out, too."
    ),
    **{("kafkajs", each): _KAFKAJS_READS_AGAIN for each in ("sessions/one-of-three-refused", "consumers/leader-moves")},
    ("kafkajs", "produce/delivery-timeout"): _NO_DELIVERY_TIMEOUT,
    ("kafkajs", "idempotence/duplicate-sequence"): (
        "The code means that the batch is already written. `send` rejects with it, so an application that sends the "
        "records again writes them twice. The Java client treats the code as success."
    ),
    ("platformatic", "transactions/fenced"): (
        "It does the same on Apache Kafka 4.3.1. `#initIdempotentProducer` (dist/clients/producer/producer.js) sends "
        "InitProducerId "
        "with producer id 0 and epoch 0 where it has none, and not with -1. From version 3 on (KIP-360) that claims "
        "to be "
        "the producer with these numbers: a coordinator that has given the transactional id another producer id "
        "answers "
        "PRODUCER_FENCED. So only the first process that uses a transactional id can begin transactions; one that "
        "takes "
        "over after a restart is refused. `?? -1n` and `?? -1` as defaults would fix it."
    ),
    ("platformatic", "transactions/empty"): (
        "`Transaction.commit()` sends EndTxn although nothing was added to the transaction; the broker has none "
        "that it "
        "could end and answers INVALID_TXN_STATE. The Java client sends no request." + _FENCED_FIRST
    ),
    ("platformatic", "transactions/record-refused"): _COMMITS_THE_REST + _FENCED_FIRST,
    ("platformatic", "connection/unsupported-api-versions"): (
        "After UNSUPPORTED_VERSION it repeats ApiVersions with version 1 (`kListApis` in "
        "dist/clients/base/base.js), not "
        "with one that the response lists: brokers before 0.11 support only version 0."
    ),
    ("platformatic", "hostile/negative-length"): (
        "The size is not checked: an `OUT_OF_BOUNDS` is thrown in the socket's `data` event, where no application can "
        "catch it, and ends the process."
    ),
    ("platformatic", "produce/delivery-timeout"): _NO_DELIVERY_TIMEOUT,
    ("kafkajs", "connection/metadata-cut"): (
        "`Connection` keeps the bytes of a frame that was cut (`chunks`, `bytesBuffered`, `bytesNeeded` in "
        "src/network/connection.js) when the socket closes, and puts them before the first answer on the next one: "
        "its correlation id is wrong (`Response without match`), the request times out, and so does each one after "
        "it, because the connection stays out of step. Resetting the three fields in `connect()` would fix it."
    ),
    ("kafkajs", "hostile/negative-length"): (
        "The size is not checked (src/network/connection.js, `processData`): `ERR_BUFFER_OUT_OF_BOUNDS` is thrown in"
        " the socket's `data` event, where no application can catch it, and ends the process."
    ),
    ("kafkajs", "transactions/record-refused"): _COMMITS_THE_REST,
    ("kafkajs", "consumers/aborted-in-another-order"): (
        "`filterAbortedMessages` (src/consumer/filterAbortedMessages.js) compares each record with the first of the "
        "aborted transactions only, as if they were listed by their first offsets. Brokers list them as they ended, "
        "so a transaction that ended after one that began later is read. It does the same on Apache Kafka 4.4.0."
    ),
    ("kafkajs", "idempotence/init-lost"): (
        "`connect()` retries InitProducerId after some error codes, not after a lost "
        "connection; the application can call "
        "it again."
    ),
    (
        "kafkajs",
        "consumers/damaged-batch",
    ): "The library decodes the checksum of a batch (src/protocol/recordBatch/v0/decoder.js) and never compares it.",
    **{
        ("confluent-kafka-javascript", f"groups/{each}"): _RESOLVED
        for each in (
            "commit-coordinator-load-in-progress",
            "commit-not-coordinator",
            "evicted-member-commits",
        )
    },
    **{
        ("confluent-kafka-javascript", each): _CONNECTS_FOR_30_S
        for each in (
            "sasl/wrong-password",
            "sasl/wrong-scram-password",
            "sasl/mechanism-not-enabled",
            "sasl/consumer-wrong-password",
            "sasl/broker-without-password",
            "tls/other-host",
            "tls/expired-certificate",
            "tls/unknown-authority",
        )
    },
    ("aiokafka", "groups/static-member-fenced"): (
        "JoinGroup v5 carries the instance id, Heartbeat v1 and OffsetCommit v3 do not (v3 and v7 would): the "
        "coordinator answers UNKNOWN_MEMBER_ID instead of FENCED_INSTANCE_ID, and the fenced consumer joins again, "
        "which fences its successor, which joins again in turn. Two programs with one instance id take the same "
        "partitions from each other, without an error. On Apache Kafka 4.4.0 in 3 of 3 plays."
    ),
    **dict.fromkeys(
        (
            ("librdkafka", "transactions/zombie-copier"),
            ("confluent-kafka-go", "transactions/zombie-copier"),
            ("confluent-kafka-javascript", "groups/heartbeat-unknown-member-id"),
            ("confluent-kafka-javascript", "groups/heartbeat-illegal-generation"),
        ),
        "After a member was removed, some heartbeats have an empty member id and the old generation, and after "
        "ILLEGAL_GENERATION the generation -1. The coordinator refuses them, and the member joins again. It depends "
        "on when the heartbeat is due.",
    ),
    ("aiokafka", "transactions/record-refused"): (
        "It does the same on Apache Kafka 4.3.1, with a record larger than `max.message.bytes` of one of two topics: "
        "`send` reports MessageSizeTooLargeError, `commit_transaction()` returns without an error, and a "
        "read_committed consumer sees the other records. The Java client's `commitTransaction` throws if a "
        "send of the transaction failed. Until then, an application has to await each future of the "
        "transaction before it commits."
    ),
    ("sarama", "groups/commit-coordinator-load-in-progress"): _SARAMA,
    ("sarama", "groups/commit-not-coordinator"): _SARAMA,
    ("sarama", "produce/delivery-timeout"): _NO_DELIVERY_TIMEOUT,
    ("kafka-go", "produce/delivery-timeout"): _NO_DELIVERY_TIMEOUT,
    ("kafka-go", "connection/first-connection-closed"): _AFTER_METADATA,
    ("kafka-go", "connection/metadata-cut"): _AFTER_METADATA,
    ("kafka-go", "connection/leader-not-available"): _AFTER_METADATA,
    ("kafka-go", "connection/answer-lost-with-connection"): _AFTER_METADATA,
    ("kafka-go", "consumers/damaged-batch"): (
        "`message_reader.go` reads the checksum of a batch and never compares it; there is no option for it."
    ),
    ("kafka-go", "hostile/negative-length"): (
        "The process ends: decode.go of its package `protocol` slices by the size that the broker sent (`slice bounds "
        "out of range`), in a goroutine of `Transport`, where an application cannot recover from it."
    ),
    **{
        (library, f"throttling/{each}"): (
            "The throttle time is reported (`throttle_cb`), and the next request is sent at "
            "once: the library leaves it "
            "to the broker to stop reading."
        )
        for each in ("producer-waits", "consumer-waits")
        for library in _LIBRDKAFKAS
    },
    **{
        (library, f"admin/{each}"): (
            "Admin requests are sent once; each error is returned to the application, even a retriable one."
        )
        for each in ("not-controller", "throttling-quota-exceeded", "request-lost", "answer-lost")
        for library in _LIBRDKAFKAS
    },
    (
        "librdkafka",
        "consumers/damaged-batch",
    ): "`check.crcs` is `false` by default; with `true` the library detects the damage.",
    ("librdkafka", "groups/offsetfetch-not-coordinator"): (
        "It looks up the coordinator and does not send OffsetFetch again within the scenario's 15 s: the member "
        "keeps its partition and reads nothing. The AdminClient of confluent-kafka 2.16.0 has a segmentation fault "
        "after this answer: in `list_consumer_group_offsets`, here with a fault that answers OffsetFetch with "
        "NOT_COORDINATOR, and on an Apache Kafka 4.3.1 that had just started, for a group that did not exist."
    ),
    **{
        (library, scenario): text
        for library in ("confluent-kafka-go", "confluent-kafka-javascript", "rust-rdkafka")
        for scenario, text in {
            "consumers/damaged-batch": "As in librdkafka, `check.crcs` is `false` by default.",
            "groups/offsetfetch-not-coordinator": "As in librdkafka, on which it is built.",
        }.items()
    },
    **{
        (library, "hostile/metadata-without-brokers"): text
        for library, text in {
            "confluent-kafka-go": f"librdkafka 2.11.1. {_NO_BROKERS}",
            "rust-rdkafka": f"librdkafka 2.12.1. {_NO_BROKERS}",
            "confluent-kafka-javascript": f"librdkafka 2.15.1. {_NO_BROKERS}",
        }.items()
    },
    ("rust-rdkafka", "hostile/unexpected-produce-error"): _RUST_ENUM,
    ("kafka-python", "groups/subscription-grows"): _JOIN_FORGOTTEN,
    **{
        ("kafka-python", each): (
            "A refusal is repeated like a lost connection until `bootstrap_timeout_ms` (30 s by default) has passed; "
            "then the constructor raises a KafkaTimeoutError that does not mention it. The cause is in the log only."
        )
        for each in (
            "sasl/wrong-password",
            "sasl/wrong-scram-password",
            "sasl/mechanism-not-enabled",
            "sasl/expired-token",
            "sasl/consumer-wrong-password",
            "tls/other-host",
            "tls/expired-certificate",
            "tls/unknown-authority",
        )
    },
    ("platformatic", "groups/evicted-member-commits"): (
        "`commit` joins the group again and waits for that. The broker answers JoinGroup when the session of the "
        "removed member ends; the library closes the connection after `requestTimeout` (here 2 s) and sends another, "
        "again and again."
    ),
    ("kafka-python", "consumers/damaged-batch"): "`poll(timeout_ms=200)` had not returned after 20 s.",
    ("java-4.4.0", "connection/wrong-correlation-id"): (
        "The sender's thread logs the mismatch and continues; the batch no longer has a request, and expires by "
        "`delivery.timeout.ms`."
    ),
    ("java-4.4.0", "rebootstrap/producer"): _REBOOTSTRAPS_BY_LUCK,
    ("java-2.8.2", "sasl/authenticate-unanswered"): _NEVER_CLOSED,
    ("java-2.8.2", "connection/wrong-correlation-id"): (
        "As in 4.4.0: the batch no longer has a request, and expires by `delivery.timeout.ms`."
    ),
    **{
        ("rust-rdkafka", each): _ILLEGAL_INSTRUCTION
        for each in (
            "hostile/unexpected-fetch-error",
            "transactions/record-transaction-abortable",
            "transactions/end-refused-transaction-abortable",
            "transactions/offsets-transaction-abortable",
        )
    },
    ("krafka", "transactions/empty"): (
        "EndTxn is sent although nothing was added. Brokers refuse to commit an empty transaction with "
        "INVALID_TXN_STATE since transactions have version 2, which the library takes for fatal. The Java client sends "
        "nothing."
    ),
    **{
        ("krafka", each): _KRAFKA_UNREACHED
        for each in ("consumers/leader-moves", *(f"truncation/epoch-{why}" for why in _EPOCH_ERRORS))
    },
    **{
        ("krafka", each): _KRAFKA_BEYOND
        for each in (
            "consumers/out-of-range-earliest",
            "consumers/out-of-range-none",
            "sessions/one-of-three-out-of-range",
        )
    },
    **{("krafka", f"{each}/coordinator-moves"): _KRAFKA_NEW_COORDINATOR for each in ("groups", "consumer-protocol")},
    **{(each, "groups/different-subscriptions"): _SUBSCRIPTIONS for each in ("kafkajs", "platformatic")},
    **{(each, "transactions/zombie-copier"): _WITHOUT_MEMBER for each in ("kafkajs", "aiokafka")},
}
