// segmentio/kafka-go as a driver of `understudy exam`.
package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"

	"understudy/interop/exam/kit"
)

type producer struct {
	inner    *kafka.Writer
	outcomes *kit.Outcomes
}

type consumer struct {
	config  kafka.ReaderConfig
	readers map[kit.Place]*kafka.Reader // of a member: one, whose place is empty
	left    []kafka.Message             // what came with others, and was not polled yet
	last    map[kit.Place]kafka.Message
	stop    context.CancelFunc
	ctx     context.Context
}

type driver struct {
	producers map[string]*producer
	consumers map[string]*consumer
}

func main() {
	d := &driver{map[string]*producer{}, map[string]*consumer{}}
	(&kit.Driver{
		Library: "kafka-go",
		Module:  "github.com/segmentio/kafka-go",
		// A Reader in a group does not tell which partitions it has. What commits by itself is ReadMessage, before it returns.
		Capabilities: []string{
			"producer", "compression", "null_values", "consumer", "read_committed", "max_records", "seek", "groups", "commit_offsets", "admin", "tls", "sasl_plain",
		},
		Refuse: refuse,
		Commands: kit.Commands{
			"producer": d.create, "send": d.send, "flush": d.flush, "consumer": d.consume, "assign": d.assign,
			"subscribe": d.subscribe, "poll": d.poll, "assignment": d.assignment, "seek": d.seek,
			"commit_offsets": d.commitOffsets, "close": d.close,
		},
		Administration: administration,
	}).Run()
}

