// franz-go through the script.
package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"understudy/interop/script"
)

type franz struct {
	bootstrap []string
	topic     string
	client    *kgo.Client
	admin     *kadm.Client
}

func main() {
	script.Play(func(bootstrap []string, topic string) (script.Client, error) {
		client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap...), kgo.MetadataMinAge(100*time.Millisecond))
		if err != nil {
			return nil, err
		}
		return &franz{bootstrap, topic, client, kadm.NewClient(client)}, nil
	})
	transformUnderLoad()
}

func (f *franz) Close() { f.client.Close() }

func (f *franz) open(options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(options, kgo.SeedBrokers(f.bootstrap...))...)
}

// ---------------------------------------------------------------- producing and reading

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

func (f *franz) Produce(ctx context.Context, records []script.Record, codec string, idempotent bool) error {
	options := []kgo.Opt{
		kgo.ProducerBatchCompression(codecs[codec]), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(20 * time.Millisecond),
	}
	if !idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	producer, err := f.open(options...)
	if err != nil {
		return err
	}
	defer producer.Close()
	var out []*kgo.Record
	for _, r := range records {
		record := &kgo.Record{
			Topic: f.topic, Partition: int32(r.Partition), Timestamp: time.UnixMilli(r.TimestampMs), Key: r.Key, Value: r.Value,
		}
		for _, h := range r.Headers {
			record.Headers = append(record.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
		out = append(out, record)
	}
	return producer.ProduceSync(ctx, out...).FirstErr()
}

func recordsOf(fetches kgo.Fetches) (out []script.Record) {
	fetches.EachRecord(func(r *kgo.Record) {
		mine := script.Record{
			Partition: int(r.Partition), Offset: r.Offset, TimestampMs: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value,
		}
		for _, h := range r.Headers {
			mine.Headers = append(mine.Headers, script.Header{Key: h.Key, Value: h.Value})
		}
		out = append(out, mine)
	})
	return out
}

func (f *franz) readFrom(ctx context.Context, offsets map[int32]kgo.Offset, count int) ([]script.Record, error) {
	consumer, err := f.open(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{f.topic: offsets}))
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	var out []script.Record
	for len(out) < count {
		fetches := consumer.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return out, err
		}
		for _, failed := range fetches.Errors() {
			return out, failed.Err
		}
		out = append(out, recordsOf(fetches)...)
	}
	return out, nil
}

func (f *franz) Consume(ctx context.Context, count int) ([]script.Record, error) {
	start := kgo.NewOffset().AtStart()
	return f.readFrom(ctx, map[int32]kgo.Offset{0: start, 1: start, 2: start}, count)
}

func (f *franz) ReadAt(ctx context.Context, partition int, offset int64) (script.Record, error) {
	records, err := f.readFrom(ctx, map[int32]kgo.Offset{int32(partition): kgo.NewOffset().At(offset)}, 1)
	if err != nil {
		return script.Record{}, err
	}
	return records[0], nil
}

func (f *franz) offsets(listed kadm.ListedOffsets, err error) (map[int]int64, error) {
	if err == nil {
		err = listed.Error()
	}
	out := map[int]int64{}
	listed.Each(func(o kadm.ListedOffset) { out[int(o.Partition)] = o.Offset })
	return out, err
}

func (f *franz) OffsetsForTime(ctx context.Context, timestampMs int64) (map[int]int64, error) {
	return f.offsets(f.admin.ListOffsetsAfterMilli(ctx, timestampMs, f.topic))
}

func (f *franz) Earliest(ctx context.Context, partition int) (int64, error) {
	offsets, err := f.offsets(f.admin.ListStartOffsets(ctx, f.topic))
	return offsets[partition], err
}

// ---------------------------------------------------------------- the group

type member struct {
	topic  string
	group  string
	client *kgo.Client
	mutex  sync.Mutex
	mine   map[int]bool
}

func (f *franz) Join(_ context.Context, group string) (script.Member, error) {
	m := &member{topic: f.topic, group: group, mine: map[int]bool{}}
	mark := func(has bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			m.mutex.Lock()
			defer m.mutex.Unlock()
			for _, p := range partitions[f.topic] {
				if has {
					m.mine[int(p)] = true
				} else {
					delete(m.mine, int(p))
				}
			}
		}
	}
	var err error
	m.client, err = f.open(
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(f.topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.HeartbeatInterval(300*time.Millisecond),
		kgo.OnPartitionsAssigned(mark(true)), kgo.OnPartitionsRevoked(mark(false)), kgo.OnPartitionsLost(mark(false)),
	)
	return m, err
}

func (m *member) Poll(ctx context.Context) ([]script.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	return recordsOf(m.client.PollFetches(ctx)), nil
}

