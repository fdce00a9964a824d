package orders

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	startLimit = 30 * time.Second
	stopLimit  = 5 * time.Second
)

// A cluster in a process of its own, on free ports: the command understudy, and its control plane over HTTP.
type understudy struct {
	bootstrapServers, control string
	pid                       int
}

// start takes further options of `understudy serve`. The cluster is ready when it returns, and ends with the test; with
// --lifeline it ends when its standard input closes, so it never outlives the test process, however that ends.
func start(t *testing.T, options ...string) understudy {
	t.Helper()
	command := exec.Command("understudy", append([]string{"serve", "--lifeline", "--port", "0", "--control-port", "0"}, options...)...)
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err == nil {
		_, err = command.StdinPipe()
	}
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		kill := time.AfterFunc(stopLimit, func() { command.Process.Kill() })
		defer kill.Stop()
		command.Process.Signal(syscall.SIGTERM)
		command.Wait()
	})
	late := time.AfterFunc(startLimit, func() { command.Process.Kill() })
	defer late.Stop()
	kafka := understudy{pid: command.Process.Pid}
	for lines := bufio.NewScanner(output); kafka.control == "" && lines.Scan(); {
		if value, found := strings.CutPrefix(lines.Text(), "bootstrap.servers="); found {
			kafka.bootstrapServers = value
		}
		if value, found := strings.CutPrefix(lines.Text(), "control="); found {
			kafka.control = value
		}
	}
	if kafka.control == "" {
		t.Fatalf("understudy ended, or was not ready within %v", startLimit)
	}
	return kafka
}

// ask is a verb of the control plane, such as ask(t, "POST", "/v1/clock/advance", `{"ms": 900000}`); its answer.
func (kafka understudy) ask(t *testing.T, method, path, body string) string {
	t.Helper()
	request, err := http.NewRequest(method, kafka.control+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s", method, path, content)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