func refuse(err error) kit.Refusal {
	out := kit.Refusal{Class: "other", Message: err.Error()}
	var code kafka.Error
	if errors.As(err, &code) {
		if code.Temporary() {
			out.Class = "retriable"
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		out.Class = "timeout"
	}
	return out
}

// mechanism is PLAIN; its SCRAM is in a package with dependencies of its own.
func mechanism(c *kit.Command) sasl.Mechanism {
	if c.SaslMechanism == "" {
		return nil
	}
	return plain.Mechanism{Username: c.SaslUsername, Password: c.SaslPassword}
}

func (d *driver) create(c *kit.Command) (any, error) {
	if c.Idempotent || c.TransactionalID != "" {
		return nil, fmt.Errorf("%w: kafka-go has no idempotent producer", kit.ErrUnsupported)
	}
	p := &producer{outcomes: kit.NewOutcomes()}
	p.inner = &kafka.Writer{
		Addr:         kafka.TCP(c.Servers()...),
		RequiredAcks: map[string]kafka.RequiredAcks{"all": kafka.RequireAll, "1": kafka.RequireOne, "0": kafka.RequireNone}[c.Acks],
		Compression: map[string]kafka.Compression{
			"gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd,
		}[c.Compression],
		// It has no delivery timeout: as many attempts as fit into it.
		MaxAttempts: max(c.DeliveryTimeout/max(c.RetryBackoff, 1)/4, 1), WriteBackoffMin: kit.Ms(c.RetryBackoff),
		WriteBackoffMax: kit.Ms(c.RetryBackoff * 4), BatchTimeout: max(kit.Ms(c.Linger), time.Millisecond),
		ReadTimeout: kit.Ms(c.RequestTimeout), WriteTimeout: kit.Ms(c.RequestTimeout), Async: true,
		Balancer: kafka.BalancerFunc(func(m kafka.Message, _ ...int) int { return int(m.WriterData.(kit.Record).Partition) }),
		Transport: &kafka.Transport{
			ClientID: c.ClientID, MetadataTTL: kit.Ms(c.RequestTimeout), DialTimeout: kit.Ms(c.RequestTimeout),
			TLS: c.TLS(), SASL: mechanism(c),
		},
		Completion: func(messages []kafka.Message, err error) {
			for _, each := range messages {
				id := each.WriterData.(kit.Record).ID
				if err != nil {
					p.outcomes.Refused(id, refuse(err))
				} else {
					p.outcomes.Written(id, each.Offset)
				}
			}
		},
	}
	d.producers[c.Name] = p
	return nil, nil
}

func (d *driver) of(c *kit.Command) (*producer, error) {
	if found := d.producers[c.Producer]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("there is no producer %q", c.Producer)
}

func (d *driver) send(c *kit.Command) (any, error) {
	p, err := d.of(c)
	if err != nil {
		return nil, err
	}
	var out []kafka.Message
	for _, each := range c.Records {
		p.outcomes.Sent()
		message := kafka.Message{
			Topic: c.Topic, Key: kit.Bytes(each.Key), Value: kit.Bytes(each.Value), Time: each.Time(), WriterData: each,
		}
		for _, h := range each.Headers {
			message.Headers = append(message.Headers, kafka.Header{Key: *h[0], Value: kit.Bytes(h[1])})
		}
		out = append(out, message)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	if err := p.inner.WriteMessages(ctx, out...); err != nil {
		for _, each := range c.Records {
			p.outcomes.Refused(each.ID, refuse(err))
		}
	}
	return nil, nil
}

func (d *driver) flush(c *kit.Command) (any, error) {
	p, err := d.of(c)
	if err != nil {
		return nil, err
	}
	return p.outcomes.Flush(kit.Ms(c.Timeout)), nil
}

// ---------------------------------------------------------------- consumers

func (d *driver) consume(c *kit.Command) (any, error) {
	isolation := kafka.ReadUncommitted
	if c.Isolation == "read_committed" {
		isolation = kafka.ReadCommitted
	}
	ctx, stop := context.WithCancel(context.Background())
	d.consumers[c.Name] = &consumer{
		config: kafka.ReaderConfig{
			Brokers: c.Servers(), MaxWait: 100 * time.Millisecond, IsolationLevel: isolation,
			Dialer: &kafka.Dialer{
				ClientID: c.ClientID, Timeout: kit.Ms(c.RequestTimeout), DualStack: true, TLS: c.TLS(), SASLMechanism: mechanism(c),
			},
			ReadBatchTimeout: kit.Ms(c.RequestTimeout), OffsetOutOfRangeError: c.OffsetReset == "none",
			ReadBackoffMin: 50 * time.Millisecond, ReadBackoffMax: 200 * time.Millisecond,
		},
		readers: map[kit.Place]*kafka.Reader{}, last: map[kit.Place]kafka.Message{}, ctx: ctx, stop: stop,
	}
	if c.Group != "" {
		config := &d.consumers[c.Name].config
		config.GroupID, config.StartOffset, config.JoinGroupBackoff = c.Group, kafka.FirstOffset, 100*time.Millisecond
		if c.OffsetReset == "latest" {
			config.StartOffset = kafka.LastOffset
		}
		config.SessionTimeout, config.HeartbeatInterval = kit.Ms(c.SessionTimeout), kit.Ms(c.HeartbeatInterval)
	}
	return nil, nil
}

func (d *driver) reader(c *kit.Command) (*consumer, error) {
	if found := d.consumers[c.Consumer]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("there is no consumer %q", c.Consumer)
}

func (d *driver) assign(c *kit.Command) (any, error) {
	m, err := d.reader(c)
	if err != nil {
		return nil, err
	}
	for _, each := range c.Places() {
		config := m.config
		config.GroupID, config.StartOffset, config.Topic, config.Partition = "", 0, each.Topic, int(each.Partition)
		reader := kafka.NewReader(config)
		if err := reader.SetOffset(each.Offset); err != nil {
			return nil, err
		}
		m.readers[kit.Place{Topic: each.Topic, Partition: each.Partition}] = reader
	}
	return nil, nil
}

func (d *driver) subscribe(c *kit.Command) (any, error) {
	m, err := d.reader(c)
	if err != nil {
		return nil, err
	}
	config := m.config
	config.GroupTopics = c.Topics
	m.readers[kit.Place{}] = kafka.NewReader(config)
	return nil, nil
}

// fetch asks each Reader for a message, until one has come: a Reader drops what it has of partitions that were revoked,
// or before a seek, so that nothing is taken from it before it is asked for.
func (m *consumer) fetch(timeout time.Duration) (failed []error) {
	ctx, cancel := context.WithTimeout(m.ctx, timeout)
	defer cancel()
	type fetched struct {
		message kafka.Message
		err     error
	}
	answers := make(chan fetched)
	for _, reader := range m.readers {
		go func() {
			message, err := reader.FetchMessage(ctx)
			answers <- fetched{message, err}
		}()
	}
	for range m.readers {
		each := <-answers
		if each.err == nil {
			m.left = append(m.left, each.message)
		} else if ctx.Err() == nil {
			failed = append(failed, each.err)
		}
		cancel()
	}
	return failed
}

func (d *driver) poll(c *kit.Command) (any, error) {
	m, err := d.reader(c)
	if err != nil {
		return nil, err
	}
	var records []kit.Read
	var failed []kit.Refusal
	add := func(r kafka.Message) {
		m.last[kit.Place{Topic: r.Topic, Partition: int32(r.Partition)}] = r
		read := kit.Read{
			Topic: r.Topic, Partition: int32(r.Partition), Offset: r.Offset, Key: kit.Text(r.Key), Value: kit.Text(r.Value),
			Timestamp: r.Time.UnixMilli(),
		}
		for _, h := range r.Headers {
			read.Headers = append(read.Headers, kit.Header{&h.Key, kit.Text(h.Value)})
		}
		records = append(records, read)
	}
	for timeout := kit.Ms(c.Timeout); !c.Full(len(records)); timeout = time.Millisecond {
		if len(m.left) == 0 {
			for _, err := range m.fetch(timeout) {
				failed = append(failed, refuse(err))
			}
		}
		if len(m.left) == 0 {
			break
		}
		add(m.left[0])
		m.left = m.left[1:]
	}
	return kit.Polled(records, failed), nil
}

func (d *driver) seek(c *kit.Command) (any, error) {
	m, err := d.reader(c)
	if err != nil {
		return nil, err
	}
	place := kit.Place{Topic: c.Topic, Partition: c.Partition}
	reader := m.readers[place]
	if reader == nil {
		return nil, fmt.Errorf("partition %d of %s is not assigned", c.Partition, c.Topic)
	}
	m.left = slices.DeleteFunc(m.left, func(r kafka.Message) bool {
		return kit.Place{Topic: r.Topic, Partition: int32(r.Partition)} == place
	})
	return nil, reader.SetOffset(c.Offset)
}

func (d *driver) commitOffsets(c *kit.Command) (any, error) {
	m, err := d.reader(c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.Context()
	defer cancel()
	var last []kafka.Message
	for _, each := range c.Offsets {
		last = append(last, kafka.Message{Topic: each.Topic, Partition: int(each.Partition), Offset: each.Offset - 1})
	}
	if c.Offsets == nil {
		last = slices.Collect(maps.Values(m.last))
	}
	return nil, m.readers[kit.Place{}].CommitMessages(ctx, last...)
}

// ---------------------------------------------------------------- the rest

func (d *driver) close(c *kit.Command) (any, error) {
	if p := d.producers[c.Name]; p != nil {
		delete(d.producers, c.Name)
		return nil, p.inner.Close()
	}
	if m := d.consumers[c.Name]; m != nil {
		delete(d.consumers, c.Name)
		m.stop()
		for _, each := range m.readers {
			if err := each.Close(); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}
