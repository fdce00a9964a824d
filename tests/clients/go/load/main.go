// franz-go under load, which a driver of one command after the other cannot show: `load BOOTSTRAP BROKERS TOPIC BASE_MS` prints
// a line of JSON for each step.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const perStep = 120 * time.Second

func main() {
	if os.Args[1] == "worker" {
		work(strings.Split(os.Args[2], ","), os.Args[3], os.Args[4])
		return
	}
	report("group", group)
	report("sessions", sessions)
}

// cluster is what the command line names: the addresses, the number of brokers, and topics that begin so.
func cluster(suffix string) (bootstrap []string, brokers int, topic string) {
	brokers, _ = strconv.Atoi(os.Args[2])
	return strings.Split(os.Args[1], ","), brokers, os.Args[3] + suffix
}

func report(name string, step func(context.Context) (string, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), perStep)
	defer cancel()
	detail, err := step(ctx)
	if err != nil {
		detail = err.Error()
	}
	quoted, _ := json.Marshal(detail)
	fmt.Printf(`{"step": "%s", "ok": %t, "detail": %s}`+"\n", name, err == nil, quoted)
}
