package main

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"

	"understudy/interop/exam/kit"
)

// errAborted is what kgo reports by a value: the group was rebalanced while the transaction was open.
var errAborted = errors.New("the session has aborted the transaction")

// waiting is a consumer whose client is not made yet: with a transactional producer it becomes one client of both.
func (d *driver) waiting() *consumer {
	for _, m := range d.consumers {
		if m.topics != nil && m.client == nil {
			return m
		}
	}
	return nil
}

// join makes the client, unless it is there.
func (m *consumer) join() (err error) {
	if m.client == nil {
		m.client, err = kgo.NewClient(append(append(m.options, m.group...), kgo.ConsumeTopics(m.topics...))...)
	}
	return err
}

// session makes a GroupTransactSession of a transactional producer and a member of a group.
func (d *driver) session(c *kit.Command, m *consumer, options []kgo.Opt) error {
	all := append(append(append(m.options, m.group...), kgo.ConsumeTopics(m.topics...)), options...)
	made, err := kgo.NewGroupTransactSession(all...)
	if err != nil {
		return err
	}
	m.client = made.Client()
	d.producers[c.Name] = &producer{client: made.Client(), session: made, outcomes: kit.NewOutcomes()}
	return nil
}

// sendOffsets leaves it to the end of the session, which adds the offsets of what was polled.
func (d *driver) sendOffsets(c *kit.Command) (any, error) {
	p, err := d.of(c)
	if err != nil {
		return nil, err
	}
	if p.session == nil {
		return nil, kit.ErrUnsupported
	}
	return nil, nil
}

func (p *producer) begin() error {
	if p.session != nil {
		return p.session.Begin()
	}
	return p.client.BeginTransaction()
}

func (p *producer) end(ctx context.Context, how kgo.TransactionEndTry) error {
	if p.session == nil {
		return p.client.EndTransaction(ctx, how)
	}
	committed, err := p.session.End(ctx, how)
	if err == nil && !committed && how == kgo.TryCommit {
		return errAborted
	}
	return err
}
