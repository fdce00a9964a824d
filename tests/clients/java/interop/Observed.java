package interop;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * What a client observes: with OBSERVE in the environment, each call prints what came back or was thrown, as a line of
 * JSON. tests/differential/clients.py holds those of two clusters against each other, and says what is left out of them.
 */
public final class Observed {
    private static final boolean OBSERVING = System.getenv("OBSERVE") != null;
    /** Records are told when the consumer is closed; futures when they are done. The rest hangs on timing alone. */
    private static final Collection<String> UNTOLD =
        java.util.Arrays.asList("poll", "assignment", "groupMetadata", "send", "metrics", "toString", "flush", "wakeup");

    @SuppressWarnings("unchecked")
    public static <K, V> Consumer<K, V> consumer(Consumer<K, V> inner, boolean group) {
        return OBSERVING ? (Consumer<K, V>) made(Consumer.class, inner, "consumer", group) : inner;
    }

    @SuppressWarnings("unchecked")
    public static <K, V> Producer<K, V> producer(Producer<K, V> inner) {
        return OBSERVING ? (Producer<K, V>) made(Producer.class, inner, "producer", false) : inner;
    }

    private static Object made(Class<?> type, Object inner, String name, boolean group) {
        Map<Integer, StringBuilder> read = new TreeMap<>();
        Map<String, Object> first = new TreeMap<>();
        return Proxy.newProxyInstance(Observed.class.getClassLoader(), new Class<?>[] {type}, (self, method, words) -> {
            if (method.getName().equals("close") && !read.isEmpty())
                tell(name + ".read", group ? "\"first\": " + json(first) : "\"returned\": " + json(new TreeMap<>(read)));
            Object result = passed(inner, method, words, name);
            if (result instanceof ConsumerRecords) {
                for (ConsumerRecord<?, ?> r : (ConsumerRecords<?, ?>) result) {
                    read.computeIfAbsent(r.partition(), p -> new StringBuilder()).append(plain(r)).append(' ');
                    first.putIfAbsent(String.valueOf(r.partition()), r.offset());
                }
            }
            return result;
        });
    }

    private static Object passed(Object inner, Method method, Object[] words, String name) throws Throwable {
        boolean told = !UNTOLD.contains(method.getName());
        try {
            Object result = method.invoke(inner, words);
            if (told) tell(name + "." + method.getName(), "\"returned\": " + json(result));
            return result;
        } catch (InvocationTargetException e) {
            if (!method.getName().equals("wakeup")) raised(name + "." + method.getName(), e.getCause());
            throw e.getCause();
        }
    }

    /** A call whose result comes by a future, or that no interface stands for. */
    public static <T> T call(String name, Callable<T> work) throws Exception {
        if (!OBSERVING) return work.call();
        try {
            T result = work.call();
            tell(name, "\"returned\": " + json(result));
            return result;
        } catch (ExecutionException e) {
            raised(name, e.getCause());
            throw e;
        } catch (Exception e) {
            raised(name, e);
            throw e;
        }
    }

    private static void raised(String name, Throwable error) {
        tell(name, "\"raised\": " + Report.quoted(error.getClass().getSimpleName()) + ", \"message\": "
            + Report.quoted(String.valueOf(error.getMessage())));
    }

    private static synchronized void tell(String call, String what) {
        System.out.println("{\"call\": " + Report.quoted(call) + ", " + what + "}");
    }

    private static String plain(ConsumerRecord<?, ?> r) {
        return r.offset() + "@" + r.timestamp() + " " + r.timestampType() + " epoch " + r.leaderEpoch().orElse(-1) + " "
            + text(r.key()) + "/" + text(r.value()) + " " + Records.text(r.headers());
    }

    private static String text(Object value) {
        return value instanceof byte[] ? Records.text((byte[]) value) : String.valueOf(value);
    }

    /** Values as JSON: maps and sets in their order, what is no plain value as it describes itself. */
    static String json(Object value) {
        if (value == null || value instanceof Void) return "null";
        if (value instanceof Number || value instanceof Boolean) return value.toString();
        if (value instanceof Optional) return json(((Optional<?>) value).orElse(null));
        if (value instanceof Map) {
            Map<String, String> lines = new TreeMap<>();
            ((Map<?, ?>) value).forEach((key, each) -> lines.put(String.valueOf(key), json(each)));
            StringBuilder out = new StringBuilder();
            lines.forEach((key, each) ->
                out.append(out.length() > 0 ? ", " : "").append(Report.quoted(key)).append(": ").append(each));
            return "{" + out + "}";
        }
        if (value instanceof Collection) {
            StringBuilder out = new StringBuilder();
            Collection<String> lines = new java.util.ArrayList<>();
            for (Object each : (Collection<?>) value) lines.add(json(each));
            for (String line : value instanceof java.util.List ? lines : new TreeSet<>(lines))
                out.append(out.length() > 0 ? ", " : "").append(line);
            return "[" + out + "]";
        }
        if (value instanceof Config) {
            Map<String, Object> entries = new HashMap<>();
            for (ConfigEntry e : ((Config) value).entries())
                entries.put(e.name(), e.value() + " " + e.source() + " " + e.type() + (e.isReadOnly() ? " read-only" : "")
                    + (e.isSensitive() ? " sensitive" : ""));
            return json(entries);
        }
        if (value instanceof RecordMetadata) {
            RecordMetadata m = (RecordMetadata) value;
            return Report.quoted(m.partition() + "@" + m.offset() + " " + m.timestamp());
        }
        if (value instanceof OffsetAndTimestamp || value instanceof OffsetAndMetadata || value instanceof TopicPartition)
            return Report.quoted(value.toString());
        return Report.quoted(value instanceof byte[] ? Records.text((byte[]) value) : value.toString());
    }

    private Observed() { }
}
