package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const inGroup = 30_000

// group: two members of a group read, transform, write and commit while the source is still being written, and a
// third joins on the way. Every record comes out; none is lost, and none twice because partitions move only between commits.
func group(ctx context.Context) (string, error) {
	bootstrap, brokers, topic := cluster("-load")
	from, to, group := topic+"-in", topic+"-out", topic+"-group"
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap...), kgo.DefaultProduceTopic(from))
	if err != nil {
		return "", err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	if _, err := admin.CreateTopics(ctx, 6, int16(min(brokers, 3)), nil, from, to); err != nil {
		return "", err
	}
	began := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var written atomic.Int64
	var working sync.WaitGroup
	failures := make(chan error, 4)
	work := func() {
		working.Add(1)
		go func() {
			defer working.Done()
			if err := transform(ctx, bootstrap, group, from, to, &written, cancel); err != nil {
				failures <- err
				cancel()
			}
		}()
	}
	work()
	work()
	for i := range inGroup {
		client.Produce(ctx, &kgo.Record{Key: []byte(strconv.Itoa(i)), Value: []byte(strconv.Itoa(i))}, nil)
		if i == inGroup/2 {
			work()
		}
	}
	if err := client.Flush(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return "", err
	}
	working.Wait()
	select {
	case err := <-failures:
		return "", err
	default:
	}
	detail := fmt.Sprintf("%d records in %d ms", inGroup, time.Since(began).Milliseconds())
	err = counted(context.Background(), bootstrap, to)
	_, _ = admin.DeleteTopics(context.Background(), from, to)
	return detail, err
}

func transform(
	ctx context.Context, bootstrap []string, group, from, to string, written *atomic.Int64, done context.CancelFunc,
) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap...), kgo.ConsumerGroup(group), kgo.ConsumeTopics(from), kgo.DefaultProduceTopic(to),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.HeartbeatInterval(300*time.Millisecond),
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(), kgo.Balancers(kgo.CooperativeStickyBalancer()),
	)
	if err != nil {
		return err
	}
	defer client.CloseAllowingRebalance()
	for {
		fetches := client.PollRecords(ctx, 1000)
		if ctx.Err() != nil {
			return nil
		}
		for _, failed := range fetches.Errors() {
			return failed.Err
		}
		var out []*kgo.Record
		fetches.EachRecord(func(r *kgo.Record) {
			out = append(out, &kgo.Record{Key: r.Key, Value: append([]byte("t-"), r.Value...)})
		})
		if err := client.ProduceSync(context.Background(), out...).FirstErr(); err != nil {
			return err
		}
		if err := client.CommitUncommittedOffsets(context.Background()); err != nil {
			return err
		}
		client.AllowRebalance()
		if written.Add(int64(len(out))) >= inGroup {
			done()
		}
	}
}

// counted reads the output and compares it with the input.
func counted(ctx context.Context, bootstrap []string, topic string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	seen := map[string]int{}
	for read := 0; read < inGroup; {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("%d records after 20 s", read)
		}
		fetches.EachRecord(func(r *kgo.Record) { seen[string(r.Value)]++; read++ })
	}
	for i := range inGroup {
		if seen["t-"+strconv.Itoa(i)] != 1 {
			return fmt.Errorf("record %d came %d times", i, seen["t-"+strconv.Itoa(i)])
		}
	}
	return nil
}
