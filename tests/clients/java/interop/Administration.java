package interop;

import static interop.Report.expect;
import static interop.Report.step;
import static interop.Report.until;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.function.IntToLongFunction;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.ConsumerGroupListing;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.config.ConfigResource;

/** The steps of the admin client. */
final class Administration {
    private final String topic;
    private final int brokers;
    private final Admin admin;

    Administration(String bootstrap, String topic, int brokers) {
        this.topic = topic;
        this.brokers = brokers;
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("default.api.timeout.ms", "20000");
        properties.put("request.timeout.ms", "10000");
        this.admin = Admin.create(properties);
    }

    void close() { admin.close(); }

    Object listTopics() throws Exception {
        Set<String> names = names();
        expect(!names.contains(topic), names);
        return names.size() + " topics";
    }

    private Set<String> names() throws Exception {
        return Observed.call("client.list_topics", () -> admin.listTopics().names().get());
    }

    Object createTopic() throws Exception {
        NewTopic wish = new NewTopic(topic, 3, (short) Math.min(brokers, 3));
        Observed.call("client.create_topic", () -> admin.createTopics(Collections.singletonList(wish)).all().get());
        until(() -> names().contains(topic), () -> "not listed");
        until(this::led, () -> "no leaders");
        return null;
    }

    private boolean led() throws Exception {
        try {
            return topicDescription().partitions().stream().allMatch(p -> p.leader() != null);
        } catch (ExecutionException e) {
            return false;    // not every broker knows it yet
        }
    }

    void describeAll(String group) {
        step("list_groups", () -> {
            expect(listed(group), "not listed");
            return null;
        });
        step("describe_group", () -> describeGroup(group));
        step("describe_cluster", this::describeCluster);
        step("describe_topic", this::describeTopic);
        step("describe_configs", this::describeConfigs);
        step("alter_configs", this::alterConfigs);
    }

    private boolean listed(String group) throws Exception {
        Collection<ConsumerGroupListing> groups =
            Observed.call("client.list_groups", () -> admin.listConsumerGroups().all().get());
        return groups.stream().anyMatch(each -> each.groupId().equals(group));
    }

    private Object describeGroup(String group) throws Exception {
        ConsumerGroupDescription described =
            admin.describeConsumerGroups(Collections.singletonList(group)).all().get().get(group);
        String state = renamed(described, "groupState", "state").toString();
        Observed.call("client.describe_group", () -> Arrays.asList(
            state, described.members().size(), described.partitionAssignor(), described.isSimpleConsumerGroup()));
        expect(state.equals("Stable") && described.members().size() == 1, described);
        return null;
    }

    private Object describeCluster() throws Exception {
        DescribeClusterResult cluster = admin.describeCluster();
        Set<Integer> ids = new TreeSet<>();
        for (Node node : cluster.nodes().get()) ids.add(node.id());
        Observed.call("client.describe_cluster", () -> ids);
        expect(ids.size() == brokers && ids.contains(cluster.controller().get().id()), ids);
        return cluster.clusterId().get() + " " + ids;
    }

    @SuppressWarnings("unchecked")
    private TopicDescription topicDescription() throws Exception {
        Object result = admin.describeTopics(Collections.singletonList(topic));
        KafkaFuture<Map<String, TopicDescription>> found =
            (KafkaFuture<Map<String, TopicDescription>>) renamed(result, "allTopicNames", "all");
        return found.get().get(topic);
    }

    private Object describeTopic() throws Exception {
        TopicDescription described = topicDescription();
        Observed.call("client.describe_topic", () -> shape(described));
        expect(described.partitions().size() == 3, described);
        for (TopicPartitionInfo partition : described.partitions()) {
            expect(partition.isr().contains(partition.leader()), described);
            expect(new HashSet<>(partition.isr()).equals(new HashSet<>(partition.replicas())), described);
            expect(new HashSet<>(partition.replicas()).size() == Math.min(brokers, 3), described);
        }
        return null;
    }

    private static Map<Integer, Object> shape(TopicDescription described) {
        Map<Integer, Object> found = new TreeMap<>();
        for (TopicPartitionInfo p : described.partitions())
            found.put(p.partition(), Arrays.asList(p.leader().id(), ids(p.replicas()), ids(p.isr())));
        return found;
    }

    private static List<Integer> ids(List<Node> nodes) {
        List<Integer> ids = new ArrayList<>();
        for (Node node : nodes) ids.add(node.id());
        return ids;
    }

    private Config configs(ConfigResource.Type type, String name) throws Exception {
        ConfigResource resource = new ConfigResource(type, name);
        return Observed.call("client.describe_" + type.toString().toLowerCase() + "_configs", () ->
            admin.describeConfigs(Collections.singletonList(resource)).all().get().get(resource));
    }

    private Object describeConfigs() throws Exception {
        Config mine = configs(ConfigResource.Type.TOPIC, topic);
        expect(mine.get("cleanup.policy").value().equals("delete"), mine);
        expect(mine.get("retention.ms").value().equals("604800000") && mine.get("retention.ms").isDefault(), mine);
        int broker = admin.describeCluster().nodes().get().iterator().next().id();
        Config its = configs(ConfigResource.Type.BROKER, String.valueOf(broker));
        expect(its.get("log.retention.hours").value().equals("168"), its);
        return mine.entries().size() + " of the topic, " + its.entries().size() + " of the broker";
    }

    private void alter(String name, String value) throws Exception {
        AlterConfigOp op = new AlterConfigOp(
            new ConfigEntry(name, value), value == null ? AlterConfigOp.OpType.DELETE : AlterConfigOp.OpType.SET);
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        Observed.call("client.alter_topic_config", () ->
            admin.incrementalAlterConfigs(Collections.singletonMap(resource, Arrays.asList(op))).all().get());
    }

    private Object alterConfigs() throws Exception {
        alter("retention.ms", "3600000");
        alter("max.message.bytes", "100000");
        until(() -> retentionIs("3600000"), () -> configs(ConfigResource.Type.TOPIC, topic));
        alter("retention.ms", null);
        until(() -> retentionIs("604800000"), () -> configs(ConfigResource.Type.TOPIC, topic));
        return null;
    }

    private boolean retentionIs(String value) throws Exception {
        Config mine = configs(ConfigResource.Type.TOPIC, topic);
        return mine.get("retention.ms").value().equals(value) && mine.get("max.message.bytes").value().equals("100000");
    }

    Object deleteRecords(IntToLongFunction earliest) throws Exception {
        TopicPartition first = new TopicPartition(topic, 0);
        Map<TopicPartition, RecordsToDelete> before = Collections.singletonMap(first, RecordsToDelete.beforeOffset(5));
        long low = Observed.call("client.delete_records", () ->
            admin.deleteRecords(before).lowWatermarks().get(first).get().lowWatermark());
        expect(low == 5 && earliest.applyAsLong(0) == 5, "low watermark " + low);
        return null;
    }

    Object deleteGroup(String group) throws Exception {
        Observed.call("client.delete_group", () -> admin.deleteConsumerGroups(Collections.singletonList(group)).all().get());
        expect(!listed(group), "still listed");
        return null;
    }

    Object deleteTopic() throws Exception {
        Observed.call("client.delete_topic", () -> admin.deleteTopics(Collections.singletonList(topic)).all().get());
        until(() -> !names().contains(topic), () -> "still listed");
        return null;
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
