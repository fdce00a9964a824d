package main

import (
	"context"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"understudy/interop/exam/kit"
)

var administration = kit.Administration(administrator, (*kadm.Client).Close,
	map[string]func(context.Context, *kadm.Client, *kit.Command) (any, error){
		"create_topic": createTopic, "list_topics": listTopics, "describe_topic": describeTopic, "delete_topic": deleteTopic,
		"list_groups": listGroups, "describe_group": describeGroup, "delete_group": deleteGroup, "committed": committed,
		"describe_cluster": describeCluster, "describe_configs": describeConfigs, "alter_config": alterConfig,
		"delete_records": deleteRecords, "list_offsets": listOffsets,
	},
)

func administrator(c *kit.Command) (*kadm.Client, error) {
	client, err := kgo.NewClient(append(common(c), kgo.ClientID("exam-admin"), kgo.RequestTimeoutOverhead(kit.Ms(2_000)))...)
	if err != nil {
		return nil, err
	}
	return kadm.NewClient(client), nil
}

func createTopic(ctx context.Context, admin *kadm.Client, c *kit.Command) (any, error) {
	_, err := admin.CreateTopic(ctx, int32(c.Count()), int16(c.Copies()), nil, c.Topic)
	return nil, err
}

func listTopics(ctx context.Context, admin *kadm.Client, _ *kit.Command) (any, error) {
	topics, err := admin.ListTopics(ctx)
	return kit.Named("topics", topics.Names()), err
}

func describeTopic(ctx context.Context, admin *kadm.Client, c *kit.Command) (any, error) {
	topics, err := admin.ListTopics(ctx, c.Topic)
	if err == nil {
		err = topics.Error()
	}
	var out []kit.Partition
	for _, p := range topics[c.Topic].Partitions.Sorted() {
		out = append(out, kit.Partition{
			Partition: int(p.Partition), Leader: int(p.Leader), Replicas: kit.Ints(p.Replicas), ISR: kit.Ints(p.ISR),
		})
	}
	return kit.Named("partitions", out), err
}

func deleteTopic(ctx context.Context, admin *kadm.Client, c *kit.Command) (any, error) {
	_, err := admin.DeleteTopic(ctx, c.Topic)
	return nil, err
}

func listGroups(ctx context.Context, admin *kadm.Client, _ *kit.Command) (any, error) {
	groups, err := admin.ListGroups(ctx)
	return kit.Named("groups", groups.Groups()), err
}

func describeGroup(ctx context.Context, admin *kadm.Client, c *kit.Command) (any, error) {
	groups, err := admin.DescribeGroups(ctx, c.Group)
	if err == nil {
		err = groups.Error()
	}
	return kit.Group(groups[c.Group].State, len(groups[c.Group].Members)), err
}

func deleteGroup(ctx context.Context, admin *kadm.Client, c *kit.Command) (any, error) {
	_, err := admin.DeleteGroup(ctx, c.Group)
	return nil, err
}

func committed(ctx context.Context, admin *kadm.Client, c *kit.Command) (any, error) {
	fetched, err := admin.FetchOffsets(ctx, c.Group)
	if err == nil {
		err = fetched.Error()
	}
	offsets := map[int]int64{}
	for partition, each := range fetched[c.Topic] {
		offsets[int(partition)] = each.At
	}
	return c.OffsetsOf(offsets), err
}

func describeCluster(ctx context.Context, admin *kadm.Client, _ *kit.Command) (any, error) {
	metadata, err := admin.BrokerMetadata(ctx)
	return kit.Cluster(kit.Ints(metadata.Brokers.NodeIDs()), int(metadata.Controller)), err
}

func describeConfigs(ctx context.Context, admin *kadm.Client, c *kit.Command) (any, error) {
	var described kadm.ResourceConfigs
	var err error
	if broker, _ := strconv.Atoi(c.Name); c.Kind == "broker" {
		described, err = admin.DescribeBrokerConfigs(ctx, int32(broker))
	} else {
		described, err = admin.DescribeTopicConfigs(ctx, c.Name)
	}
	settings := map[string]string{}
	for _, resource := range described {
		if err == nil {
			err = resource.Err
		}
		for _, each := range resource.Configs {
			settings[each.Key] = each.MaybeValue()
		}
	}
	return map[string]any{"settings": settings}, err
}

func alterConfig(ctx context.Context, admin *kadm.Client, c *kit.Command) (any, error) {
	op := kadm.SetConfig
	if c.Value == nil {
		op = kadm.DeleteConfig
	}
	altered, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: op, Name: c.Setting, Value: c.Value}}, c.Topic)
	if err != nil {
		return nil, err
	}
	return nil, altered[0].Err
}

func deleteRecords(ctx context.Context, admin *kadm.Client, c *kit.Command) (any, error) {
	before := kadm.Offsets{}
	before.AddOffset(c.Topic, c.Partition, c.Offset, -1)
	deleted, err := admin.DeleteRecords(ctx, before)
	if err == nil {
		err = deleted.Error()
	}
	return map[string]any{"low": deleted[c.Topic][c.Partition].LowWatermark}, err
}

func listOffsets(ctx context.Context, admin *kadm.Client, c *kit.Command) (any, error) {
	var listed kadm.ListedOffsets
	var err error
	if c.Timestamp < 0 {
		listed, err = admin.ListStartOffsets(ctx, c.Topic)
	} else {
		listed, err = admin.ListOffsetsAfterMilli(ctx, c.Timestamp, c.Topic)
	}
	if err == nil {
		err = listed.Error()
	}
	offsets := map[int]int64{}
	listed.Each(func(o kadm.ListedOffset) { offsets[int(o.Partition)] = o.Offset })
	return c.OffsetsOf(offsets), err
}
