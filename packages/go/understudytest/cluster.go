// Package understudytest starts a mock Apache Kafka cluster for Go tests.
//
//	func TestOrders(t *testing.T) {
//		kafka := understudytest.Start(t, "--topic", "orders:3")
//		client, err := kgo.NewClient(kgo.SeedBrokers(kafka.Brokers()...))
//		...
//	}
//
// The cluster runs in a server that all test processes of this user share, and is reset before each test; tests with the
// same options use the same cluster one after the other, those that run in parallel have a cluster each. With
// Options.Fresh each test has a new one. A failed test prints the cluster's report; a passed one fails if no request
// matched one of its faults.
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

// Options of a cluster besides those of `understudy serve`. The zero value suits most tests.
type Options struct {
	// Command starts the server; by default UNDERSTUDY_COMMAND, `understudy` on the PATH, the binary, a container.
	Command string
	// Image of the container; by default UNDERSTUDY_IMAGE, then understudy:VERSION.
	Image string
	// StartLimit is the time limit for the start; two minutes by default.
	StartLimit time.Duration
	// Fresh gives the test a new cluster that ends with it, where the server is shared; a reset is faster.
	Fresh bool
}

// Cluster is a running cluster and its control plane.
type Cluster struct {
	Client
	server *server
}

// endLimit is the time within which the process of a server that does not answer may turn out to have ended.
const endLimit = time.Second

// pool has the idle clusters and the processes that make them, by their options.
var pool = struct {
	sync.Mutex
	idle   map[string][]*Cluster
	makers map[string]*maker
}{idle: map[string][]*Cluster{}, makers: map[string]*maker{}}

// maker is the process with which clusters with the same options in the shared server begin and end.
type maker struct {
	sync.Mutex
	server *server
	// isOwn is set if the first cluster with these options has a server of its own; then each has.
	isOwn bool
}

// Start returns a freshly started or reset cluster, with these options of `understudy serve`, such as "--brokers", "3",
// "--topic", "orders:3". It fails the test if there is no server, or it is not ready in time.
func Start(t testing.TB, options ...string) *Cluster {
	t.Helper()
	return StartWith(t, Options{}, options...)
}

// StartWith does the same as Start, with a command, an image or a time limit.
func StartWith(t testing.TB, with Options, options ...string) *Cluster {
	t.Helper()
	key := fmt.Sprintf("%v %q", with, options)
	kafka, err := take(key)
	if err != nil {
		t.Fatal(err)
	}
	if kafka == nil {
		if kafka, err = makerOf(key).create(with, options); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		t.Helper()
		kafka.judge(t)
		if with.Fresh && kafka.server.found.cluster != nil {
			kafka.discard()
		} else {
			giveBack(key, kafka)
		}
	})
	return kafka
}

func makerOf(key string) *maker {
	pool.Lock()
	defer pool.Unlock()
	if pool.makers[key] == nil {
		pool.makers[key] = &maker{}
	}
	return pool.makers[key]
}

// create returns a new cluster: another one of the maker's process, or the first one of a new process.
func (m *maker) create(with Options, options []string) (*Cluster, error) {
	m.Lock()
	defer m.Unlock()
	if m.server != nil && !m.server.endsWithin(0) {
		kafka, err := m.server.another()
		if err == nil || !m.server.endsWithin(endLimit) {
			return kafka, err
		}
	}
	if m.isOwn { // nothing is gained if the others wait for this start
		m.Unlock()
		defer m.Lock()
	}
	words := append([]string{"--for-tests"}, options...) // Kafka's defaults would make clients pause in each test
	running, err := startServer(with, words)
	if err != nil {
		return nil, err
	}
	if !m.isOwn {
		if m.isOwn = running.found.cluster == nil; !m.isOwn {
			m.server = running
		}
	}
	client := Client{control: running.found.control, token: running.found.token, brokers: running.found.brokers}
	return &Cluster{Client: client, server: running}, nil
}

// giveBack returns a cluster to the pool.
func giveBack(key string, kafka *Cluster) {
	pool.Lock()
	defer pool.Unlock()
	pool.idle[key] = append(pool.idle[key], kafka)
}

// take resets and returns an idle cluster with these options; nil if none answers. A rejected reset is an error.
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
		if err == nil && !kafka.server.endsWithin(0) { // a test may have killed the process that holds the cluster
			return kafka, nil
		}
		var refused *ControlError
		if errors.As(err, &refused) && refused.Status == http.StatusConflict {
			giveBack(key, kafka)
			return nil, err
		}
		kafka.discard()
	}
}

// another makes one more cluster with the options of the server's first one, which ends with the server's process, too.
func (s *server) another() (*Cluster, error) {
	root, _, _ := strings.Cut(s.found.control, "/clusters/")
	var made struct {
		Control string   `json:"control_url"`
		Brokers []string `json:"bootstrap_servers"`
	}
	if err := (&Client{control: root}).Ask("POST", "/v1/clusters", s.found.cluster, &made); err != nil {
		return nil, err
	}
	return &Cluster{Client: Client{control: made.Control, brokers: made.Brokers}, server: s}, nil
}

// discard ends a cluster, or its server if that is its own. What cannot be deleted ends with the server's process.
func (kafka *Cluster) discard() {
	root, id, isShared := strings.Cut(kafka.control, "/clusters/")
	if !isShared {
		kafka.server.stop()
		return
	}
	_ = (&Client{control: root}).Ask("DELETE", "/v1/clusters/"+id, nil, nil)
}

// judge prints the report of a failed test. It fails a passed test if no request matched one of its faults, or the server
// does not answer; a skipped test may have added a fault that it did not need.
func (kafka *Cluster) judge(t testing.TB) {
	t.Helper()
	unmet, err := kafka.UnmetFaults()
	if err != nil || kafka.server.endsWithin(0) { // without its process, a cluster in the shared server ends soon
		if ending := kafka.server.ending(endLimit); ending != "" {
			t.Error(kafka.withLog(ending + " during this test"))
			return
		}
	}
	if !t.Failed() && !t.Skipped() {
		if err != nil {
			t.Errorf("the cluster does not answer at the end of the test: %v", err)
		} else if len(unmet) > 0 {
			t.Errorf("no request met these faults: %s", described(unmet))
		}
	}
	if t.Failed() {
		t.Log(kafka.story())
	}
}

func described(faults []FaultState) string {
	var lines []string
	for _, each := range faults {
		lines = append(lines, fmt.Sprintf("%s: %v -> %v", each.ID, each.Match, each.Do))
	}
	return strings.Join(lines, ", ")
}

// story returns the text of the report, even if the cluster is gone.
func (kafka *Cluster) story() string {
	report, err := kafka.Report(0)
	text := report.Text
	if err != nil {
		text = "the cluster does not answer: " + err.Error()
	}
	return kafka.withLog("understudy, " + text)
}

func (kafka *Cluster) withLog(text string) string {
	if log := kafka.Log(); log != "" {
		text += "\nthe server's log:\n  " + strings.ReplaceAll(log, "\n", "\n  ")
	}
	return text
}

// Log returns the last lines of the server's log.
func (kafka *Cluster) Log() string { return kafka.server.log() }

// PID returns the process id of the server, or of the container's client.
func (kafka *Cluster) PID() int { return kafka.server.command.Process.Pid }
