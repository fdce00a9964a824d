package understudytest

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// found describes how to start the server; the last three fields are only known before the start for a container.
type found struct {
	program string
	words   []string
	brokers []string
	control string
	token   string
	// cluster is the body of the POST that has made the cluster; empty if it has a server of its own.
	cluster json.RawMessage
	// searched is what was looked for before a container, for the error if that does not start.
	searched string
}

const (
	tokenVariable    = "UNDERSTUDY_CONTROL_TOKEN"
	settingsVariable = "UNDERSTUDY_SET"
)

var (
	serve     = []string{"serve", "--lifeline"}
	shared    = []string{"shared", "--lifeline"}
	freePorts = []string{"--port", "0", "--control-port", "0"}
)

// find searches in this order: an explicit command, UNDERSTUDY_COMMAND, the PATH, the binary's folder, a container.
func find(command, image string, options []string) (*found, error) {
	name := "Command"
	if command == "" {
		name, command = "UNDERSTUDY_COMMAND", os.Getenv("UNDERSTUDY_COMMAND")
	}
	if strings.TrimSpace(command) != "" {
		words := split(command)
		program, err := exec.LookPath(words[0])
		if err != nil {
			return nil, fmt.Errorf("%s is %q, but there is no such program: %w", name, command, err)
		}
		return local(program, words[1:]...), nil
	}
	if program, err := exec.LookPath("understudy"); err == nil {
		return local(program), nil
	}
	binary := filepath.Join(serverFolder(), "understudy")
	if program, err := exec.LookPath(binary); err == nil {
		return local(program), nil
	}
	if docker, err := exec.LookPath("docker"); err == nil {
		if image == "" {
			image = os.Getenv("UNDERSTUDY_IMAGE")
		}
		if image == "" {
			image = "understudy:" + Version
		}
		made, err := container(docker, image, options)
		if made != nil {
			made.searched = searched(binary, "docker on the PATH (found), to run "+image)
		}
		return made, err
	}
	return nil, errors.New("there is no understudy server; " + searched(binary, "docker on the PATH (not found)"))
}

// searched returns what was looked for, in which order, and two ways to get a server.
func searched(binary, docker string) string {
	return fmt.Sprintf("looked, in this order, for Options.Command (not given), UNDERSTUDY_COMMAND (not set), understudy on the "+
		"PATH (not found), %s (not found), %s. To get a server, run in a checkout of Understudy `make packages`, which links its "+
		"server to %s, or `docker build -t understudy:%s .`", binary, docker, binary, Version)
}

// split splits a command such as "python3 -m understudy" at blanks; a path with blanks is kept whole if it exists.
func split(command string) []string {
	if _, err := os.Stat(command); err == nil {
		return []string{command}
	}
	return strings.Fields(command)
}

// local returns a command that makes a cluster in the server that all test processes of this user share, or with
// UNDERSTUDY_SERVER=own starts a server.
func local(program string, words ...string) *found {
	command := append([]string{}, words...)
	if os.Getenv("UNDERSTUDY_SERVER") == "own" {
		command = append(command, serve...)
	} else {
		command = append(command, shared...)
	}
	return &found{program: program, words: append(command, freePorts...)}
}

// serverFolder returns the folder into which the binary's archive of this version may have been unpacked.
func serverFolder() string {
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		home, _ := os.UserHomeDir()
		cache = filepath.Join(home, ".cache")
	}
	return filepath.Join(cache, "understudy", Version)
}

// container runs the image; its ports are chosen here, because clients connect to the advertised ones.
func container(docker, image string, options []string) (*found, error) {
	brokers, err := brokerCount(options)
	if err != nil {
		return nil, err
	}
	port, err := portsInARow(brokers + 1)
	if err != nil {
		return nil, err
	}
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return nil, err
	}
	made := &found{program: docker, token: hex.EncodeToString(random)}
	// Pass only the names of the token and settings: each user of this machine can read a command line.
	made.words = []string{"run", "--rm", "-i", "-e", tokenVariable, "-e", settingsVariable}
	for at := port; at <= port+brokers; at++ {
		made.words = append(made.words, "-p", fmt.Sprintf("127.0.0.1:%d:%d", at, at))
		if at < port+brokers {
			made.brokers = append(made.brokers, fmt.Sprintf("127.0.0.1:%d", at))
		}
	}
	made.control = fmt.Sprintf("http://127.0.0.1:%d", port+brokers)
	made.words = append(append(made.words, image), serve...)
	made.words = append(made.words, "--host", "0.0.0.0", "--port", strconv.Itoa(port), "--advertise", made.brokers[0],
		"--control-host", "0.0.0.0", "--control-port", strconv.Itoa(port+brokers))
	return made, nil
}

func brokerCount(options []string) (int, error) {
	value := "1"
	for at, option := range options {
		if option == "--brokers" && at+1 < len(options) {
			value = options[at+1]
		} else if given, is := strings.CutPrefix(option, "--brokers="); is {
			value = given
		}
	}
	if strings.Contains(value, ",") {
		return len(strings.Split(strings.TrimSuffix(value, ","), ",")), nil
	}
	count, err := strconv.Atoi(value)
	if err != nil || count < 1 {
		return 0, fmt.Errorf("--brokers %s is not a number of brokers", value)
	}
	return count, nil
}

// portsInARow returns the first of that many consecutive free ports.
func portsInARow(count int) (int, error) {
	for {
		first, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, err
		}
		port := first.Addr().(*net.TCPAddr).Port
		held := []net.Listener{first}
		for len(held) < count {
			next, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+len(held)))
			if err != nil {
				break
			}
			held = append(held, next)
		}
		complete := len(held) == count
		for _, each := range held {
			each.Close()
		}
		if complete {
			return port, nil
		}
	}
}
