package exam;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.ConsumerGroupListing;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.config.ConfigResource;

/** What an administrator does. */
final class Administration {
    private static final Object NOTHING = Collections.emptyMap();
    private static final List<String> COMMANDS = Arrays.asList(
        "create_topic", "list_topics", "describe_topic", "delete_topic", "list_groups", "describe_group", "delete_group", "committed",
        "describe_cluster", "describe_configs", "alter_config", "delete_records", "list_offsets");

    private final Admin admin;
    private final Command command;

    private Administration(Admin admin, Command command) {
        this.admin = admin;
        this.command = command;
    }

    /** The result of an administrator's command; null: it is another one. */
    static Object run(Command command) throws Exception {
        if (!COMMANDS.contains(command.name)) return null;
        Properties properties = new Properties();
        properties.put("bootstrap.servers", command.string("bootstrap_servers"));
        properties.put("client.id", "exam-admin");
        properties.put("request.timeout.ms", "2000");
        properties.put("retry.backoff.ms", "50");
        properties.put("default.api.timeout.ms", command.setting("timeout_ms"));
        try (Admin admin = Admin.create(properties)) {
            return new Administration(admin, command).result();
        }
    }

    private Object result() throws Exception {
        List<String> topic = Collections.singletonList(command.string("topic"));
        List<String> group = Collections.singletonList(command.string("group"));
        switch (command.name) {
            case "create_topic": return createTopic();
            case "list_topics": return Collections.singletonMap("topics", new ArrayList<>(done(admin.listTopics().names())));
            case "describe_topic": return describeTopic();
            case "delete_topic": done(admin.deleteTopics(topic).all()); return NOTHING;
            case "list_groups": return listGroups();
            case "describe_group": return describeGroup();
            case "delete_group": done(admin.deleteConsumerGroups(group).all()); return NOTHING;
            case "committed": return committed();
            case "describe_cluster": return describeCluster();
            case "describe_configs": return describeConfigs();
            case "alter_config": return alterConfig();
            case "delete_records": return deleteRecords();
            default: return listOffsets();
        }
    }

    private <T> T done(KafkaFuture<T> future) throws Exception {
        return future.get(command.number("timeout_ms"), TimeUnit.MILLISECONDS);
    }

    private Object createTopic() throws Exception {
        short replicas = command.has("replicas") ? (short) command.number("replicas") : -1;
        NewTopic topic = new NewTopic(command.string("topic"), (int) command.number("partitions"), replicas);
        done(admin.createTopics(Collections.singleton(topic)).all());
        return NOTHING;
    }

    @SuppressWarnings("unchecked")
    private Object describeTopic() throws Exception {
        String topic = command.string("topic");
        Object described = renamed(admin.describeTopics(Collections.singletonList(topic)), "allTopicNames", "all");
        List<Object> partitions = new ArrayList<>();
        for (TopicPartitionInfo each : done((KafkaFuture<Map<String, TopicDescription>>) described).get(topic).partitions()) {
            Map<String, Object> partition = new LinkedHashMap<>();
            partition.put("partition", each.partition());
            partition.put("leader", each.leader() == null ? -1 : each.leader().id());
            partition.put("replicas", ids(each.replicas()));
            partition.put("isr", ids(each.isr()));
            partitions.add(partition);
        }
        return Collections.singletonMap("partitions", partitions);
    }

    private static List<Integer> ids(Iterable<Node> nodes) {
        List<Integer> ids = new ArrayList<>();
        for (Node node : nodes) ids.add(node.id());
        return ids;
    }

    private Object listGroups() throws Exception {
        List<String> names = new ArrayList<>();
        for (ConsumerGroupListing each : done(admin.listConsumerGroups().all())) names.add(each.groupId());
        return Collections.singletonMap("groups", names);
    }

    private Object describeGroup() throws Exception {
        String group = command.string("group");
        ConsumerGroupDescription described = done(admin.describeConsumerGroups(Collections.singletonList(group)).all()).get(group);
        Map<String, Object> out = new HashMap<>();
        out.put("state", renamed(described, "groupState", "state").toString());
        out.put("members", described.members().size());
        return out;
    }

    private List<TopicPartition> partitions() {
        List<TopicPartition> places = new ArrayList<>();
        for (int index = 0; index < command.number("partitions"); index++) places.add(new TopicPartition(command.string("topic"), index));
        return places;
    }

    private Object committed() throws Exception {
        Map<TopicPartition, OffsetAndMetadata> committed =
            done(admin.listConsumerGroupOffsets(command.string("group")).partitionsToOffsetAndMetadata());
        List<Long> offsets = new ArrayList<>();
        for (TopicPartition each : partitions()) offsets.add(committed.get(each) == null ? -1 : committed.get(each).offset());
        return Collections.singletonMap("offsets", offsets);
    }

    private Object describeCluster() throws Exception {
        DescribeClusterResult cluster = admin.describeCluster();
        Map<String, Object> out = new HashMap<>();
        out.put("brokers", ids(done(cluster.nodes())));
        out.put("controller", done(cluster.controller()).id());
        return out;
    }

    private Object describeConfigs() throws Exception {
        ConfigResource.Type type = ConfigResource.Type.valueOf(command.string("kind").toUpperCase());
        ConfigResource resource = new ConfigResource(type, command.string("name"));
        Map<String, String> settings = new TreeMap<>();
        for (ConfigEntry each : done(admin.describeConfigs(Collections.singletonList(resource)).all()).get(resource).entries())
            settings.put(each.name(), each.value());
        return Collections.singletonMap("settings", settings);
    }

    private Object alterConfig() throws Exception {
        AlterConfigOp.OpType op = command.has("value") ? AlterConfigOp.OpType.SET : AlterConfigOp.OpType.DELETE;
        AlterConfigOp altered = new AlterConfigOp(new ConfigEntry(command.string("setting"), command.string("value")), op);
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, command.string("topic"));
        done(admin.incrementalAlterConfigs(Collections.singletonMap(topic, Arrays.asList(altered))).all());
        return NOTHING;
    }

    private Object deleteRecords() throws Exception {
        TopicPartition place = new TopicPartition(command.string("topic"), (int) command.number("partition"));
        RecordsToDelete before = RecordsToDelete.beforeOffset(command.number("offset"));
        return Collections.singletonMap(
            "low", done(admin.deleteRecords(Collections.singletonMap(place, before)).lowWatermarks().get(place)).lowWatermark());
    }

    private Object listOffsets() throws Exception {
        long timestamp = command.number("timestamp");
        Map<TopicPartition, OffsetSpec> wanted = new HashMap<>();
        for (TopicPartition each : partitions()) wanted.put(each, timestamp < 0 ? OffsetSpec.earliest() : OffsetSpec.forTimestamp(timestamp));
        List<Long> offsets = new ArrayList<>();
        for (TopicPartition each : partitions()) offsets.add(done(admin.listOffsets(wanted).partitionResult(each)).offset());
        return Collections.singletonMap("offsets", offsets);
    }

    /** Calls a method by its newer name, or by its older one where the client is older. */
    private static Object renamed(Object of, String newer, String older) throws Exception {
        try {
            return of.getClass().getMethod(newer).invoke(of);
        } catch (NoSuchMethodException e) {
            return of.getClass().getMethod(older).invoke(of);
        }
    }
}
