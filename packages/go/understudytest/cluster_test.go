package understudytest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var seen = map[string]bool{}

func useOnce(t *testing.T) {
	kafka := Start(t, "--brokers", "2", "--topic", "orders:1")
	if len(kafka.Brokers()) != 2 || seen[kafka.BootstrapServers()] {
		t.Errorf("clients of the test before must not come back: %v", kafka.Brokers())
	}
	seen[kafka.BootstrapServers()] = true
	if err := kafka.Write("orders", "one order"); err != nil {
		t.Fatal(err)
	}
	if found, err := kafka.Records("orders", 0); err != nil || len(found) != 1 || found[0].Value != "one order" {
		t.Error(found, err)
	}
}

func TestAClusterIsAsJustStarted(t *testing.T) {
	t.Run("first", useOnce)
	t.Run("second", useOnce)
}

func TestAFreshClusterEndsWithItsTest(t *testing.T) {
	seen := map[string]bool{}
	for turn := 0; turn < 3; turn++ {
		test := &recorder{TB: t}
		kafka := StartWith(test, Options{Fresh: true}, "--topic", "orders:1")
		if err := kafka.Write("orders", "one order"); err != nil {
			t.Fatal(err)
		}
		if found, err := kafka.Records("orders", 0); err != nil || len(found) != 1 {
			t.Error(found, err)
		}
		seen[kafka.Control()] = true
		if lines := test.end(); lines != "" {
			t.Error(lines)
		}
		var ended *ControlError
		if err := kafka.Write("orders", "late"); !errors.As(err, &ended) || ended.Status != http.StatusGone {
			t.Error(err)
		}
	}
	if len(seen) != 3 {
		t.Error("a cluster was used again", seen)
	}
}

func TestClustersThatAreUsedAtTheSameTimeHaveOneProcess(t *testing.T) {
	first, second := Start(t, "--seed", "3"), Start(t, "--seed", "3")
	if first.Control() == second.Control() || first.PID() != second.PID() {
		t.Error(first.Control(), second.Control(), first.PID(), second.PID())
	}
	third, err := makerOf("own").create(Options{}, []string{"--topic", "orders:1:retention.ms=1000"})
	if err != nil || third.server.found.cluster != nil {
		t.Fatal("a topic with settings has a server of its own", err)
	}
	fourth, err := makerOf("own").create(Options{}, []string{"--topic", "orders:1:retention.ms=1000"})
	if err != nil || fourth.PID() == third.PID() {
		t.Error(err)
	}
	for _, each := range []*Cluster{third, fourth} {
		each.discard()
		<-each.server.exited
	}
}

