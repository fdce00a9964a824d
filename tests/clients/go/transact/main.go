// franz-go through the transactional script of tests/clients/transactions/steps.py.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"understudy/interop/script"
)

const numbered = 300

type transact struct {
	bootstrap                  []string
	brokers                    int
	in, out, result, id, group string
	seen                       []string
	producer                   *kgo.Client
}

func main() {
	if os.Args[1] == "worker" {
		work(strings.Split(os.Args[2], ","), os.Args[3], os.Args[4])
		return
	}
	brokers, _ := strconv.Atoi(os.Args[2])
	topic := os.Args[3]
	t := &transact{
		bootstrap: strings.Split(os.Args[1], ","), brokers: brokers,
		in: topic + "-in", out: topic + "-out", result: topic + "-result", id: topic + "-id", group: topic + "-group",
	}
	script.Report("create", t.create)
	script.Report("commit", t.commit)
	script.Report("abort", t.abort)
	script.Report("isolation", t.isolation)
	script.Report("fencing", t.fencing)
	script.Report("transform", t.transform)
	script.Report("zombie", func(context.Context) (any, error) {
		return nil, fmt.Errorf("%w: a GroupTransactSession ends itself when its member is fenced", script.ErrUnsupported)
	})
	script.Report("timeout", t.timeout)
	script.Report("transform_under_load", t.underLoad)
}

// ---------------------------------------------------------------- clients

func (t *transact) open(options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(options,
		kgo.SeedBrokers(t.bootstrap...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.FetchMaxWait(50*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.HeartbeatInterval(300*time.Millisecond))...)
}

// transactor is initialized: an older one with its id is fenced.
func (t *transact) transactor(ctx context.Context, id string, timeout time.Duration) (*kgo.Client, error) {
	client, err := t.open(kgo.TransactionalID(id), kgo.TransactionTimeout(timeout))
	if err != nil {
		return nil, err
	}
	_, epoch, err := client.ProducerID(ctx)
	return client, script.Tell("producer.init", epoch, err)
}

func values(name string) (out []string) {
	for p := range 3 {
		out = append(out, fmt.Sprintf("%s-%d", name, p))
	}
	return out
}

func send(ctx context.Context, client *kgo.Client, topic string, values ...string) error {
	var records []*kgo.Record
	for i, value := range values {
		records = append(records, &kgo.Record{Topic: topic, Partition: int32(i % 3), Value: []byte(value)})
	}
	results := client.ProduceSync(ctx, records...)
	offsets := map[int32]int64{}
	for _, each := range results {
		offsets[each.Record.Partition] = each.Record.Offset
	}
	return script.Tell("producer.send", offsets, results.FirstErr())
}

// end ends a transaction.
func end(ctx context.Context, client *kgo.Client, how kgo.TransactionEndTry) error {
	return script.Tell("producer.end", how == kgo.TryCommit, client.EndTransaction(ctx, how))
}

func (t *transact) plain(ctx context.Context, topic string, values ...string) error {
	client, err := t.open()
	if err != nil {
		return err
	}
	defer client.Close()
	return send(ctx, client, topic, values...)
}

// begun is a transaction with one record in each partition, left open.
func (t *transact) begun(ctx context.Context, client *kgo.Client, name string) error {
	if err := client.BeginTransaction(); err != nil {
		return err
	}
	return send(ctx, client, t.out, values(name)...)
}

func (t *transact) read(ctx context.Context, topic string, count int, level kgo.IsolationLevel) (out []string, err error) {
	client, err := t.open(kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(level))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	poll := func(patience time.Duration) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		client.PollFetches(ctx).EachRecord(func(r *kgo.Record) { out = append(out, string(r.Value)) })
	}
	for deadline := time.Now().Add(20 * time.Second); len(out) < count && time.Now().Before(deadline); {
		poll(time.Second)
	}
	poll(300 * time.Millisecond) // what should not be there has this long to come
	slices.Sort(out)
	return out, script.Tell("consumer.read", out, nil)
}

