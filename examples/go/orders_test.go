// Go's testing with franz-go. Run it with go test, with the command understudy on the PATH.
package orders

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"understudy.example/go/understudytest"
)

func send(t *testing.T, kafka *understudytest.Cluster, order string) {
	t.Helper()
	producer, err := kgo.NewClient(kgo.SeedBrokers(kafka.Brokers()...))
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	if err := producer.ProduceSync(context.Background(), &kgo.Record{Topic: "orders", Value: []byte(order)}).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// All orders that are there.
func read(t *testing.T, kafka *understudytest.Cluster) (orders []string) {
	t.Helper()
	consumer, err := kgo.NewClient(
		kgo.SeedBrokers(kafka.Brokers()...),
		kgo.ConsumeTopics("orders"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer consumer.Close()
	patience, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	for caughtUp := false; !caughtUp; {
		fetches := consumer.PollFetches(patience)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			for _, record := range p.Records {
				orders = append(orders, string(record.Value))
				caughtUp = record.Offset+1 >= p.HighWatermark
			}
		})
	}
	return orders
}

func TestWhatIsSentIsRead(t *testing.T) {
	kafka := understudytest.Start(t, "--brokers", "3", "--topic", "orders:1")
	send(t, kafka, "one order")
	if orders := read(t, kafka); len(orders) != 1 || orders[0] != "one order" {
		t.Error(orders)
	}
}

func TestAnAnswerThatIsLostMakesNoSecondOrder(t *testing.T) {
	kafka := understudytest.Start(t, "--topic", "orders:1")
	if _, err := kafka.AddFault(understudytest.Fault{
		Match: understudytest.FaultMatch{API: "Produce", Topic: "orders"},
		Do:    understudytest.Effect{ApplyThen: &understudytest.Effect{Disconnect: "reset"}},
	}); err != nil {
		t.Fatal(err)
	}
	send(t, kafka, "one order") // the producer is idempotent: it sends again, and the broker knows it
	if orders := read(t, kafka); len(orders) != 1 {
		t.Error(orders)
	}
}
