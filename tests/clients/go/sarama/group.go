package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"understudy/interop/script"
)

// member runs a consumer group in the background, as Sarama's users do; Poll empties what it has read.
type member struct {
	topic   string
	group   string
	admin   sarama.ClusterAdmin
	inner   sarama.ConsumerGroup
	stop    context.CancelFunc
	stopped chan struct{}
	records chan script.Record

	mutex   sync.Mutex
	session sarama.ConsumerGroupSession
	failed  error
}

func (c *client) Join(_ context.Context, group string) (script.Member, error) {
	inner, err := sarama.NewConsumerGroup(c.bootstrap, group, config())
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	m := &member{
		topic: c.topic, group: group, admin: c.admin, inner: inner, stop: stop,
		stopped: make(chan struct{}), records: make(chan script.Record, 1000),
	}
	go func() {
		defer close(m.stopped)
		for ctx.Err() == nil {
			if err := inner.Consume(ctx, []string{c.topic}, m); err != nil && !errors.Is(err, sarama.ErrClosedConsumerGroup) {
				m.mutex.Lock()
				m.failed = err
				m.mutex.Unlock()
			}
		}
	}()
	return m, nil
}

// Setup is called with each generation's claims.
func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.session, m.failed = session, nil
	return nil
}

// Cleanup is called when the generation ends.
func (m *member) Cleanup(sarama.ConsumerGroupSession) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.session = nil
	return nil
}

// ConsumeClaim reads one partition until the generation ends.
func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			select {
			case m.records <- recordOf(message):
			case <-session.Context().Done():
				return nil
			}
		case <-session.Context().Done():
			return nil
		}
	}
}

func (m *member) Poll(context.Context) (out []script.Record, err error) {
	timer := time.NewTimer(100 * time.Millisecond)
	defer timer.Stop()
	for {
		select {
		case r := <-m.records:
			out = append(out, r)
		case <-timer.C:
			m.mutex.Lock()
			defer m.mutex.Unlock()
			return out, m.failed
		}
	}
}

func (m *member) Assigned() map[int]bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	out := map[int]bool{}
	if m.session != nil {
		for _, p := range m.session.Claims()[m.topic] {
			out[int(p)] = true
		}
	}
	return out
}

func (m *member) Commit(_ context.Context, offsets map[int]int64) (map[int]int64, error) {
	m.mutex.Lock()
	session := m.session
	m.mutex.Unlock()
	if session == nil {
		return nil, errors.New("no session")
	}
	var partitions []int32
	for p, offset := range offsets {
		session.MarkOffset(m.topic, int32(p), offset, "")
		partitions = append(partitions, int32(p))
	}
	session.Commit()
	fetched, err := m.admin.ListConsumerGroupOffsets(m.group, map[string][]int32{m.topic: partitions})
	if err != nil {
		return nil, err
	}
	out := map[int]int64{}
	for _, p := range partitions {
		if block := fetched.GetBlock(m.topic, p); block != nil {
			out[int(p)] = block.Offset
		}
	}
	return out, nil
}

func (m *member) Close() error {
	m.stop()
	err := m.inner.Close()
	<-m.stopped
	return err
}
