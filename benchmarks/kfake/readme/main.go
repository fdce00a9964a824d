// Client of benchmarks.readme: franz-go, a test for each line of the standard input.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func readBack(bootstrap, topic, group string) {
	ctx := context.Background()
	producer, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.AllowAutoTopicCreation())
	must(err)
	must(producer.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("one order")}).FirstErr())
	producer.Close()
	consumer, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	must(err)
	defer consumer.Close()
	fetches := consumer.PollFetches(ctx)
	must(fetches.Err())
	if record := fetches.Records()[0]; string(record.Value) != "one order" {
		must(fmt.Errorf("another record: %s", record.Value))
	}
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		begun := time.Now()
		readBack(words[0], words[1], words[2])
		fmt.Println(float64(time.Since(begun).Microseconds()) / 1e3)
	}
}
