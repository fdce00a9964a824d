package groups;

import static groups.Report.expect;
import static groups.Report.step;
import static groups.Report.until;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** kafka-clients 4.3 in groups of the consumer protocol (KIP-848). Called with BOOTSTRAP TOPIC. */
public final class ConsumerProtocol {
    private static final int RECORDS = 40;
    private static final int PARTITIONS = 4;

    private final String bootstrap;
    private final String topic;
    private String group;
    private final List<Consumer<byte[], byte[]>> members = new ArrayList<>();
    private int read = 0;

    private ConsumerProtocol(String bootstrap, String topic) {
        this.bootstrap = bootstrap;
        this.topic = topic;
        this.group = topic + "-group";
    }

    public static void main(String[] args) {
        ConsumerProtocol played = new ConsumerProtocol(args[0], args[1]);
        step("prepare", played::prepare);
        step("join", played::join);
        step("commit", played::commit);
        step("rebalance", played::rebalance);
        step("describe", played::describe);
        step("static", played::aStaticMember);
        step("classic", played::aClassicMember);
        step("leave", played::leave);
        step("regex", played::regex);
        System.exit(0);
    }

    private Properties properties(String... more) {
        Properties found = new Properties();
        found.put("bootstrap.servers", bootstrap);
        for (int at = 0; at < more.length; at += 2) {
            found.put(more[at], more[at + 1]);
        }
        return found;
    }

    private Consumer<byte[], byte[]> member(String protocol, String... more) {
        Properties found = properties(more);
        found.put("group.id", group);
        found.put("group.protocol", protocol);
        found.put("auto.offset.reset", "earliest");
        found.put("enable.auto.commit", "false");
        if (protocol.equals("classic")) {
            found.put("heartbeat.interval.ms", "300");
            found.put("session.timeout.ms", "6000");
        }
        Consumer<byte[], byte[]> made =
            new KafkaConsumer<>(found, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        members.add(made);
        return made;
    }

    private String prepare() throws Exception {
        try (Admin admin = Admin.create(properties())) {
            admin.createTopics(Collections.singleton(new NewTopic(topic, PARTITIONS, (short) 1))).all().get();
        }
        try (Producer<byte[], byte[]> producer =
            new KafkaProducer<>(properties(), new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int number = 0; number < RECORDS; number++) {
                producer.send(new ProducerRecord<>(topic, number % PARTITIONS, null, new byte[] {(byte) number}));
            }
        }
        return RECORDS + " records";
    }

    private void poll() {
        for (Consumer<byte[], byte[]> member : members) {
            for (ConsumerRecord<byte[], byte[]> record : member.poll(Duration.ofMillis(50))) {
                expect(record.topic().equals(topic), record.topic());
                read++;
            }
        }
    }

    private boolean shared(int... sizes) {
        poll();
        TreeSet<Integer> all = new TreeSet<>();
        List<Integer> found = new ArrayList<>();
        for (Consumer<byte[], byte[]> member : members) {
            found.add(member.assignment().size());
            member.assignment().forEach(partition -> all.add(partition.partition()));
        }
        Collections.sort(found);
        return all.size() == PARTITIONS && found.equals(Arrays.stream(sizes).boxed().toList());
    }

    private String join() throws Exception {
        member("consumer").subscribe(Collections.singleton(topic));
        until(() -> shared(PARTITIONS) && read == RECORDS, () -> "all records");
        return read + " records";
    }

    private String commit() throws Exception {
        members.get(0).commitSync();
        Map<TopicPartition, OffsetAndMetadata> found = members.get(0).committed(members.get(0).assignment());
        found.values().forEach(offset -> expect(offset.offset() == RECORDS / PARTITIONS, offset.toString()));
        return found.size() + " offsets";
    }

    private String rebalance() throws Exception {
        member("consumer").subscribe(Collections.singleton(topic));
        until(() -> shared(2, 2), () -> "two each");
        expect(read == RECORDS, read + " records were read");
        return "two each";
    }

    private String describe() throws Exception {
        try (Admin admin = Admin.create(properties())) {
            ConsumerGroupDescription found =
                admin.describeConsumerGroups(Collections.singleton(group)).all().get().get(group);
            expect(found.type() == GroupType.CONSUMER, found.type().toString());
            expect(found.members().size() == 2, found.toString());
            expect(found.partitionAssignor().equals("uniform"), found.partitionAssignor());
            return found.groupState().toString();
        }
    }

    private String aStaticMember() throws Exception {
        members.remove(1).close();
        Consumer<byte[], byte[]> first = member("consumer", "group.instance.id", "i1");
        first.subscribe(Collections.singleton(topic));
        until(() -> shared(2, 2), () -> "two each");
        TreeSet<Integer> before = new TreeSet<>();
        first.assignment().forEach(partition -> before.add(partition.partition()));
        members.remove(first);
        first.close();
        Consumer<byte[], byte[]> second = member("consumer", "group.instance.id", "i1");
        second.subscribe(Collections.singleton(topic));
        until(() -> shared(2, 2), () -> "two each again");
        TreeSet<Integer> after = new TreeSet<>();
        second.assignment().forEach(partition -> after.add(partition.partition()));
        expect(before.equals(after), before + " became " + after);
        return after.toString();
    }

    private String aClassicMember() throws Exception {
        member("classic").subscribe(Collections.singleton(topic));
        until(() -> shared(1, 1, 2), () -> "four partitions for three");
        return "1, 1 and 2";
    }

    private String leave() throws Exception {
        while (members.size() > 1) {
            members.remove(1).close();
        }
        return "alone";
    }

    private String regex() throws Exception {
        members.remove(0).close();
        group = topic + "-another";
        Consumer<byte[], byte[]> found = member("consumer");
        found.subscribe(new SubscriptionPattern(topic.substring(0, topic.length() - 1) + ".*"));
        until(() -> shared(PARTITIONS), () -> "all by a regular expression");
        found.close();
        return "all";
    }
}
