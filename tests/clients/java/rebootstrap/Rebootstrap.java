package rebootstrap;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** A producer that sends each line of its input to partition 0 of a topic, and prints "ok" or what went wrong. */
public class Rebootstrap {
    private static final int PATIENCE_S = 30;

    /** BOOTSTRAP TOPIC [KEY=VALUE...]: settings of the producer. */
    public static void main(String[] arguments) throws Exception {
        Properties with = new Properties();
        with.put("bootstrap.servers", arguments[0]);
        // Without a pause: a client all of whose brokers are waited for bootstraps again by itself (KIP-899).
        with.put("reconnect.backoff.ms", "0");
        with.put("reconnect.backoff.max.ms", "0");
        for (int i = 2; i < arguments.length; i++) {
            String[] pair = arguments[i].split("=", 2);
            with.put(pair[0], pair[1]);
        }
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(with, new StringSerializer(), new StringSerializer())) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String result = "ok";
                try {
                    producer.send(new ProducerRecord<>(arguments[1], 0, null, line)).get(PATIENCE_S, TimeUnit.SECONDS);
                } catch (Exception error) {
                    Throwable cause = error.getCause() == null ? error : error.getCause();
                    result = cause.getClass().getSimpleName();
                }
                System.out.println(result);
            }
        }
    }
}
