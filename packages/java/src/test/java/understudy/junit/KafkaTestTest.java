package understudy.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import com.sun.net.httpserver.HttpServer;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.testkit.engine.EngineTestKit;

/** The extension and the cluster's methods, with a server. */
@KafkaTest(brokers = 2, topics = "orders:1")
class KafkaTestTest {
    private static final Set<String> SEEN = new HashSet<>();
    private final Cluster kafka;

    KafkaTestTest(Cluster kafka) { this.kafka = kafka; }

    @BeforeEach
    void isAsJustStarted(Cluster parameter) {
        assertEquals(kafka.bootstrapServers(), parameter.bootstrapServers());
        assertTrue(SEEN.add(kafka.bootstrapServers()), "clients of the test before must not come back");
        assertEquals(List.of(), kafka.values("orders", 0));
        kafka.write("orders", "one order");
        assertEquals(List.of("one order"), kafka.values("orders", 0));
    }

    @Test
    void isSteeredByMethods() {
        long before = kafka.report().nowMs();
        kafka.freeze();
        kafka.advance(Duration.ofMinutes(15));
        kafka.thaw();
        assertTrue(kafka.report().nowMs() - before >= 900_000);
        kafka.createTopic("payments", 2);
        assertEquals(List.of(), kafka.values("payments", 1));
        kafka.killBroker(2);
        kafka.startBroker(2);
        kafka.stopBroker(2);
        kafka.startBroker(2);
        var fault = kafka.addFault(Map.of("api", "EndTxn"), Map.of("apply_then", Map.of("disconnect", "reset")), 0);
        assertEquals(0, kafka.waitHits(fault, 0, Duration.ofSeconds(1)).hits());
        var unmet = assertThrows(KafkaControlException.class, () -> kafka.waitHits(fault, 1, Duration.ofMillis(1)));
        assertTrue(unmet.getMessage().startsWith("0 of 1 requests met Fault[id="), unmet.getMessage());
        assertEquals(List.of(fault), kafka.unmetFaults());
        kafka.clearFaults();
        assertTrue(kafka.report().text().startsWith("last requests:"));
        assertTrue(kafka.report(kafka.report().nowMs() + 60_000).requests().isEmpty());
        assertEquals(kafka.bootstrapServers(), Cluster.connect(kafka.control(), null).bootstrapServers());
    }

    @Test
    void aRefusalIsOneSentence() {
        var refused = assertThrows(KafkaControlException.class, () -> kafka.addFault(Map.of("api", "EndTx"), Map.of("drop", true)));
        assertEquals(422, refused.status());
        assertTrue(refused.getMessage().contains("EndTxn"), refused.getMessage());
        assertEquals(404, assertThrows(KafkaControlException.class, () -> kafka.whyGroup("a b")).status());
        assertEquals(404, assertThrows(KafkaControlException.class, () -> kafka.whyTransaction("a b")).status());
    }

    @Nested
    class InNestedClasses {
        @Test
        void itIsTheSameOne(Cluster inner) { assertEquals(kafka.bootstrapServers(), inner.bootstrapServers()); }
    }

    /** Run by the tests below only: their names do not end as surefire wants it. */
    @KafkaTest
    static class Red {
        @Test
        void green() {}

        @Test
        void red() { throw new AssertionError("on purpose"); }

        @Test
        void missed(Cluster kafka) { kafka.addFault(Map.of("api", "EndTxn"), Map.of("drop", true)); }
    }

    private static final CyclicBarrier BOTH = new CyclicBarrier(2);
    private static final AtomicInteger RUNNING = new AtomicInteger(), MOST = new AtomicInteger();

    /** Run by the test below only, as a pair: both of them must run at the same time. */
    @KafkaTest
    static class OneOfTwo {
        private static void meet() throws Exception { BOTH.await(60, TimeUnit.SECONDS); }

        @Test
        void meets() throws Exception { meet(); }
    }

    /** The other one; its own tests wait for each other. */
    @KafkaTest
    static class OtherOfTwo {
        @Test
        void meets(Cluster kafka) throws Exception {
            runsAlone(kafka);
            OneOfTwo.meet();
        }

