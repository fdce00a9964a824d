package kit

import "context"

// Administration makes commands of what an administrator does: one is opened for each command.
func Administration[A any](
	open func(*Command) (A, error), end func(A), works map[string]func(context.Context, A, *Command) (any, error),
) Commands {
	commands := Commands{}
	for name, work := range works {
		commands[name] = func(c *Command) (any, error) {
			administrator, err := open(c)
			if err != nil {
				return nil, err
			}
			defer end(administrator)
			ctx, cancel := c.Context()
			defer cancel()
			return work(ctx, administrator, c)
		}
	}
	return commands
}

// Copies is the replication factor of `create_topic`; -1: the broker's default.
func (c *Command) Copies() int {
	if c.Replicas == 0 {
		return -1
	}
	return c.Replicas
}

// Partition is one of `describe_topic`.
type Partition struct {
	Partition int   `json:"partition"`
	Leader    int   `json:"leader"`
	Replicas  []int `json:"replicas"`
	ISR       []int `json:"isr"`
}

// Ints are ids as JSON has them.
func Ints[T ~int | ~int32](ids []T) []int {
	out := []int{}
	for _, id := range ids {
		out = append(out, int(id))
	}
	return out
}

// Named is a result with one list, empty rather than null.
func Named[T any](name string, list []T) any {
	if list == nil {
		list = []T{}
	}
	return map[string]any{name: list}
}

// Group is the result of `describe_group`.
func Group(state string, members int) any { return map[string]any{"state": state, "members": members} }

// Cluster is the result of `describe_cluster`.
func Cluster(brokers []int, controller int) any {
	return map[string]any{"brokers": brokers, "controller": controller}
}

// OffsetsOf is the result of `committed` and `list_offsets`: for each partition its offset, or -1.
func (c *Command) OffsetsOf(offsets map[int]int64) any {
	out := []int64{}
	for partition := range c.Count() {
		offset, known := offsets[partition]
		if !known {
			offset = -1
		}
		out = append(out, offset)
	}
	return map[string]any{"offsets": out}
}
