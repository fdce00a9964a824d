package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"understudy/interop/exam/kit"
)

// consumer collects in the background what `poll` returns.
type consumer struct {
	servers  []string
	config   *sarama.Config
	group    string
	inner    sarama.ConsumerGroup
	plain    sarama.Consumer
	stop     context.CancelFunc
	messages chan *sarama.ConsumerMessage
	errors   chan error

	mutex   sync.Mutex
	session sarama.ConsumerGroupSession
	next    map[kit.Place]int64
}

func (d *driver) consume(c *kit.Command) (any, error) {
	config := common(c)
	s := &config.Consumer
	s.MaxWaitTime, s.Retry.Backoff, s.Return.Errors = 100*time.Millisecond, 50*time.Millisecond, true
	s.Offsets.AutoCommit.Enable, s.Offsets.Initial = c.AutoCommit, sarama.OffsetOldest
	s.Group.Session.Timeout, s.Group.Heartbeat.Interval = kit.Ms(c.SessionTimeout), kit.Ms(c.HeartbeatInterval)
	s.Group.Rebalance.Retry.Backoff, s.Group.Rebalance.Retry.Max = 100*time.Millisecond, 100
	s.Group.InstanceId = c.InstanceID
	if c.OffsetReset == "latest" {
		s.Offsets.Initial = sarama.OffsetNewest
	}
	if c.Isolation == "read_committed" {
		s.IsolationLevel = sarama.ReadCommitted
	}
	// A join may be answered only when all members have joined.
	config.Net.ReadTimeout = max(config.Net.ReadTimeout, kit.Ms(c.RequestTimeout))
	d.consumers[c.Name] = &consumer{
		servers: c.Servers(), config: config, group: c.Group, stop: func() {},
		messages: make(chan *sarama.ConsumerMessage, 10_000), errors: make(chan error, 1_000), next: map[kit.Place]int64{},
	}
	return nil, nil
}

func (d *driver) reader(c *kit.Command) (*consumer, error) {
	if found := d.consumers[c.Consumer]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("there is no consumer %q", c.Consumer)
}

// ---------------------------------------------------------------- without a group

func (d *driver) assign(c *kit.Command) (any, error) {
	m, err := d.reader(c)
	if err != nil {
		return nil, err
	}
	m.plain, err = sarama.NewConsumer(m.servers, m.config)
	if err != nil {
		return nil, err
	}
	for _, each := range c.Places() {
		part, err := m.plain.ConsumePartition(each.Topic, each.Partition, each.Offset)
		if err != nil {
			m.errors <- err
			continue
		}
		go func() {
			for failed := range part.Errors() {
				m.errors <- failed
			}
		}()
		go func() {
			for message := range part.Messages() {
				m.messages <- message
			}
		}()
	}
	return nil, nil
}

// ---------------------------------------------------------------- in a group

func (d *driver) subscribe(c *kit.Command) (any, error) {
	m, err := d.reader(c)
	if err != nil {
		return nil, err
	}
	m.inner, err = sarama.NewConsumerGroup(m.servers, m.group, m.config)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	m.stop = stop
	go func() {
		for failed := range m.inner.Errors() {
			m.errors <- failed
		}
	}()
	go func() {
		for ctx.Err() == nil {
			err := m.inner.Consume(ctx, c.Topics, m)
			if errors.Is(err, sarama.ErrClosedConsumerGroup) {
				return
			}
			if err != nil {
				m.errors <- err
				time.Sleep(50 * time.Millisecond)
			}
		}
	}()
	return nil, nil
}

// Setup begins a session; what an earlier one left to poll does not belong to it.
func (m *consumer) Setup(session sarama.ConsumerGroupSession) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.session, m.next = session, map[kit.Place]int64{}
	return nil
}

// Cleanup ends it.
func (m *consumer) Cleanup(sarama.ConsumerGroupSession) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.session = nil
	for len(m.messages) > 0 {
		<-m.messages
	}
	return nil
}

// ConsumeClaim reads one partition.
func (m *consumer) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			m.messages <- message
		case <-session.Context().Done():
			return nil
		}
	}
}

func (m *consumer) current() sarama.ConsumerGroupSession {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.session
}

func (m *consumer) positions() map[kit.Place]int64 {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	out := map[kit.Place]int64{}
	for place, next := range m.next {
		out[place] = next
	}
	return out
}

func (d *driver) poll(c *kit.Command) (any, error) {
	m, err := d.reader(c)
	if err != nil {
		return nil, err
	}
	var records []kit.Read
	var failed []kit.Refusal
	timer := time.NewTimer(kit.Ms(c.Timeout))
	defer timer.Stop()
	add := func(r *sarama.ConsumerMessage) {
		m.mutex.Lock()
		m.next[kit.Place{Topic: r.Topic, Partition: r.Partition}] = r.Offset + 1
		if m.config.Consumer.Offsets.AutoCommit.Enable && m.session != nil { // it commits what is marked
			m.session.MarkMessage(r, "")
		}
		m.mutex.Unlock()
		read := kit.Read{
			Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: kit.Text(r.Key), Value: kit.Text(r.Value),
			Timestamp: r.Timestamp.UnixMilli(),
		}
		for _, h := range r.Headers {
			read.Headers = append(read.Headers, kit.Header{kit.Text(h.Key), kit.Text(h.Value)})
		}
		records = append(records, read)
	}
	select {
	case first := <-m.messages:
		add(first)
	case err := <-m.errors:
		failed = append(failed, refuse(err))
	case <-timer.C:
	}
	for len(m.messages) > 0 && !c.Full(len(records)) {
		add(<-m.messages)
	}
	return kit.Polled(records, failed), nil
}

func (d *driver) assignment(c *kit.Command) (any, error) {
	m, err := d.reader(c)
	if err != nil {
		return nil, err
	}
	var places []kit.Place
	if session := m.current(); session != nil {
		for topic, partitions := range session.Claims() {
			for _, partition := range partitions {
				places = append(places, kit.Place{Topic: topic, Partition: partition})
			}
		}
	}
	return kit.Assigned(places), nil
}

// commitOffsets: Commit returns nothing; what is refused comes out of Errors.
func (d *driver) commitOffsets(c *kit.Command) (any, error) {
	m, err := d.reader(c)
	if err != nil {
		return nil, err
	}
	session := m.current()
	if session == nil {
		return nil, errors.New("the consumer has no session")
	}
	for len(m.errors) > 0 {
		<-m.errors
	}
	offsets := m.positions()
	if c.Offsets != nil {
		offsets = map[kit.Place]int64{}
		for _, each := range c.Offsets {
			offsets[kit.Place{Topic: each.Topic, Partition: each.Partition}] = each.Offset
		}
	}
	for place, next := range offsets {
		session.MarkOffset(place.Topic, place.Partition, next, "")
	}
	session.Commit()
	select {
	case err := <-m.errors:
		return nil, err
	case <-time.After(300 * time.Millisecond):
		return nil, nil
	}
}

func (m *consumer) close() error {
	m.stop()
	if m.inner != nil {
		return m.inner.Close()
	}
	return nil
}
