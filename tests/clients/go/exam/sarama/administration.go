package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/IBM/sarama"

	"understudy/interop/exam/kit"
)

// admin is Sarama's, and the client below it, which lists offsets.
type admin struct {
	sarama.ClusterAdmin
	client sarama.Client
}

var administration = kit.Administration(administrator, func(a admin) { _ = a.Close() },
	map[string]func(context.Context, admin, *kit.Command) (any, error){
		"create_topic": createTopic, "list_topics": listTopics, "describe_topic": describeTopic, "delete_topic": deleteTopic,
		"list_groups": listGroups, "describe_group": describeGroup, "delete_group": deleteGroup, "committed": committed,
		"describe_cluster": describeCluster, "describe_configs": describeConfigs, "alter_config": alterConfig,
		"delete_records": deleteRecords, "list_offsets": listOffsets,
	},
)

func administrator(c *kit.Command) (admin, error) {
	config := sarama.NewConfig()
	config.Version, config.ClientID, config.Admin.Timeout = sarama.MaxVersion, "exam-admin", kit.Ms(c.Timeout)
	config.Net.ReadTimeout, config.Admin.Retry.Max = 2*time.Second, 50
	client, err := sarama.NewClient(c.Servers(), config)
	if err != nil {
		return admin{}, err
	}
	inner, err := sarama.NewClusterAdminFromClient(client)
	return admin{inner, client}, err
}

func createTopic(_ context.Context, a admin, c *kit.Command) (any, error) {
	detail := &sarama.TopicDetail{NumPartitions: int32(c.Count()), ReplicationFactor: int16(c.Copies())}
	return nil, a.CreateTopic(c.Topic, detail, false)
}

func listTopics(_ context.Context, a admin, _ *kit.Command) (any, error) {
	topics, err := a.ListTopics()
	return kit.Named("topics", slices.Collect(maps.Keys(topics))), err
}

func describeTopic(_ context.Context, a admin, c *kit.Command) (any, error) {
	topics, err := a.DescribeTopics([]string{c.Topic})
	if err != nil {
		return nil, err
	}
	if !errors.Is(topics[0].Err, sarama.ErrNoError) {
		return nil, topics[0].Err
	}
	var out []kit.Partition
	for _, p := range topics[0].Partitions {
		out = append(out, kit.Partition{
			Partition: int(p.ID), Leader: int(p.Leader), Replicas: kit.Ints(p.Replicas), ISR: kit.Ints(p.Isr),
		})
	}
	return kit.Named("partitions", out), nil
}

func deleteTopic(_ context.Context, a admin, c *kit.Command) (any, error) {
	return nil, a.DeleteTopic(c.Topic)
}

func listGroups(_ context.Context, a admin, _ *kit.Command) (any, error) {
	groups, err := a.ListConsumerGroups()
	return kit.Named("groups", slices.Collect(maps.Keys(groups))), err
}

func describeGroup(_ context.Context, a admin, c *kit.Command) (any, error) {
	groups, err := a.DescribeConsumerGroups([]string{c.Group})
	if err != nil {
		return nil, err
	}
	if !errors.Is(groups[0].Err, sarama.ErrNoError) {
		return nil, groups[0].Err
	}
	return kit.Group(groups[0].State, len(groups[0].Members)), nil
}

func deleteGroup(_ context.Context, a admin, c *kit.Command) (any, error) {
	return nil, a.DeleteConsumerGroup(c.Group)
}

func committed(_ context.Context, a admin, c *kit.Command) (any, error) {
	var partitions []int32
	for partition := range c.Count() {
		partitions = append(partitions, int32(partition))
	}
	fetched, err := a.ListConsumerGroupOffsets(c.Group, map[string][]int32{c.Topic: partitions})
	if err != nil {
		return nil, err
	}
	offsets := map[int]int64{}
	for _, partition := range partitions {
		if block := fetched.GetBlock(c.Topic, partition); block != nil {
			offsets[int(partition)] = block.Offset
		}
	}
	return c.OffsetsOf(offsets), nil
}

func describeCluster(_ context.Context, a admin, _ *kit.Command) (any, error) {
	brokers, controller, err := a.DescribeCluster()
	ids := []int{}
	for _, each := range brokers {
		ids = append(ids, int(each.ID()))
	}
	return kit.Cluster(ids, int(controller)), err
}

func describeConfigs(_ context.Context, a admin, c *kit.Command) (any, error) {
	kind := map[string]sarama.ConfigResourceType{"topic": sarama.TopicResource, "broker": sarama.BrokerResource}[c.Kind]
	entries, err := a.DescribeConfig(sarama.ConfigResource{Type: kind, Name: c.Name})
	settings := map[string]string{}
	for _, entry := range entries {
		settings[entry.Name] = entry.Value
	}
	return map[string]any{"settings": settings}, err
}

func alterConfig(_ context.Context, a admin, c *kit.Command) (any, error) {
	op := sarama.IncrementalAlterConfigsOperationSet
	if c.Value == nil {
		op = sarama.IncrementalAlterConfigsOperationDelete
	}
	entries := map[string]sarama.IncrementalAlterConfigsEntry{c.Setting: {Operation: op, Value: c.Value}}
	return nil, a.IncrementalAlterConfig(sarama.TopicResource, c.Topic, entries, false)
}

// deleteRecords: Sarama does not return the low watermark.
func deleteRecords(_ context.Context, a admin, c *kit.Command) (any, error) {
	return map[string]any{"low": nil}, a.DeleteRecords(c.Topic, map[int32]int64{c.Partition: c.Offset})
}

func listOffsets(_ context.Context, a admin, c *kit.Command) (any, error) {
	offsets := map[int]int64{}
	for partition := range c.Count() {
		offset, err := a.client.GetOffset(c.Topic, int32(partition), c.Timestamp)
		if err != nil {
			return nil, err
		}
		offsets[partition] = offset
	}
	return c.OffsetsOf(offsets), nil
}
