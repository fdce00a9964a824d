package main

import (
	"context"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

type ofSarama struct {
	bootstrap []string
	version   sarama.KafkaVersion
}

func newSarama(bootstrap, release string) player {
	version := sarama.NewConfig().Version
	if release != "" {
		parsed, err := sarama.ParseKafkaVersion(release)
		if err != nil {
			panic(err)
		}
		version = parsed
	}
	return &ofSarama{[]string{bootstrap}, version}
}

func (s *ofSarama) config() *sarama.Config {
	c := sarama.NewConfig()
	c.Version = s.version
	c.Producer.Compression = sarama.CompressionGZIP
	c.Producer.Return.Successes = true
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Retry.Max, c.Metadata.Retry.Max = 20, 20
	c.Producer.Transaction.Retry.Max = 100
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Offsets.AutoCommit.Enable = false
	c.Consumer.MaxWaitTime = 100 * time.Millisecond
	c.Consumer.IsolationLevel = sarama.ReadCommitted
	return c
}

func (s *ofSarama) producer(id string, idempotent bool) (sarama.SyncProducer, error) {
	c := s.config()
	c.Producer.Transaction.ID = id
	if idempotent {
		c.Producer.Idempotent, c.Net.MaxOpenRequests = true, 1
	}
	return sarama.NewSyncProducer(s.bootstrap, c)
}

func message(topic, value string) *sarama.ProducerMessage {
	return &sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(value)}
}

func (s *ofSarama) produce(_ context.Context, name string, idempotent bool) error {
	producer, err := s.producer("", idempotent)
	if err != nil {
		return err
	}
	defer producer.Close()
	for range records {
		if _, _, err := producer.SendMessage(message(name, "value")); err != nil {
			return err
		}
	}
	return nil
}

// reader leaves its group when it has seen enough.
type reader struct{ enough chan struct{} }

func (r *reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (r *reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (r *reader) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for count := 0; ; {
		select {
		case m, open := <-claim.Messages():
			if !open {
				return nil
			}
			session.MarkMessage(m, "")
			if count++; count == records {
				session.Commit()
				close(r.enough)
				return nil
			}
		case <-session.Context().Done():
			return nil
		}
	}
}

func (s *ofSarama) consume(ctx context.Context, name string) error {
	group, err := sarama.NewConsumerGroup(s.bootstrap, name+"-group", s.config())
	if err != nil {
		return err
	}
	defer group.Close()
	read := &reader{enough: make(chan struct{})}
	for ctx.Err() == nil {
		if err := group.Consume(ctx, []string{name}, read); err != nil {
			return err
		}
		select {
		case <-read.enough:
			return s.committed(ctx, name+"-group", name, records)
		default:
		}
	}
	return ctx.Err()
}

// committed waits for the group's offset, which a transaction's marker brings when it comes.
func (s *ofSarama) committed(ctx context.Context, group, topic string, wanted int64) error {
	admin, err := sarama.NewClusterAdmin(s.bootstrap, s.config())
	if err != nil {
		return err
	}
	defer admin.Close()
	for found := int64(-1); ; {
		answer, err := admin.ListConsumerGroupOffsets(group, map[string][]int32{topic: {0}})
		if err != nil {
			return err
		}
		if block := answer.GetBlock(topic, 0); block != nil {
			found = block.Offset
		}
		if found == wanted {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("committed %d", found)
		}
	}
}

func (s *ofSarama) transaction(ctx context.Context, name string) error {
	out, group := name+"-out", name+"-other"
	producer, err := s.producer(name, true)
	if err != nil {
		return err
	}
	defer producer.Close()
	for _, commit := range []bool{false, true} {
		if err := turn(producer, out, name, group, commit); err != nil {
			return err
		}
	}
	if err := s.onlyCommitted(ctx, out); err != nil {
		return err
	}
	return s.committed(ctx, group, name, 7)
}

func turn(producer sarama.SyncProducer, out, name, group string, commit bool) error {
	value, offset, end := "aborted", int64(3), producer.AbortTxn
	if commit {
		value, offset, end = "committed", 7, producer.CommitTxn
	}
	if err := producer.BeginTxn(); err != nil {
		return err
	}
	if _, _, err := producer.SendMessage(message(out, value)); err != nil {
		return err
	}
	offsets := map[string][]*sarama.PartitionOffsetMetadata{name: {{Partition: 0, Offset: offset}}}
	if err := producer.AddOffsetsToTxn(offsets, group); err != nil {
		return err
	}
	return end()
}

func (s *ofSarama) onlyCommitted(ctx context.Context, out string) error {
	consumer, err := sarama.NewConsumer(s.bootstrap, s.config())
	if err != nil {
		return err
	}
	defer consumer.Close()
	part, err := consumer.ConsumePartition(out, 0, sarama.OffsetOldest)
	if err != nil {
		return err
	}
	defer part.Close()
	select {
	case m := <-part.Messages():
		if string(m.Value) != "committed" {
			return fmt.Errorf("read %s", m.Value)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
