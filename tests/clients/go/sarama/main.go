// Sarama through the script.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"understudy/interop/script"
)

type client struct {
	bootstrap []string
	topic     string
	admin     sarama.ClusterAdmin
	plain     sarama.Client
}

func main() {
	script.Play(func(bootstrap []string, topic string) (script.Client, error) {
		plain, err := sarama.NewClient(bootstrap, config())
		if err != nil {
			return nil, err
		}
		admin, err := sarama.NewClusterAdminFromClient(plain)
		return &client{bootstrap, topic, admin, plain}, err
	})
}

func config() *sarama.Config {
	c := sarama.NewConfig()
	c.Version = sarama.MaxVersion
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Offsets.AutoCommit.Enable = false
	c.Consumer.Group.Heartbeat.Interval = 300 * time.Millisecond
	c.Consumer.MaxWaitTime = 100 * time.Millisecond
	c.Producer.Return.Successes = true
	c.Producer.Partitioner = sarama.NewManualPartitioner
	return c
}

// Close closes the plain client with it.
func (c *client) Close() { _ = c.admin.Close() }

// ---------------------------------------------------------------- producing and reading

var codecs = map[string]sarama.CompressionCodec{
	"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
	"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
}

func encoder(b []byte) sarama.Encoder {
	if b == nil {
		return nil
	}
	return sarama.ByteEncoder(b)
}

func (c *client) Produce(_ context.Context, records []script.Record, codec string, idempotent bool) error {
	conf := config()
	conf.Producer.Compression = codecs[codec]
	conf.Producer.Flush.Frequency = 20 * time.Millisecond
	if idempotent {
		conf.Producer.Idempotent, conf.Producer.RequiredAcks, conf.Net.MaxOpenRequests = true, sarama.WaitForAll, 1
	}
	producer, err := sarama.NewSyncProducer(c.bootstrap, conf)
	if err != nil {
		return err
	}
	var out []*sarama.ProducerMessage
	for _, r := range records {
		message := &sarama.ProducerMessage{
			Topic: c.topic, Partition: int32(r.Partition), Timestamp: time.UnixMilli(r.TimestampMs),
			Key: encoder(r.Key), Value: encoder(r.Value),
		}
		for _, h := range r.Headers {
			message.Headers = append(message.Headers, sarama.RecordHeader{Key: []byte(h.Key), Value: h.Value})
		}
		out = append(out, message)
	}
	err = producer.SendMessages(out)
	if closed := producer.Close(); err == nil {
		err = closed
	}
	return err
}

func recordOf(m *sarama.ConsumerMessage) script.Record {
	out := script.Record{
		Partition: int(m.Partition), Offset: m.Offset, TimestampMs: m.Timestamp.UnixMilli(), Key: m.Key, Value: m.Value,
	}
	for _, h := range m.Headers {
		out.Headers = append(out.Headers, script.Header{Key: string(h.Key), Value: h.Value})
	}
	return out
}

// read reads so many records of a partition from the offset on.
func (c *client) read(ctx context.Context, partition int, offset int64, count int64) ([]script.Record, error) {
	consumer, err := sarama.NewConsumer(c.bootstrap, config())
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	part, err := consumer.ConsumePartition(c.topic, int32(partition), offset)
	if err != nil {
		return nil, err
	}
	defer part.Close()
	var out []script.Record
	for int64(len(out)) < count {
		select {
		case m := <-part.Messages():
			out = append(out, recordOf(m))
		case <-ctx.Done():
			return out, fmt.Errorf("%d records of partition %d: %w", len(out), partition, ctx.Err())
		}
	}
	return out, nil
}

func (c *client) Consume(ctx context.Context, count int) ([]script.Record, error) {
	var out []script.Record
	for p := range 3 {
		records, err := c.read(ctx, p, sarama.OffsetOldest, int64(count/3))
		if err != nil {
			return nil, err
		}
		out = append(out, records...)
	}
	return out, nil
}

func (c *client) ReadAt(ctx context.Context, partition int, offset int64) (script.Record, error) {
	records, err := c.read(ctx, partition, offset, 1)
	if err != nil {
		return script.Record{}, err
	}
	return records[0], nil
}

func (c *client) OffsetsForTime(_ context.Context, timestampMs int64) (map[int]int64, error) {
	out := map[int]int64{}
	for p := range 3 {
		offset, err := c.plain.GetOffset(c.topic, int32(p), timestampMs)
		if err != nil {
			return nil, err
		}
		out[p] = offset
	}
	return out, nil
}

func (c *client) Earliest(_ context.Context, partition int) (int64, error) {
	return c.plain.GetOffset(c.topic, int32(partition), sarama.OffsetOldest)
}
