// kfake as a server of its own: one broker on 127.0.0.1, until it is told to end. Prints the port once it listens.
package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	port := flag.Int("port", 0, "port to listen on; 0: a free one")
	brokers := flag.Int("brokers", 1, "how many; all but the first have free ports")
	data := flag.String("data-dir", "", "keep everything there; without it: memory only")
	create := flag.Bool("create-topics", false, "create the topics that clients ask for")
	certificate := flag.String("tls", "", "certificate and key, PEM: serve TLS, with SASL/PLAIN for bench, password bench")
	flag.Parse()

	ports := make([]int, *brokers)
	ports[0] = *port
	options := []kfake.Opt{kfake.NumBrokers(*brokers), kfake.Ports(ports...)}
	if *data != "" {
		options = append(options, kfake.DataDir(*data))
	}
	if *create {
		options = append(options, kfake.AllowAutoTopicCreation())
	}
	if *certificate != "" {
		pair, err := tls.LoadX509KeyPair(*certificate, *certificate)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		options = append(options, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{pair}}),
			kfake.EnableSASL(), kfake.Superuser("PLAIN", "bench", "bench"))
	}
	cluster, err := kfake.NewCluster(options...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer cluster.Close()
	fmt.Println(cluster.ListenAddrs()[0])

	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGINT, syscall.SIGTERM)
	<-ended
}