// committed compares what read_committed shows with what was committed, these names now among it.
func (t *transact) committed(ctx context.Context, names ...string) error {
	for _, name := range names {
		t.seen = append(t.seen, values(name)...)
	}
	slices.Sort(t.seen)
	read, err := t.read(ctx, t.out, len(t.seen), kgo.ReadCommitted())
	if err == nil && !slices.Equal(read, t.seen) {
		err = fmt.Errorf("%v, not %v", read, t.seen)
	}
	return err
}

// finish sends once more and commits: a fenced producer cannot.
func (t *transact) finish(ctx context.Context, client *kgo.Client) error {
	if err := send(ctx, client, t.out, "late"); err != nil {
		return err
	}
	return end(ctx, client, kgo.TryCommit)
}

func all(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// ---------------------------------------------------------------- steps

func (t *transact) create(ctx context.Context) (any, error) {
	client, err := t.open()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopics(ctx, 3, int16(min(t.brokers, 3)), nil, t.in, t.out, t.result); err != nil {
		return nil, err
	}
	var numbers []string
	for n := range numbered {
		numbers = append(numbers, strconv.Itoa(n))
	}
	if err := send(ctx, client, t.in, numbers...); err != nil {
		return nil, err
	}
	t.producer, err = t.transactor(ctx, t.id, 30*time.Second)
	return nil, err
}

func (t *transact) commit(ctx context.Context) (any, error) {
	return nil, all(
		func() error { return t.begun(ctx, t.producer, "committed") },
		func() error { return end(ctx, t.producer, kgo.TryCommit) },
		func() error { return t.committed(ctx, "committed") },
	)
}

func (t *transact) abort(ctx context.Context) (any, error) {
	err := all(
		func() error { return t.begun(ctx, t.producer, "aborted") },
		func() error { return end(ctx, t.producer, kgo.TryAbort) },
		func() error { return t.committed(ctx) },
	)
	if err != nil {
		return nil, err
	}
	raw, err := t.read(ctx, t.out, len(t.seen)+3, kgo.ReadUncommitted())
	if err == nil && !slices.Contains(raw, "aborted-0") {
		err = fmt.Errorf("%v", raw)
	}
	return nil, err
}

func (t *transact) isolation(ctx context.Context) (any, error) {
	return nil, all(
		func() error { return t.begun(ctx, t.producer, "open") },
		func() error { return t.plain(ctx, t.out, values("after")...) },
		func() error { return t.committed(ctx) },
		func() error { return end(ctx, t.producer, kgo.TryCommit) },
		func() error { return t.committed(ctx, "open", "after") },
	)
}

func (t *transact) fencing(ctx context.Context) (any, error) {
	first := t.producer
	if err := t.begun(ctx, first, "fenced"); err != nil {
		return nil, err
	}
	var err error
	if t.producer, err = t.transactor(ctx, t.id, 30*time.Second); err != nil {
		return nil, err
	}
	told := t.finish(ctx, first)
	if !errors.Is(told, kerr.InvalidProducerEpoch) && !errors.Is(told, kerr.ProducerFenced) {
		return nil, fmt.Errorf("not fenced: %w", told)
	}
	first.Close()
	return told, all(
		func() error { return t.begun(ctx, t.producer, "second") },
		func() error { return end(ctx, t.producer, kgo.TryCommit) },
		func() error { return t.committed(ctx, "second") },
	)
}

func (t *transact) timeout(ctx context.Context) (any, error) {
	late, err := t.transactor(ctx, t.id+"-late", time.Second)
	if err != nil {
		return nil, err
	}
	err = all(
		func() error { return t.begun(ctx, late, "late") },
		func() error { return t.plain(ctx, t.out, values("waiting")...) },
		// Visible once the coordinator has aborted what was before it.
		func() error { return t.committed(ctx, "waiting") },
	)
	if err != nil {
		return nil, err
	}
	told := t.finish(ctx, late)
	if told == nil {
		return nil, errors.New("nothing was refused")
	}
	late.Close()
	heir, err := t.transactor(ctx, t.id+"-late", 30*time.Second)
	if err != nil {
		return nil, err
	}
	defer heir.Close()
	return told, all(
		func() error { return t.begun(ctx, heir, "recovered") },
		func() error { return end(ctx, heir, kgo.TryCommit) },
		func() error { return t.committed(ctx, "recovered") },
	)
}
