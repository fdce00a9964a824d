import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Client of benchmarks.readme: a test for each line of the standard input. */
public class Readme {
    static void readBack(String bootstrap, String topic, String group) throws Exception {
        var text = new StringSerializer();
        try (var producer = new KafkaProducer<>(Map.<String, Object>of("bootstrap.servers", bootstrap), text, text)) {
            producer.send(new ProducerRecord<>(topic, "one order")).get();
        }
        var settings = Map.<String, Object>of("bootstrap.servers", bootstrap, "group.id", group, "auto.offset.reset", "earliest");
        var back = new StringDeserializer();
        try (var consumer = new KafkaConsumer<>(settings, back, back)) {
            consumer.subscribe(List.of(topic));
            var records = consumer.poll(Duration.ofSeconds(20));
            while (records.isEmpty()) records = consumer.poll(Duration.ofSeconds(20));
            if (!records.iterator().next().value().equals("one order")) throw new IllegalStateException("another record");
        }
    }

    public static void main(String[] ignored) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            long begun = System.nanoTime();
            readBack(words[0], words[1], words[2]);
            System.out.println((System.nanoTime() - begun) / 1e6);
        }
    }
}
