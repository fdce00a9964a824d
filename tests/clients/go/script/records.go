// Package script plays the steps of tests/clients/steps.py with any Go client behind Client.
package script

import (
	"fmt"
	"strings"
)

// Codecs in the order in which their records are numbered.
var Codecs = []string{"none", "gzip", "snappy", "lz4", "zstd"}

// Header of a record; Value may be nil.
type Header struct {
	Key   string
	Value []byte
}

// Record as it is sent and as it comes back; nil Key and Value are nulls.
type Record struct {
	Partition   int
	Offset      int64
	TimestampMs int64
	Key, Value  []byte
	Headers     []Header
}

func text(b []byte) string {
	if b == nil {
		return "<null>"
	}
	return string(b)
}

func (r Record) String() string {
	return fmt.Sprintf("%d@%d %d %s/%s %s", r.Partition, r.Offset, r.TimestampMs, text(r.Key), text(r.Value), r.headers())
}

func (r Record) headers() string {
	var out strings.Builder
	for _, h := range r.Headers {
		fmt.Fprintf(&out, "%s=%s;", h.Key, text(h.Value))
	}
	return out.String()
}

func (s *script) record(n int, key, value []byte, headers ...Header) Record {
	return Record{Partition: n % 3, TimestampMs: s.timestamp(n), Key: key, Value: value, Headers: headers}
}

func (s *script) timestamp(n int) int64 { return s.baseMs + 1000*int64(n) }

func (s *script) compressed(codec string, first int) (out []Record) {
	for i := range 30 {
		value := fmt.Sprintf("%s-value-%d-%s", codec, i, strings.Repeat("x", 100))
		out = append(out, s.record(first+i, fmt.Appendf(nil, "%s-%d", codec, i), []byte(value)))
	}
	return out
}

func (s *script) withHeaders() (out []Record) {
	for i := range 3 {
		headers := []Header{{"h", []byte("one")}, {"h", []byte("two")}, {"empty", []byte{}}}
		out = append(out, s.record(150+i, fmt.Appendf(nil, "headers-%d", i), []byte("headers"), headers...))
	}
	return out
}

func (s *script) withNulls() (out []Record) {
	for i := range 3 {
		out = append(out, s.record(153+i, fmt.Appendf(nil, "null-%d", i), nil))
	}
	for i := range 3 {
		out = append(out, s.record(156+i, nil, fmt.Appendf(nil, "no-key-%d", i)))
	}
	return out
}

func (s *script) idempotent() (out []Record) {
	for i := range 3 {
		out = append(out, s.record(159+i, fmt.Appendf(nil, "idempotent-%d", i), []byte("idempotent")))
	}
	return out
}

func (s *script) withNullHeader() (out []Record) {
	for i := range 3 {
		out = append(out, s.record(162+i, fmt.Appendf(nil, "null-header-%d", i), []byte("headers"), Header{"null", nil}))
	}
	return out
}