        @Test
        void writes(Cluster kafka) { runsAlone(kafka); }

        @Test
        void writesToo(Cluster kafka) { runsAlone(kafka); }

        private static void runsAlone(Cluster kafka) {
            MOST.accumulateAndGet(RUNNING.incrementAndGet(), Math::max);
            kafka.createTopic("mine", 1);
            kafka.write("mine", "v");
            assertEquals(List.of("v"), kafka.values("mine", 0));
            RUNNING.decrementAndGet();
        }
    }

    @Test
    void classesRunInParallelAndTheTestsOfAClassDoNot() {
        EngineTestKit.engine("junit-jupiter")
            .selectors(selectClass(OneOfTwo.class), selectClass(OtherOfTwo.class))
            .configurationParameter("junit.jupiter.execution.parallel.enabled", "true")
            .configurationParameter("junit.jupiter.execution.parallel.mode.default", "concurrent")
            .configurationParameter("junit.jupiter.execution.parallel.config.strategy", "fixed")
            .configurationParameter("junit.jupiter.execution.parallel.config.fixed.parallelism", "4")
            .execute()
            .testEvents()
            .assertStatistics(each -> each.succeeded(4).failed(0));
        assertEquals(1, MOST.get());
    }

    /** Run by the test below only. */
    @KafkaTest
    static class Closing {
        @Test
        void red(Cluster kafka) {
            kafka.addFault(Map.of("api", "EndTxn"), Map.of("drop", true));
            throw new AssertionError("on purpose");
        }

        @AfterEach
        void close(Cluster kafka) { kafka.reset(); }
    }

    @Test
    void theReportIsThatOfTheEndOfTheTest() {
        var printed = printedBy(() -> {
            var events = EngineTestKit.engine("junit-jupiter").selectors(selectClass(Closing.class)).execute().testEvents();
            events.assertStatistics(each -> each.succeeded(0).failed(1));
        });
        assertEquals(1, printed.split("understudy, last requests:", -1).length - 1, printed);
        assertTrue(printed.contains("EndTxn"), printed);
    }

    /** Run by the test below only. */
    @KafkaTest
    static class Aborted {
        @Test
        void aborted(Cluster kafka) {
            kafka.addFault(Map.of("api", "EndTxn"), Map.of("drop", true));
            Assumptions.assumeTrue(false);
        }
    }

    /** Run by the test below only. */
    @KafkaTest
    @TestInstance(TestInstance.Lifecycle.PER_CLASS)
    static class PerClass {
        private final String servers;

        PerClass(Cluster kafka) { servers = kafka.bootstrapServers(); }

        @BeforeAll
        void isConstructed(Cluster kafka) { assertEquals(servers, kafka.bootstrapServers()); }

        @Test
        void first(Cluster kafka) { assertEquals(List.of(), kafka.report().requests()); }

        @Test
        void second(Cluster kafka) { assertEquals(List.of(), kafka.report().requests()); }
    }

    @Test
    void aTestMayBeAbortedAndConstructedFirst() {
        var selectors = List.of(selectClass(Aborted.class), selectClass(PerClass.class));
        var printed = printedBy(() -> {
            var events = EngineTestKit.engine("junit-jupiter").selectors(selectors.get(0), selectors.get(1)).execute();
            events.containerEvents().assertStatistics(each -> each.failed(0));
            events.testEvents().assertStatistics(each -> each.succeeded(2).aborted(1).failed(0));
        });
        assertEquals("", printed);
    }

    private static String printedBy(Runnable run) {
        var printed = new ByteArrayOutputStream();
        var usual = System.err;
        System.setErr(new PrintStream(printed, true));
        try {
            run.run();
        } finally {
            System.setErr(usual);
        }
        return printed.toString();
    }

    @Test
    void allValuesAreRead() {
        var values = new String[10_001];
        Arrays.setAll(values, String::valueOf);
        kafka.createTopic("many", 1);
        kafka.write("many", values);
        assertEquals(List.of(values), kafka.values("many", 0));
        kafka.write("orders", (String) null);
        assertEquals(List.of("one order", "null"), kafka.values("orders", 0));
    }

