package groups;

import static groups.Report.expect;
import static groups.Report.step;
import static groups.Report.until;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** kafka-clients' KafkaShareConsumer (KIP-932). Called with BOOTSTRAP TOPIC. */
public final class ShareConsumer {
    private static final int RECORDS = 100;
    private static final int PARTITIONS = 2;

    private final String bootstrap;
    private final String topic;

    private ShareConsumer(String bootstrap, String topic) {
        this.bootstrap = bootstrap;
        this.topic = topic;
    }

    public static void main(String[] arguments) throws Exception {
        ShareConsumer run = new ShareConsumer(arguments[0], arguments[1]);
        step("a topic with records", run::produce);
        step("implicit acknowledgement", run::implicit);
        step("explicit acknowledgement", run::explicit);
        step("renewed locks", run::renewed);
        step("a member that closes releases its records", run::closed);
    }

    private Map<String, Object> common() {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        return settings;
    }

    private KafkaShareConsumer<byte[], byte[]> consumer(String group, boolean explicit) throws Exception {
        try (Admin admin = Admin.create(common())) {
            AlterConfigOp earliest =
                new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET);
            ConfigResource resource = new ConfigResource(ConfigResource.Type.GROUP, topic + group);
            admin.incrementalAlterConfigs(Map.of(resource, List.of(earliest))).all().get();
        }
        Properties settings = new Properties();
        settings.putAll(common());
        settings.put("group.id", topic + group);
        settings.put("share.acknowledgement.mode", explicit ? "explicit" : "implicit");
        settings.put("max.poll.records", "30");
        KafkaShareConsumer<byte[], byte[]> made =
            new KafkaShareConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        made.subscribe(List.of(topic));
        return made;
    }

    private Object produce() throws Exception {
        try (Admin admin = Admin.create(common())) {
            admin.createTopics(List.of(new NewTopic(topic, PARTITIONS, (short) 1))).all().get();
        }
        try (Producer<byte[], byte[]> producer =
                new KafkaProducer<>(common(), new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int i = 0; i < RECORDS; i++) {
                producer.send(new ProducerRecord<>(topic, i % PARTITIONS, null, new byte[] {(byte) i}));
            }
        }
        return RECORDS;
    }

    private static String place(ConsumerRecord<?, ?> record) {
        return record.partition() + "/" + record.offset();
    }

    private static void committed(Map<TopicIdPartition, Optional<KafkaException>> results) {
        results.forEach((partition, error) -> expect(error.isEmpty(), partition + " " + error));
    }

    private Object implicit() throws Exception {
        Map<String, Integer> seen = new HashMap<>();
        try (KafkaShareConsumer<byte[], byte[]> consumer = consumer("implicit", false)) {
            until(() -> {
                consumer.poll(Duration.ofMillis(200)).forEach(record -> seen.merge(place(record), 1, Integer::sum));
                return seen.size() == RECORDS;
            }, seen::size);
            committed(consumer.commitSync());
        }
        expect(seen.values().stream().allMatch(times -> times == 1), seen);
        return seen.size();
    }

    /** Every fifth record is released once, and comes again with its delivery count. */
    private Object explicit() throws Exception {
        Map<String, Integer> seen = new HashMap<>();
        int[] accepted = {0};
        try (KafkaShareConsumer<byte[], byte[]> consumer = consumer("explicit", true)) {
            until(() -> {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    int times = seen.merge(place(record), 1, Integer::sum);
                    expect(record.deliveryCount().orElseThrow() == times, record);
                    boolean release = times == 1 && record.offset() % 5 == 0;
                    consumer.acknowledge(record, release ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT);
                    accepted[0] += release ? 0 : 1;
                }
                committed(consumer.commitSync());
                return accepted[0] == RECORDS;
            }, () -> accepted[0]);
        }
        int deliveries = seen.values().stream().mapToInt(times -> times).sum();
        expect(deliveries == RECORDS + RECORDS / 5, deliveries);
        return deliveries;
    }

    private Object renewed() throws Exception {
        int[] counts = {0, 0};
        try (KafkaShareConsumer<byte[], byte[]> consumer = consumer("renewed", true)) {
            until(() -> {
                consumer.poll(Duration.ofMillis(200)).forEach(record -> {
                    consumer.acknowledge(record, AcknowledgeType.RENEW);
                    counts[0]++;
                });
                return counts[0] > 0;
            }, () -> counts[0]);
            committed(consumer.commitSync());
            until(() -> {
                consumer.poll(Duration.ofMillis(200)).forEach(record -> {
                    consumer.acknowledge(record, AcknowledgeType.ACCEPT);
                    counts[1]++;
                });
                return counts[1] >= counts[0];
            }, () -> counts[1]);
            committed(consumer.commitSync());
        }
        return counts[0];
    }

    private Object closed() throws Exception {
        List<String> held = new ArrayList<>();
        try (KafkaShareConsumer<byte[], byte[]> consumer = consumer("closed", true)) {
            until(() -> {
                consumer.poll(Duration.ofMillis(200)).forEach(record -> held.add(place(record)));
                return !held.isEmpty();
            }, held::size);
        }
        List<Integer> again = new ArrayList<>();
        try (KafkaShareConsumer<byte[], byte[]> consumer = consumer("closed", false)) {
            until(() -> {
                consumer.poll(Duration.ofMillis(200)).forEach(record -> again.add((int) (short) record.deliveryCount().orElseThrow()));
                return again.size() == RECORDS;
            }, again::size);
        }
        return held.size();
    }
}
