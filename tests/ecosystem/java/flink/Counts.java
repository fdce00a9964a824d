import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichFlatMapFunction;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.state.CheckpointListener;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;

/**
 * Flink: counts orders by customer in keyed state, exactly once; fails once between two checkpoints, and restarts from the last one.
 *
 * <p>An order is "customer number"; a count is "customer count sum". Ends where the topic ends. Prints how often it failed.
 */
public class Counts {
    static final AtomicBoolean checkpointed = new AtomicBoolean();
    static final AtomicBoolean failed = new AtomicBoolean();

    static class Count extends RichFlatMapFunction<String, String> implements CheckpointListener {
        private transient ValueState<String> state;

        @Override
        public void open(OpenContext context) {
            state = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.STRING));
        }

        @Override
        public void flatMap(String order, Collector<String> out) throws Exception {
            if (checkpointed.get() && failed.compareAndSet(false, true)) {
                throw new IllegalStateException("fails once");
            }
            String[] parts = order.split(" ");
            String[] old = (state.value() == null ? "0 0" : state.value()).split(" ");
            state.update((Integer.parseInt(old[0]) + 1) + " " + (Integer.parseInt(old[1]) + Integer.parseInt(parts[1])));
            out.collect(parts[0] + " " + state.value());
        }

        @Override
        public void notifyCheckpointComplete(long id) {
            checkpointed.set(true);
        }
    }

    /** In the task of the source: a checkpoint begins between two records, and not after all that were read at once. */
    static String slowly(String order) throws InterruptedException {
        Thread.sleep(failed.get() ? 0 : 40);
        return order;
    }

    public static void main(String[] arguments) throws Exception {
        var settings = Configuration.fromMap(java.util.Map.of(
                "restart-strategy.type", "fixed-delay",
                "restart-strategy.fixed-delay.attempts", "3",
                "restart-strategy.fixed-delay.delay", "100 ms",
                "taskmanager.memory.network.min", "8 mb",
                "taskmanager.memory.network.max", "8 mb",
                "taskmanager.memory.managed.size", "16 mb"));
        var environment = StreamExecutionEnvironment.createLocalEnvironment(2, settings);
        environment.enableCheckpointing(300);
        var source = KafkaSource.<String>builder()
                .setBootstrapServers(arguments[0])
                .setTopics("orders")
                .setGroupId("flink")
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setBounded(OffsetsInitializer.latest())
                .setProperty("isolation.level", "read_committed")
                .setValueOnlyDeserializer(new SimpleStringSchema())
                .build();
        var sink = KafkaSink.<String>builder()
                .setBootstrapServers(arguments[0])
                .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
                .setTransactionalIdPrefix("flink")
                .setProperty("transaction.timeout.ms", "60000")
                .setRecordSerializer(KafkaRecordSerializationSchema.<String>builder()
                        .setTopic("counts").setValueSerializationSchema(new SimpleStringSchema()).build())
                .build();
        environment.fromSource(source, WatermarkStrategy.noWatermarks(), "orders")
                .map(Counts::slowly)
                .returns(Types.STRING)
                .keyBy(order -> order.split(" ")[0])
                .flatMap(new Count())
                .returns(Types.STRING)
                .sinkTo(sink);
        environment.execute("counts");
        System.out.println("{\"failed\": " + failed.get() + "}");
    }
}
