package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"understudy/interop/script"
)

// member lives through the generations of a consumer group in the background; Poll empties what it has read.
type member struct {
	client  *client
	group   string
	inner   *kafka.ConsumerGroup
	stop    context.CancelFunc
	stopped chan struct{}
	records chan script.Record

	mutex      sync.Mutex
	generation *kafka.Generation
}

func (c *client) Join(_ context.Context, group string) (script.Member, error) {
	inner, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: group, Brokers: c.bootstrap, Topics: []string{c.topic}, StartOffset: kafka.FirstOffset,
		HeartbeatInterval: 300 * time.Millisecond, JoinGroupBackoff: 100 * time.Millisecond,
	})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	m := &member{
		client: c, group: group, inner: inner, stop: stop,
		stopped: make(chan struct{}), records: make(chan script.Record, 1000),
	}
	go m.live(ctx)
	return m, nil
}

func (m *member) live(ctx context.Context) {
	defer close(m.stopped)
	for ctx.Err() == nil {
		generation, err := m.inner.Next(ctx)
		if errors.Is(err, kafka.ErrGroupClosed) {
			return
		}
		if err != nil {
			continue
		}
		m.mutex.Lock()
		m.generation = generation
		m.mutex.Unlock()
		for _, each := range generation.Assignments[m.client.topic] {
			generation.Start(func(ctx context.Context) { m.read(ctx, each) })
		}
	}
}

// read reads one partition until its generation ends.
func (m *member) read(ctx context.Context, assigned kafka.PartitionAssignment) {
	reader := m.client.reader(assigned.ID)
	defer reader.Close()
	if err := reader.SetOffset(assigned.Offset); err != nil {
		return
	}
	for {
		message, err := reader.ReadMessage(ctx)
		if err != nil {
			return
		}
		select {
		case m.records <- recordOf(message):
		case <-ctx.Done():
			return
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
			return out, nil
		}
	}
}

func (m *member) current() *kafka.Generation {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.generation
}

func (m *member) Assigned() map[int]bool {
	out := map[int]bool{}
	if generation := m.current(); generation != nil {
		for _, each := range generation.Assignments[m.client.topic] {
			out[each.ID] = true
		}
	}
	return out
}

func (m *member) Commit(ctx context.Context, offsets map[int]int64) (map[int]int64, error) {
	topic := m.client.topic
	if err := m.current().CommitOffsets(map[string]map[int]int64{topic: offsets}); err != nil {
		return nil, err
	}
	wish := &kafka.OffsetFetchRequest{GroupID: m.group, Topics: map[string][]int{topic: {0, 1, 2}}}
	fetched, err := m.client.inner.OffsetFetch(ctx, wish)
	if err != nil {
		return nil, err
	}
	out := map[int]int64{}
	for _, p := range fetched.Topics[topic] {
		out[p.Partition] = p.CommittedOffset
	}
	return out, fetched.Error
}

func (m *member) Close() error {
	m.stop()
	err := m.inner.Close()
	<-m.stopped
	return err
}
