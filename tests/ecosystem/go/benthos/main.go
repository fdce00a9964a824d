// Benthos with the components that the test configures: Kafka by franz-go and by Sarama, and mappings.
package main

import (
	"context"

	_ "github.com/benthosdev/benthos/v4/public/components/kafka"
	_ "github.com/benthosdev/benthos/v4/public/components/pure"
	"github.com/benthosdev/benthos/v4/public/service"
)

func main() {
	service.RunCLI(context.Background())
}
