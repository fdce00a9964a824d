// confluent-kafka-go, which brings librdkafka, as a driver of `understudy exam`.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"understudy/interop/exam/kit"
)

const retryPause = 50 * time.Millisecond

type producer struct {
	inner    *kafka.Producer
	outcomes *kit.Outcomes
}

type driver struct {
	producers map[string]*producer
	consumers map[string]*kafka.Consumer
}

func main() {
	d := &driver{map[string]*producer{}, map[string]*kafka.Consumer{}}
	(&kit.Driver{
		Library: "confluent-kafka-go",
		Module:  "github.com/confluentinc/confluent-kafka-go/v2",
		Capabilities: []string{
			"producer", "idempotence", "transactions", "send_offsets", "consumer", "read_committed", "offset_reset", "seek",
			"reassign", "resubscribe", "groups", "assignment", "static_members", "consumer_protocol", "commit_offsets", "admin",
			"compression", "null_values", "max_records", "auto_commit",
			"tls", "sasl_plain", "sasl_scram", "sasl_oauthbearer",
		},
		Refuse: refuse,
		Commands: map[string]func(*kit.Command) (any, error){
			"producer": d.create, "send": d.send, "flush": d.flush, "init_transactions": d.initialize, "begin": d.begin,
			"send_offsets": d.sendOffsets, "commit": d.commit, "abort": d.abort, "consumer": d.consume,
			"assign": d.assign, "subscribe": d.subscribe, "poll": d.poll, "assignment": d.assignment, "seek": d.seek,
			"commit_offsets": d.commitOffsets, "create_topic": createTopic, "close": d.close,
		},
	}).Run()
}

// The binding has the text of a code, not its name.
var names = map[kafka.ErrorCode]string{
	kafka.ErrProducerFenced: "PRODUCER_FENCED", kafka.ErrInvalidProducerEpoch: "INVALID_PRODUCER_EPOCH",
	kafka.ErrFenced: "_FENCED", kafka.ErrFatal: "_FATAL", kafka.ErrTimedOut: "_TIMED_OUT", kafka.ErrMsgTimedOut: "_MSG_TIMED_OUT",
	kafka.ErrUnknownMemberID: "UNKNOWN_MEMBER_ID", kafka.ErrIllegalGeneration: "ILLEGAL_GENERATION",
	kafka.ErrMsgSizeTooLarge: "MESSAGE_TOO_LARGE", kafka.ErrOffsetOutOfRange: "OFFSET_OUT_OF_RANGE",
	kafka.ErrTopicAlreadyExists: "TOPIC_ALREADY_EXISTS", kafka.ErrNotCoordinator: "NOT_COORDINATOR",
}

// refuse classifies as librdkafka does.
func refuse(err error) kit.Refusal {
	out := kit.Refusal{Class: "other", Message: err.Error()}
	var told kafka.Error
	if !errors.As(err, &told) {
		return out
	}
	if name := names[told.Code()]; name != "" {
		out.Code = &name
	}
	switch code := told.Code(); {
	case told.IsFatal(), code == kafka.ErrFenced, code == kafka.ErrFatal:
		out.Class = "fatal"
	case told.TxnRequiresAbort():
		out.Class = "abortable"
	case code == kafka.ErrTimedOut, code == kafka.ErrMsgTimedOut:
		out.Class = "timeout"
	case told.IsRetriable():
		out.Class = "retriable"
	}
	return out
}

func common(c *kit.Command) kafka.ConfigMap {
	settings := kafka.ConfigMap{
		"bootstrap.servers": c.BootstrapServers, "client.id": c.ClientID, "socket.timeout.ms": max(c.RequestTimeout, 300),
		"topic.metadata.refresh.fast.interval.ms": 50, "reconnect.backoff.max.ms": 500,
		// Its log goes to stderr, of which a report shows the last lines: only what ends the process belongs there.
		"log_level": 0,
	}
	secure(settings, c)
	return settings
}

func (d *driver) create(c *kit.Command) (any, error) {
	settings := common(c)
	for name, value := range map[string]kafka.ConfigValue{
		"acks": c.Acks, "enable.idempotence": c.Idempotent, "message.timeout.ms": c.DeliveryTimeout,
		"request.timeout.ms": c.RequestTimeout, "retry.backoff.ms": c.RetryBackoff, "linger.ms": c.Linger,
		"max.in.flight.requests.per.connection": c.MaxInFlight, "compression.type": c.Compression,
	} {
		settings[name] = value
	}
	if c.TransactionalID != "" {
		settings["transactional.id"] = c.TransactionalID
		settings["transaction.timeout.ms"] = c.TransactionTimeout
		settings["message.timeout.ms"] = min(c.DeliveryTimeout, c.TransactionTimeout)
	}
	inner, err := kafka.NewProducer(&settings)
	if err != nil {
		return nil, err
	}
	p := &producer{inner: inner, outcomes: kit.NewOutcomes()}
	if err := authorize(inner, c); err != nil {
		return nil, err
	}
	go p.deliveries()
	d.producers[c.Name] = p
	return nil, nil
}

