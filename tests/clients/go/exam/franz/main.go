// franz-go as a driver of `understudy exam`.
package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"understudy/interop/exam/kit"
)

type producer struct {
	client   *kgo.Client
	session  *kgo.GroupTransactSession
	outcomes *kit.Outcomes
	mutex    sync.Mutex
	failed   error // of the records of this transaction
}

type driver struct {
	producers map[string]*producer
	consumers map[string]*consumer
	members   map[string]*shareMember
}

func main() {
	d := &driver{map[string]*producer{}, map[string]*consumer{}, map[string]*shareMember{}}
	(&kit.Driver{
		Library: "franz-go",
		Module:  "github.com/twmb/franz-go",
		Capabilities: []string{
			"producer", "idempotence", "transactions", "send_offsets", "consumer", "read_committed", "offset_reset", "seek", "groups", "assignment", "static_members",
			"compression", "null_values", "max_records", "auto_commit", "consumer_protocol", "commit_offsets", "share_groups", "admin", "tls", "sasl_plain", "sasl_scram", "sasl_oauthbearer",
		},
		Refuse: refuse,
		Commands: kit.Commands{
			"producer": d.create, "send": d.send, "flush": d.flush, "init_transactions": d.initialize, "begin": d.begin,
			"send_offsets": d.sendOffsets, "commit": d.commit, "abort": d.abort, "consumer": d.consume, "assign": d.assign, "subscribe": d.subscribe,
			"poll": d.poll, "assignment": d.assignment, "seek": d.seek, "commit_offsets": d.commitOffsets,
			"share_consumer": d.share, "acknowledge": d.acknowledge, "commit_acknowledgements": d.commitAcknowledgements,
			"close": d.close,
		},
		Administration: administration,
	}).Run()
}

// refuse classifies as the documentation of kgo tells applications to.
func refuse(err error) kit.Refusal {
	out := kit.Refusal{Class: "other", Message: err.Error()}
	var code *kerr.Error
	if errors.As(err, &code) {
		out.Code = &code.Message
	}
	switch {
	case errors.Is(err, kerr.ProducerFenced), errors.Is(err, kerr.InvalidProducerEpoch),
		errors.Is(err, kerr.InvalidProducerIDMapping), errors.Is(err, kerr.TransactionalIDAuthorizationFailed):
		out.Class = "fatal"
	case errors.Is(err, kgo.ErrRecordTimeout), errors.Is(err, context.DeadlineExceeded):
		out.Class = "timeout"
	case kerr.IsRetriable(err):
		out.Class = "retriable"
	case code != nil:
		out.Class = "abortable"
	}
	return out
}

func common(c *kit.Command) []kgo.Opt {
	options := []kgo.Opt{
		kgo.SeedBrokers(c.Servers()...), kgo.ClientID(c.ClientID), kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.RequestTimeoutOverhead(kit.Ms(c.RequestTimeout)), kgo.RetryTimeout(kit.Ms(15_000)),
		kgo.RetryBackoffFn(func(int) time.Duration { return kit.Ms(max(c.RetryBackoff, 50)) }),
	}
	return append(options, security(c)...)
}

func (d *driver) create(c *kit.Command) (any, error) {
	acks := map[string]kgo.Acks{"all": kgo.AllISRAcks(), "1": kgo.LeaderAck(), "0": kgo.NoAck()}[c.Acks]
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	options := append(
		common(c), kgo.RequiredAcks(acks), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RecordDeliveryTimeout(kit.Ms(c.DeliveryTimeout)), kgo.ProducerLinger(kit.Ms(c.Linger)),
		kgo.ProducerBatchCompression(codecs[c.Compression]), kgo.ProduceRequestTimeout(kit.Ms(c.RequestTimeout)),
	)
	switch {
	case c.TransactionalID != "":
		options = append(options, kgo.TransactionalID(c.TransactionalID), kgo.TransactionTimeout(kit.Ms(c.TransactionTimeout)))
	case !c.Idempotent:
		options = append(options, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(c.MaxInFlight))
	}
	if m := d.waiting(); c.TransactionalID != "" && m != nil {
		return nil, d.session(c, m, options)
	}
	client, err := kgo.NewClient(options...)
	if err == nil {
		d.producers[c.Name] = &producer{client: client, outcomes: kit.NewOutcomes()}
	}
	return nil, err
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
		record := &kgo.Record{
			Topic: c.Topic, Partition: each.Partition, Key: kit.Bytes(each.Key), Value: kit.Bytes(each.Value), Timestamp: each.Time(),
		}
		for _, h := range each.Headers {
			record.Headers = append(record.Headers, kgo.RecordHeader{Key: *h[0], Value: kit.Bytes(h[1])})
		}
		p.client.Produce(context.Background(), record, func(r *kgo.Record, err error) {
			if err == nil {
				p.outcomes.Written(each.ID, r.Offset)
				return
			}
			p.mutex.Lock()
			p.failed = errors.Join(p.failed, err)
			p.mutex.Unlock()
			p.outcomes.Refused(each.ID, refuse(err))
		})
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
	ctx, cancel := c.Context()
	defer cancel()
	_, _, err = p.client.ProducerID(ctx)
	return nil, err
}

func (d *driver) begin(c *kit.Command) (any, error) {
	p, err := d.of(c)
	if err != nil {
		return nil, err
	}
	p.failed = nil
	return nil, p.begin()
}

// commit is as in kgo's examples: flush, and commit only if each record was written.
func (d *driver) commit(c *kit.Command) (any, error) {
	p, err := d.of(c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.Context()
	defer cancel()
	if err := p.client.Flush(ctx); err != nil {
		return nil, err
	}
	p.mutex.Lock()
	failed := p.failed
	p.mutex.Unlock()
	if failed != nil {
		return nil, failed
	}
	return nil, p.end(ctx, kgo.TryCommit)
}

func (d *driver) abort(c *kit.Command) (any, error) {
	p, err := d.of(c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.Context()
	defer cancel()
	if err := p.client.AbortBufferedRecords(ctx); err != nil {
		return nil, err
	}
	return nil, p.end(ctx, kgo.TryAbort)
}

// ---------------------------------------------------------------- the rest

func (d *driver) close(c *kit.Command) (any, error) {
	if p := d.producers[c.Name]; p != nil {
		p.client.Close()
		delete(d.producers, c.Name)
	} else if m := d.consumers[c.Name]; m != nil {
		m.close()
		delete(d.consumers, c.Name)
	} else if m := d.members[c.Name]; m != nil {
		m.client.Close()
		delete(d.members, c.Name)
	}
	return nil, nil
}
