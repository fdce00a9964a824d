// As Compatibility.java, for librdkafka 1.9.2: this binding of that time brings it as a static library. (Python's binding
// brings it too, in wheels that end with Python 3.10.)
//
// Reads lines of "BOOTSTRAP NAME" and answers each with lines of "STEP RESULT" and at last "end". A third word is a codec:
// then records are produced with it, and nothing else is played.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/confluentinc/confluent-kafka-go/kafka"
)

const (
	patience = 15 * time.Second
	records  = 10
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		bootstrap, name := words[0], words[1]
		codec := append(words, "gzip")[2]
		if step("produce", produce(bootstrap, name, codec, false)) && len(words) == 2 {
			step("idempotent", produce(bootstrap, name, codec, true))
			step("consume", consume(bootstrap, name))
			step("transaction", transaction(bootstrap, name))
		}
		fmt.Println("end")
	}
}

func step(name string, err error) bool {
	if err == nil {
		fmt.Println(name, "ok")
		return true
	}
	fmt.Fprintf(os.Stderr, "librdkafka %s: %v\n", name, err)
	told := strings.ReplaceAll(err.Error(), "\n", " ")
	if ofKafka, ok := err.(kafka.Error); ok {
		told = fmt.Sprintf("code %d", ofKafka.Code())
	}
	fmt.Println(name, told)
	return false
}

func send(producer *kafka.Producer, topic, value string) error {
	delivered := make(chan kafka.Event, 1)
	place := kafka.TopicPartition{Topic: &topic, Partition: 0}
	if err := producer.Produce(&kafka.Message{TopicPartition: place, Value: []byte(value)}, delivered); err != nil {
		return err
	}
	select {
	case event := <-delivered:
		return event.(*kafka.Message).TopicPartition.Error
	case <-time.After(patience):
		return fmt.Errorf("not delivered")
	}
}

func produce(bootstrap, name, codec string, idempotent bool) error {
	producer, err := kafka.NewProducer(&kafka.ConfigMap{
		"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 0, "enable.idempotence": idempotent,
	})
	if err != nil {
		return err
	}
	defer producer.Close()
	for range records {
		// Long and alike, so that it is sent compressed.
		if err := send(producer, name, strings.Repeat("value", 20)); err != nil {
			return err
		}
	}
	return nil
}

func consumerOf(bootstrap, group string) (*kafka.Consumer, error) {
	return kafka.NewConsumer(&kafka.ConfigMap{
		"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": false, "auto.offset.reset": "earliest",
		"isolation.level": "read_committed",
	})
}

func read(consumer *kafka.Consumer, wanted int) (found []*kafka.Message) {
	for deadline := time.Now().Add(patience); len(found) < wanted && time.Now().Before(deadline); {
		if message, err := consumer.ReadMessage(200 * time.Millisecond); err == nil {
			found = append(found, message)
		}
	}
	return found
}

func consume(bootstrap, name string) error {
	consumer, err := consumerOf(bootstrap, name+"-group")
	if err != nil {
		return err
	}
	defer consumer.Close()
	if err := consumer.Subscribe(name, nil); err != nil {
		return err
	}
	if found := read(consumer, records); len(found) < records {
		return fmt.Errorf("%d records", len(found))
	}
	_, err = consumer.Commit()
	return err
}

func transaction(bootstrap, name string) error {
	out, group := name+"-out", name+"-other"
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	producer, err := kafka.NewProducer(&kafka.ConfigMap{"bootstrap.servers": bootstrap, "transactional.id": name})
	if err != nil {
		return err
	}
	defer producer.Close()
	consumer, err := consumerOf(bootstrap, group)
	if err != nil {
		return err
	}
	defer consumer.Close()
	if err := producer.InitTransactions(ctx); err != nil {
		return err
	}
	for _, commit := range []bool{false, true} {
		if err := turn(ctx, producer, consumer, name, commit); err != nil {
			return err
		}
	}
	if err := consumer.Assign([]kafka.TopicPartition{{Topic: &out, Partition: 0, Offset: 0}}); err != nil {
		return err
	}
	found := read(consumer, 1)
	if len(found) != 1 || string(found[0].Value) != "committed" {
		return fmt.Errorf("read %d", len(found))
	}
	return committed(consumer, name, 7)
}

// committed waits for the group's offset, which the marker brings when it comes: before 2.5 nobody can ask for stable ones.
func committed(consumer *kafka.Consumer, topic string, wanted kafka.Offset) error {
	found := kafka.OffsetInvalid
	for deadline := time.Now().Add(patience); found != wanted; {
		asked := []kafka.TopicPartition{{Topic: &topic, Partition: 0}}
		offsets, err := consumer.Committed(asked, int(patience.Milliseconds()))
		if err != nil {
			return err
		}
		if found = offsets[0].Offset; found != wanted && time.Now().After(deadline) {
			return fmt.Errorf("committed %s", found)
		}
	}
	return nil
}

func turn(ctx context.Context, producer *kafka.Producer, consumer *kafka.Consumer, name string, commit bool) error {
	value, offset, end := "aborted", kafka.Offset(3), producer.AbortTransaction
	if commit {
		value, offset, end = "committed", 7, producer.CommitTransaction
	}
	metadata, err := consumer.GetConsumerGroupMetadata()
	if err != nil {
		return err
	}
	if err := producer.BeginTransaction(); err != nil {
		return err
	}
	if err := send(producer, name+"-out", value); err != nil {
		return err
	}
	offsets := []kafka.TopicPartition{{Topic: &name, Partition: 0, Offset: offset}}
	if err := producer.SendOffsetsToTransaction(ctx, offsets, metadata); err != nil {
		return err
	}
	return end(ctx)
}
