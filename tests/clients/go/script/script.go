package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	patience = 20 * time.Second
	perStep  = 120 * time.Second
)

type script struct {
	client  Client
	brokers int
	baseMs  int64
	topic   string
	group   string
	sent    []Record
	read    []Record
	members []Member
}

// Step is one step's work: a detail, or what went wrong.
type Step func(ctx context.Context) (any, error)

type line struct {
	Step   string `json:"step"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Ms     int64  `json:"ms"`
}

// Report runs a step and prints its line of JSON.
func Report(name string, step Step) {
	ctx, cancel := context.WithTimeout(context.Background(), perStep)
	defer cancel()
	began := time.Now()
	line := line{Step: name}
	detail, err := step(ctx)
	line.OK, line.Ms = err == nil, time.Since(began).Milliseconds()
	if err != nil {
		line.Detail = err.Error()
	} else if detail != nil {
		line.Detail = fmt.Sprint(detail)
	}
	out, _ := json.Marshal(line)
	fmt.Println(string(out))
}

// Play plays all steps; `connect` gives the client from the addresses and the topic.
func Play(connect func(bootstrap []string, topic string) (Client, error)) {
	brokers, _ := strconv.Atoi(os.Args[2])
	baseMs, _ := strconv.ParseInt(os.Args[4], 10, 64)
	client, err := connect(strings.Split(os.Args[1], ","), os.Args[3])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	s := &script{client: observe(client), brokers: brokers, baseMs: baseMs, topic: os.Args[3], group: os.Args[3] + "-group"}
	Report("list_topics", s.listTopics)
	Report("create_topic", s.createTopic)
	s.playProduce()
	s.playConsume()
	s.playGroup()
	s.playAdmin()
	s.closeMembers()
	client.Close()
}

func expect(condition bool, format string, told ...any) error {
	if condition {
		return nil
	}
	return fmt.Errorf(format, told...)
}

// until tries until it holds; a client's own waiting sets the pace, and a tenth of a second where it has none.
func until(ctx context.Context, condition func() (bool, error), told func() any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := condition()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("never: %v", told())
		case <-tick.C:
		}
	}
}

func (s *script) listTopics(ctx context.Context) (any, error) {
	topics, err := s.client.ListTopics(ctx)
	if err != nil {
		return nil, err
	}
	return fmt.Sprintf("%d topics", len(topics)), expect(!topics[s.topic], "listed already")
}

func (s *script) createTopic(ctx context.Context) (any, error) {
	if err := s.client.CreateTopic(ctx, 3, min(s.brokers, 3)); err != nil {
		return nil, err
	}
	var topic map[int]Partition
	return nil, until(ctx, func() (bool, error) {
		var err error
		topic, err = s.client.DescribeTopic(ctx)
		led := func(p int) bool { return topic[p].Leader > 0 }
		return err == nil && len(topic) == 3 && led(0) && led(1) && led(2), nil
	}, func() any { return topic })
}

// ---------------------------------------------------------------- producing

func (s *script) produce(name string, records []Record, codec string, idempotent bool) {
	Report("produce_"+name, func(ctx context.Context) (any, error) {
		err := s.client.Produce(ctx, records, codec, idempotent)
		if err == nil {
			s.sent = append(s.sent, records...)
		}
		return "", err
	})
}

func (s *script) playProduce() {
	for n, codec := range Codecs {
		s.produce(codec, s.compressed(codec, n*30), codec, false)
	}
	s.produce("headers", s.withHeaders(), "none", false)
	s.produce("nulls", s.withNulls(), "none", false)
	s.produce("idempotent", s.idempotent(), "none", true)
	s.produce("null_header", s.withNullHeader(), "none", false)
}

// ---------------------------------------------------------------- consuming

func (s *script) playConsume() {
	Report("consume_from_start", s.consumeFromStart)
	Report("consume_headers", func(context.Context) (any, error) {
		got, want := headersOf(s.read), headersOf(s.sent)
		return "", expect(slices.Equal(got, want) && len(got) >= 3, "%v, not %v", got, want)
	})
	Report("consume_nulls", func(context.Context) (any, error) {
		keys, values := 0, 0
		for _, r := range s.read {
			if r.Key == nil {
				keys++
			}
			if r.Value == nil {
				values++
			}
		}
		return "", expect(keys == 3 && values == 3, "%d null keys, %d null values", keys, values)
	})
	Report("consume_timestamps", func(context.Context) (any, error) {
		for p := range 3 {
			if got, want := timestamps(s.read, p), timestamps(s.sent, p); !slices.Equal(got, want) {
				return nil, fmt.Errorf("partition %d: %v, not %v", p, got, want)
			}
		}
		return "", expect(len(s.read) >= 159, "%d records were read", len(s.read))
	})
	Report("consume_by_timestamp", s.consumeByTimestamp)
}

func headersOf(records []Record) (out []string) {
	for _, r := range records {
		if len(r.Headers) > 0 {
			out = append(out, r.headers())
		}
	}
	slices.Sort(out)
	return out
}

func timestamps(records []Record, partition int) (out []int64) {
	for _, r := range records {
		if r.Partition == partition {
			out = append(out, r.TimestampMs)
		}
	}
	return out
}

func keysAndValues(records []Record, partition int) (out []string) {
	for _, r := range records {
		if r.Partition == partition {
			out = append(out, text(r.Key)+"/"+text(r.Value))
		}
	}
	return out
}

func (s *script) consumeFromStart(ctx context.Context) (any, error) {
	var err error
	if s.read, err = s.client.Consume(ctx, len(s.sent)); err != nil {
		return nil, err
	}
	for p := range 3 {
		got, want := keysAndValues(s.read, p), keysAndValues(s.sent, p)
		if !slices.Equal(got, want) {
			return nil, fmt.Errorf("partition %d: %v, not %v", p, got, want)
		}
	}
	return fmt.Sprintf("%d records", len(s.read)), nil
}

func (s *script) consumeByTimestamp(ctx context.Context) (any, error) {
	offsets, err := s.client.OffsetsForTime(ctx, s.timestamp(75))
	if err != nil {
		return nil, err
	}
	for p := range 3 {
		if offsets[p] != 25 {
			return nil, fmt.Errorf("offsets %v", offsets)
		}
		r, err := s.client.ReadAt(ctx, p, offsets[p])
		if err != nil {
			return nil, err
		}
		if r.TimestampMs != s.timestamp(75+p) {
			return nil, errors.New(r.String())
		}
	}
	return "", nil
}
