package interop;

import static interop.Report.expect;
import static interop.Report.step;
import static interop.Report.until;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** kafka-clients through the script; one source for 2.8, 3.9 and 4.3. */
public final class Driver {
    private final String bootstrap;
    private final String topic;
    private final String group;
    private final Records records;
    private final List<TopicPartition> partitions;
    private final List<Consumer<byte[], byte[]>> members = new ArrayList<>();
    private List<ConsumerRecord<byte[], byte[]>> read = new ArrayList<>();

    private Driver(String bootstrap, String topic, long baseMs) {
        this.bootstrap = bootstrap;
        this.topic = topic;
        this.group = topic + "-group";
        this.records = new Records(topic, baseMs);
        this.partitions = Arrays.asList(
            new TopicPartition(topic, 0), new TopicPartition(topic, 1), new TopicPartition(topic, 2));
    }

    public static void main(String[] args) {
        Driver driver = new Driver(args[0], args[2], Long.parseLong(args[3]));
        Administration admin = new Administration(args[0], args[2], Integer.parseInt(args[1]));
        step("list_topics", admin::listTopics);
        step("create_topic", admin::createTopic);
        driver.produceAll();
        driver.readAll();
        driver.playGroup();
        admin.describeAll(driver.group);
        step("delete_records", () -> admin.deleteRecords(driver::earliest));
        step("delete_group", () -> {
            driver.closeMembers();
            return admin.deleteGroup(driver.group);
        });
        step("delete_topic", admin::deleteTopic);
        driver.closeMembers();
        admin.close();
    }

    // ---------------------------------------------------------------- producing

    private void produceAll() {
        for (String codec : Records.CODECS)
            step("produce_" + codec, () -> produce(records.compressed(codec), "compression.type", codec));
        step("produce_headers", () -> produce(records.headers()));
        step("produce_nulls", () -> produce(records.nulls()));
        step("produce_idempotent", () -> produce(records.idempotent(), "enable.idempotence", "true"));
        step("produce_null_header", () -> produce(records.nullHeader()));
    }

