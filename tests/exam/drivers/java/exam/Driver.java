package exam;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;

/** kafka-clients as a driver of `understudy exam`; one source for 2.8 and for 4.4. */
public final class Driver {
    private static final Object NOTHING = Collections.emptyMap();
    private final Producers producers = new Producers();
    private final Consumers consumers = new Consumers();
    private final Sharing sharing = Sharing.ofThisRelease();

    private Driver() { }

    public static void main(String[] arguments) throws IOException {
        PrintStream answers = System.out;
        System.setOut(System.err);
        Driver driver = new Driver();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            Command command = new Command(Json.object(line));
            Map<String, Object> answer = new LinkedHashMap<>();
            answer.put("id", command.id);
            driver.answer(command, answer);
            answers.println(Json.text(answer));
            if (command.name.equals("quit")) Runtime.getRuntime().halt(0);
        }
    }

    private void answer(Command command, Map<String, Object> answer) {
        try {
            Object result = run(command);
            if (result == null) answer.put("unsupported", "this driver has no " + command.name);
            else answer.put("result", result);
        } catch (Exception refused) {
            answer.put("error", Errors.of(refused));
        }
    }

    private Object run(Command command) throws Exception {
        Object shared = sharing.run(command);
        if (shared != null) return shared;
        switch (command.name) {
            case "hello": return hello();
            case "quit": return NOTHING;
            case "close": return consumers.has(command.string("name")) ? consumers.close(command) : producers.close(command);
            default: {
                Object result = runProducer(command);
                if (result == null) result = runConsumer(command);
                return result != null ? result : Administration.run(command);
            }
        }
    }

    private Object runProducer(Command command) throws Exception {
        switch (command.name) {
            case "producer": producers.create(command); return NOTHING;
            case "send": producers.send(command); return NOTHING;
            case "flush": return producers.flush(command);
            case "init_transactions": producers.of(command).initTransactions(); return NOTHING;
            case "begin": producers.of(command).beginTransaction(); return NOTHING;
            case "send_offsets": producers.sendOffsets(command, consumers.of(command)); return NOTHING;
            case "commit": producers.of(command).commitTransaction(); return NOTHING;
            case "abort": producers.of(command).abortTransaction(); return NOTHING;
            default: return null;
        }
    }

    private Object runConsumer(Command command) {
        switch (command.name) {
            case "consumer": consumers.create(command); return NOTHING;
            case "assign": consumers.assign(command); return NOTHING;
            case "subscribe": consumers.subscribe(command); return NOTHING;
            case "poll": return consumers.poll(command);
            case "assignment": return consumers.assignment(command);
            case "seek": consumers.seek(command); return NOTHING;
            case "commit_offsets": consumers.commit(command); return NOTHING;
            default: return null;
        }
    }

    private static Map<String, Object> hello() throws IOException {
        List<String> capabilities = new ArrayList<>(Arrays.asList(
            "producer", "idempotence", "transactions", "send_offsets", "consumer", "read_committed", "offset_reset", "seek", "groups", "assignment",
            "static_members", "commit_offsets", "admin", "reassign", "resubscribe", "compression", "max_records", "auto_commit", "tls", "sasl_plain", "sasl_scram",
            "sasl_oauthbearer", "null_values"));
        Properties about = new Properties();
        try (InputStream in = Driver.class.getResourceAsStream("/kafka/kafka-version.properties")) {
            about.load(in);
        }
        String version = about.getProperty("version");
        if (Integer.parseInt(version.substring(0, version.indexOf('.'))) >= 4) capabilities.addAll(Arrays.asList("consumer_protocol", "share_groups"));
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("protocol", 1);
        out.put("library", "kafka-clients (Java)");
        out.put("version", version);
        out.put("capabilities", capabilities);
        return out;
    }
}