    @Test
    void aResponseNeedNotBeJson() {
        assertTrue(new String(kafka.content("/metrics")).startsWith("# HELP"));
        var other = assertThrows(KafkaControlException.class, () -> kafka.ask("GET", "/metrics", null));
        assertEquals("GET /metrics: the response is not a JSON object; content() reads any", other.getMessage());
    }

    @Test
    void aRequestHasATimeLimit() throws Exception {
        var hanging = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        answer(hanging, "/v1/cluster", 200, "{\"brokers\": []}");
        hanging.createContext("/v1/report", exchange -> exchange.sendResponseHeaders(200, 10)); // the headers, but never the body
        hanging.start();
        String address = "http://127.0.0.1:" + hanging.getAddress().getPort();
        var cluster = Cluster.connect(address, null);
        try {
            cluster.limit = Duration.ofMillis(50);
            var late = assertThrows(KafkaControlException.class, cluster::report);
            assertTrue(late.getMessage().contains("no answer from " + address + " within 50 ms"), late.getMessage());
            assertEquals(0, late.status());
        } finally {
            hanging.stop(0);
        }
        cluster.limit = Duration.ofSeconds(30);
        var gone = assertThrows(KafkaControlException.class, cluster::report);
        assertEquals("the control plane at " + address + " does not answer: ConnectException", gone.getMessage());
    }

    @Test
    void onlyATestThatFailedPrintsTheReport() {
        var problems = new ArrayList<String>();
        var printed = printedBy(() -> {
            var events = EngineTestKit.engine("junit-jupiter").selectors(selectClass(Red.class)).execute().testEvents();
            events.assertStatistics(each -> each.succeeded(1).failed(2));
            events.failed().stream().forEach(each -> problems.add(each.getPayload().orElseThrow().toString()));
        });
        assertEquals(1, printed.split("understudy, last requests:", -1).length - 1, printed);
        assertTrue(problems.toString().contains("no request met these faults"), problems.toString());
    }

    /** Run by the test below only. */
    @KafkaTest(topics = "orders:1", fresh = true)
    @TestInstance(TestInstance.Lifecycle.PER_CLASS)
    static class Fresh {
        private final Set<String> seen = new HashSet<>();

        private void isNew(Cluster kafka) {
            for (var control : seen) {
                var before = new ArrayList<KafkaControlException>();
                try {
                    Cluster.connect(control, null).write("orders", "late");
                } catch (KafkaControlException ended) {
                    before.add(ended);
                }
                assertEquals(410, before.get(0).status());
            }
            assertTrue(seen.add(kafka.control()), "a cluster was used again");
            kafka.write("orders", "one order");
            assertEquals(List.of("one order"), kafka.values("orders", 0));
        }

        @Test
        void first(Cluster kafka) { isNew(kafka); }

        @Test
        void second(Cluster kafka) { isNew(kafka); }

        @Test
        void third(Cluster kafka) { isNew(kafka); }
    }

    @Test
    void eachTestMayHaveANewCluster() {
        var events = EngineTestKit.engine("junit-jupiter").selectors(selectClass(Fresh.class)).execute();
        events.testEvents().assertStatistics(each -> each.succeeded(3).failed(0));
    }

    @Test
    void clustersThatAreUsedAtTheSameTimeHaveOneProcess() {
        var pool = new KafkaExtension.Pool();
        Cluster first = pool.take(List.of("--seed", "3")), second = pool.take(List.of("--seed", "3"));
        assertEquals(first.pid(), second.pid());
        assertFalse(first.control().equals(second.control()));
        var withSettings = List.of("--topic", "orders:1:retention.ms=1000");
        Cluster third = pool.take(withSettings), fourth = pool.take(withSettings);
        assertFalse(third.pid() == fourth.pid(), "the shared server has no topics with settings");
        for (var each : List.of(first, third, fourth)) each.close();
    }

