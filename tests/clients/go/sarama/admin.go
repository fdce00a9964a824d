package main

import (
	"context"
	"errors"
	"strconv"

	"github.com/IBM/sarama"

	"understudy/interop/script"
)

func (c *client) ListTopics(context.Context) (map[string]bool, error) {
	topics, err := c.admin.ListTopics()
	out := map[string]bool{}
	for name := range topics {
		out[name] = true
	}
	return out, err
}

func (c *client) CreateTopic(_ context.Context, partitions, replicas int) error {
	detail := &sarama.TopicDetail{NumPartitions: int32(partitions), ReplicationFactor: int16(replicas)}
	return c.admin.CreateTopic(c.topic, detail, false)
}

func (c *client) DeleteTopic(context.Context) error { return c.admin.DeleteTopic(c.topic) }

func ints(in []int32) (out []int) {
	for _, i := range in {
		out = append(out, int(i))
	}
	return out
}

func (c *client) DescribeTopic(context.Context) (map[int]script.Partition, error) {
	topics, err := c.admin.DescribeTopics([]string{c.topic})
	if err != nil {
		return nil, err
	}
	if !errors.Is(topics[0].Err, sarama.ErrNoError) {
		return nil, topics[0].Err
	}
	out := map[int]script.Partition{}
	for _, p := range topics[0].Partitions {
		out[int(p.ID)] = script.Partition{Leader: int(p.Leader), Replicas: ints(p.Replicas), ISR: ints(p.Isr)}
	}
	return out, nil
}

func (c *client) DescribeCluster(context.Context) (ids []int, controller int, err error) {
	brokers, id, err := c.admin.DescribeCluster()
	for _, b := range brokers {
		ids = append(ids, int(b.ID()))
	}
	return ids, int(id), err
}

func (c *client) ListGroups(context.Context) (map[string]bool, error) {
	groups, err := c.admin.ListConsumerGroups()
	out := map[string]bool{}
	for name := range groups {
		out[name] = true
	}
	return out, err
}

func (c *client) DescribeGroup(_ context.Context, group string) (string, int, error) {
	groups, err := c.admin.DescribeConsumerGroups([]string{group})
	if err != nil {
		return "", 0, err
	}
	if !errors.Is(groups[0].Err, sarama.ErrNoError) {
		return "", 0, groups[0].Err
	}
	return groups[0].State, len(groups[0].Members), nil
}

func (c *client) DeleteGroup(_ context.Context, group string) error {
	return c.admin.DeleteConsumerGroup(group)
}

func (c *client) configs(kind sarama.ConfigResourceType, name string) (map[string]string, error) {
	entries, err := c.admin.DescribeConfig(sarama.ConfigResource{Type: kind, Name: name})
	out := map[string]string{}
	for _, entry := range entries {
		out[entry.Name] = entry.Value
	}
	return out, err
}

func (c *client) TopicConfigs(context.Context) (map[string]string, error) {
	return c.configs(sarama.TopicResource, c.topic)
}

func (c *client) BrokerConfigs(_ context.Context, broker int) (map[string]string, error) {
	return c.configs(sarama.BrokerResource, strconv.Itoa(broker))
}

func (c *client) AlterTopicConfig(_ context.Context, name string, value *string) error {
	op := sarama.IncrementalAlterConfigsOperationSet
	if value == nil {
		op = sarama.IncrementalAlterConfigsOperationDelete
	}
	entries := map[string]sarama.IncrementalAlterConfigsEntry{name: {Operation: op, Value: value}}
	return c.admin.IncrementalAlterConfig(sarama.TopicResource, c.topic, entries, false)
}

// DeleteRecords does not tell the low watermark.
func (c *client) DeleteRecords(_ context.Context, partition int, before int64) (int64, error) {
	return -1, c.admin.DeleteRecords(c.topic, map[int32]int64{int32(partition): before})
}
