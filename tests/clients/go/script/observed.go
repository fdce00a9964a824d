package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
)

// With OBSERVE in the environment every call of the script prints what came back or was refused, as a line of JSON;
// tests/differential/clients.py holds those of two clusters against each other, and says what is left out of them.

var observing = os.Getenv("OBSERVE") != ""

var printing sync.Mutex

// Tell prints one call with its result, or with its error, and returns the error.
func Tell(call string, result any, err error) error {
	if !observing {
		return err
	}
	told := map[string]any{"call": call, "returned": result}
	if err != nil {
		told = map[string]any{"call": call, "raised": kindOf(err), "message": err.Error()}
	}
	out, broken := json.Marshal(told)
	if broken != nil {
		panic(broken)
	}
	printing.Lock()
	defer printing.Unlock()
	fmt.Println(string(out))
	return err
}

// kindOf is the type of the error that the others are wrapped around.
func kindOf(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", err), "*")
}

type plainRecord struct {
	Partition   int      `json:"partition"`
	Offset      int64    `json:"offset"`
	TimestampMs int64    `json:"timestamp_ms"`
	Key         *string  `json:"key"`
	Value       *string  `json:"value"`
	Headers     []string `json:"headers"`
}

func plain(records []Record) []plainRecord {
	orNull := func(b []byte) *string {
		if b == nil {
			return nil
		}
		s := string(b)
		return &s
	}
	out := []plainRecord{}
	for _, r := range records {
		headers := []string{}
		for _, h := range r.Headers {
			headers = append(headers, h.Key+"="+text(h.Value))
		}
		out = append(out, plainRecord{r.Partition, r.Offset, r.TimestampMs, orNull(r.Key), orNull(r.Value), headers})
	}
	return out
}

type observed struct{ inner Client }

type observedMember struct {
	inner Member
	first map[int]int64
}

func observe(client Client) Client {
	if observing {
		return observed{client}
	}
	return client
}

// told passes a call's result on once it is printed.
func told[T any](call string, result T, err error) (T, error) {
	return result, Tell("client."+call, result, err)
}

func (o observed) ListTopics(ctx context.Context) (map[string]bool, error) {
	result, err := o.inner.ListTopics(ctx)
	return told("list_topics", result, err)
}

func (o observed) CreateTopic(ctx context.Context, partitions, replicas int) error {
	return Tell("client.create_topic", nil, o.inner.CreateTopic(ctx, partitions, replicas))
}

func (o observed) Produce(ctx context.Context, records []Record, codec string, idempotent bool) error {
	return Tell("client.produce", nil, o.inner.Produce(ctx, records, codec, idempotent))
}

func (o observed) Consume(ctx context.Context, count int) ([]Record, error) {
	result, err := o.inner.Consume(ctx, count)
	return result, Tell("client.consume", plain(result), err)
}

func (o observed) OffsetsForTime(ctx context.Context, timestampMs int64) (map[int]int64, error) {
	result, err := o.inner.OffsetsForTime(ctx, timestampMs)
	return told("offsets_for_time", result, err)
}

func (o observed) ReadAt(ctx context.Context, partition int, offset int64) (Record, error) {
	result, err := o.inner.ReadAt(ctx, partition, offset)
	return result, Tell("client.read_at", plain([]Record{result}), err)
}

func (o observed) Join(ctx context.Context, group string) (Member, error) {
	member, err := o.inner.Join(ctx, group)
	if Tell("client.join", "member", err) != nil {
		return member, err
	}
	return &observedMember{member, map[int]int64{}}, nil
}

func (o observed) ListGroups(ctx context.Context) (map[string]bool, error) {
	result, err := o.inner.ListGroups(ctx)
	return told("list_groups", result, err)
}

func (o observed) DescribeGroup(ctx context.Context, group string) (string, int, error) {
	state, members, err := o.inner.DescribeGroup(ctx, group)
	return state, members, Tell("client.describe_group", []any{state, members}, err)
}

func (o observed) DescribeCluster(ctx context.Context) ([]int, int, error) {
	ids, controller, err := o.inner.DescribeCluster(ctx)
	return ids, controller, Tell("client.describe_cluster", ids, err)
}

func (o observed) DescribeTopic(ctx context.Context) (map[int]Partition, error) {
	result, err := o.inner.DescribeTopic(ctx)
	parts := map[int]any{}
	for index, p := range result {
		parts[index] = []any{p.Leader, p.Replicas, p.ISR}
	}
	return result, Tell("client.describe_topic", parts, err)
}

func (o observed) TopicConfigs(ctx context.Context) (map[string]string, error) {
	result, err := o.inner.TopicConfigs(ctx)
	return told("describe_topic_configs", result, err)
}

func (o observed) BrokerConfigs(ctx context.Context, broker int) (map[string]string, error) {
	result, err := o.inner.BrokerConfigs(ctx, broker)
	return told("describe_broker_configs", result, err)
}

func (o observed) AlterTopicConfig(ctx context.Context, name string, value *string) error {
	return Tell("client.alter_topic_config", nil, o.inner.AlterTopicConfig(ctx, name, value))
}

func (o observed) DeleteRecords(ctx context.Context, partition int, before int64) (int64, error) {
	result, err := o.inner.DeleteRecords(ctx, partition, before)
	return told("delete_records", result, err)
}

func (o observed) Earliest(ctx context.Context, partition int) (int64, error) {
	result, err := o.inner.Earliest(ctx, partition)
	return told("earliest", result, err)
}

func (o observed) DeleteGroup(ctx context.Context, group string) error {
	return Tell("client.delete_group", nil, o.inner.DeleteGroup(ctx, group))
}

func (o observed) DeleteTopic(ctx context.Context) error {
	return Tell("client.delete_topic", nil, o.inner.DeleteTopic(ctx))
}

func (o observed) Close() { o.inner.Close() }

func (m *observedMember) Poll(ctx context.Context) ([]Record, error) {
	records, err := m.inner.Poll(ctx)
	for _, r := range records {
		if _, seen := m.first[r.Partition]; !seen {
			m.first[r.Partition] = r.Offset
		}
	}
	if err != nil {
		_ = Tell("join.poll", nil, err)
	}
	return records, err
}

func (m *observedMember) Assigned() map[int]bool { return m.inner.Assigned() }

func (m *observedMember) Commit(ctx context.Context, offsets map[int]int64) (map[int]int64, error) {
	result, err := m.inner.Commit(ctx, offsets)
	return result, Tell("join.commit", result, err)
}

func (m *observedMember) Close() error {
	_ = Tell("join.read", m.first, nil)
	return Tell("join.close", nil, m.inner.Close())
}
