package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"understudy/interop/exam/kit"
)

// shareMember is a member of a share group (KIP-932).
type shareMember struct {
	options []kgo.Opt
	client  *kgo.Client
	polled  map[kit.Place]*kgo.Record
	mutex   sync.Mutex
	failed  error // of the acknowledgements since the last commit
}

var ackTypes = map[string]kgo.AckStatus{"accept": kgo.AckAccept, "release": kgo.AckRelease, "reject": kgo.AckReject}

func (d *driver) share(c *kit.Command) (any, error) {
	m := &shareMember{polled: map[kit.Place]*kgo.Record{}}
	m.options = append(
		common(c), kgo.FetchMaxWait(100*time.Millisecond), kgo.ShareGroup(c.Group),
		kgo.ShareAckCallback(func(_ *kgo.Client, results kgo.ShareAckResults) {
			m.mutex.Lock()
			defer m.mutex.Unlock()
			for _, each := range results {
				if each.Err != nil && m.failed == nil {
					m.failed = each.Err
				}
			}
		}),
	)
	d.members[c.Name] = m
	return nil, nil
}

func (m *shareMember) subscribe(topics []string) (err error) {
	m.client, err = kgo.NewClient(append(m.options, kgo.ConsumeTopics(topics...))...)
	return err
}

func (m *shareMember) remember(r *kgo.Record) {
	m.polled[kit.Place{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}] = r
}

func (d *driver) acknowledge(c *kit.Command) (any, error) {
	m := d.members[c.Consumer]
	if m == nil {
		return nil, fmt.Errorf("there is no member %q", c.Consumer)
	}
	for _, each := range c.Records {
		place := kit.Place{Topic: each.Topic, Partition: each.Partition, Offset: each.Offset}
		if record := m.polled[place]; record != nil {
			record.Ack(ackTypes[c.Type])
			delete(m.polled, place)
		}
	}
	return nil, nil
}

func (d *driver) commitAcknowledgements(c *kit.Command) (any, error) {
	m := d.members[c.Consumer]
	if m == nil {
		return nil, fmt.Errorf("there is no member %q", c.Consumer)
	}
	ctx, cancel := c.Context()
	defer cancel()
	if err := m.client.FlushAcks(ctx); err != nil {
		return nil, err
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	err := m.failed
	m.failed = nil
	return nil, err
}
