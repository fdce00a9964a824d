// Package understudytest starts a mock Apache Kafka cluster for Go tests.
//
//	func TestOrders(t *testing.T) {
//		kafka := understudytest.Start(t, "--topic", "orders:3")
//		client, err := kgo.NewClient(kgo.SeedBrokers(kafka.Brokers()...))
//		...
//	}
//
// The cluster is a process of its own, as just started for each test; tests with the same options share the process one
// after the other. A test that fails prints the cluster's report; one that passes although no request met one of its
// faults fails.
package understudytest

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// Options of a cluster beside those of `understudy serve`. The zero value is right for most tests.
type Options struct {
	// Command is the server's; by default UNDERSTUDY_COMMAND, `understudy` on the PATH, the binary, a container.
	Command string
	// Image is the container's; by default UNDERSTUDY_IMAGE, then understudy:VERSION.
	Image string
	// StartLimit is how long the start may take; 30 s by default.
	StartLimit time.Duration
}

// Cluster is a running cluster and its control plane.
type Cluster struct {
	Client
	server *server
	fresh  bool
}

// pool has the servers that no test uses, by their options.
var pool = struct {
	sync.Mutex
	idle map[string][]*Cluster
}{idle: map[string][]*Cluster{}}

// Start gives the test a cluster as just started, with these options of `understudy serve`, such as "--brokers", "3",
// "--topic", "orders:3". It fails the test if there is no server, or it is not ready in time.
func Start(t testing.TB, options ...string) *Cluster {
	t.Helper()
	return StartWith(t, Options{}, options...)
}

// StartWith is Start with a command, an image or a time limit.
func StartWith(t testing.TB, with Options, options ...string) *Cluster {
	t.Helper()
	key := fmt.Sprintf("%v %q", with, options)
	kafka, err := take(key)
	if err != nil {
		t.Fatal(err)
	}
	if kafka == nil {
		words := append([]string{"--for-tests"}, options...) // defaults on which clients would pause in each test
		running, err := startServer(with, words)
		if err != nil {
			t.Fatal(err)
		}
		kafka = &Cluster{server: running, fresh: true}
		kafka.Client = Client{control: running.found.control, token: running.found.token, brokers: running.found.brokers}
	}
	t.Cleanup(func() {
		t.Helper()
		kafka.judge(t)
		giveBack(key, kafka)
	})
	return kafka
}

// giveBack puts a cluster into the pool.
func giveBack(key string, kafka *Cluster) {
	pool.Lock()
	defer pool.Unlock()
	pool.idle[key] = append(pool.idle[key], kafka)
}

// take returns an idle cluster with these options, reset; nil if there is none that answers. A reset that is refused is an error.
func take(key string) (*Cluster, error) {
	for {
		pool.Lock()
		idle := pool.idle[key]
		if len(idle) == 0 {
			pool.Unlock()
			return nil, nil
		}
		kafka := idle[len(idle)-1]
		pool.idle[key] = idle[:len(idle)-1]
		pool.Unlock()
		err := kafka.Reset()
		if err == nil {
			return kafka, nil
		}
		var refused *ControlError
		if errors.As(err, &refused) && refused.Status == http.StatusConflict {
			giveBack(key, kafka)
			return nil, err
		}
		kafka.server.stop()
	}
}

// judge prints the report of a test that failed, and fails one whose faults no request met.
func (kafka *Cluster) judge(t testing.TB) {
	t.Helper()
	if !t.Failed() {
		unmet, err := kafka.UnmetFaults()
		if err == nil && len(unmet) > 0 {
			t.Errorf("no request met these faults: %+v", unmet)
		}
	}
	if t.Failed() {
		t.Log(kafka.story())
	}
}

// story is the text of the report, which is there even when the cluster is not.
func (kafka *Cluster) story() string {
	report, err := kafka.Report(0)
	text := report.Text
	if err != nil {
		text = "the cluster does not answer: " + err.Error()
	}
	if log := kafka.Log(); log != "" {
		text += "\nthe server's log:\n  " + strings.ReplaceAll(log, "\n", "\n  ")
	}
	return "understudy, " + text
}

// Log returns the last lines of the server's log.
func (kafka *Cluster) Log() string { return kafka.server.log() }

// PID is the process id of the server, or of the container's client.
func (kafka *Cluster) PID() int { return kafka.server.command.Process.Pid }