func (m *member) Assigned() map[int]bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	out := map[int]bool{}
	for p := range m.mine {
		out[p] = true
	}
	return out
}

func (m *member) Commit(ctx context.Context, offsets map[int]int64) (map[int]int64, error) {
	admin := kadm.NewClient(m.client)
	wish := map[string]map[int32]kgo.EpochOffset{m.topic: {}}
	for p, offset := range offsets {
		wish[m.topic][int32(p)] = kgo.EpochOffset{Epoch: -1, Offset: offset}
	}
	var failed error
	m.client.CommitOffsetsSync(ctx, wish, commitError(&failed))
	if failed != nil {
		return nil, failed
	}
	fetched, err := admin.FetchOffsets(ctx, m.group)
	out := map[int]int64{}
	fetched.Each(func(o kadm.OffsetResponse) { out[int(o.Partition)] = o.At })
	return out, err
}

func (m *member) Close() error {
	m.client.Close()
	return nil
}

// ---------------------------------------------------------------- administration

func (f *franz) ListTopics(ctx context.Context) (map[string]bool, error) {
	topics, err := f.admin.ListTopics(ctx)
	out := map[string]bool{}
	for _, name := range topics.Names() {
		out[name] = true
	}
	return out, err
}

func (f *franz) CreateTopic(ctx context.Context, partitions, replicas int) error {
	_, err := f.admin.CreateTopic(ctx, int32(partitions), int16(replicas), nil, f.topic)
	return err
}

func (f *franz) DeleteTopic(ctx context.Context) error {
	_, err := f.admin.DeleteTopic(ctx, f.topic)
	return err
}

func ints(in []int32) (out []int) {
	for _, i := range in {
		out = append(out, int(i))
	}
	return out
}

func (f *franz) DescribeTopic(ctx context.Context) (map[int]script.Partition, error) {
	topics, err := f.admin.ListTopics(ctx, f.topic)
	if err == nil {
		err = topics.Error()
	}
	out := map[int]script.Partition{}
	for _, p := range topics[f.topic].Partitions {
		out[int(p.Partition)] = script.Partition{Leader: int(p.Leader), Replicas: ints(p.Replicas), ISR: ints(p.ISR)}
	}
	return out, err
}

func (f *franz) DescribeCluster(ctx context.Context) ([]int, int, error) {
	metadata, err := f.admin.BrokerMetadata(ctx)
	return ints(metadata.Brokers.NodeIDs()), int(metadata.Controller), err
}

func (f *franz) ListGroups(ctx context.Context) (map[string]bool, error) {
	groups, err := f.admin.ListGroups(ctx)
	out := map[string]bool{}
	for _, name := range groups.Groups() {
		out[name] = true
	}
	return out, err
}

func (f *franz) DescribeGroup(ctx context.Context, group string) (string, int, error) {
	groups, err := f.admin.DescribeGroups(ctx, group)
	if err == nil {
		err = groups.Error()
	}
	return groups[group].State, len(groups[group].Members), err
}

func (f *franz) DeleteGroup(ctx context.Context, group string) error {
	_, err := f.admin.DeleteGroup(ctx, group)
	return err
}

func configs(described kadm.ResourceConfigs, err error) (map[string]string, error) {
	out := map[string]string{}
	for _, resource := range described {
		if err == nil {
			err = resource.Err
		}
		for _, c := range resource.Configs {
			out[c.Key] = c.MaybeValue()
		}
	}
	return out, err
}

func (f *franz) TopicConfigs(ctx context.Context) (map[string]string, error) {
	return configs(f.admin.DescribeTopicConfigs(ctx, f.topic))
}

func (f *franz) BrokerConfigs(ctx context.Context, broker int) (map[string]string, error) {
	return configs(f.admin.DescribeBrokerConfigs(ctx, int32(broker)))
}

func (f *franz) AlterTopicConfig(ctx context.Context, name string, value *string) error {
	op := kadm.SetConfig
	if value == nil {
		op = kadm.DeleteConfig
	}
	altered, err := f.admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: op, Name: name, Value: value}}, f.topic)
	if err != nil {
		return err
	}
	return altered[0].Err
}

func (f *franz) DeleteRecords(ctx context.Context, partition int, before int64) (int64, error) {
	wish := kadm.Offsets{}
	wish.AddOffset(f.topic, int32(partition), before, -1)
	deleted, err := f.admin.DeleteRecords(ctx, wish)
	if err != nil {
		return 0, err
	}
	done, found := deleted.Lookup(f.topic, int32(partition))
	if !found {
		return 0, fmt.Errorf("%v", deleted)
	}
	return done.LowWatermark, done.Err
}
