package understudy.junit;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.AfterTestExecutionCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.jupiter.api.extension.TestInstanceFactoryContext;
import org.junit.jupiter.api.extension.TestInstancePreConstructCallback;
import org.junit.platform.commons.support.AnnotationSupport;
import org.opentest4j.TestAbortedException;

/** The JUnit extension behind {@link KafkaTest}. */
public final class KafkaExtension
    implements TestInstancePreConstructCallback, BeforeAllCallback, BeforeEachCallback, AfterTestExecutionCallback,
        AfterEachCallback, AfterAllCallback, ParameterResolver {
    private static final ExtensionContext.Namespace OURS = ExtensionContext.Namespace.create(KafkaExtension.class);

    /** The process with which clusters with the same options in the shared server begin and end. */
    private static final class Maker {
        private ServerProcess process;
        /** Whether each cluster with these options has a server of its own. */
        private boolean isOwn;
    }

    /** The idle clusters, by their options; JUnit closes the pool at the end of the run. */
    static final class Pool implements ExtensionContext.Store.CloseableResource, AutoCloseable { // JUnit before and since 5.13
        private static final int CONFLICT = 409;
        private final Map<List<String>, Deque<Cluster>> idle = new HashMap<>();
        private final Map<List<String>, Maker> makers = new HashMap<>();

        /** Returns a new or reset cluster; replaces a server that a test has killed. A rejected reset fails the class. */
        Cluster take(List<String> options) {
            for (var found = poll(options); found != null; found = poll(options)) {
                try {
                    found.reset();
                    return found;
                } catch (KafkaControlException error) {
                    if (error.status() == CONFLICT) {
                        giveBack(options, found);
                        throw error;
                    }
                    found.discard();
                }
            }
            var maker = makerOf(options);
            synchronized (maker) { // while the first cluster starts, others wait, as they may not need a process
                if (!maker.isOwn) return created(maker, options);
            }
            return Cluster.start(options.toArray(String[]::new));
        }

        /** Returns another cluster of the maker's process, or the first one of a new process. */
        private static Cluster created(Maker maker, List<String> options) {
            if (maker.process != null && maker.process.isAlive()) {
                try {
                    return Cluster.another(maker.process);
                } catch (KafkaControlException error) {
                    if (maker.process.ending(Cluster.END_LIMIT_MS).isEmpty()) throw error;
                }
            }
            var made = Cluster.start(options.toArray(String[]::new));
            maker.isOwn = !made.isShared();
            maker.process = made.process();
            return made;
        }

        private synchronized Maker makerOf(List<String> options) {
            return makers.computeIfAbsent(options, each -> new Maker());
        }

        private synchronized Cluster poll(List<String> options) {
            return idle.getOrDefault(options, new ArrayDeque<>()).poll();
        }

        synchronized void giveBack(List<String> options, Cluster cluster) {
            idle.computeIfAbsent(options, each -> new ArrayDeque<>()).push(cluster);
        }

        @Override
        public synchronized void close() {
            idle.values().forEach(each -> each.forEach(Cluster::close));
        }
    }

    /** The cluster of a class. */
    private static final class Used {
        final List<String> options;
        final Cluster cluster;
        /** The permit of the test that uses the cluster; others of the class wait for it. */
        final Semaphore turn = new Semaphore(1);
        /** Whether each test has a new cluster. */
        final boolean isPerTest;
        boolean isFresh = true;

        Used(List<String> options, Cluster cluster, boolean isPerTest) {
            this.options = options;
            this.cluster = cluster;
            this.isPerTest = isPerTest && cluster.isShared();
        }
    }

    /** With {@code Lifecycle.PER_CLASS}, JUnit constructs the test before {@code beforeAll}. */
    @Override
    public void preConstructTestInstance(TestInstanceFactoryContext factory, ExtensionContext context) { beforeAll(context); }

    @Override
    public void beforeAll(ExtensionContext context) {
        if (used(context) != null) return; // a nested class shares the cluster of its outer class
        var type = context.getRequiredTestClass();
        var options = optionsOf(type);
        var made = new Used(options, pool(context).take(options), annotationOf(type).fresh());
        context.getStore(OURS).put("used", made);
        context.getStore(OURS).put("owner", context.getUniqueId());
    }

    @Override
    public void beforeEach(ExtensionContext context) {
        var used = used(context);
        used.turn.acquireUninterruptibly();
        context.getStore(OURS).put("turn", used.turn);
        try {
            if (!used.isFresh && used.isPerTest) used.cluster.replace();
            else if (!used.isFresh) used.cluster.reset();
        } catch (KafkaControlException error) {
            if (used.cluster.ending().isEmpty()) throw error;
            used.cluster.restart(used.options);
        }
        used.isFresh = false;
    }

    /** Prints the report of a failed test before its {@code @AfterEach} closes the clients, which ends what the report explains. */
    @Override
    public void afterTestExecution(ExtensionContext context) {
        var problem = context.getExecutionException();
        if (problem.isEmpty() || problem.get() instanceof TestAbortedException) return;
        var cluster = used(context).cluster;
        try {
            String report = cluster.report().text();
            System.err.println(cluster.withLog("understudy, " + report));
            context.getStore(OURS).put("reported", true);
        } catch (KafkaControlException gone) { // afterEach reports how the server ended
            context.getStore(OURS).remove("reported");
        }
    }

    @Override
    public void afterEach(ExtensionContext context) {
        var used = used(context);
        try {
            judge(used.cluster, context);
        } finally {
            if (used.isPerTest) used.cluster.discard();
            if (context.getStore(OURS).remove("turn") != null) used.turn.release();
        }
    }

    private static void judge(Cluster cluster, ExtensionContext context) {
        var problem = context.getExecutionException();
        if (problem.filter(TestAbortedException.class::isInstance).isPresent()) return; // by an assumption: it has not failed
        try {
            if (context.getStore(OURS).get("reported") != null) return;
            if (problem.isPresent()) System.err.println(cluster.withLog("understudy, " + cluster.report().text()));
            else check(cluster.unmetFaults());
        } catch (KafkaControlException error) {
            var ending = cluster.ending().map(each -> cluster.withLog(each + " during this test"));
            if (problem.isEmpty()) throw ending.map(KafkaExtension::sentence).orElseThrow(() -> error);
            System.err.println(ending.orElseGet(() -> cluster.withLog("understudy, " + error.getMessage())));
        }
    }

    private static void check(List<Cluster.Fault> unmet) {
        if (!unmet.isEmpty()) throw new AssertionError("no request met these faults: " + unmet);
    }

    /** An error without the frames of this package. */
    private static RuntimeException sentence(String text) {
        var error = new KafkaControlException(0, text, null);
        error.setStackTrace(new StackTraceElement[0]);
        return error;
    }

    @Override
    public void afterAll(ExtensionContext context) {
        if (!context.getUniqueId().equals(context.getStore(OURS).get("owner"))) return;
        var used = used(context);
        if (!used.isPerTest) pool(context).giveBack(used.options, used.cluster);
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == Cluster.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        return used(context).cluster;
    }

    private static Used used(ExtensionContext context) { return context.getStore(OURS).get("used", Used.class); }

    private static Pool pool(ExtensionContext context) {
        return context.getRoot().getStore(OURS).getOrComputeIfAbsent("pool", key -> new Pool(), Pool.class);
    }

    private static KafkaTest annotationOf(Class<?> type) {
        return AnnotationSupport.findAnnotation(type, KafkaTest.class)
            .or(() -> AnnotationSupport.findAnnotation(type.getEnclosingClass(), KafkaTest.class))
            .orElseThrow(() -> new IllegalStateException(type + " has no @KafkaTest"));
    }

    /** Converts the options of the annotation to those of {@code understudy serve}. */
    static List<String> optionsOf(Class<?> type) {
        var wanted = annotationOf(type);
        var options = new ArrayList<>(List.of("--brokers", String.valueOf(wanted.brokers())));
        for (String topic : wanted.topics()) options.addAll(List.of("--topic", topic));
        for (String setting : wanted.settings()) options.addAll(List.of("--set", setting));
        options.addAll(List.of(wanted.options()));
        return options;
    }
}
