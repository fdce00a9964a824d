// Sarama as a driver of `understudy exam`.
package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"understudy/interop/exam/kit"
)

type producer struct {
	servers  []string
	config   *sarama.Config
	inner    sarama.AsyncProducer
	outcomes *kit.Outcomes
	finished chan struct{}
}

type driver struct {
	producers map[string]*producer
	consumers map[string]*consumer
}

func main() {
	sarama.Logger = log.New(io.Discard, "", 0)
	d := &driver{map[string]*producer{}, map[string]*consumer{}}
	(&kit.Driver{
		Library: "Sarama",
		Module:  "github.com/IBM/sarama",
		Capabilities: []string{
			"producer", "idempotence", "transactions", "send_offsets", "consumer", "read_committed", "groups",
			"compression", "null_values", "max_records", "auto_commit", "assignment", "static_members", "commit_offsets", "admin", "tls", "sasl_plain", "sasl_oauthbearer",
		},
		Refuse: refuse,
		Commands: kit.Commands{
			"producer": d.create, "send": d.send, "flush": d.flush, "init_transactions": d.initialize, "begin": d.begin,
			"send_offsets": d.sendOffsets, "commit": d.commit, "abort": d.abort, "consumer": d.consume,
			"assign": d.assign, "subscribe": d.subscribe, "poll": d.poll, "assignment": d.assignment,
			"commit_offsets": d.commitOffsets, "close": d.close,
		},
		Administration: administration,
	}).Run()
}

var names = map[sarama.KError]string{
	sarama.ErrProducerFenced: "PRODUCER_FENCED", sarama.ErrInvalidProducerEpoch: "INVALID_PRODUCER_EPOCH",
	sarama.ErrUnknownMemberId: "UNKNOWN_MEMBER_ID", sarama.ErrMessageSizeTooLarge: "MESSAGE_TOO_LARGE",
	sarama.ErrRequestTimedOut: "REQUEST_TIMED_OUT", sarama.ErrOffsetOutOfRange: "OFFSET_OUT_OF_RANGE",
}

func refuse(err error) kit.Refusal {
	out := kit.Refusal{Class: "other", Message: err.Error()}
	var code sarama.KError
	if errors.As(err, &code) {
		if name := names[code]; name != "" {
			out.Code = &name
		}
		out.Class = "abortable"
	}
	switch {
	case errors.Is(err, sarama.ErrProducerFenced), errors.Is(err, sarama.ErrInvalidProducerEpoch):
		out.Class = "fatal"
	case errors.Is(err, sarama.ErrRequestTimedOut):
		out.Class = "timeout"
	}
	return out
}

func common(c *kit.Command) *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.ClientID = c.ClientID
	config.Net.DialTimeout, config.Net.WriteTimeout = kit.Ms(c.RequestTimeout), kit.Ms(c.RequestTimeout)
	config.Net.ReadTimeout = kit.Ms(c.RequestTimeout)
	if c.TLSAuthority == "" && c.SaslMechanism == "" { // else it would try refused credentials as often
		config.Metadata.Retry.Max, config.Metadata.Retry.Backoff = 50, 100*time.Millisecond
	}
	if config.Net.TLS.Config = c.TLS(); config.Net.TLS.Config != nil {
		config.Net.TLS.Enable = true
	}
	if c.SaslMechanism != "" {
		s := &config.Net.SASL
		s.Enable, s.Mechanism, s.User, s.Password = true, sarama.SASLMechanism(c.SaslMechanism), c.SaslUsername, c.SaslPassword
		if c.SaslToken != "" {
			s.TokenProvider = given(c.SaslToken)
		}
	}
	return config
}

// given is a token that the application has. For SCRAM it would need a library of its own.
type given string

func (token given) Token() (*sarama.AccessToken, error) {
	return &sarama.AccessToken{Token: string(token)}, nil
}

func (d *driver) create(c *kit.Command) (any, error) {
	config := common(c)
	p := &config.Producer
	p.RequiredAcks = map[string]sarama.RequiredAcks{"all": sarama.WaitForAll, "1": sarama.WaitForLocal, "0": sarama.NoResponse}[c.Acks]
	p.Compression = map[string]sarama.CompressionCodec{
		"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
		"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
	}[c.Compression]
	p.Timeout, p.Flush.Frequency = kit.Ms(c.RequestTimeout), kit.Ms(c.Linger)
	// It has no delivery timeout: as many retries as fit into it.
	p.Retry.Backoff, p.Retry.Max = kit.Ms(c.RetryBackoff), c.DeliveryTimeout/max(c.RetryBackoff, 1)
	p.Return.Successes, p.Return.Errors, p.Partitioner = true, true, sarama.NewManualPartitioner
	config.Net.MaxOpenRequests = c.MaxInFlight
	if c.Idempotent || c.TransactionalID != "" {
		p.Idempotent, config.Net.MaxOpenRequests = true, 1
	}
	if c.TransactionalID != "" {
		p.Transaction.ID, p.Transaction.Timeout = c.TransactionalID, kit.Ms(c.TransactionTimeout)
		p.Transaction.Retry.Backoff, p.Transaction.Retry.Max = kit.Ms(c.RetryBackoff), p.Retry.Max
	}
	made := &producer{c.Servers(), config, nil, kit.NewOutcomes(), make(chan struct{})}
	d.producers[c.Name] = made
	if c.TransactionalID == "" {
		return nil, made.start()
	}
	return nil, nil
}

