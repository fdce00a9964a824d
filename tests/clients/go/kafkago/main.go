// segmentio/kafka-go through the script.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"understudy/interop/script"
)

type client struct {
	bootstrap []string
	topic     string
	inner     *kafka.Client
}

func main() {
	script.Play(func(bootstrap []string, topic string) (script.Client, error) {
		inner := &kafka.Client{Addr: kafka.TCP(bootstrap...), Timeout: 10 * time.Second, Transport: transport()}
		return &client{bootstrap, topic, inner}, nil
	})
}

// The first metadata of a transport has to be there within this time too: 200 ms are too few on a busy machine.
func transport() *kafka.Transport { return &kafka.Transport{MetadataTTL: time.Second} }

func (c *client) Close() {}

// ---------------------------------------------------------------- producing and reading

var codecs = map[string]kafka.Compression{
	"gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd,
}

func (c *client) Produce(ctx context.Context, records []script.Record, codec string, idempotent bool) error {
	if idempotent {
		return fmt.Errorf("%w: kafka-go has no idempotent producer", script.ErrUnsupported)
	}
	partitions := map[int64]int{}
	var out []kafka.Message
	for _, r := range records {
		partitions[r.TimestampMs] = r.Partition
		message := kafka.Message{Time: time.UnixMilli(r.TimestampMs), Key: r.Key, Value: r.Value}
		for _, h := range r.Headers {
			message.Headers = append(message.Headers, kafka.Header{Key: h.Key, Value: h.Value})
		}
		out = append(out, message)
	}
	writer := &kafka.Writer{
		Addr: kafka.TCP(c.bootstrap...), Topic: c.topic, Compression: codecs[codec], RequiredAcks: kafka.RequireAll,
		BatchTimeout: 20 * time.Millisecond, Transport: transport(),
		Balancer: kafka.BalancerFunc(func(m kafka.Message, _ ...int) int { return partitions[m.Time.UnixMilli()] }),
	}
	err := writer.WriteMessages(ctx, out...)
	if closed := writer.Close(); err == nil {
		err = closed
	}
	return err
}

func recordOf(m kafka.Message) script.Record {
	out := script.Record{
		Partition: m.Partition, Offset: m.Offset, TimestampMs: m.Time.UnixMilli(), Key: m.Key, Value: m.Value,
	}
	for _, h := range m.Headers {
		out.Headers = append(out.Headers, script.Header{Key: h.Key, Value: h.Value})
	}
	return out
}

func (c *client) reader(partition int) *kafka.Reader {
	return kafka.NewReader(kafka.ReaderConfig{
		Brokers: c.bootstrap, Topic: c.topic, Partition: partition, MaxWait: 100 * time.Millisecond,
	})
}

func (c *client) Consume(ctx context.Context, count int) (out []script.Record, err error) {
	for p := range 3 {
		reader := c.reader(p)
		for range count / 3 {
			m, err := reader.ReadMessage(ctx)
			if err != nil {
				return out, fmt.Errorf("%d records: %w", len(out), err)
			}
			out = append(out, recordOf(m))
		}
		if err := reader.Close(); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (c *client) ReadAt(ctx context.Context, partition int, offset int64) (script.Record, error) {
	reader := c.reader(partition)
	defer reader.Close()
	if err := reader.SetOffset(offset); err != nil {
		return script.Record{}, err
	}
	m, err := reader.ReadMessage(ctx)
	return recordOf(m), err
}

func (c *client) OffsetsForTime(ctx context.Context, timestampMs int64) (map[int]int64, error) {
	moment := time.UnixMilli(timestampMs)
	wish := []kafka.OffsetRequest{kafka.TimeOffsetOf(0, moment), kafka.TimeOffsetOf(1, moment), kafka.TimeOffsetOf(2, moment)}
	listed, err := c.inner.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{c.topic: wish}})
	if err != nil {
		return nil, err
	}
	out := map[int]int64{}
	for _, p := range listed.Topics[c.topic] {
		for offset := range p.Offsets {
			out[p.Partition] = offset
		}
	}
	return out, nil
}

func (c *client) Earliest(ctx context.Context, partition int) (int64, error) {
	wish := map[string][]kafka.OffsetRequest{c.topic: {kafka.FirstOffsetOf(partition)}}
	listed, err := c.inner.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: wish})
	if err != nil {
		return 0, err
	}
	return listed.Topics[c.topic][0].FirstOffset, listed.Topics[c.topic][0].Error
}