    private Object produce(List<ProducerRecord<byte[], byte[]>> batch, String... settings) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("linger.ms", "20");
        for (int i = 0; i < settings.length; i += 2) properties.put(settings[i], settings[i + 1]);
        try (Producer<byte[], byte[]> producer =
                 Observed.producer(new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer()))) {
            List<Future<RecordMetadata>> futures = new ArrayList<>();
            for (ProducerRecord<byte[], byte[]> record : batch) futures.add(producer.send(record));
            producer.flush();
            for (Future<RecordMetadata> future : futures)
                expect(Observed.call("producer.send", () -> future.get(20, TimeUnit.SECONDS)).offset() >= 0, "no offset");
        }
        records.sent.addAll(batch);
        return null;
    }

    // ---------------------------------------------------------------- reading

    private Consumer<byte[], byte[]> consumer(String groupId) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("auto.offset.reset", "earliest");
        properties.put("enable.auto.commit", "false");
        properties.put("heartbeat.interval.ms", "300");
        if (groupId != null) properties.put("group.id", groupId);
        return Observed.consumer(
            new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer()), groupId != null);
    }

    private void readAll() {
        step("consume_from_start", this::consumeFromStart);
        step("consume_headers", () -> {
            List<String> got = new ArrayList<>();
            for (ConsumerRecord<byte[], byte[]> r : read)
                if (r.headers().toArray().length > 0) got.add(Records.text(r.headers()));
            Collections.sort(got);
            String h = "h=one;h=two;empty=;";
            String none = "null=null;";
            expect(got.equals(Arrays.asList(h, h, h, none, none, none)), got);
            return null;
        });
        step("consume_nulls", () -> {
            expect(read.stream().filter(r -> r.value() == null).count() == 3, "null values");
            expect(read.stream().filter(r -> r.key() == null).count() == 3, "null keys");
            return null;
        });
        step("consume_timestamps", () -> {
            expect(read.size() == 165, read.size() + " records were read");
            for (ConsumerRecord<byte[], byte[]> r : read)
                expect(r.timestamp() == records.timestampOf((int) r.offset() * 3 + r.partition()), r);
            return null;
        });
        step("consume_by_timestamp", this::consumeByTimestamp);
    }

    private Object consumeFromStart() throws Exception {
        try (Consumer<byte[], byte[]> consumer = consumer(null)) {
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            until(() -> {
                consumer.poll(Duration.ofMillis(100)).forEach(read::add);
                return read.size() >= records.sent.size();
            }, () -> read.size() + " records");
        }
        for (int p = 0; p < 3; p++)
            expect(Records.keysAndValues(read, p).equals(records.keysAndValues(p)), Records.keysAndValues(read, p));
        return read.size() + " records";
    }

    private Object consumeByTimestamp() throws Exception {
        try (Consumer<byte[], byte[]> consumer = consumer(null)) {
            Map<TopicPartition, Long> moments = new HashMap<>();
            for (TopicPartition tp : partitions) moments.put(tp, records.timestampOf(75));
            for (Map.Entry<TopicPartition, OffsetAndTimestamp> found : consumer.offsetsForTimes(moments).entrySet()) {
                expect(found.getValue().offset() == 25, found);
                consumer.assign(Collections.singletonList(found.getKey()));
                consumer.seek(found.getKey(), found.getValue().offset());
                List<ConsumerRecord<byte[], byte[]>> first = new ArrayList<>();
                until(() -> {
                    consumer.poll(Duration.ofMillis(100)).forEach(first::add);
                    return !first.isEmpty();
                }, () -> "nothing read");
                expect(first.get(0).timestamp() == records.timestampOf(75 + found.getKey().partition()), first.get(0));
            }
        }
        return null;
    }

    private long earliest(int partition) {
        try (Consumer<byte[], byte[]> consumer = consumer(null)) {
            return consumer.beginningOffsets(partitions).get(partitions.get(partition));
        }
    }

    // ---------------------------------------------------------------- the group

    private void playGroup() {
        step("group_join", () -> {
            join();
            until(() -> pollAll().get(0).size() == 3, this::pollAll);
            return null;
        });
        step("group_rebalance", () -> {
            join();
            until(() -> {
                List<TreeSet<Integer>> shares = pollAll();
                return !shares.get(0).isEmpty() && !shares.get(1).isEmpty()
                    && shares.get(0).size() + shares.get(1).size() == 3;
            }, this::pollAll);
            return pollAll();
        });
        step("group_leave", () -> {
            members.remove(1).close();
            until(() -> pollAll().get(0).size() == 3, this::pollAll);
            return null;
        });
        step("commit", () -> {
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
            for (TopicPartition tp : partitions) offsets.put(tp, new OffsetAndMetadata(10 + tp.partition(), "mine"));
            // What the last poll asked and left under way would answer the question below, with what was before.
            members.get(0).committed(new HashSet<>(partitions));
            members.get(0).commitSync(offsets);
            expect(members.get(0).committed(new HashSet<>(partitions)).equals(offsets), "committed");
            return null;
        });
        step("resume", this::resume);
    }


    private void join() {
        Consumer<byte[], byte[]> member = consumer(group);
        member.subscribe(Collections.singletonList(topic));
        members.add(member);
    }

    private List<TreeSet<Integer>> pollAll() {
        List<TreeSet<Integer>> shares = new ArrayList<>();
        for (Consumer<byte[], byte[]> member : members) {
            member.poll(Duration.ofMillis(100));
            TreeSet<Integer> share = new TreeSet<>();
            for (TopicPartition tp : member.assignment()) share.add(tp.partition());
            shares.add(share);
        }
        return shares;
    }

    private Object resume() throws Exception {
        closeMembers();
        join();
        Map<Integer, Long> first = new TreeMap<>();
        until(() -> {
            for (ConsumerRecord<byte[], byte[]> r : members.get(0).poll(Duration.ofMillis(100)))
                first.putIfAbsent(r.partition(), r.offset());
            return first.size() == 3;
        }, () -> first);
        expect(first.toString().equals("{0=10, 1=11, 2=12}"), first);
        return null;
    }

    private void closeMembers() {
        while (!members.isEmpty()) members.remove(0).close();
    }
}