    /** Run by the test below only. */
    @KafkaTest(brokers = 3)
    static class Killer {
        @Test
        void kills(Cluster kafka) throws Exception { kill(kafka); }

        @Test
        void killsItsReplacement(Cluster kafka) throws Exception { kill(kafka); }

        private static void kill(Cluster kafka) throws Exception {
            var server = ProcessHandle.of(kafka.pid()).orElseThrow();
            server.destroyForcibly();
            server.onExit().get(10, TimeUnit.SECONDS);
        }
    }

    /** With the same options. */
    @KafkaTest(brokers = 3)
    static class Later {
        @Test
        void isServed(Cluster kafka) { kafka.unmetFaults(); }
    }

    @Test
    void aServerThatWasKilledIsReplaced() {
        var events = EngineTestKit.engine("junit-jupiter").selectors(selectClass(Killer.class), selectClass(Later.class)).execute();
        events.containerEvents().assertStatistics(each -> each.failed(0));
        events.testEvents().assertStatistics(each -> each.succeeded(1).failed(2));
        events.testEvents().failed().stream().forEach(each -> {
            var problem = each.getPayload(TestExecutionResult.class).orElseThrow().getThrowable().orElseThrow();
            String sentence = "the server \\(process \\d+\\) was killed by signal 9 during this test";
            assertTrue(problem.getMessage().lines().findFirst().orElseThrow().matches(sentence), problem.getMessage());
            assertEquals(0, problem.getStackTrace().length);
        });
    }

    @Test
    void aResetThatIsRefusedIsAnError() throws Exception {
        var keeping = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        answer(keeping, "/v1/cluster", 200, "{\"brokers\": []}");
        answer(keeping, "/v1/reset", 409, "{\"status\": 409, \"title\": \"Conflict\", \"detail\": \"it was made by another broker\"}");
        keeping.start();
        try {
            var kept = Cluster.connect("http://127.0.0.1:" + keeping.getAddress().getPort(), null);
            var pool = new KafkaExtension.Pool();
            pool.giveBack(List.of(), kept);
            for (int time = 0; time < 2; time++) { // it stays in the pool
                var refused = assertThrows(KafkaControlException.class, () -> pool.take(List.of()));
                assertTrue(refused.getMessage().contains("it was made by another broker"), refused.getMessage());
            }
        } finally {
            keeping.stop(0);
        }
    }

