// Package kit is the loop of a driver of `understudy exam` in Go: reads commands, calls the function of that name,
// writes answers.
package kit

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"
)

// Record is one that `send` hands to the library.
type Record struct {
	ID        int     `json:"id"`
	Partition int32   `json:"partition"`
	Key       *string `json:"key"`
	Value     *string `json:"value"`
	// Where they are given: milliseconds, and pairs of name and value.
	Timestamp *int64   `json:"timestamp"`
	Headers   []Header `json:"headers"`
	// Of `acknowledge`, in place of key and value.
	Topic  string `json:"topic"`
	Offset int64  `json:"offset"`
}

// Header has a name and a value, which may be null.
type Header = [2]*string

// Time is the record's, or the zero time: then the library takes its own.
func (r *Record) Time() time.Time {
	if r.Timestamp == nil {
		return time.Time{}
	}
	return time.UnixMilli(*r.Timestamp)
}

// Place is a partition, and where to begin.
type Place struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
}

// Command has the fields of all commands.
type Command struct {
	ID                 int             `json:"id"`
	Command            string          `json:"command"`
	Name               string          `json:"name"`
	BootstrapServers   string          `json:"bootstrap_servers"`
	ClientID           string          `json:"client_id"`
	Acks               string          `json:"acks"`
	Idempotent         bool            `json:"idempotent"`
	TransactionalID    string          `json:"transactional_id"`
	TransactionTimeout int             `json:"transaction_timeout_ms"`
	DeliveryTimeout    int             `json:"delivery_timeout_ms"`
	RequestTimeout     int             `json:"request_timeout_ms"`
	RetryBackoff       int             `json:"retry_backoff_ms"`
	Linger             int             `json:"linger_ms"`
	MaxInFlight        int             `json:"max_in_flight"`
	Compression        string          `json:"compression"`
	Group              string          `json:"group"`
	InstanceID         string          `json:"instance_id"`
	Protocol           any             `json:"protocol"`
	Isolation          string          `json:"isolation"`
	OffsetReset        string          `json:"offset_reset"`
	AutoCommit         bool            `json:"auto_commit"`
	SessionTimeout     int             `json:"session_timeout_ms"`
	HeartbeatInterval  int             `json:"heartbeat_interval_ms"`
	SaslMechanism      string          `json:"sasl_mechanism"`
	SaslUsername       string          `json:"sasl_username"`
	SaslPassword       string          `json:"sasl_password"`
	SaslToken          string          `json:"sasl_token"`
	TLSAuthority       string          `json:"tls_ca"`
	Type               string          `json:"type"`
	Producer           string          `json:"producer"`
	Consumer           string          `json:"consumer"`
	Topic              string          `json:"topic"`
	Topics             []string        `json:"topics"`
	Partition          int32           `json:"partition"`
	RawPartitions      json.RawMessage `json:"partitions"`
	Offset             int64           `json:"offset"`
	Records            []Record        `json:"records"`
	Offsets            []Place         `json:"offsets"`
	Replicas           int             `json:"replicas"`
	Kind               string          `json:"kind"`
	Setting            string          `json:"setting"`
	Value              *string         `json:"value"`
	Timestamp          int64           `json:"timestamp"`
	Timeout            int             `json:"timeout_ms"`
	// Of `poll`; 0: all that has arrived.
	MaxRecords int `json:"max_records"`
}

// Servers are the addresses of bootstrap_servers.
func (c *Command) Servers() []string { return strings.Split(c.BootstrapServers, ",") }

// Places is the list of `assign`.
func (c *Command) Places() (out []Place) {
	_ = json.Unmarshal(c.RawPartitions, &out)
	return out
}

// Count is the number of partitions of `create_topic`.
func (c *Command) Count() (out int) {
	_ = json.Unmarshal(c.RawPartitions, &out)
	return out
}

// Full is whether `poll` has as many records as it may return.
func (c *Command) Full(count int) bool { return c.MaxRecords > 0 && count >= c.MaxRecords }

// Context ends with the command's timeout.
func (c *Command) Context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), Ms(c.Timeout))
}

// Ms is a duration of so many milliseconds.
func Ms(ms int) time.Duration { return time.Duration(ms) * time.Millisecond }

// ErrUnsupported is what a library cannot do; wrap it with a sentence.
var ErrUnsupported = errors.New("not supported")

// Refusal is an error object of the contract.
type Refusal struct {
	Class   string  `json:"class"`
	Code    *string `json:"code"`
	Message string  `json:"message"`
}

// Read is a record that `poll` returns.
type Read struct {
	Topic     string   `json:"topic"`
	Partition int32    `json:"partition"`
	Offset    int64    `json:"offset"`
	Key       *string  `json:"key"`
	Value     *string  `json:"value"`
	Timestamp int64    `json:"timestamp"`
	Headers   []Header `json:"headers,omitempty"`
}

// Text is a key or value of a record as JSON has it.
func Text(b []byte) *string {
	if b == nil {
		return nil
	}
	s := string(b)
	return &s
}

// Bytes is a key or value of a command as libraries take it.
func Bytes(s *string) []byte {
	if s == nil {
		return nil
	}
	return []byte(*s)
}

// Polled is the result of `poll`.
func Polled(records []Read, failed []Refusal) any {
	if records == nil {
		records = []Read{}
	}
	if failed == nil {
		failed = []Refusal{}
	}
	return map[string]any{"records": records, "errors": failed}
}

// Assigned is the result of `assignment`.
func Assigned(places []Place) any {
	if places == nil {
		places = []Place{}
	}
	return map[string]any{"partitions": places}
}

// Commands are functions by the names of what they do.
type Commands map[string]func(*Command) (any, error)

// Driver is one library.
type Driver struct {
	Library, Module string
	Capabilities    []string
	Commands        Commands
	Administration  Commands
	Refuse          func(error) Refusal
	// Version where the module is not the library.
	Version string
}

func (d *Driver) version() string {
	if d.Version != "" {
		return d.Version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, each := range info.Deps {
			if each.Path == d.Module {
				return strings.TrimPrefix(each.Version, "v")
			}
		}
	}
	return "unknown"
}

func (d *Driver) answer(c *Command) map[string]any {
	out := map[string]any{"id": c.ID}
	var result any
	var err error
	run := d.Commands[c.Command]
	if run == nil {
		run = d.Administration[c.Command]
	}
	switch {
	case c.Command == "quit":
	case c.Command == "hello":
		result = map[string]any{
			"protocol": 1, "library": d.Library, "version": d.version(), "capabilities": d.Capabilities,
		}
	case run == nil:
		err = fmt.Errorf("%w: this driver has no %s", ErrUnsupported, c.Command)
	default:
		result, err = run(c)
	}
	switch {
	case errors.Is(err, ErrUnsupported):
		out["unsupported"] = err.Error()
	case err != nil:
		out["error"] = d.Refuse(err)
	case result == nil:
		out["result"] = map[string]any{}
	default:
		out["result"] = result
	}
	return out
}

// Run answers commands until `quit` or the end of stdin.
func (d *Driver) Run() {
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var c Command
		if err := json.Unmarshal(line, &c); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		text, err := json.Marshal(d.answer(&c))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(string(text))
		if c.Command == "quit" {
			os.Exit(0)
		}
	}
}
