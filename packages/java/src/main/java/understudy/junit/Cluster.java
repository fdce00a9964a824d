package understudy.junit;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** A running cluster, and its control plane. */
public final class Cluster implements AutoCloseable {
    static final long END_LIMIT_MS = 1_000;
    private static final long START_LIMIT_MS = 120_000;
    private static final int MULTIPLE_CHOICES = 300, PAGE = 10_000;
    private static final Gson GSON = new GsonBuilder().serializeNulls().create();
    /** Of its own: a proxy for the tests' other requests is not for this one. */
    private final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).proxy(HttpClient.Builder.NO_PROXY).build();
    private volatile ServerProcess process;
    private volatile String control;
    private volatile String token;
    private volatile List<String> brokers;
    /** Time limit of a request that has none of its own. */
    Duration limit = Duration.ofSeconds(30);

    /** A fault on the server. */
    public record Fault(String id, int hits, Map<String, Object> match, Map<String, Object> effect) {}

    /** The cluster's report for a failed test; {@code text} has all of it. {@code nowMs} is the cluster's time. */
    public record Report(String text, long nowMs, List<String> requests, List<String> hints) {}

    private Cluster(ServerProcess process, String control, String token, List<String> brokers) {
        use(process, control, token, brokers);
    }

    private void use(ServerProcess process, String control, String token, List<String> brokers) {
        this.process = process;
        this.control = control.replaceAll("/+$", "");
        this.token = token;
        this.brokers = brokers;
    }

    /** Starts a cluster in a separate process, with {@code --for-tests} and these options of {@code understudy serve}. */
    public static Cluster start(String... options) { return start(Duration.ofMillis(START_LIMIT_MS), options); }

    /** Does the same, with a time limit for the start. */
    public static Cluster start(Duration limit, String... options) {
        var process = started(Arrays.asList(options), limit);
        return new Cluster(process, process.control(), process.token(), process.brokers());
    }

    private static ServerProcess started(List<String> options, Duration limit) {
        var words = new ArrayList<>(List.of("--for-tests")); // Kafka's defaults would make clients pause in each test
        words.addAll(options);
        return new ServerProcess(words, limit.toMillis());
    }

    /** Makes one more cluster in the shared server, with the options of the process's first one; it ends with the process, too. */
    static Cluster another(ServerProcess process) {
        var cluster = new Cluster(process, process.control(), null, List.of());
        cluster.replace();
        return cluster;
    }

    /** Makes another cluster in the shared server in place of this one. */
    void replace() {
        var made = root().ask("POST", "/v1/clusters", GSON.fromJson(process.cluster(), JsonObject.class));
        var found = new ArrayList<String>();
        made.getAsJsonArray("bootstrap_servers").forEach(each -> found.add(each.getAsString()));
        use(process, made.get("control_url").getAsString(), null, found);
    }

    /** Ends a cluster in the shared server; what cannot be deleted ends with its process. A server of its own is stopped. */
    void discard() {
        if (!isShared()) {
            close();
            return;
        }
        try {
            root().ask("DELETE", "/v1/clusters/" + control.substring(control.lastIndexOf('/') + 1), null);
        } catch (KafkaControlException gone) { // with its server, or by the test
            Thread.yield();
        }
    }

    /** Whether it is in the shared server. */
    boolean isShared() { return process != null && process.cluster() != null; }

    /** The process with which it ends. */
    ServerProcess process() { return process; }

    /** The control plane of the shared server. */
    private Cluster root() { return new Cluster(process, process.control().replaceAll("/clusters/\\d+/*$", ""), null, List.of()); }

    /** Starts another server in place of one that has ended. */
    void restart(List<String> options) {
        var next = started(options, Duration.ofMillis(START_LIMIT_MS));
        use(next, next.control(), next.token(), next.brokers());
    }

    /** Returns how the server ended by itself, if it has, or does within a second. */
    Optional<String> ending() { return process == null ? Optional.empty() : process.ending(END_LIMIT_MS); }

    /** Connects to the control plane of a running cluster, such as in a container; {@code token} may be null. */
    public static Cluster connect(String control, String token) {
        var cluster = new Cluster(null, control, token, List.of());
        var found = new ArrayList<String>();
        for (var each : cluster.ask("GET", "/v1/cluster", null).getAsJsonArray("brokers")) {
            var broker = each.getAsJsonObject();
            String host = broker.get("host").getAsString();
            found.add((host.contains(":") ? "[" + host + "]" : host) + ":" + broker.get("port").getAsInt());
        }
        cluster.brokers = found;
        return cluster;
    }

    /** The {@code bootstrap.servers} for clients; a reset changes it. */
    public String bootstrapServers() { return String.join(",", brokers); }

    /** The URL of the control plane. */
    public String control() { return control; }

    /** The process id of the server, or of the container's client; 0 if this process did not start it. */
    public long pid() { return process == null ? 0 : process.pid(); }

    /** The last lines of the server's log. */
    public String log() { return process == null ? "" : process.log(); }

    /**
     * Sends any verb of the control plane, such as {@code ask("POST", "/v1/clock/advance", Map.of("ms", 900_000))}; {@code body}
     * may be null. The time limit is 30 s.
     */
    public JsonObject ask(String method, String path, Object body) { return ask(method, path, body, limit); }

    /** Does the same with a time limit. */
    public JsonObject ask(String method, String path, Object body, Duration limit) {
        String text = new String(send(method, path, body, limit), StandardCharsets.UTF_8);
        try {
            return GSON.fromJson(text, JsonObject.class);
        } catch (JsonParseException other) {
            throw new KafkaControlException(0, method + " " + path + ": the response is not a JSON object; content() reads any", other);
        }
    }

    /** The body of a GET that is not JSON: {@code /metrics}, {@code /v1/journal.pcap}, {@code /v1/diagrams.svg?...}. */
    public byte[] content(String path) { return send("GET", path, null, limit); }

    private byte[] send(String method, String path, Object body, Duration limit) {
        if (process != null && !process.isAlive()) throw new KafkaControlException(0, "the server of this cluster has ended", null);
        var publisher = body == null ? HttpRequest.BodyPublishers.noBody()
            : HttpRequest.BodyPublishers.ofString(GSON.toJson(body));
        var request = HttpRequest.newBuilder(URI.create(control + path)).method(method, publisher);
        if (token != null) request.header("Authorization", "Bearer " + token);
        // HttpRequest.timeout ends with the headers of the response, and its body may hang as well.
        var asked = http.sendAsync(request.build(), HttpResponse.BodyHandlers.ofByteArray());
        try {
            var answer = asked.get(limit.toMillis(), TimeUnit.MILLISECONDS);
            if (answer.statusCode() < MULTIPLE_CHOICES) return answer.body();
            String refusal = sentence(new String(answer.body(), StandardCharsets.UTF_8));
            throw new KafkaControlException(answer.statusCode(), method + " " + path + ": " + refusal, null);
        } catch (ExecutionException failed) {
            var cause = failed.getCause(); // a ConnectException of this client has no message
            String why = cause.getMessage() == null ? cause.getClass().getSimpleName() : cause.getMessage();
            throw new KafkaControlException(0, "the control plane at " + control + " does not answer: " + why, cause);
        } catch (TimeoutException late) {
            asked.cancel(true);
            throw new KafkaControlException(0, method + " " + path + ": no answer from " + control + " within " + limit.toMillis()
                + " ms; the server may still be processing it", late);
        } catch (InterruptedException error) {
            asked.cancel(true);
            Thread.currentThread().interrupt();
            throw new KafkaControlException(0, method + " " + path + " was interrupted", error);
        }
    }

    /** The detail of a rejection; the whole body if it came from something else, such as a gateway. */
    private static String sentence(String body) {
        try {
            var content = GSON.fromJson(body, JsonObject.class);
            if (content == null || !content.has("detail")) return body;
            return content.get("detail").getAsString() + (content.has("field") ? " (field " + content.get("field").getAsString() + ")" : "");
        } catch (JsonParseException | UnsupportedOperationException | IllegalStateException other) {
            return body;
        }
    }

    /** Resets the cluster to its state after the start: disconnects all clients, and moves to other ports. */
    public void reset() {
        var done = ask("POST", "/v1/reset", Map.of("disconnect", true));
        if (token != null || !done.has("bootstrap_servers")) return;
        var moved = new ArrayList<String>();
        done.getAsJsonArray("bootstrap_servers").forEach(each -> moved.add(each.getAsString()));
        brokers = moved;
    }

    /** The report for a failed test. */
    public Report report() {
        return report(0);
    }

    /** The report since a time in milliseconds of the cluster's clock, such as that of an earlier report. */
    public Report report(long sinceMs) {
        var answer = ask("GET", "/v1/report?since=" + sinceMs, null);
        var requests = new ArrayList<String>();
        answer.getAsJsonArray("requests").forEach(each -> requests.add(each.getAsJsonObject().get("text").getAsString()));
        var hints = new ArrayList<String>();
        answer.getAsJsonArray("hints").forEach(each -> hints.add(each.getAsString()));
        return new Report(answer.get("text").getAsString(), answer.get("now_ms").getAsLong(), requests, hints);
    }

    /** Returns a text with the last lines of the server's log. */
    String withLog(String text) {
        String lines = log();
        return text + (lines.isEmpty() ? "" : "\nthe server's log:\n" + lines.indent(2).stripTrailing());
    }

    /** Moves the clock; returns after all timers that became due have run. */
    public void advance(Duration by) { ask("POST", "/v1/clock/advance", Map.of("ms", by.toMillis())); }

    /** Stops the clock. */
    public void freeze() { ask("POST", "/v1/clock/freeze", null); }

    /** Resumes the clock. */
    public void thaw() { ask("POST", "/v1/clock/thaw", null); }

    /**
     * Injects a fault into the next request that matches, such as {@code addFault(Map.of("api", "EndTxn"), Map.of("drop", true))}.
     */
    public Fault addFault(Map<String, ?> match, Map<String, ?> effect) { return addFault(match, effect, 1); }

    /** Does the same for that many requests; 0: for all. */
    public Fault addFault(Map<String, ?> match, Map<String, ?> effect, int times) {
        var body = new LinkedHashMap<String, Object>(Map.of("match", match, "do", effect));
        body.put("times", times == 0 ? null : times);
        return fault(ask("POST", "/v1/faults", body));
    }

    /** Waits until that many requests have matched a fault, and returns it; after the time limit, throws an exception. */
    public Fault waitHits(Fault fault, int hits, Duration limit) {
        String path = "/v1/faults/" + part(fault.id()) + "?wait_hits=" + hits + "&timeout_ms=" + limit.toMillis();
        var found = fault(ask("GET", path, null, this.limit.plus(limit)));
        if (found.hits() >= hits) return found;
        throw new KafkaControlException(0, found.hits() + " of " + hits + " requests met " + found + " within " + limit.toMillis() + " ms", null);
    }

    /** The faults that no request has matched. */
    public List<Fault> unmetFaults() {
        var found = new ArrayList<Fault>();
        ask("GET", "/v1/faults?unmet=true", null).getAsJsonArray("faults").forEach(each -> found.add(fault(each.getAsJsonObject())));
        return found;
    }

    /** Removes all faults. */
    public void clearFaults() { ask("DELETE", "/v1/faults", null); }

    @SuppressWarnings("unchecked")
    private static Fault fault(JsonObject state) {
        return new Fault(state.get("id").getAsString(), state.get("hits").getAsInt(),
            GSON.fromJson(state.get("match"), Map.class), GSON.fromJson(state.get("do"), Map.class));
    }

    /** Creates a topic. */
    public void createTopic(String name, int partitions) {
        ask("POST", "/v1/topics", Map.of("name", name, "partitions", partitions));
    }

    /** Appends values to a topic without a Kafka client; null is a record without a value. */
    public void write(String topic, String... values) {
        var rows = Arrays.stream(values).map(value -> Collections.singletonMap("value", value)).toList();
        ask("POST", "/v1/topics/" + part(topic) + "/records", Map.of("records", rows));
    }

    /** Reads all values of a partition without a Kafka client; a value that is not text is returned as JSON. */
    public List<String> values(String topic, int partition) {
        var found = new ArrayList<String>();
        String where = "/v1/topics/" + part(topic) + "/partitions/" + partition + "/records?limit=" + PAGE;
        for (String path = where; path != null; ) {
            var records = ask("GET", path, null).getAsJsonArray("records");
            long last = -1;
            for (var each : records) {
                var value = each.getAsJsonObject().get("value");
                found.add(value.isJsonPrimitive() ? value.getAsString() : value.toString());
                last = each.getAsJsonObject().get("offset").getAsLong();
            }
            path = records.size() < PAGE ? null : where + "&offset=" + (last + 1);
        }
        return found;
    }

    /** Kills a broker: its connections are reset, its memory is lost. */
    public void killBroker(int id) { ask("POST", "/v1/brokers/" + id + "/kill", null); }

    /** Performs a controlled shutdown of a broker. */
    public void stopBroker(int id) { ask("POST", "/v1/brokers/" + id + "/stop", null); }

    /** Starts a broker again. */
    public void startBroker(int id) { ask("POST", "/v1/brokers/" + id + "/start", null); }

    /** Explains the last refusal of a group's member. */
    public String whyGroup(String id) { return ask("GET", "/v1/groups/" + part(id) + "/why", null).get("why").getAsString(); }

    /** Explains the last refusal of a transactional id. */
    public String whyTransaction(String id) {
        return ask("GET", "/v1/transactions/" + part(id) + "/why", null).get("why").getAsString();
    }

    private static String part(String name) { return URLEncoder.encode(name, StandardCharsets.UTF_8).replace("+", "%20"); }

    /** Ends the server, if it was started here. */
    @Override
    public void close() {
        if (process != null) process.stop();
    }
}
