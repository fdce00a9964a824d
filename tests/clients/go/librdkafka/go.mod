module understudy/librdkafka

go 1.26.0

require github.com/confluentinc/confluent-kafka-go v1.9.2
