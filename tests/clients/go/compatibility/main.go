// As Compatibility.java, for Sarama and franz-go, each told to speak as with a broker of a release: `compatibility CLIENT
// [RELEASE]`, without the release as it does by itself.
//
// Reads lines of "BOOTSTRAP NAME" and answers each with lines of "STEP RESULT" and at last "end".
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kerr"
)

const (
	patience = 15 * time.Second
	records  = 10
)

// player is a client with its settings; each method is a step on the topic of that name.
type player interface {
	produce(ctx context.Context, name string, idempotent bool) error
	consume(ctx context.Context, name string) error
	transaction(ctx context.Context, name string) error
}

func main() {
	release := ""
	if len(os.Args) > 2 {
		release = os.Args[2]
	}
	clients := map[string]func(bootstrap, release string) player{"sarama": newSarama, "franz-go": newFranz}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		client, name := clients[os.Args[1]](words[0], release), words[1]
		if step("produce", func(ctx context.Context) error { return client.produce(ctx, name, false) }) {
			step("idempotent", func(ctx context.Context) error { return client.produce(ctx, name, true) })
			step("consume", func(ctx context.Context) error { return client.consume(ctx, name) })
			step("transaction", func(ctx context.Context) error { return client.transaction(ctx, name) })
		}
		fmt.Println("end")
	}
}

func step(name string, play func(ctx context.Context) error) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	err := play(ctx)
	if err == nil {
		fmt.Println(name, "ok")
	} else {
		fmt.Fprintf(os.Stderr, "%s %s: %T %v\n", strings.Join(os.Args[1:], " "), name, err, err)
		fmt.Println(name, told(err))
	}
	return err == nil
}

// told is an error in a word: the name of Kafka's code where it has one.
func told(err error) string {
	var ofFranz *kerr.Error
	var ofSarama sarama.KError
	switch {
	case errors.As(err, &ofFranz):
		return ofFranz.Message
	case errors.As(err, &ofSarama):
		if named, ok := kerr.ErrorForCode(int16(ofSarama)).(*kerr.Error); ok {
			return named.Message
		}
		return fmt.Sprintf("code %d", int16(ofSarama))
	case errors.Is(err, sarama.ErrUnsupportedVersion):
		return "ErrUnsupportedVersion"
	case errors.Is(err, sarama.ErrOutOfBrokers):
		return "ErrOutOfBrokers"
	case errors.Is(err, context.DeadlineExceeded):
		return "DeadlineExceeded"
	}
	return strings.ReplaceAll(err.Error(), "\n", " ")
}