func TestMethodsSteerTheCluster(t *testing.T) {
	kafka := Start(t, "--brokers", "2")
	before, err := kafka.Report(0)
	if err != nil || !strings.HasPrefix(before.Text, "last requests:") {
		t.Fatal(before, err)
	}
	partition := 0
	for name, err := range map[string]error{
		"freeze":  kafka.Freeze(),
		"advance": kafka.Advance(15 * time.Minute),
		"thaw":    kafka.Thaw(),
		"topic":   kafka.CreateTopic("payments", 2),
		"kill":    kafka.KillBroker(2),
		"start":   kafka.StartBroker(2),
		"stop":    kafka.StopBroker(2),
		"again":   kafka.StartBroker(2),
	} {
		if err != nil {
			t.Error(name, err)
		}
	}
	after, err := kafka.Report(before.NowMs)
	if err != nil || after.NowMs-before.NowMs < 900_000 {
		t.Error("the clock was not advanced", after.NowMs-before.NowMs, err)
	}
	fault, err := kafka.AddFault(Fault{
		Match: FaultMatch{API: "Produce", Topic: "payments", Partition: &partition},
		Do:    Effect{ApplyThen: &Effect{Disconnect: "reset"}},
		Times: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	if state, err := kafka.WaitHits(fault.ID, 0, time.Second); err != nil || state.Hits != 0 {
		t.Error(state, err)
	}
	if _, err := kafka.WaitHits(fault.ID, 1, time.Millisecond); err == nil || !strings.Contains(err.Error(), "0 of 1 requests met fault") {
		t.Error(err)
	}
	if unmet, err := kafka.UnmetFaults(); err != nil || len(unmet) != 1 || unmet[0].ID != fault.ID {
		t.Error(unmet, err)
	}
	if err := kafka.ClearFaults(); err != nil {
		t.Error(err)
	}
	if other, err := Connect(kafka.Control(), ""); err != nil || other.BootstrapServers() != kafka.BootstrapServers() {
		t.Error(other, err)
	}
}

func TestARefusalIsOneSentence(t *testing.T) {
	kafka := Start(t)
	_, err := kafka.AddFault(Fault{Match: FaultMatch{API: "EndTx"}, Do: Effect{Drop: true}})
	var refused *ControlError
	if !errors.As(err, &refused) || refused.Status != 422 || !strings.Contains(err.Error(), "EndTxn") {
		t.Error(err)
	}
	for _, ask := range []func(string) (string, error){kafka.WhyGroup, kafka.WhyTransaction} {
		if _, err := ask("a b"); !errors.As(err, &refused) || refused.Status != 404 {
			t.Error(err)
		}
	}
}

// recorder is a test that has its own opinion of what failed.
type recorder struct {
	testing.TB
	failed   bool
	skipped  bool
	lines    []string
	cleanups []func()
}

func (r *recorder) Helper()                   {}
func (r *recorder) Failed() bool              { return r.failed }
func (r *recorder) Skipped() bool             { return r.skipped }
func (r *recorder) Cleanup(f func())          { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Log(what ...any)           { r.lines = append(r.lines, what[0].(string)) }
func (r *recorder) Error(what ...any)         { r.failed, r.lines = true, append(r.lines, what[0].(string)) }
func (r *recorder) Errorf(f string, _ ...any) { r.failed, r.lines = true, append(r.lines, f) }

func (r *recorder) end() string {
	for _, each := range r.cleanups {
		each()
	}
	return strings.Join(r.lines, "\n")
}

func TestOnlyATestThatFailedPrintsTheReport(t *testing.T) {
	green, red := &recorder{TB: t}, &recorder{TB: t}
	Start(green)
	if lines := green.end(); lines != "" {
		t.Error(lines)
	}
	Start(red)
	red.failed = true
	if lines := red.end(); !strings.Contains(lines, "understudy, last requests:") {
		t.Error(lines)
	}
}

func TestAFaultThatNoRequestMetFailsTheTest(t *testing.T) {
	missed := &recorder{TB: t}
	if _, err := Start(missed).AddFault(Fault{Do: Effect{Drop: true}}); err != nil {
		t.Fatal(err)
	}
	if lines := missed.end(); !missed.failed || !strings.Contains(lines, "no request met these faults") {
		t.Error(lines)
	}
}

func TestASkippedTestMayHaveAFaultThatNoRequestMet(t *testing.T) {
	skipped := &recorder{TB: t, skipped: true}
	if _, err := Start(skipped).AddFault(Fault{Do: Effect{Drop: true}}); err != nil {
		t.Fatal(err)
	}
	if lines := skipped.end(); skipped.failed || lines != "" {
		t.Error(lines)
	}
}

func TestAServerThatEndsDuringATestFailsIt(t *testing.T) {
	for _, test := range []*recorder{{TB: t}, {TB: t, failed: true}} {
		kafka := Start(test)
		if err := kafka.server.command.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-kafka.server.exited
		want := fmt.Sprintf("the server (process %d) was killed by signal 9 during this test", kafka.PID())
		if lines := test.end(); !test.failed || strings.Count(lines, want) != 1 || strings.Contains(lines, "connect") {
			t.Error(lines)
		}
		next := &recorder{TB: t}
		if Start(next).PID() == kafka.PID() || next.end() != "" {
			t.Error("the next test got no new server")
		}
	}
}

func TestAllRecordsAreRead(t *testing.T) {
	kafka := Start(t, "--topic", "orders:1")
	values := make([]string, pageLimit+1)
	if err := kafka.Write("orders", values...); err != nil {
		t.Fatal(err)
	}
	if found, err := kafka.Records("orders", 0); err != nil || len(found) != len(values) || found[pageLimit].Offset != pageLimit {
		t.Error(len(found), err)
	}
}

func TestAnAnswerNeedNotBeJSON(t *testing.T) {
	kafka := Start(t)
	var text []byte
	if err := kafka.Ask("GET", "/metrics", nil, &text); err != nil || !strings.HasPrefix(string(text), "# HELP") {
		t.Error(string(text), err)
	}
	var number int
	if err := kafka.Ask("GET", "/metrics", nil, &number); err == nil || !strings.HasPrefix(err.Error(), "GET /metrics: the answer is of another type") {
		t.Error(err)
	}
}

func TestARequestHasATimeLimit(t *testing.T) {
	over := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	defer hanging.Close()
	defer close(over)
	kafka := &Client{control: hanging.URL}
	usual := askLimit
	askLimit = 50 * time.Millisecond
	defer func() { askLimit = usual }()
	_, err := kafka.Report(0)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer from "+hanging.URL+" within 50ms") {
		t.Error(err)
	}
	until, cancel := context.WithCancel(context.Background())
	cancel()
	if err := kafka.AskContext(until, "GET", "/v1/cluster", nil, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestAnErrorOfSomethingElseIsQuoted(t *testing.T) {
	gateway := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		answer.WriteHeader(http.StatusBadGateway)
		answer.Write([]byte(`{"message": "no upstream"}`))
	}))
	defer gateway.Close()
	if _, err := Connect(gateway.URL, ""); err == nil || err.Error() != `GET /v1/cluster: 502 Bad Gateway {"message": "no upstream"}` {
		t.Error(err)
	}
}

func TestALongLineOfTheLogHidesNoLaterOne(t *testing.T) {
	ending := filepath.Join(t.TempDir(), "ending")
	script := "#!/bin/sh\nprintf '%0100000d\\nthe reason\\n' 0 >&2\nexit 4\n"
	if err := os.WriteFile(ending, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := startServer(Options{Command: ending}, nil)
	if err == nil || !strings.HasSuffix(err.Error(), "...\nthe reason") || len(err.Error()) > 2*lineLimit {
		t.Error(err)
	}
}

func TestAServerThatCannotBeStartedIsExplained(t *testing.T) {
	slow := filepath.Join(t.TempDir(), "slow")
	if err := os.WriteFile(slow, []byte("#!/bin/sh\nexec cat\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for want, with := range map[string]struct {
		options Options
		words   []string
	}{
		`Command is "/nowhere/understudy", but there is no such program`: {Options{Command: "/nowhere/understudy"}, nil},
		"it ended with exit status 2":                                    {Options{}, []string{"--brokers", "many"}},
		"it took longer than 100ms":                                      {Options{Command: slow, StartLimit: 100 * time.Millisecond}, nil},
	} {
		if _, err := startServer(with.options, with.words); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %s", err, want)
		}
	}
}

func TestAResetThatIsRefusedIsAnError(t *testing.T) {
	keeping := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		answer.Header().Set("Content-Type", "application/problem+json")
		answer.WriteHeader(http.StatusConflict)
		answer.Write([]byte(`{"status": 409, "title": "Conflict", "detail": "it was made by another broker"}`))
	}))
	defer keeping.Close()
	giveBack("kept", &Cluster{Client: Client{control: keeping.URL}})
	defer delete(pool.idle, "kept")
	for turn := 0; turn < 2; turn++ { // it stays in the pool
		if kafka, err := take("kept"); kafka != nil || err == nil || !strings.HasSuffix(err.Error(), ": it was made by another broker") {
			t.Error(kafka, err)
		}
	}
}

