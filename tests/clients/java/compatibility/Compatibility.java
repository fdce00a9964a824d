package compatibility;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/**
 * What a client of any release since 0.11 can do with a cluster of any release.
 *
 * Reads lines of "BOOTSTRAP NAME" and answers each with lines of "STEP RESULT" and at last "end". A result is "ok" or
 * the simple name of the exception. Compiles against 0.11: what changed since is called by reflection.
 */
public class Compatibility {
    private static final String SERIALIZER = "org.apache.kafka.common.serialization.StringSerializer";
    private static final String DESERIALIZER = "org.apache.kafka.common.serialization.StringDeserializer";
    private static final long PATIENCE_MS = 15_000;

    private interface Step {
        void play() throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.trim().split(" ");
            String bootstrap = words[0];
            String name = words[1];
            boolean connected = play("produce", () -> produce(bootstrap, name));
            if (connected) {
                play("idempotent", () -> idempotent(bootstrap, name));
                play("consume", () -> consume(bootstrap, name));
                play("transaction", () -> transaction(bootstrap, name));
                play("configs", () -> configs(bootstrap, name));
            }
            System.out.println("end");
            System.out.flush();
        }
    }

    private static boolean play(String step, Step work) {
        try {
            work.play();
            System.out.println(step + " ok");
            return true;
        } catch (Throwable error) {
            Throwable cause = error;
            while (cause.getCause() != null) cause = cause.getCause();
            cause.printStackTrace();
            System.out.println(step + " " + cause.getClass().getSimpleName());
            return false;
        }
    }

    private static Properties properties(String bootstrap) {
        Properties made = new Properties();
        made.put("bootstrap.servers", bootstrap);
        made.put("key.serializer", SERIALIZER);
        made.put("value.serializer", SERIALIZER);
        made.put("key.deserializer", DESERIALIZER);
        made.put("value.deserializer", DESERIALIZER);
        made.put("auto.offset.reset", "earliest");
        made.put("enable.auto.commit", "false");
        made.put("max.block.ms", "10000");
        made.put("compression.type", "gzip");
        made.put("retries", "20");  // before 2.1 the default was none
        return made;
    }

    private static KafkaProducer<String, String> producer(String bootstrap, String key, String value) {
        Properties with = properties(bootstrap);
        with.put(key, value);
        return new KafkaProducer<String, String>(with);
    }

    private static void produce(String bootstrap, String name) throws Exception {
        try (KafkaProducer<String, String> producer = producer(bootstrap, "enable.idempotence", "false")) {
            for (int i = 0; i < 10; i++) producer.send(new ProducerRecord<String, String>(name, "k" + i, "plain")).get();
        }
    }

    private static void idempotent(String bootstrap, String name) throws Exception {
        try (KafkaProducer<String, String> producer = producer(bootstrap, "enable.idempotence", "true")) {
            for (int i = 0; i < 10; i++) producer.send(new ProducerRecord<String, String>(name, "k" + i, "once")).get();
        }
    }

    private static void consume(String bootstrap, String name) throws Exception {
        Properties with = properties(bootstrap);
        with.put("group.id", name + "-group");
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<String, String>(with)) {
            consumer.subscribe(Collections.singletonList(name));
            if (read(consumer, 10).size() < 10) throw new IllegalStateException("too few records");
            consumer.commitSync();
        }
    }

    private static void transaction(String bootstrap, String name) throws Exception {
        String out = name + "-out";
        try (KafkaProducer<String, String> producer = producer(bootstrap, "transactional.id", name)) {
            producer.initTransactions();
            for (boolean commit : new boolean[] {false, true}) {
                producer.beginTransaction();
                producer.send(new ProducerRecord<String, String>(out, "k", commit ? "committed" : "aborted"));
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                offsets.put(new TopicPartition(name, 0), new OffsetAndMetadata(commit ? 7 : 3));
                sendOffsets(producer, offsets, name + "-other");
                if (commit) producer.commitTransaction(); else producer.abortTransaction();
            }
        }
        Properties with = properties(bootstrap);
        with.put("isolation.level", "read_committed");
        with.put("group.id", name + "-other");
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<String, String>(with)) {
            List<TopicPartition> partitions = Collections.singletonList(new TopicPartition(out, 0));
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            List<ConsumerRecord<String, String>> found = read(consumer, 1);
            if (found.size() != 1 || !found.get(0).value().equals("committed")) throw new IllegalStateException("read " + found);
            // Clients before 2.5 cannot ask for stable offsets (KIP-447), and may come before the marker does.
            TopicPartition first = new TopicPartition(name, 0);
            long committed = -1;
            for (long deadline = System.currentTimeMillis() + PATIENCE_MS; committed != 7 && System.currentTimeMillis() < deadline; ) {
                consumer.assign(Collections.<TopicPartition>emptyList());
                consumer.assign(Collections.singletonList(first));
                committed = consumer.position(first);
            }
            if (committed != 7) throw new IllegalStateException("committed " + committed);
        }
    }

    /** DescribeConfigs: clients of 4.x begin with version 1, brokers with it in 1.1 (KIP-896). */
    private static void configs(String bootstrap, String name) throws Exception {
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, name);
        Properties with = new Properties();
        with.put("bootstrap.servers", bootstrap);
        try (AdminClient admin = AdminClient.create(with)) {
            admin.describeConfigs(Collections.singleton(topic)).all().get(PATIENCE_MS, TimeUnit.MILLISECONDS);
        }
    }

    /** With a group's id alone: what every broker since 0.11 takes. */
    private static void sendOffsets(KafkaProducer<String, String> producer, Map<TopicPartition, OffsetAndMetadata> offsets, String group)
            throws Exception {
        try {
            Class<?> metadata = Class.forName("org.apache.kafka.clients.consumer.ConsumerGroupMetadata");
            Method send = KafkaProducer.class.getMethod("sendOffsetsToTransaction", Map.class, metadata);
            send.invoke(producer, offsets, metadata.getConstructor(String.class).newInstance(group));
        } catch (ClassNotFoundException | NoSuchMethodException before25) {
            KafkaProducer.class.getMethod("sendOffsetsToTransaction", Map.class, String.class).invoke(producer, offsets, group);
        }
    }

    private static List<ConsumerRecord<String, String>> read(KafkaConsumer<String, String> consumer, int wanted) throws Exception {
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while (found.size() < wanted && System.currentTimeMillis() < deadline) {
            for (ConsumerRecord<String, String> each : poll(consumer)) found.add(each);
        }
        return found;
    }

    @SuppressWarnings("unchecked")
    private static ConsumerRecords<String, String> poll(KafkaConsumer<String, String> consumer) throws Exception {
        try {
            Class<?> duration = Class.forName("java.time.Duration");
            Method poll = KafkaConsumer.class.getMethod("poll", duration);
            return (ConsumerRecords<String, String>) poll.invoke(consumer, duration.getMethod("ofMillis", long.class).invoke(null, 100L));
        } catch (NoSuchMethodException before20) {
            return (ConsumerRecords<String, String>) KafkaConsumer.class.getMethod("poll", long.class).invoke(consumer, 100L);
        }
    }
}
