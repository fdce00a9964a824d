package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"understudy/interop/exam/kit"
)

// consumer is a client that is made when it is known what it reads: kgo takes topics and partitions as options.
type consumer struct {
	options []kgo.Opt
	group   []kgo.Opt
	topics  []string
	client  *kgo.Client
	mutex   sync.Mutex
	mine    map[kit.Place]bool
	// Whether it reads committed records only.
	committed bool
}

func security(c *kit.Command) []kgo.Opt {
	switch c.SaslMechanism {
	case "PLAIN":
		return []kgo.Opt{kgo.SASL(plain.Auth{User: c.SaslUsername, Pass: c.SaslPassword}.AsMechanism())}
	case "SCRAM-SHA-256":
		return []kgo.Opt{kgo.SASL(scram.Auth{User: c.SaslUsername, Pass: c.SaslPassword}.AsSha256Mechanism())}
	case "SCRAM-SHA-512":
		return []kgo.Opt{kgo.SASL(scram.Auth{User: c.SaslUsername, Pass: c.SaslPassword}.AsSha512Mechanism())}
	case "OAUTHBEARER":
		return []kgo.Opt{kgo.SASL(oauth.Auth{Token: c.SaslToken}.AsMechanism())}
	}
	if config := c.TLS(); config != nil {
		return []kgo.Opt{kgo.DialTLSConfig(config)}
	}
	return nil
}

func (d *driver) consume(c *kit.Command) (any, error) {
	options := append(common(c), kgo.FetchMaxWait(100*time.Millisecond))
	committed := c.Isolation == "read_committed"
	if committed {
		options = append(options, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	reset := map[string]kgo.Offset{
		"earliest": kgo.NewOffset().AtStart(), "latest": kgo.NewOffset().AtEnd(), "none": kgo.NoResetOffset(),
	}
	options = append(options, kgo.ConsumeResetOffset(reset[c.OffsetReset]))
	if c.OffsetReset == "none" {
		options = append(options, kgo.ConsumeStartOffset(kgo.NewOffset().AtCommitted()))
	}
	m := &consumer{options: options, mine: map[kit.Place]bool{}, committed: committed}
	if c.Group != "" {
		m.group = []kgo.Opt{
			kgo.ConsumerGroup(c.Group), kgo.SessionTimeout(kit.Ms(c.SessionTimeout)),
			kgo.HeartbeatInterval(kit.Ms(c.HeartbeatInterval)), kgo.RequireStableFetchOffsets(),
			kgo.OnPartitionsAssigned(m.mark(true)), kgo.OnPartitionsRevoked(m.revoked(c.AutoCommit)), kgo.OnPartitionsLost(m.mark(false)),
		}
		if !c.AutoCommit {
			m.group = append(m.group, kgo.DisableAutoCommit())
		}
		if c.InstanceID != "" {
			m.group = append(m.group, kgo.InstanceID(c.InstanceID))
		}
		if c.Protocol == "consumer" {
			m.group = append(m.group, kgo.ServerSideBalancer(), kgo.Balancers(kgo.RangeBalancer()))
		}
	}
	d.consumers[c.Name] = m
	return nil, nil
}

func (m *consumer) mark(has bool) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
		m.mutex.Lock()
		defer m.mutex.Unlock()
		for topic, partitions := range topics {
			for _, partition := range partitions {
				if has {
					m.mine[kit.Place{Topic: topic, Partition: partition}] = true
				} else {
					delete(m.mine, kit.Place{Topic: topic, Partition: partition})
				}
			}
		}
	}
}

// revoked replaces the callback with which kgo commits by itself, and so has to do that too.
func (m *consumer) revoked(commits bool) func(context.Context, *kgo.Client, map[string][]int32) {
	forget := m.mark(false)
	return func(ctx context.Context, client *kgo.Client, topics map[string][]int32) {
		if commits {
			_ = client.CommitUncommittedOffsets(ctx)
		}
		forget(ctx, client, topics)
	}
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
	offsets := map[string]map[int32]kgo.Offset{}
	for _, each := range c.Places() {
		if offsets[each.Topic] == nil {
			offsets[each.Topic] = map[int32]kgo.Offset{}
		}
		offsets[each.Topic][each.Partition] = kgo.NewOffset().At(each.Offset)
	}
	m.client, err = kgo.NewClient(append(m.options, kgo.ConsumePartitions(offsets))...)
	return nil, err
}

