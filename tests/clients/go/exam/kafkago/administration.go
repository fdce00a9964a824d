package main

import (
	"context"
	"time"

	"github.com/segmentio/kafka-go"

	"understudy/interop/exam/kit"
)

// It has no call for DeleteRecords.
var administration = kit.Administration(administrator, func(a *kafka.Client) { a.Transport.(*kafka.Transport).CloseIdleConnections() },
	map[string]func(context.Context, *kafka.Client, *kit.Command) (any, error){
		"create_topic": createTopic, "list_topics": listTopics, "describe_topic": describeTopic, "delete_topic": deleteTopic,
		"list_groups": listGroups, "describe_group": describeGroup, "delete_group": deleteGroup, "committed": committed,
		"describe_cluster": describeCluster, "describe_configs": describeConfigs, "alter_config": alterConfig,
		"list_offsets": listOffsets,
	},
)

func administrator(c *kit.Command) (*kafka.Client, error) {
	transport := &kafka.Transport{ClientID: "exam-admin", DialTimeout: 2 * time.Second}
	return &kafka.Client{Addr: kafka.TCP(c.Servers()...), Timeout: kit.Ms(c.Timeout), Transport: transport}, nil
}

func createTopic(ctx context.Context, a *kafka.Client, c *kit.Command) (any, error) {
	topic := kafka.TopicConfig{Topic: c.Topic, NumPartitions: c.Count(), ReplicationFactor: c.Copies()}
	answer, err := a.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{topic}})
	if err != nil {
		return nil, err
	}
	return nil, answer.Errors[c.Topic]
}

func listTopics(ctx context.Context, a *kafka.Client, _ *kit.Command) (any, error) {
	metadata, err := a.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, topic := range metadata.Topics {
		names = append(names, topic.Name)
	}
	return kit.Named("topics", names), nil
}

func ids(brokers []kafka.Broker) []int {
	out := []int{}
	for _, each := range brokers {
		out = append(out, each.ID)
	}
	return out
}

func describeTopic(ctx context.Context, a *kafka.Client, c *kit.Command) (any, error) {
	metadata, err := a.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{c.Topic}})
	if err != nil {
		return nil, err
	}
	var out []kit.Partition
	for _, p := range metadata.Topics[0].Partitions {
		out = append(out, kit.Partition{Partition: p.ID, Leader: p.Leader.ID, Replicas: ids(p.Replicas), ISR: ids(p.Isr)})
	}
	return kit.Named("partitions", out), metadata.Topics[0].Error
}

func deleteTopic(ctx context.Context, a *kafka.Client, c *kit.Command) (any, error) {
	deleted, err := a.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{c.Topic}})
	if err != nil {
		return nil, err
	}
	return nil, deleted.Errors[c.Topic]
}

func listGroups(ctx context.Context, a *kafka.Client, _ *kit.Command) (any, error) {
	groups, err := a.ListGroups(ctx, &kafka.ListGroupsRequest{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, group := range groups.Groups {
		names = append(names, group.GroupID)
	}
	return kit.Named("groups", names), groups.Error
}

func described(ctx context.Context, a *kafka.Client, group string) (*kafka.DescribeGroupsResponseGroup, error) {
	groups, err := a.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{group}})
	if err != nil {
		return nil, err
	}
	return &groups.Groups[0], groups.Groups[0].Error
}

func describeGroup(ctx context.Context, a *kafka.Client, c *kit.Command) (any, error) {
	group, err := described(ctx, a, c.Group)
	if err != nil {
		return nil, err
	}
	return kit.Group(group.GroupState, len(group.Members)), nil
}

func deleteGroup(ctx context.Context, a *kafka.Client, c *kit.Command) (any, error) {
	deleted, err := a.DeleteGroups(ctx, &kafka.DeleteGroupsRequest{GroupIDs: []string{c.Group}})
	if err != nil {
		return nil, err
	}
	return nil, deleted.Errors[c.Group]
}