    private static void answer(HttpServer server, String path, int status, String text) {
        server.createContext(path, exchange -> {
            var body = text.getBytes();
            exchange.getResponseHeaders().add("Content-Type", "application/json");
            exchange.sendResponseHeaders(status, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
    }

    @Test
    void anAnswerOfSomethingElseIsQuoted() throws Exception {
        var gateway = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        gateway.createContext("/v1/cluster", exchange -> {
            var body = "<html>bad gateway".getBytes();
            exchange.sendResponseHeaders(502, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        gateway.start();
        try {
            String address = "http://127.0.0.1:" + gateway.getAddress().getPort() + "/";
            var refused = assertThrows(KafkaControlException.class, () -> Cluster.connect(address, null));
            assertEquals(502, refused.status());
            assertEquals("GET /v1/cluster: <html>bad gateway", refused.getMessage());
        } finally {
            gateway.stop(0);
        }
    }

    @Test
    void aServerThatCannotBeStartedIsExplained(@TempDir Path folder) throws Exception {
        var ended = assertThrows(KafkaControlException.class, () -> Cluster.start("--brokers", "many"));
        assertTrue(ended.getMessage().contains("it ended with code 2\n"), ended.getMessage());
        assertTrue(ended.getMessage().contains("brokers"), ended.getMessage());
        var slow = folder.resolve("slow");
        Files.writeString(slow, "#!/bin/sh\nexec cat\n");
        Files.setPosixFilePermissions(slow, PosixFilePermissions.fromString("rwxr-xr-x"));
        System.setProperty("understudy.command", slow.toString());
        try {
            var late = assertThrows(KafkaControlException.class, () -> Cluster.start(Duration.ofMillis(100)));
            assertTrue(late.getMessage().contains("it took longer than 100 ms"), late.getMessage());
            System.setProperty("understudy.command", "/nowhere/understudy");
            var wrong = assertThrows(KafkaControlException.class, Cluster::start);
            assertEquals("the property understudy.command is \"/nowhere/understudy\", but there is no such program", wrong.getMessage());
        } finally {
            System.clearProperty("understudy.command");
        }
    }

    @Test
    void clientsDoNotPause() {
        assertTrue(argumentsOf(kafka).contains("--for-tests"));
        try (var own = Cluster.start()) {
            assertTrue(argumentsOf(own).contains("--for-tests"));
        }
    }

    @Test
    void settingsMayBeSecrets() {
        String jaas = "org.apache.kafka.common.security.plain.PlainLoginModule required user_alice=\"secret\";";
        try (var own = Cluster.start("--listener", "SASL_PLAINTEXT://127.0.0.1:0", "--set", "sasl.enabled.mechanisms=PLAIN",
            "--set=listener.name.sasl_plaintext.plain.sasl.jaas.config=" + jaas)) {
            assertFalse(argumentsOf(own).toString().contains("secret"));
        }
        var settings = new ArrayList<String>();
        var given = List.of("--set", "a=b c", "--seed", "1", "--set=d=e", "--set", "f=g\nh", "--set", "i=j ", "--set");
        assertEquals(List.of("--seed", "1", "--set", "f=g\nh", "--set", "i=j ", "--set"),
            ServerProcess.offTheCommandLine(given, settings));
        assertEquals(List.of("a=b c", "d=e"), settings);
    }

    private static List<String> argumentsOf(Cluster cluster) {
        return List.of(ProcessHandle.of(cluster.pid()).orElseThrow().info().arguments().orElseThrow());
    }

    @Test
    void aServerIsStoppedInOrder(@TempDir Path folder) {
        Cluster.start("--data-dir", folder.toString()).close();
        assertTrue(Files.exists(folder.resolve(".kafka_cleanshutdown")));
    }

    @Test
    void theServerIsFoundInOrder(@TempDir Path folder) throws Exception {
        var environment = new HashMap<String, String>(Map.of("PATH", folder.toString(), "XDG_CACHE_HOME", folder.toString()));
        String missing = assertThrows(KafkaControlException.class, () -> Finding.find(List.of(), environment)).getMessage();
        assertTrue(missing.startsWith("there is no understudy server; looked, in this order, for the property"), missing);
        assertTrue(missing.contains("/understudy (not found), docker on the PATH (not found). To get a server, run"), missing);
        program(folder.resolve("docker"));
        var container = Finding.find(List.of("--brokers", "2"), environment);
        assertEquals(folder.resolve("docker").toString(), container.command().get(0));
        assertEquals(2, container.brokers().size());
        assertEquals(3, Finding.find(List.of("--brokers=3"), environment).brokers().size());
        var none = assertThrows(KafkaControlException.class, () -> Finding.find(List.of("--brokers=many"), environment));
        assertEquals("--brokers many is not a number of brokers", none.getMessage());
        assertTrue(container.command().contains("understudy:" + Finding.VERSION), container.command().toString());
        var binary = folder.resolve("understudy").resolve(Finding.VERSION).resolve("understudy");
        program(binary);
        assertEquals(binary.toString(), Finding.find(List.of(), environment).command().get(0));
        environment.put("UNDERSTUDY_COMMAND", folder.resolve("docker") + " -m understudy");
        assertEquals(List.of(folder.resolve("docker").toString(), "-m", "understudy", "shared", "--lifeline"),
            Finding.find(List.of(), environment).command().subList(0, 5));
        environment.put("UNDERSTUDY_SERVER", "own");
        assertEquals("serve", Finding.find(List.of(), environment).command().get(3));
        assertFalse(Finding.VERSION.contains("$"));
    }

    private static void program(Path path) throws Exception {
        Files.createDirectories(path.getParent());
        Files.writeString(path, "#!/bin/sh\n");
        Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rwxr-xr-x"));
    }
}