func (d *driver) subscribe(c *kit.Command) (any, error) {
	if member := d.members[c.Consumer]; member != nil {
		return nil, member.subscribe(c.Topics)
	}
	m, err := d.reader(c)
	if err != nil {
		return nil, err
	}
	m.topics = c.Topics
	if m.committed && m.group != nil {
		return nil, nil // it may become half of a session
	}
	return nil, m.join()
}

func (d *driver) poll(c *kit.Command) (any, error) {
	if member := d.members[c.Consumer]; member != nil {
		return polled(c, member.client, member.remember)
	}
	m, err := d.reader(c)
	if err != nil {
		return nil, err
	}
	if m.topics != nil {
		if err := m.join(); err != nil {
			return nil, err
		}
	}
	return polled(c, m.client, func(*kgo.Record) {})
}

func polled(c *kit.Command, client *kgo.Client, see func(*kgo.Record)) (any, error) {
	ctx, cancel := c.Context()
	defer cancel()
	fetches := client.PollRecords(ctx, c.MaxRecords)
	var records []kit.Read
	fetches.EachRecord(func(r *kgo.Record) {
		see(r)
		read := kit.Read{
			Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: kit.Text(r.Key), Value: kit.Text(r.Value),
			Timestamp: r.Timestamp.UnixMilli(),
		}
		for _, h := range r.Headers {
			read.Headers = append(read.Headers, kit.Header{&h.Key, kit.Text(h.Value)})
		}
		records = append(records, read)
	})
	var failed []kit.Refusal
	fetches.EachError(func(_ string, _ int32, err error) {
		if !errors.Is(err, context.DeadlineExceeded) {
			failed = append(failed, refuse(err))
		}
	})
	return kit.Polled(records, failed), nil
}

func (d *driver) assignment(c *kit.Command) (any, error) {
	m, err := d.reader(c)
	if err != nil {
		return nil, err
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	var places []kit.Place
	for each := range m.mine {
		places = append(places, each)
	}
	return kit.Assigned(places), nil
}

func (d *driver) seek(c *kit.Command) (any, error) {
	m, err := d.reader(c)
	if err != nil {
		return nil, err
	}
	m.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{c.Topic: {c.Partition: {Epoch: -1, Offset: c.Offset}}})
	return nil, nil
}

// commitOffsets asks for the codes of each partition, which CommitUncommittedOffsets leaves to its callback.
func (d *driver) commitOffsets(c *kit.Command) (any, error) {
	m, err := d.reader(c)
	if err != nil {
		return nil, err
	}
	if m.client == nil { // nothing was polled
		return nil, nil
	}
	ctx, cancel := c.Context()
	defer cancel()
	offsets := m.client.UncommittedOffsets()
	if c.Offsets != nil {
		offsets = map[string]map[int32]kgo.EpochOffset{}
		for _, each := range c.Offsets {
			if offsets[each.Topic] == nil {
				offsets[each.Topic] = map[int32]kgo.EpochOffset{}
			}
			offsets[each.Topic][each.Partition] = kgo.EpochOffset{Epoch: -1, Offset: each.Offset}
		}
	}
	var failed error
	m.client.CommitOffsetsSync(ctx, offsets, commitError(&failed))
	return nil, failed
}

func commitError(failed *error) func(*kgo.Client, *kmsg.OffsetCommitRequest, *kmsg.OffsetCommitResponse, error) {
	return func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse, err error) {
		*failed = err
		if err == nil && response != nil {
			*failed = firstCode(response)
		}
	}
}

func firstCode(response *kmsg.OffsetCommitResponse) error {
	for _, topic := range response.Topics {
		for _, partition := range topic.Partitions {
			if err := kerr.ErrorForCode(partition.ErrorCode); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *consumer) close() {
	if m.client != nil {
		m.client.Close()
	}
}
