package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

type ofFranz struct{ options []kgo.Opt }

func newFranz(bootstrap, release string) player {
	options := []kgo.Opt{
		kgo.SeedBrokers(bootstrap), kgo.AllowAutoTopicCreation(), kgo.UnknownTopicRetries(20), kgo.RecordRetries(20),
		kgo.ProducerBatchCompression(kgo.GzipCompression()), kgo.RecordDeliveryTimeout(patience),
		kgo.FetchMaxWait(100 * time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	}
	if release != "" {
		versions := kversion.FromString(release)
		if versions == nil {
			panic("unknown release " + release)
		}
		options = append(options, kgo.MaxVersions(versions))
	}
	return &ofFranz{options}
}

func (f *ofFranz) open(more ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(append([]kgo.Opt{}, f.options...), more...)...)
}

func (f *ofFranz) produce(ctx context.Context, name string, idempotent bool) error {
	var more []kgo.Opt
	if !idempotent {
		more = append(more, kgo.DisableIdempotentWrite())
	}
	client, err := f.open(more...)
	if err != nil {
		return err
	}
	defer client.Close()
	for range records {
		if err := client.ProduceSync(ctx, &kgo.Record{Topic: name, Value: []byte("value")}).FirstErr(); err != nil {
			return err
		}
	}
	return nil
}

// poll reads at least one record.
func poll(ctx context.Context, read func(context.Context, int) kgo.Fetches, most int) ([]*kgo.Record, error) {
	for ctx.Err() == nil {
		fetches := read(ctx, most)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		if found := fetches.Records(); len(found) > 0 {
			return found, nil
		}
	}
	return nil, ctx.Err()
}

func (f *ofFranz) consume(ctx context.Context, name string) error {
	client, err := f.open(kgo.ConsumerGroup(name+"-group"), kgo.ConsumeTopics(name), kgo.DisableAutoCommit())
	if err != nil {
		return err
	}
	defer client.Close()
	for count := 0; count < records; {
		found, err := poll(ctx, client.PollRecords, records-count)
		if err != nil {
			return err
		}
		count += len(found)
	}
	if err := client.CommitUncommittedOffsets(ctx); err != nil {
		return err
	}
	return committed(ctx, kadm.NewClient(client), name+"-group", name, records)
}

// committed waits for the group's offset, which a transaction's marker brings when it comes.
func committed(ctx context.Context, admin *kadm.Client, group, topic string, wanted int64) error {
	for found := int64(-1); ; {
		answer, err := admin.FetchOffsets(ctx, group)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if offset, ok := answer.Lookup(topic, 0); ok {
			found = offset.At
		}
		if found == wanted {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("committed %d", found)
		}
	}
}

// transaction reads, writes and takes its offsets along: a session is how franz-go does that.
func (f *ofFranz) transaction(ctx context.Context, name string) error {
	out, group := name+"-out", name+"-other"
	session, err := kgo.NewGroupTransactSession(append(append([]kgo.Opt{}, f.options...),
		kgo.TransactionalID(name), kgo.ConsumerGroup(group), kgo.ConsumeTopics(name), kgo.RequireStableFetchOffsets())...)
	if err != nil {
		return err
	}
	defer session.Close()
	var last int64
	for _, wish := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit} {
		found, err := poll(ctx, session.PollRecords, 7)
		if err != nil {
			return err
		}
		if err := f.turn(ctx, session, out, wish); err != nil {
			return err
		}
		last = found[len(found)-1].Offset + 1
	}
	if err := f.onlyCommitted(ctx, out); err != nil {
		return err
	}
	return committed(ctx, kadm.NewClient(session.Client()), group, name, last)
}

func (f *ofFranz) turn(ctx context.Context, session *kgo.GroupTransactSession, out string, wish kgo.TransactionEndTry) error {
	value := "aborted"
	if wish == kgo.TryCommit {
		value = "committed"
	}
	if err := session.Begin(); err != nil {
		return err
	}
	if err := session.ProduceSync(ctx, &kgo.Record{Topic: out, Value: []byte(value)}).FirstErr(); err != nil {
		return err
	}
	ended, err := session.End(ctx, wish)
	if err == nil && ended != bool(wish) {
		err = fmt.Errorf("ended %t", ended)
	}
	return err
}

func (f *ofFranz) onlyCommitted(ctx context.Context, out string) error {
	client, err := f.open(kgo.ConsumeTopics(out))
	if err != nil {
		return err
	}
	defer client.Close()
	found, err := poll(ctx, client.PollRecords, 1)
	if err == nil && string(found[0].Value) != "committed" {
		err = fmt.Errorf("read %s", found[0].Value)
	}
	return err
}
