package script

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

func (s *script) playAdmin() {
	Report("list_groups", func(ctx context.Context) (any, error) {
		groups, err := s.client.ListGroups(ctx)
		if err != nil {
			return nil, err
		}
		return "", expect(groups[s.group], "not among %v", groups)
	})
	Report("describe_group", func(ctx context.Context) (any, error) {
		state, members, err := s.client.DescribeGroup(ctx, s.group)
		if err != nil {
			return nil, err
		}
		return "", expect(strings.EqualFold(state, "stable") && members == 1, "%s, %d members", state, members)
	})
	Report("describe_cluster", func(ctx context.Context) (any, error) {
		ids, controller, err := s.client.DescribeCluster(ctx)
		if err != nil {
			return nil, err
		}
		return fmt.Sprint(ids), expect(len(ids) == s.brokers && slices.Contains(ids, controller), "%v %d", ids, controller)
	})
	Report("describe_topic", s.describeTopic)
	Report("describe_configs", s.describeConfigs)
	Report("alter_configs", s.alterConfigs)
	Report("delete_records", s.deleteRecords)
	Report("delete_group", s.deleteGroup)
	Report("delete_topic", s.deleteTopic)
}

func (s *script) describeTopic(ctx context.Context) (any, error) {
	topic, err := s.client.DescribeTopic(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range topic {
		slices.Sort(p.ISR)
		slices.Sort(p.Replicas)
		whole := slices.Equal(p.ISR, p.Replicas) && len(slices.Compact(p.Replicas)) == min(s.brokers, 3)
		if !whole || !slices.Contains(p.ISR, p.Leader) {
			return nil, fmt.Errorf("%v", topic)
		}
	}
	return "", expect(len(topic) == 3, "%v", topic)
}

func (s *script) describeConfigs(ctx context.Context) (any, error) {
	topic, err := s.client.TopicConfigs(ctx)
	if err != nil {
		return nil, err
	}
	if topic["cleanup.policy"] != "delete" || topic["retention.ms"] != "604800000" {
		return nil, fmt.Errorf("%v", topic)
	}
	ids, _, err := s.client.DescribeCluster(ctx)
	if err != nil {
		return nil, err
	}
	broker, err := s.client.BrokerConfigs(ctx, ids[0])
	if err != nil {
		return nil, err
	}
	told := fmt.Sprintf("%d of the topic, %d of the broker", len(topic), len(broker))
	return told, expect(broker["log.retention.hours"] == "168", "%v", broker)
}

func (s *script) alterConfigs(ctx context.Context) (any, error) {
	hour, bytes := "3600000", "100000"
	for _, wish := range []struct {
		name  string
		value *string
		seen  string
	}{{"retention.ms", &hour, ""}, {"max.message.bytes", &bytes, hour}, {"retention.ms", nil, "604800000"}} {
		if err := s.client.AlterTopicConfig(ctx, wish.name, wish.value); err != nil {
			return nil, err
		}
		var topic map[string]string
		err := until(ctx, func() (bool, error) {
			var err error
			topic, err = s.client.TopicConfigs(ctx)
			right := wish.seen == "" || topic["retention.ms"] == wish.seen && topic["max.message.bytes"] == bytes
			return right, err
		}, func() any { return topic })
		if err != nil {
			return nil, err
		}
	}
	return "", nil
}

func (s *script) deleteRecords(ctx context.Context) (any, error) {
	low, err := s.client.DeleteRecords(ctx, 0, 5)
	if err != nil {
		return nil, err
	}
	earliest, err := s.client.Earliest(ctx, 0)
	if err != nil {
		return nil, err
	}
	return "", expect((low == 5 || low == -1) && earliest == 5, "low watermark %d, earliest offset %d", low, earliest)
}

func (s *script) deleteGroup(ctx context.Context) (any, error) {
	s.closeMembers()
	if err := s.client.DeleteGroup(ctx, s.group); err != nil {
		return nil, err
	}
	groups, err := s.client.ListGroups(ctx)
	if err != nil {
		return nil, err
	}
	return "", expect(!groups[s.group], "still listed")
}

func (s *script) deleteTopic(ctx context.Context) (any, error) {
	if err := s.client.DeleteTopic(ctx); err != nil {
		return nil, err
	}
	return "", until(ctx, func() (bool, error) {
		topics, err := s.client.ListTopics(ctx)
		return !topics[s.topic], err
	}, func() any { return "still listed" })
}
