// 64 tests of a producer and a consumer group each, with kfake in process or with the package for Go:
//
//	go test -c -o /tmp/groups . && PARALLEL=1 /tmp/groups -test.parallel 8
//
// PARALLEL=1: at the same time; KFAKE=1: kfake; UNDERSTUDY_SERVER=own: a server for each cluster instead of a shared one.
package main

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"understudy.example/go/understudytest"
)

func brokers(t *testing.T) []string {
	if os.Getenv("KFAKE") == "" {
		return understudytest.Start(t, "--topic", "orders:3").Brokers()
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "orders"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster.ListenAddrs()
}

func group(t *testing.T) {
	if os.Getenv("PARALLEL") != "" {
		t.Parallel()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	seeds := kgo.SeedBrokers(brokers(t)...)
	producer, err := kgo.NewClient(seeds)
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	for range 3 {
		if err := producer.ProduceSync(ctx, &kgo.Record{Topic: "orders", Value: []byte("one order")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	consumer, err := kgo.NewClient(seeds, kgo.ConsumerGroup("g"), kgo.ConsumeTopics("orders"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer consumer.Close()
	for records := 0; records < 3; {
		fetches := consumer.PollFetches(ctx)
		if errors := fetches.Errors(); len(errors) > 0 {
			t.Fatal(errors)
		}
		records += fetches.NumRecords()
	}
	if err := consumer.CommitUncommittedOffsets(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestGroups(t *testing.T) {
	for number := range 64 {
		t.Run(fmt.Sprint(number), group)
	}
}
