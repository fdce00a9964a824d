package script

import (
	"context"
	"errors"
)

// ErrUnsupported is what a client returns for a step that it has no call for.
var ErrUnsupported = errors.New("unsupported")

// Partition as a client describes it.
type Partition struct {
	Leader        int
	Replicas, ISR []int
}

// Member of a consumer group.
type Member interface {
	// Poll waits a moment, and returns what was read meanwhile.
	Poll(ctx context.Context) ([]Record, error)
	// Assigned are the partitions that this member has now.
	Assigned() map[int]bool
	// Commit commits by partition, then reads back what is committed.
	Commit(ctx context.Context, offsets map[int]int64) (map[int]int64, error)
	// Close leaves the group.
	Close() error
}

// Client is what the script needs; everything concerns its one topic.
type Client interface {
	ListTopics(ctx context.Context) (map[string]bool, error)
	CreateTopic(ctx context.Context, partitions, replicas int) error
	Produce(ctx context.Context, records []Record, codec string, idempotent bool) error
	// Consume reads the first records of all partitions, without a group.
	Consume(ctx context.Context, count int) ([]Record, error)
	OffsetsForTime(ctx context.Context, timestampMs int64) (map[int]int64, error)
	// ReadAt reads the one record at the offset.
	ReadAt(ctx context.Context, partition int, offset int64) (Record, error)
	Join(ctx context.Context, group string) (Member, error)
	ListGroups(ctx context.Context) (map[string]bool, error)
	// DescribeGroup returns the group's state and how many members it has.
	DescribeGroup(ctx context.Context, group string) (string, int, error)
	// DescribeCluster returns the brokers' ids and the controller's.
	DescribeCluster(ctx context.Context) ([]int, int, error)
	DescribeTopic(ctx context.Context) (map[int]Partition, error)
	TopicConfigs(ctx context.Context) (map[string]string, error)
	BrokerConfigs(ctx context.Context, broker int) (map[string]string, error)
	// AlterTopicConfig sets one setting, or deletes it (nil); the others stay.
	AlterTopicConfig(ctx context.Context, name string, value *string) error
	// DeleteRecords deletes what is before the offset, and returns the low watermark (-1: the client does not tell).
	DeleteRecords(ctx context.Context, partition int, before int64) (int64, error)
	Earliest(ctx context.Context, partition int) (int64, error)
	DeleteGroup(ctx context.Context, group string) error
	DeleteTopic(ctx context.Context) error
	Close()
}
