package exam;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The producers by their names, and what has become of their records. */
final class Producers {
    private final Map<String, Producer<byte[], byte[]>> producers = new ConcurrentHashMap<>();
    private final Map<String, Map<Long, Future<RecordMetadata>>> sent = new ConcurrentHashMap<>();
    private final Map<String, List<Object>> outcomes = new ConcurrentHashMap<>();
    private final Map<String, AtomicInteger> blocked = new ConcurrentHashMap<>();
    private final Map<String, Long> longestMs = new ConcurrentHashMap<>();
    private final Map<String, CompletableFuture<Void>> handedOver = new ConcurrentHashMap<>();
    private final ExecutorService threads = Executors.newCachedThreadPool();

    void create(Command command) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", command.string("bootstrap_servers"));
        properties.put("client.id", command.string("client_id"));
        properties.put("acks", command.string("acks"));
        properties.put("enable.idempotence", command.setting("idempotent"));
        properties.put("delivery.timeout.ms", command.setting("delivery_timeout_ms"));
        properties.put("max.block.ms", command.setting("delivery_timeout_ms"));
        properties.put("request.timeout.ms", command.setting("request_timeout_ms"));
        properties.put("retry.backoff.ms", command.setting("retry_backoff_ms"));
        properties.put("reconnect.backoff.max.ms", "500");
        properties.put("linger.ms", command.setting("linger_ms"));
        properties.put("max.in.flight.requests.per.connection", command.setting("max_in_flight"));
        properties.put("compression.type", command.string("compression"));
        if (command.has("transactional_id")) {
            properties.put("transactional.id", command.string("transactional_id"));
            properties.put("transaction.timeout.ms", command.setting("transaction_timeout_ms"));
        }
        Security.into(properties, command);
        String name = command.string("name");
        producers.put(name, new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer()));
        sent.put(name, Collections.synchronizedMap(new LinkedHashMap<>()));
        outcomes.put(name, Collections.synchronizedList(new ArrayList<>()));
        blocked.put(name, new AtomicInteger());
        longestMs.put(name, command.number("delivery_timeout_ms"));
        handedOver.put(name, CompletableFuture.completedFuture(null));
    }

    boolean has(String name) {
        return producers.containsKey(name);
    }

    /** The producer, when it has been given all earlier records; or when that has taken too long. */
    Producer<byte[], byte[]> of(Command command) throws InterruptedException {
        String name = command.string("producer");
        Producer<byte[], byte[]> found = producers.get(name);
        if (found == null) throw new IllegalArgumentException("there is no producer " + name);
        await(handedOver.get(name), longestMs.get(name));
        return found;
    }

    private static void await(Future<Void> handed, long longestMs) throws InterruptedException {
        try {
            handed.get(longestMs, TimeUnit.MILLISECONDS);
        } catch (ExecutionException impossible) {
            throw new IllegalStateException(impossible);
        } catch (TimeoutException stillBlocked) {
            // Those that were not handed over are pending.
        }
    }

    /** Without metadata, KafkaProducer.send blocks for max.block.ms, with each record; the driver goes on after the first. */
    void send(Command command) throws InterruptedException {
        String name = command.string("producer");
        Producer<byte[], byte[]> producer = of(command);
        List<Map<String, Object>> records = command.objects("records");
        blocked.get(name).addAndGet(records.size());
        CompletableFuture<Void> before = handedOver.get(name);
        CompletableFuture<Void> handed = before.thenRunAsync(() -> handOver(producer, name, command.string("topic"), records), threads);
        handedOver.put(name, handed);
        await(handed, longestMs.get(name));
    }

    private void handOver(Producer<byte[], byte[]> producer, String name, String topic, List<Map<String, Object>> records) {
        for (Map<String, Object> record : records) {
            Long id = (Long) record.get("id");
            byte[] key = bytes(record.get("key"));
            Integer partition = ((Long) record.get("partition")).intValue();
            Long timestamp = (Long) record.get("timestamp");
            try {
                sent.get(name).put(id, producer.send(
                    new ProducerRecord<>(topic, partition, timestamp, key, bytes(record.get("value")), headers(record))));
            } catch (RuntimeException refused) {
                outcomes.get(name).add(outcome(id, "error", Errors.of(refused)));
            }
            blocked.get(name).decrementAndGet();
        }
    }

    @SuppressWarnings("unchecked")
    private static List<Header> headers(Map<String, Object> record) {
        List<Header> headers = new ArrayList<>();
        for (List<Object> each : (List<List<Object>>) record.getOrDefault("headers", Collections.emptyList()))
            headers.add(new RecordHeader((String) each.get(0), bytes(each.get(1))));
        return headers;
    }

    private static byte[] bytes(Object text) {
        return text == null ? null : ((String) text).getBytes(StandardCharsets.UTF_8);
    }

    private static Map<String, Object> outcome(Long id, String field, Object value) {
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("id", id);
        out.put(field, value);
        return out;
    }

    Map<String, Object> flush(Command command) throws InterruptedException {
        String name = command.string("producer");
        long until = System.nanoTime() + command.timeout().toNanos();
        of(command);
        List<Object> found = new ArrayList<>();
        List<Object> refusedAtOnce = outcomes.get(name);
        synchronized (refusedAtOnce) {
            found.addAll(refusedAtOnce);
            refusedAtOnce.clear();
        }
        Map<Long, Future<RecordMetadata>> waiting = sent.get(name);
        for (Long id : new ArrayList<>(waiting.keySet())) {
            try {
                long left = Math.max(until - System.nanoTime(), 0);
                found.add(outcome(id, "offset", waiting.get(id).get(left, TimeUnit.NANOSECONDS).offset()));
            } catch (ExecutionException refused) {
                found.add(outcome(id, "error", Errors.of(refused)));
            } catch (TimeoutException stillWaiting) {
                continue;
            }
            waiting.remove(id);
        }
        Map<String, Object> out = new HashMap<>();
        out.put("outcomes", found);
        out.put("pending", waiting.size() + blocked.get(name).get());
        return out;
    }

    void sendOffsets(Command command, Consumer<byte[], byte[]> source) throws InterruptedException {
        Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
        for (TopicPartition each : source.assignment()) positions.put(each, new OffsetAndMetadata(source.position(each)));
        of(command).sendOffsetsToTransaction(positions, source.groupMetadata());
    }

    Object close(Command command) {
        producers.remove(command.string("name")).close(command.timeout());
        return Collections.emptyMap();
    }
}