// start connects; a transactional producer gets its producer id in it.
func (p *producer) start() (err error) {
	p.inner, err = sarama.NewAsyncProducer(p.servers, p.config)
	if err != nil {
		return err
	}
	go func() {
		defer close(p.finished)
		for m := range p.inner.Successes() {
			p.outcomes.Written(m.Metadata.(int), m.Offset)
		}
	}()
	go func() {
		for failed := range p.inner.Errors() {
			if id, ok := failed.Msg.Metadata.(int); ok {
				p.outcomes.Refused(id, refuse(failed.Err))
			}
		}
	}()
	return nil
}

func (d *driver) of(c *kit.Command) (*producer, error) {
	if found := d.producers[c.Producer]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("there is no producer %q", c.Producer)
}

// started is a producer that has connected: one whose transactions were refused has not.
func (d *driver) started(c *kit.Command) (*producer, error) {
	p, err := d.of(c)
	if err == nil && p.inner == nil {
		err = fmt.Errorf("producer %q has no producer id", c.Producer)
	}
	return p, err
}

func encoder(s *string) sarama.Encoder {
	if s == nil {
		return nil
	}
	return sarama.StringEncoder(*s)
}

func (d *driver) send(c *kit.Command) (any, error) {
	p, err := d.started(c)
	if err != nil {
		return nil, err
	}
	for _, each := range c.Records {
		p.outcomes.Sent()
		message := &sarama.ProducerMessage{
			Topic: c.Topic, Partition: each.Partition, Key: encoder(each.Key), Value: encoder(each.Value), Metadata: each.ID,
			Timestamp: each.Time(),
		}
		for _, h := range each.Headers {
			message.Headers = append(message.Headers, sarama.RecordHeader{Key: []byte(*h[0]), Value: kit.Bytes(h[1])})
		}
		p.inner.Input() <- message
	}
	return nil, nil
}

func (d *driver) flush(c *kit.Command) (any, error) {
	p, err := d.of(c)
	if err != nil {
		return nil, err
	}
	return p.outcomes.Flush(kit.Ms(c.Timeout)), nil
}

// ---------------------------------------------------------------- transactions

func (d *driver) initialize(c *kit.Command) (any, error) {
	p, err := d.of(c)
	if err != nil {
		return nil, err
	}
	return nil, p.start()
}

func (d *driver) begin(c *kit.Command) (any, error) {
	p, err := d.started(c)
	if err != nil {
		return nil, err
	}
	return nil, p.inner.BeginTxn()
}

func (d *driver) sendOffsets(c *kit.Command) (any, error) {
	p, err := d.started(c)
	if err != nil {
		return nil, err
	}
	m, err := d.reader(c)
	if err != nil {
		return nil, err
	}
	offsets := map[string][]*sarama.PartitionOffsetMetadata{}
	for place, next := range m.positions() {
		offsets[place.Topic] = append(offsets[place.Topic], &sarama.PartitionOffsetMetadata{Partition: place.Partition, Offset: next})
	}
	metadata := sarama.NewConsumerGroupMetadataFromSession(m.current(), m.group, nil)
	return nil, p.inner.AddOffsetsToTxnWithGroupMetadata(offsets, metadata)
}

// commit and abort call again while the library says so by the transaction's status, as its examples do.
func (d *driver) commit(c *kit.Command) (any, error) {
	p, err := d.started(c)
	if err != nil {
		return nil, err
	}
	return nil, p.ended(c, p.inner.CommitTxn)
}

func (d *driver) abort(c *kit.Command) (any, error) {
	p, err := d.started(c)
	if err != nil {
		return nil, err
	}
	return nil, p.ended(c, p.inner.AbortTxn)
}

func (p *producer) ended(c *kit.Command, end func() error) error {
	until := time.Now().Add(kit.Ms(c.Timeout))
	for {
		err := end()
		if err == nil || time.Now().After(until) {
			return err
		}
		switch status := p.inner.TxnStatus(); {
		case status&sarama.ProducerTxnFlagFatalError != 0:
			return fmt.Errorf("%w (%s)", err, status)
		case status&sarama.ProducerTxnFlagAbortableError != 0 && strings.Contains(c.Command, "commit"):
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// ---------------------------------------------------------------- the rest

func (d *driver) close(c *kit.Command) (any, error) {
	if p := d.producers[c.Name]; p != nil {
		delete(d.producers, c.Name)
		if p.inner == nil {
			return nil, nil
		}
		p.inner.AsyncClose()
		select {
		case <-p.finished:
		case <-time.After(kit.Ms(c.Timeout)):
		}
	} else if m := d.consumers[c.Name]; m != nil {
		delete(d.consumers, c.Name)
		return nil, m.close()
	}
	return nil, nil
}
