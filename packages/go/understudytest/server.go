package understudytest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	startLimit = 2 * time.Minute
	stopLimit  = 5 * time.Second
	logLines   = 30
	lineLimit  = 2_000
	lineEnds   = "\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029"
)

// server is a running process. With --lifeline it ends with this process, which holds its standard input.
type server struct {
	command  *exec.Cmd
	lifeline io.WriteCloser
	exited   chan struct{}
	found    *found

	mutex sync.Mutex
	lines []string
}

// startServer returns when the server is ready, or fails with the last lines of its log.
func startServer(options Options, words []string) (*server, error) {
	where, err := find(options.Command, options.Image, words)
	if err != nil {
		return nil, err
	}
	limit := options.StartLimit
	if limit == 0 {
		limit = startLimit
	}
	left, settings := offTheCommandLine(words)
	running := &server{command: exec.Command(where.program, append(where.words, left...)...), exited: make(chan struct{}), found: where}
	running.command.Env = environment()
	if len(settings) > 0 {
		running.command.Env = append(running.command.Env, settingsVariable+"="+strings.Join(settings, "\n"))
	}
	if where.token != "" {
		running.command.Env = append(running.command.Env, tokenVariable+"="+where.token)
	}
	ready, err := running.start()
	if err != nil {
		return nil, fmt.Errorf("understudy cannot be started: %w", err)
	}
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-ready:
		return running, nil
	case <-late.C:
		err = fmt.Errorf("understudy is not ready: it took longer than %v", limit)
	case <-running.exited:
		err = fmt.Errorf("understudy is not ready: it ended with %v", running.command.ProcessState)
	}
	running.stop()
	if where.searched != "" {
		return nil, fmt.Errorf("%w\n%s\n%s", err, running.log(), where.searched)
	}
	return nil, fmt.Errorf("%w\n%s", err, running.log())
}

// ending returns how the server ended, such as "the server (process 7) was killed by signal 9"; empty if it runs still after
// this time.
func (s *server) ending(limit time.Duration) string {
	if !s.endsWithin(limit) {
		return ""
	}
	state := s.command.ProcessState
	how := fmt.Sprintf("ended with code %d", state.ExitCode())
	if status, is := state.Sys().(syscall.WaitStatus); is && status.Signaled() {
		how = fmt.Sprintf("was killed by signal %d", status.Signal())
	}
	return fmt.Sprintf("the server (process %d) %s", state.Pid(), how)
}

func (s *server) start() (<-chan struct{}, error) {
	stdin, in := s.command.StdinPipe()
	stdout, out := s.command.StdoutPipe()
	stderr, log := s.command.StderrPipe()
	if err := errors.Join(in, out, log); err != nil {
		return nil, err
	}
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	s.lifeline = stdin
	ready := make(chan struct{})
	var readers sync.WaitGroup
	readers.Add(2)
	go func() {
		defer readers.Done()
		s.keepLog(stderr)
	}()
	go func() {
		defer readers.Done()
		s.readAddresses(stdout, ready)
	}()
	go func() {
		readers.Wait()
		_ = s.command.Wait()
		close(s.exited)
	}()
	return ready, nil
}

func (s *server) readAddresses(stdout io.Reader, ready chan<- struct{}) {
	lines := bufio.NewScanner(stdout)
	var servers string
	isReady := false
	for lines.Scan() {
		if value, is := strings.CutPrefix(lines.Text(), "bootstrap.servers="); is {
			servers = value
		}
		if value, is := strings.CutPrefix(lines.Text(), "cluster="); is {
			s.found.cluster = []byte(value)
		}
		if value, is := strings.CutPrefix(lines.Text(), "control="); is && !isReady {
			if s.found.control == "" {
				s.found.control, s.found.brokers = value, strings.Split(servers, ",")
			}
			isReady = true
			close(ready)
		}
	}
	_, _ = io.Copy(io.Discard, stdout)
}

func (s *server) keepLog(stderr io.Reader) {
	lines := bufio.NewReader(stderr) // no Scanner, which gives up at a long line
	for {
		line, err := lines.ReadString('\n')
		if line = strings.TrimRight(line, "\r\n"); line != "" || err == nil {
			s.keep(line)
		}
		if err != nil {
			return
		}
	}
}

// keep keeps a line of the log, without the rest of a very long one.
func (s *server) keep(line string) {
	if len(line) > lineLimit {
		line = line[:lineLimit] + "..."
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.lines = append(s.lines, line)
	if len(s.lines) > logLines {
		s.lines = s.lines[1:]
	}
}

// log returns the last lines that the server wrote to stderr.
func (s *server) log() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return strings.Join(s.lines, "\n")
}

// stop sends SIGTERM, and SIGKILL if the server does not end. If the command is a wrapper that does not forward signals,
// the server ends when its standard input closes; a process that survives that and holds the output is not waited for.
func (s *server) stop() {
	defer s.lifeline.Close()
	if s.command.Process.Signal(syscall.SIGTERM) == nil && s.endsWithin(stopLimit) {
		return
	}
	s.lifeline.Close()
	if s.endsWithin(stopLimit / 2) {
		return
	}
	_ = s.command.Process.Kill()
	s.endsWithin(stopLimit / 2)
}

func (s *server) endsWithin(limit time.Duration) bool {
	select {
	case <-s.exited: // even if the limit is over, too
		return true
	default:
	}
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-s.exited:
		return true
	case <-late.C:
		return false
	}
}

// offTheCommandLine moves the values of --set to a list for the environment, and returns the remaining arguments: each user
// of this machine can read a command line, so it must have no secrets. A value with a line end, or a blank at an end, stays.
func offTheCommandLine(options []string) (left, settings []string) {
	for at := 0; at < len(options); at++ {
		words := options[at : at+1]
		value, _ := strings.CutPrefix(options[at], "--set=")
		if options[at] == "--set" && at+1 < len(options) {
			words, value = options[at:at+2], options[at+1]
		}
		if len(words) == 1 && value == options[at] || !strings.Contains(value, "=") ||
			value != strings.TrimSpace(value) || strings.ContainsAny(value, lineEnds) {
			left = append(left, words...)
		} else {
			settings = append(settings, value)
		}
		at += len(words) - 1
	}
	return left, settings
}

// environment returns this process's environment without UNDERSTUDY_*, so that a test's cluster is the same on every machine.
func environment() []string {
	var kept []string
	for _, each := range os.Environ() {
		if !strings.HasPrefix(each, "UNDERSTUDY_") {
			kept = append(kept, each)
		}
	}
	return kept
}
