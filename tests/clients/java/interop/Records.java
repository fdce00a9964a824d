package interop;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;

/** The records of the script, numbered as tests/clients/steps.py says. */
final class Records {
    static final List<String> CODECS = Arrays.asList("none", "gzip", "snappy", "lz4", "zstd");
    static final String PADDING = new String(new char[100]).replace('\0', 'x');

    private final String topic;
    private final long baseMs;
    final List<ProducerRecord<byte[], byte[]>> sent = new ArrayList<>();

    Records(String topic, long baseMs) {
        this.topic = topic;
        this.baseMs = baseMs;
    }

    long timestampOf(int number) { return baseMs + 1000L * number; }

    private ProducerRecord<byte[], byte[]> record(int number, String key, String value) {
        return new ProducerRecord<>(topic, number % 3, timestampOf(number), bytes(key), bytes(value));
    }

    List<ProducerRecord<byte[], byte[]>> compressed(String codec) {
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        int first = CODECS.indexOf(codec) * 30;
        for (int i = 0; i < 30; i++)
            records.add(record(first + i, codec + "-" + i, codec + "-value-" + i + "-" + PADDING));
        return records;
    }

    List<ProducerRecord<byte[], byte[]>> headers() {
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            ProducerRecord<byte[], byte[]> record = record(150 + i, "headers-" + i, "headers");
            record.headers().add("h", bytes("one")).add("h", bytes("two")).add("empty", new byte[0]);
            records.add(record);
        }
        return records;
    }

    List<ProducerRecord<byte[], byte[]>> nulls() {
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int i = 0; i < 3; i++) records.add(record(153 + i, "null-" + i, null));
        for (int i = 0; i < 3; i++) records.add(record(156 + i, null, "no-key-" + i));
        return records;
    }

    List<ProducerRecord<byte[], byte[]>> idempotent() {
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int i = 0; i < 3; i++) records.add(record(159 + i, "idempotent-" + i, "idempotent"));
        return records;
    }

    List<ProducerRecord<byte[], byte[]>> nullHeader() {
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            ProducerRecord<byte[], byte[]> record = record(162 + i, "null-header-" + i, "headers");
            record.headers().add("null", null);
            records.add(record);
        }
        return records;
    }

    static byte[] bytes(String text) { return text == null ? null : text.getBytes(StandardCharsets.UTF_8); }

    static String text(byte[] bytes) { return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8); }

    static String text(Iterable<Header> headers) {
        StringBuilder out = new StringBuilder();
        for (Header header : headers) out.append(header.key()).append('=').append(text(header.value())).append(';');
        return out.toString();
    }

    static List<String> keysAndValues(List<ConsumerRecord<byte[], byte[]>> read, int partition) {
        List<String> out = new ArrayList<>();
        for (ConsumerRecord<byte[], byte[]> r : read)
            if (r.partition() == partition) out.add(text(r.key()) + "/" + text(r.value()));
        return out;
    }

    List<String> keysAndValues(int partition) {
        List<String> out = new ArrayList<>();
        for (ProducerRecord<byte[], byte[]> r : sent)
            if (r.partition() == partition) out.add(text(r.key()) + "/" + text(r.value()));
        return out;
    }
}
