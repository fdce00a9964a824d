package transactions;

import static interop.Report.expect;
import static interop.Report.step;
import static interop.Report.until;

import interop.Observed;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** kafka-clients through the transactional script of tests/clients/transactions/steps.py. */
public final class Transactions {
    private static final int NUMBERED = 300;

    private final String bootstrap;
    private final int brokers;
    private final String in;
    private final String out;
    private final String result;
    private final String id;
    private final String group;
    private final List<String> seen = new ArrayList<>();
    private Producer<String, String> producer;

    private Transactions(String bootstrap, int brokers, String topic) {
        this.bootstrap = bootstrap;
        this.brokers = brokers;
        this.in = topic + "-in";
        this.out = topic + "-out";
        this.result = topic + "-result";
        this.id = topic + "-id";
        this.group = topic + "-group";
    }

    public static void main(String[] args) {
        Transactions script = new Transactions(args[0], Integer.parseInt(args[1]), args[2]);
        step("create", script::create);
        step("commit", script::commit);
        step("abort", script::abort);
        step("isolation", script::isolation);
        step("fencing", script::fencing);
        step("transform", script::transform);
        step("zombie", script::zombie);
        step("timeout", script::timeout);
        script.producer.close(Duration.ofSeconds(2));
        System.exit(0);    // fenced producers may still be waiting
    }

    // ---------------------------------------------------------------- clients

