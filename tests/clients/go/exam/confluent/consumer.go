package main

import (
	"fmt"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"understudy/interop/exam/kit"
)

func (d *driver) consume(c *kit.Command) (any, error) {
	settings := common(c)
	reset, group := c.OffsetReset, c.Group
	if reset == "none" {
		reset = "error"
	}
	if group == "" {
		group = "without-a-group-" + c.Name
	}
	for name, value := range map[string]kafka.ConfigValue{
		"group.id": group, "isolation.level": c.Isolation, "auto.offset.reset": reset, "enable.auto.commit": c.AutoCommit,
		"fetch.wait.max.ms": 100, "fetch.error.backoff.ms": 50,
	} {
		settings[name] = value
	}
	if c.Protocol == "consumer" {
		settings["group.protocol"] = "consumer"
	} else {
		settings["session.timeout.ms"] = c.SessionTimeout
		settings["heartbeat.interval.ms"] = c.HeartbeatInterval
	}
	if c.InstanceID != "" {
		settings["group.instance.id"] = c.InstanceID
	}
	made, err := kafka.NewConsumer(&settings)
	if err != nil {
		return nil, err
	}
	d.consumers[c.Name] = made
	return nil, authorize(made, c)
}

func (d *driver) reader(c *kit.Command) (*kafka.Consumer, error) {
	if found := d.consumers[c.Consumer]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("there is no consumer %q", c.Consumer)
}

func (d *driver) assign(c *kit.Command) (any, error) {
	m, err := d.reader(c)
	if err != nil {
		return nil, err
	}
	var list []kafka.TopicPartition
	for _, each := range c.Places() {
		list = append(list, kafka.TopicPartition{
			Topic: &each.Topic, Partition: each.Partition, Offset: kafka.Offset(each.Offset),
		})
	}
	return nil, m.Assign(list)
}

func (d *driver) subscribe(c *kit.Command) (any, error) {
	m, err := d.reader(c)
	if err != nil {
		return nil, err
	}
	return nil, m.SubscribeTopics(c.Topics, nil)
}

// poll takes all that has arrived; after what is neither a record nor an error, it waits on.
func (d *driver) poll(c *kit.Command) (any, error) {
	m, err := d.reader(c)
	if err != nil {
		return nil, err
	}
	var records []kit.Read
	var failed []kit.Refusal
	until := time.Now().Add(kit.Ms(c.Timeout))
	for {
		if c.Full(len(records)) {
			return kit.Polled(records, failed), nil
		}
		wait := 0
		if records == nil && failed == nil {
			wait = max(int(time.Until(until).Milliseconds()), 0)
		}
		event := m.Poll(wait)
		switch found := event.(type) {
		case *kafka.Message:
			if found.TopicPartition.Error != nil {
				failed = append(failed, refuse(found.TopicPartition.Error))
				break
			}
			records = append(records, kit.Read{
				Topic: *found.TopicPartition.Topic, Partition: found.TopicPartition.Partition,
				Offset: int64(found.TopicPartition.Offset), Key: kit.Text(found.Key), Value: kit.Text(found.Value),
			})
		case kafka.Error:
			failed = append(failed, refuse(found))
		}
		if event == nil && (wait == 0 || !time.Now().Before(until)) {
			return kit.Polled(records, failed), nil
		}
	}
}

func (d *driver) assignment(c *kit.Command) (any, error) {
	m, err := d.reader(c)
	if err != nil {
		return nil, err
	}
	found, err := m.Assignment()
	if err != nil {
		return nil, err
	}
	var places []kit.Place
	for _, each := range found {
		places = append(places, kit.Place{Topic: *each.Topic, Partition: each.Partition})
	}
	return kit.Assigned(places), nil
}

func (d *driver) seek(c *kit.Command) (any, error) {
	m, err := d.reader(c)
	if err != nil {
		return nil, err
	}
	place := kafka.TopicPartition{Topic: &c.Topic, Partition: c.Partition, Offset: kafka.Offset(c.Offset)}
	return nil, m.Seek(place, 0)
}

func (d *driver) commitOffsets(c *kit.Command) (any, error) {
	m, err := d.reader(c)
	if err != nil {
		return nil, err
	}
	committed, err := m.Commit()
	if err != nil {
		return nil, err
	}
	for _, each := range committed {
		if each.Error != nil {
			return nil, each.Error
		}
	}
	return nil, nil
}