func committed(ctx context.Context, a *kafka.Client, c *kit.Command) (any, error) {
	var partitions []int
	for partition := range c.Count() {
		partitions = append(partitions, partition)
	}
	fetched, err := a.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: c.Group, Topics: map[string][]int{c.Topic: partitions}})
	if err != nil {
		return nil, err
	}
	offsets := map[int]int64{}
	for _, p := range fetched.Topics[c.Topic] {
		offsets[p.Partition] = p.CommittedOffset
	}
	return c.OffsetsOf(offsets), fetched.Error
}

func describeCluster(ctx context.Context, a *kafka.Client, _ *kit.Command) (any, error) {
	metadata, err := a.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return nil, err
	}
	return kit.Cluster(ids(metadata.Brokers), metadata.Controller.ID), nil
}

func describeConfigs(ctx context.Context, a *kafka.Client, c *kit.Command) (any, error) {
	kind := map[string]kafka.ResourceType{"topic": kafka.ResourceTypeTopic, "broker": kafka.ResourceTypeBroker}[c.Kind]
	resources := []kafka.DescribeConfigRequestResource{{ResourceType: kind, ResourceName: c.Name}}
	answer, err := a.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{Resources: resources})
	if err != nil {
		return nil, err
	}
	settings := map[string]string{}
	for _, entry := range answer.Resources[0].ConfigEntries {
		settings[entry.ConfigName] = entry.ConfigValue
	}
	return map[string]any{"settings": settings}, answer.Resources[0].Error
}

func alterConfig(ctx context.Context, a *kafka.Client, c *kit.Command) (any, error) {
	entry := kafka.IncrementalAlterConfigsRequestConfig{Name: c.Setting, ConfigOperation: kafka.ConfigOperationDelete}
	if c.Value != nil {
		entry.Value, entry.ConfigOperation = *c.Value, kafka.ConfigOperationSet
	}
	answer, err := a.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{
		Resources: []kafka.IncrementalAlterConfigsRequestResource{{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: c.Topic,
			Configs: []kafka.IncrementalAlterConfigsRequestConfig{entry},
		}},
	})
	if err != nil {
		return nil, err
	}
	return nil, answer.Resources[0].Error
}

func listOffsets(ctx context.Context, a *kafka.Client, c *kit.Command) (any, error) {
	var wanted []kafka.OffsetRequest
	for partition := range c.Count() {
		if c.Timestamp < 0 {
			wanted = append(wanted, kafka.FirstOffsetOf(partition))
		} else {
			wanted = append(wanted, kafka.TimeOffsetOf(partition, time.UnixMilli(c.Timestamp)))
		}
	}
	listed, err := a.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{c.Topic: wanted}})
	if err != nil {
		return nil, err
	}
	offsets := map[int]int64{}
	for _, p := range listed.Topics[c.Topic] {
		if err == nil {
			err = p.Error
		}
		if c.Timestamp < 0 {
			offsets[p.Partition] = p.FirstOffset
		}
		for offset := range p.Offsets {
			offsets[p.Partition] = offset
		}
	}
	return c.OffsetsOf(offsets), err
}

// assignment is what the coordinator knows of the member, by its client id: a Reader does not tell. No capability of the exam.
func (d *driver) assignment(c *kit.Command) (any, error) {
	m, err := d.reader(c)
	if err != nil {
		return nil, err
	}
	group, err := described(m.ctx, &kafka.Client{Addr: kafka.TCP(m.config.Brokers...)}, m.config.GroupID)
	if err != nil {
		return nil, err
	}
	var places []kit.Place
	for _, member := range group.Members {
		for _, topic := range member.MemberAssignments.Topics {
			for _, partition := range topic.Partitions {
				if member.ClientID == m.config.Dialer.ClientID {
					places = append(places, kit.Place{Topic: topic.Topic, Partition: int32(partition)})
				}
			}
		}
	}
	return kit.Assigned(places), nil
}