    private Producer<String, String> plain(String... settings) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        for (int i = 0; i < settings.length; i += 2) properties.put(settings[i], settings[i + 1]);
        return Observed.producer(new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer()));
    }

    private Producer<String, String> transactor(String transactionalId, int timeoutMs) {
        Producer<String, String> made = plain("transactional.id", transactionalId,
            "transaction.timeout.ms", String.valueOf(timeoutMs), "max.block.ms", "20000");
        made.initTransactions();
        return made;
    }

    private Consumer<String, String> consumer(String groupId, String isolation) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("auto.offset.reset", "earliest");
        properties.put("enable.auto.commit", "false");
        properties.put("isolation.level", isolation);
        properties.put("heartbeat.interval.ms", "300");
        properties.put("fetch.max.wait.ms", "50");
        properties.put("max.poll.records", "25");
        if (groupId != null) properties.put("group.id", groupId);
        return Observed.consumer(
            new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer()), groupId != null);
    }

    private static List<TopicPartition> partitions(String topic) {
        return Arrays.asList(
            new TopicPartition(topic, 0), new TopicPartition(topic, 1), new TopicPartition(topic, 2));
    }

    private void send(Producer<String, String> with, String topic, String... values) throws Exception {
        List<Future<RecordMetadata>> futures = new ArrayList<>();
        for (int i = 0; i < values.length; i++) futures.add(with.send(new ProducerRecord<>(topic, i % 3, null, values[i])));
        with.flush();
        for (Future<RecordMetadata> future : futures) Observed.call("producer.send", () -> future.get(20, TimeUnit.SECONDS));
    }

    private static String[] values(String name) { return new String[] {name + "-0", name + "-1", name + "-2"}; }

    private void transact(Producer<String, String> with, String name) throws Exception {
        with.beginTransaction();
        send(with, out, values(name));
    }

    private List<String> read(String topic, int count, String isolation) throws Exception {
        List<String> read = new ArrayList<>();
        try (Consumer<String, String> consumer = consumer(null, isolation)) {
            consumer.assign(partitions(topic));
            until(() -> {
                boolean whole = read.size() >= count;
                long quiet = System.nanoTime() + 300_000_000L;    // what should not be there has this long to come
                do {
                    for (ConsumerRecord<String, String> r : consumer.poll(Duration.ofMillis(100))) read.add(r.value());
                } while (whole && System.nanoTime() < quiet);
                return whole;
            }, () -> read);
        }
        Collections.sort(read);
        return read;
    }

    /** Compares what read_committed shows with what was committed, these names now among it. */
    private void committed(String... names) throws Exception {
        for (String name : names) seen.addAll(Arrays.asList(values(name)));
        Collections.sort(seen);
        List<String> read = read(out, seen.size(), "read_committed");
        expect(read.equals(seen), read + ", not " + seen);
    }

    private interface Work {
        void run() throws Exception;
    }

    /** What the work threw, without the wrapping; it has to. */
    private static Throwable refused(Work work) {
        try {
            work.run();
        } catch (Exception error) {
            Throwable cause = error;
            while (cause.getCause() != null) cause = cause.getCause();
            return cause;
        }
        throw new IllegalStateException("nothing was refused");
    }

    private void finish(Producer<String, String> late) throws Exception {
        send(late, out, "late");
        late.commitTransaction();
    }

    // ---------------------------------------------------------------- steps

    private Object create() throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        try (Admin admin = Admin.create(properties)) {
            List<NewTopic> topics = new ArrayList<>();
            for (String name : Arrays.asList(in, out, result))
                topics.add(new NewTopic(name, 3, (short) Math.min(brokers, 3)));
            admin.createTopics(topics).all().get();
        }
        String[] numbers = new String[NUMBERED];
        for (int n = 0; n < NUMBERED; n++) numbers[n] = String.valueOf(n);
        try (Producer<String, String> plain = plain()) {
            send(plain, in, numbers);
        }
        producer = transactor(id, 30_000);
        return null;
    }

    private Object commit() throws Exception {
        transact(producer, "committed");
        producer.commitTransaction();
        committed("committed");
        return null;
    }

    private Object abort() throws Exception {
        transact(producer, "aborted");
        producer.abortTransaction();
        committed();
        List<String> raw = read(out, seen.size() + 3, "read_uncommitted");
        expect(raw.containsAll(Arrays.asList(values("aborted"))), raw);
        return null;
    }

    private Object isolation() throws Exception {
        transact(producer, "open");
        try (Producer<String, String> plain = plain()) {
            send(plain, out, values("after"));
        }
        committed();
        producer.commitTransaction();
        committed("open", "after");
        return null;
    }

    private Object fencing() throws Exception {
        Producer<String, String> first = producer;
        transact(first, "fenced");
        producer = transactor(id, 30_000);
        Throwable told = refused(() -> finish(first));
        expect(told instanceof ProducerFencedException || told instanceof InvalidProducerEpochException, told);
        first.close(Duration.ZERO);
        transact(producer, "second");
        producer.commitTransaction();
        committed("second");
        return told.toString();
    }

    private Object transform() throws Exception {
        Set<String> written = new HashSet<>();
        int turns = 0;
        try (Consumer<String, String> source = consumer(group, "read_committed")) {
            source.subscribe(Collections.singletonList(in));
            while (written.size() < NUMBERED) {
                List<ConsumerRecord<String, String>> batch = new ArrayList<>();
                source.poll(Duration.ofMillis(200)).forEach(batch::add);
                if (batch.isEmpty()) continue;
                expect(++turns < 200, written.size() + " records after " + turns + " transactions");
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                producer.beginTransaction();
                for (ConsumerRecord<String, String> r : batch) {
                    producer.send(new ProducerRecord<>(result, r.partition(), null, "t-" + r.value()));
                    offsets.put(new TopicPartition(in, r.partition()), new OffsetAndMetadata(r.offset() + 1));
                }
                producer.sendOffsetsToTransaction(offsets, source.groupMetadata());
                if (turns % 3 == 0) {
                    producer.abortTransaction();
                    rewind(source);
                } else {
                    producer.commitTransaction();
                    for (ConsumerRecord<String, String> r : batch) written.add(r.value());
                }
            }
        }
        List<String> read = read(result, NUMBERED, "read_committed");
        expect(read.size() == NUMBERED && new HashSet<>(read).size() == NUMBERED, read.size() + " records");
        Map<TopicPartition, OffsetAndMetadata> offsets = offsetsOf(group);
        for (TopicPartition tp : partitions(in)) expect(offsets.get(tp).offset() == NUMBERED / 3, offsets);
        return turns + " transactions";
    }

    private static void rewind(Consumer<String, String> source) {
        source.committed(source.assignment()).forEach((tp, offset) ->
            source.seek(tp, offset == null ? 0 : offset.offset()));
    }

    private Map<TopicPartition, OffsetAndMetadata> offsetsOf(String of) {
        try (Consumer<String, String> consumer = consumer(of, "read_committed")) {
            return consumer.committed(new HashSet<>(partitions(in)));
        }
    }

    private Consumer<String, String> member(String of) throws Exception {
        Consumer<String, String> consumer = consumer(of, "read_committed");
        consumer.subscribe(Collections.singletonList(in));
        until(() -> !consumer.poll(Duration.ofMillis(100)).isEmpty(), () -> "nothing read");
        return consumer;
    }

    private Object zombie() throws Exception {
        String of = group + "-zombie";
        Consumer<String, String> former = member(of);
        ConsumerGroupMetadata before = former.groupMetadata();
        former.close();
        Throwable told;
        try (Consumer<String, String> heir = member(of);
             Producer<String, String> mine = transactor(id + "-zombie", 30_000)) {
            expect(!heir.assignment().isEmpty(), "no partitions");
            transact(mine, "zombie");
            Map<TopicPartition, OffsetAndMetadata> offsets =
                Collections.singletonMap(new TopicPartition(in, 0), new OffsetAndMetadata(50));
            told = refused(() -> mine.sendOffsetsToTransaction(offsets, before));
            mine.abortTransaction();
        }
        committed();
        Set<OffsetAndMetadata> left = new HashSet<>(offsetsOf(of).values());
        left.remove(null);
        expect(left.isEmpty(), left);
        return told.toString();
    }

    private Object timeout() throws Exception {
        Producer<String, String> late = transactor(id + "-late", 1000);
        transact(late, "late");
        try (Producer<String, String> plain = plain()) {
            send(plain, out, values("waiting"));
        }
        committed("waiting");    // visible once the coordinator has aborted what was before it
        Throwable told = refused(() -> finish(late));
        late.close(Duration.ZERO);
        try (Producer<String, String> heir = transactor(id + "-late", 30_000)) {
            transact(heir, "recovered");
            heir.commitTransaction();
        }
        committed("recovered");
        return told.toString();
    }
}