func TestSettingsMayBeSecrets(t *testing.T) {
	jaas := `org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";`
	kafka := Start(t, "--listener", "SASL_PLAINTEXT://127.0.0.1:0", "--set", "sasl.enabled.mechanisms=PLAIN",
		"--set=listener.name.sasl_plaintext.plain.sasl.jaas.config="+jaas)
	if strings.Contains(strings.Join(kafka.server.command.Args, " "), "secret") {
		t.Error(kafka.server.command.Args)
	}
	given := []string{"--set", "a=b c", "--seed", "1", "--set=d=e", "--set", "f=g\nh", "--set", "i=j ", "--set"}
	wanted := []string{"--seed", "1", "--set", "f=g\nh", "--set", "i=j ", "--set"}
	left, settings := offTheCommandLine(given)
	if !slices.Equal(settings, []string{"a=b c", "d=e"}) || !slices.Equal(left, wanted) {
		t.Error(left, settings)
	}
}

type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("not here") }

func TestTestsMayReplaceTheDefaultTransport(t *testing.T) {
	kafka := Start(t)
	before := http.DefaultTransport
	http.DefaultTransport = refusing{}
	defer func() { http.DefaultTransport = before }()
	if _, err := kafka.Report(0); err != nil {
		t.Error(err)
	}
}

func TestAServerBehindACommandThatDoesNotPassSignalsOnEndsToo(t *testing.T) {
	wrapper := filepath.Join(t.TempDir(), "wrapper")
	if err := os.WriteFile(wrapper, []byte("#!/bin/sh\necho control=http://127.0.0.1:1\ncat\ntrue\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	running, err := startServer(Options{Command: wrapper}, nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		running.stop()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(4 * stopLimit):
		t.Fatal("it is waited for, and waits for its input to end")
	}
	select {
	case <-running.exited:
	default:
		t.Error("it is left behind")
	}
}

func TestTheBrokersOfAContainerAreCounted(t *testing.T) {
	t.Setenv("UNDERSTUDY_COMMAND", " ")
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "docker"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CACHE_HOME", folder)
	t.Setenv("PATH", "/nowhere")
	binary := filepath.Join(serverFolder(), "understudy")
	want := "there is no understudy server; looked, in this order, for Options.Command (not given), UNDERSTUDY_COMMAND (not set), " +
		"understudy on the PATH (not found), " + binary + " (not found), docker on the PATH (not found). To get a server, run"
	if _, err := find("", "", nil); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Error(err)
	}
	t.Setenv("PATH", folder)
	if _, err := startServer(Options{}, nil); err == nil || !strings.Contains(err.Error(), "docker on the PATH (found), to run understudy:") {
		t.Error(err)
	}
	for _, options := range [][]string{{"--brokers", "3"}, {"--brokers=3"}, {"--brokers=1,2,3"}, {"--brokers", "2", "--brokers=3"}} {
		if made, err := find("", "", options); err != nil || len(made.brokers) != 3 {
			t.Error(options, made, err)
		}
	}
}