// deliveries ends when the producer is closed. A record that expires does not mention why: the last event of an error does.
func (p *producer) deliveries() {
	cause := ""
	for event := range p.inner.Events() {
		switch found := event.(type) {
		case kafka.Error:
			if found.Code() != kafka.ErrAllBrokersDown { // which follows the error that has the cause
				cause = "; " + found.Error()
			}
		case *kafka.Message:
			id := found.Opaque.(int)
			if err := found.TopicPartition.Error; err != nil {
				refusal := refuse(err)
				refusal.Message += cause
				p.outcomes.Refused(id, refusal)
			} else {
				p.outcomes.Written(id, int64(found.TopicPartition.Offset))
			}
		}
	}
}

func (d *driver) of(c *kit.Command) (*producer, error) {
	if found := d.producers[c.Producer]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("there is no producer %q", c.Producer)
}

func (d *driver) send(c *kit.Command) (any, error) {
	p, err := d.of(c)
	if err != nil {
		return nil, err
	}
	for _, each := range c.Records {
		p.outcomes.Sent()
		err := p.inner.Produce(&kafka.Message{
			TopicPartition: kafka.TopicPartition{Topic: &c.Topic, Partition: each.Partition},
			Key:            kit.Bytes(each.Key), Value: kit.Bytes(each.Value), Opaque: each.ID,
		}, nil)
		if err != nil { // in a transaction that has failed already
			p.outcomes.Refused(each.ID, refuse(err))
		}
	}
	return nil, nil
}

func (d *driver) flush(c *kit.Command) (any, error) {
	p, err := d.of(c)
	if err != nil {
		return nil, err
	}
	until := time.Now().Add(kit.Ms(c.Timeout))
	p.inner.Flush(c.Timeout)
	// Its outcomes are in a channel now, from which another goroutine takes them.
	return p.outcomes.Flush(max(time.Until(until), retryPause)), nil
}

// ---------------------------------------------------------------- transactions

// retried calls again after retriable errors, as librdkafka's documentation asks applications to.
func (d *driver) retried(c *kit.Command, call func(*kafka.Producer, context.Context) error) (any, error) {
	p, err := d.of(c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.Context()
	defer cancel()
	for {
		err := call(p.inner, ctx)
		var told kafka.Error
		if err == nil || !errors.As(err, &told) || !told.IsRetriable() || ctx.Err() != nil {
			return nil, err
		}
		time.Sleep(retryPause)
	}
}

func (d *driver) initialize(c *kit.Command) (any, error) {
	return d.retried(c, func(p *kafka.Producer, ctx context.Context) error { return p.InitTransactions(ctx) })
}

func (d *driver) begin(c *kit.Command) (any, error) {
	p, err := d.of(c)
	if err != nil {
		return nil, err
	}
	return nil, p.inner.BeginTransaction()
}

func (d *driver) sendOffsets(c *kit.Command) (any, error) {
	m, err := d.reader(c)
	if err != nil {
		return nil, err
	}
	assigned, err := m.Assignment()
	if err != nil {
		return nil, err
	}
	positions, err := m.Position(assigned)
	if err != nil {
		return nil, err
	}
	metadata, err := m.GetConsumerGroupMetadata()
	if err != nil {
		return nil, err
	}
	var known []kafka.TopicPartition
	for _, each := range positions {
		if each.Offset >= 0 {
			known = append(known, each)
		}
	}
	return d.retried(c, func(p *kafka.Producer, ctx context.Context) error {
		return p.SendOffsetsToTransaction(ctx, known, metadata)
	})
}

func (d *driver) commit(c *kit.Command) (any, error) {
	return d.retried(c, func(p *kafka.Producer, ctx context.Context) error { return p.CommitTransaction(ctx) })
}

func (d *driver) abort(c *kit.Command) (any, error) {
	return d.retried(c, func(p *kafka.Producer, ctx context.Context) error { return p.AbortTransaction(ctx) })
}

// ---------------------------------------------------------------- the rest

func createTopic(c *kit.Command) (any, error) {
	client, err := kafka.NewAdminClient(&kafka.ConfigMap{"bootstrap.servers": c.BootstrapServers, "log_level": 0})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := c.Context()
	defer cancel()
	made, err := client.CreateTopics(ctx, []kafka.TopicSpecification{{Topic: c.Topic, NumPartitions: c.Count()}})
	if err == nil && made[0].Error.Code() != kafka.ErrNoError {
		err = made[0].Error
	}
	return nil, err
}

func (d *driver) close(c *kit.Command) (any, error) {
	if p := d.producers[c.Name]; p != nil {
		p.inner.Close()
		delete(d.producers, c.Name)
	} else if m := d.consumers[c.Name]; m != nil {
		delete(d.consumers, c.Name)
		return nil, m.Close()
	}
	return nil, nil
}
