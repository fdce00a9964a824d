package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/segmentio/kafka-go"

	"understudy/interop/script"
)

func (c *client) metadata(ctx context.Context, topics ...string) (*kafka.MetadataResponse, error) {
	return c.inner.Metadata(ctx, &kafka.MetadataRequest{Topics: topics})
}

func (c *client) ListTopics(ctx context.Context) (map[string]bool, error) {
	metadata, err := c.metadata(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, topic := range metadata.Topics {
		out[topic.Name] = true
	}
	return out, nil
}

func (c *client) CreateTopic(ctx context.Context, partitions, replicas int) error {
	wish := []kafka.TopicConfig{{Topic: c.topic, NumPartitions: partitions, ReplicationFactor: replicas}}
	created, err := c.inner.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: wish})
	if err != nil {
		return err
	}
	return created.Errors[c.topic]
}

func (c *client) DeleteTopic(ctx context.Context) error {
	deleted, err := c.inner.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{c.topic}})
	if err != nil {
		return err
	}
	return deleted.Errors[c.topic]
}

func ids(brokers []kafka.Broker) (out []int) {
	for _, b := range brokers {
		out = append(out, b.ID)
	}
	return out
}

func (c *client) DescribeTopic(ctx context.Context) (map[int]script.Partition, error) {
	metadata, err := c.metadata(ctx, c.topic)
	if err != nil {
		return nil, err
	}
	out := map[int]script.Partition{}
	for _, p := range metadata.Topics[0].Partitions {
		out[p.ID] = script.Partition{Leader: p.Leader.ID, Replicas: ids(p.Replicas), ISR: ids(p.Isr)}
	}
	return out, metadata.Topics[0].Error
}

func (c *client) DescribeCluster(ctx context.Context) ([]int, int, error) {
	metadata, err := c.metadata(ctx)
	if err != nil {
		return nil, 0, err
	}
	return ids(metadata.Brokers), metadata.Controller.ID, nil
}

func (c *client) ListGroups(ctx context.Context) (map[string]bool, error) {
	groups, err := c.inner.ListGroups(ctx, &kafka.ListGroupsRequest{})
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, group := range groups.Groups {
		out[group.GroupID] = true
	}
	return out, groups.Error
}

func (c *client) DescribeGroup(ctx context.Context, group string) (string, int, error) {
	groups, err := c.inner.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{group}})
	if err != nil {
		return "", 0, err
	}
	return groups.Groups[0].GroupState, len(groups.Groups[0].Members), groups.Groups[0].Error
}

func (c *client) DeleteGroup(ctx context.Context, group string) error {
	deleted, err := c.inner.DeleteGroups(ctx, &kafka.DeleteGroupsRequest{GroupIDs: []string{group}})
	if err != nil {
		return err
	}
	return deleted.Errors[group]
}

func (c *client) configs(ctx context.Context, kind kafka.ResourceType, name string) (map[string]string, error) {
	wish := []kafka.DescribeConfigRequestResource{{ResourceType: kind, ResourceName: name}}
	described, err := c.inner.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{Resources: wish})
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, entry := range described.Resources[0].ConfigEntries {
		out[entry.ConfigName] = entry.ConfigValue
	}
	return out, described.Resources[0].Error
}

func (c *client) TopicConfigs(ctx context.Context) (map[string]string, error) {
	return c.configs(ctx, kafka.ResourceTypeTopic, c.topic)
}

func (c *client) BrokerConfigs(ctx context.Context, broker int) (map[string]string, error) {
	return c.configs(ctx, kafka.ResourceTypeBroker, strconv.Itoa(broker))
}

func (c *client) AlterTopicConfig(ctx context.Context, name string, value *string) error {
	entry := kafka.IncrementalAlterConfigsRequestConfig{Name: name, ConfigOperation: kafka.ConfigOperationDelete}
	if value != nil {
		entry.Value, entry.ConfigOperation = *value, kafka.ConfigOperationSet
	}
	resource := kafka.IncrementalAlterConfigsRequestResource{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: c.topic,
		Configs: []kafka.IncrementalAlterConfigsRequestConfig{entry},
	}
	altered, err := c.inner.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{
		Resources: []kafka.IncrementalAlterConfigsRequestResource{resource},
	})
	if err != nil {
		return err
	}
	return altered.Resources[0].Error
}

func (c *client) DeleteRecords(context.Context, int, int64) (int64, error) {
	return 0, fmt.Errorf("%w: kafka-go has no call for DeleteRecords", script.ErrUnsupported)
}
