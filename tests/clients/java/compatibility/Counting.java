package compatibility;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;

/**
 * What Kafka Streams can do with a cluster of any release: counts records by their keys, exactly once, with the
 * processing.guarantee that it is called with. It breaks in the middle of its first transaction, and begins anew.
 *
 * Reads lines of "BOOTSTRAP NAME" and answers each with "count RESULT" and "end", as Compatibility does. Compiles
 * against Streams 2.5: what changed since is called by reflection.
 */
public class Counting {
    private static final int RECORDS = 20;
    private static final int BREAKS_AT = 13;
    private static final long PATIENCE_MS = 60_000;

    private static class Broken extends RuntimeException { }

    private final String bootstrap;
    private final String name;
    private final String guarantee;
    private final AtomicInteger seen = new AtomicInteger();

    private Counting(String bootstrap, String name, String guarantee) {
        this.bootstrap = bootstrap;
        this.name = name;
        this.guarantee = guarantee;
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.trim().split(" ");
            try {
                new Counting(words[0], words[1], arguments[0]).play();
                System.out.println("count ok");
            } catch (Throwable error) {
                Throwable cause = error;
                while (cause.getCause() != null) cause = cause.getCause();
                error.printStackTrace();
                System.out.println("count " + cause.getClass().getSimpleName());
            }
            System.out.println("end");
            System.out.flush();
        }
    }

    private void play() throws Exception {
        createTopics();
        feed();
        String folder = Files.createTempDirectory("streams").toString();
        Throwable first = run(folder, new ArrayList<>());
        if (!(root(first) instanceof Broken)) throw new IllegalStateException(first);
        List<String> counts = new ArrayList<>();
        Throwable second = run(folder, counts);
        if (second != null) throw new IllegalStateException(second);
        List<String> wanted = new ArrayList<>();
        for (int i = 0; i < RECORDS; i++) wanted.add("key-" + i % 2 + "=" + (i / 2 + 1));
        Collections.sort(wanted);
        Collections.sort(counts);
        if (!counts.equals(wanted)) throw new AssertionError("counted " + counts);
    }

    private static Throwable root(Throwable error) {
        while (error != null && error.getCause() != null) error = error.getCause();
        return error;
    }

    private void createTopics() throws Exception {
        Properties with = new Properties();
        with.put("bootstrap.servers", bootstrap);
        try (AdminClient admin = AdminClient.create(with)) {
            List<NewTopic> topics = Arrays.asList(new NewTopic(name, 1, (short) 1), new NewTopic(name + "-out", 1, (short) 1));
            admin.createTopics(topics).all().get(PATIENCE_MS, TimeUnit.MILLISECONDS);
        }
    }

    private void feed() throws Exception {
        Properties with = new Properties();
        with.put("bootstrap.servers", bootstrap);
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(with, new StringSerializer(), new StringSerializer())) {
            for (int i = 0; i < RECORDS; i++) producer.send(new ProducerRecord<>(name, "key-" + i % 2, "value")).get();
        }
    }

    /** Until all counts are there, which are added to the list, or it fails; what it failed with. */
    private Throwable run(String folder, List<String> counts) throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(name, Consumed.with(Serdes.String(), Serdes.String()))
            .mapValues(value -> {
                if (seen.incrementAndGet() == BREAKS_AT) throw new Broken();
                return value;
            })
            .groupByKey()
            .count()
            .toStream()
            .mapValues(String::valueOf)
            .to(name + "-out", Produced.with(Serdes.String(), Serdes.String()));
        CompletableFuture<Throwable> failed = new CompletableFuture<>();
        KafkaStreams streams = new KafkaStreams(builder.build(), settings(folder));
        handle(streams, failed);
        streams.start();
        try {
            return waitFor(failed, counts);
        } finally {
            streams.close(Duration.ofSeconds(20));
        }
    }

    private Properties settings(String folder) {
        Properties with = new Properties();
        with.put("bootstrap.servers", bootstrap);
        with.put("application.id", name + "-application");
        with.put("state.dir", folder);
        with.put("processing.guarantee", guarantee);
        with.put("replication.factor", "1");
        with.put("commit.interval.ms", "1000");
        with.put("cache.max.bytes.buffering", "0");    // every step of a count is written
        with.put("statestore.cache.max.bytes", "0");   // as it is called since 3.4
        with.put("default.key.serde", Serdes.String().getClass().getName());
        with.put("default.value.serde", Serdes.String().getClass().getName());
        with.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        with.put(StreamsConfig.consumerPrefix("session.timeout.ms"), "6000");
        with.put(StreamsConfig.consumerPrefix("heartbeat.interval.ms"), "500");
        return with;
    }

    /** Since 2.8 by a handler of Streams' own; before, as any thread's. */
    private static void handle(KafkaStreams streams, CompletableFuture<Throwable> failed) throws Exception {
        try {
            Class<?> handler = Class.forName("org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler");
            Class<?> answers = Class.forName(handler.getName() + "$StreamThreadExceptionResponse");
            Object answer = answers.getField("SHUTDOWN_CLIENT").get(null);
            Object ours = Proxy.newProxyInstance(handler.getClassLoader(), new Class<?>[] {handler}, (self, method, with) -> {
                failed.complete((Throwable) with[0]);
                return answer;
            });
            KafkaStreams.class.getMethod("setUncaughtExceptionHandler", handler).invoke(streams, ours);
        } catch (ClassNotFoundException before28) {
            KafkaStreams.class.getMethod("setUncaughtExceptionHandler", Thread.UncaughtExceptionHandler.class)
                .invoke(streams, (Thread.UncaughtExceptionHandler) (thread, error) -> failed.complete(error));
        }
    }

    private Throwable waitFor(CompletableFuture<Throwable> failed, List<String> counts) throws Exception {
        Properties with = new Properties();
        with.put("bootstrap.servers", bootstrap);
        with.put("group.id", name + "-reader");
        with.put("enable.auto.commit", "false");
        with.put("auto.offset.reset", "earliest");
        with.put("isolation.level", "read_committed");
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(with, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(Collections.singletonList(name + "-out"));
            while (counts.size() < RECORDS && System.currentTimeMillis() < deadline && !failed.isDone()) {
                for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofMillis(100))) {
                    counts.add(each.key() + "=" + each.value());
                }
            }
            if (counts.size() < RECORDS && !failed.isDone()) throw new TimeoutException("counted " + counts);
        }
        return failed.isDone() ? failed.get() : null;
    }
}
