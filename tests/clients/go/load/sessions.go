package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const inSessions = 20_000

func session(bootstrap []string, group, from, id string) (*kgo.GroupTransactSession, error) {
	return kgo.NewGroupTransactSession(
		kgo.SeedBrokers(bootstrap...), kgo.TransactionalID(id), kgo.ConsumerGroup(group), kgo.ConsumeTopics(from),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RequireStableFetchOffsets(), kgo.FetchMaxWait(100*time.Millisecond),
		kgo.HeartbeatInterval(300*time.Millisecond), kgo.SessionTimeout(6*time.Second), kgo.TransactionTimeout(20*time.Second),
	)
}

// turn is one transaction over what was read; whether it was committed.
func turn(ctx context.Context, s *kgo.GroupTransactSession, to string, fetches kgo.Fetches, wish kgo.TransactionEndTry) (bool, error) {
	if err := s.Begin(); err != nil {
		return false, err
	}
	fetches.EachRecord(func(r *kgo.Record) {
		s.Produce(ctx, &kgo.Record{Topic: to, Partition: r.Partition, Value: append([]byte("t-"), r.Value...)}, nil)
	})
	return s.End(ctx, wish)
}

func eachOnce(read []string, count int) error {
	seen := map[string]int{}
	for _, value := range read {
		seen[value]++
	}
	for n := range count {
		if times := seen["t-"+strconv.Itoa(n)]; times != 1 {
			return fmt.Errorf("record %d of %d came %d times, %d records in all", n, count, times, len(read))
		}
	}
	return nil
}

// work transforms in transactions of a group until it is told to end (or killed); one in ten is aborted.
func work(bootstrap []string, topic, id string) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	s, err := session(bootstrap, topic+"-group", topic+"-in", id)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer s.Close()
	for {
		fetches := s.PollRecords(ctx, 200)
		if ctx.Err() != nil {
			return
		}
		if fetches.NumRecords() == 0 {
			continue
		}
		wish := kgo.TransactionEndTry(rand.IntN(10) > 0)
		if _, err := turn(context.Background(), s, topic+"-out", fetches, wish); err != nil {
			fmt.Fprintln(os.Stderr, id, err)
			os.Exit(1)
		}
	}
}

// sessions: three workers, each a process; one is killed in mid-transaction and started again, one leaves and comes back.
func sessions(ctx context.Context) (string, error) {
	bootstrap, brokers, topic := cluster("-sessions")
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.FetchMaxWait(50*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.ConsumeTopics(topic+"-out"),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	)
	if err != nil {
		return "", err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	if _, err := admin.CreateTopics(ctx, 6, int16(min(brokers, 3)), nil, topic+"-in", topic+"-out"); err != nil {
		return "", err
	}
	began := time.Now()
	for n := range inSessions {
		record := &kgo.Record{Topic: topic + "-in", Partition: int32(n % 6), Value: []byte(strconv.Itoa(n))}
		client.Produce(ctx, record, nil)
	}
	if err := client.Flush(ctx); err != nil {
		return "", err
	}
	workers := map[string]*exec.Cmd{}
	run := func(name string) error {
		workers[name] = exec.Command(os.Args[0], "worker", strings.Join(bootstrap, ","), topic, topic+"-"+name)
		workers[name].Stderr = os.Stderr
		return workers[name].Start()
	}
	stop := func(name string, how os.Signal) {
		_ = workers[name].Process.Signal(how)
		_ = workers[name].Wait()
	}
	defer func() {
		for name := range workers {
			stop(name, syscall.SIGKILL)
		}
	}()
	events := []struct {
		after int
		do    func() error
	}{
		{0, func() error { return errors.Join(run("a"), run("b")) }},
		{1000, func() error { return run("c") }},
		{4000, func() error {
			stop("b", syscall.SIGKILL)
			return run("b")
		}},
		{10_000, func() error {
			stop("a", syscall.SIGTERM)
			return run("a")
		}},
	}
	var read []string
	poll := func(patience time.Duration) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		client.PollFetches(ctx).EachRecord(func(r *kgo.Record) { read = append(read, string(r.Value)) })
	}
	for len(read) < inSessions && ctx.Err() == nil {
		for len(events) > 0 && len(read) >= events[0].after {
			if err := events[0].do(); err != nil {
				return "", err
			}
			events = events[1:]
		}
		poll(200 * time.Millisecond)
	}
	poll(500 * time.Millisecond) // what should not be there has this long to come
	return fmt.Sprintf("%d records in %d ms", len(read), time.Since(began).Milliseconds()), eachOnce(read, inSessions)
}
