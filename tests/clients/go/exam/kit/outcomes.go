package kit

import (
	"sync"
	"time"
)

// Outcomes collects what becomes of a producer's records.
type Outcomes struct {
	mutex   sync.Mutex
	changed *sync.Cond
	open    int
	found   []map[string]any
}

// NewOutcomes is empty.
func NewOutcomes() *Outcomes {
	o := &Outcomes{}
	o.changed = sync.NewCond(&o.mutex)
	return o
}

// Sent is one more record without an outcome.
func (o *Outcomes) Sent() {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.open++
}

// Written at this offset.
func (o *Outcomes) Written(id int, offset int64) { o.add(map[string]any{"id": id, "offset": offset}) }

// Refused with this error.
func (o *Outcomes) Refused(id int, refusal Refusal) {
	o.add(map[string]any{"id": id, "error": refusal})
}

func (o *Outcomes) add(outcome map[string]any) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.open--
	o.found = append(o.found, outcome)
	o.changed.Broadcast()
}

// Flush waits until all have one, and returns those that it has not returned before.
func (o *Outcomes) Flush(timeout time.Duration) any {
	timer := time.AfterFunc(timeout, o.changed.Broadcast)
	defer timer.Stop()
	until := time.Now().Add(timeout)
	o.mutex.Lock()
	defer o.mutex.Unlock()
	for o.open > 0 && time.Now().Before(until) {
		o.changed.Wait()
	}
	found := o.found
	o.found = nil
	if found == nil {
		found = []map[string]any{}
	}
	return map[string]any{"outcomes": found, "pending": o.open}
}
