package understudytest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// plane is a client of its own, since tests replace http.DefaultTransport.
var plane = &http.Client{Transport: &http.Transport{}}

// askLimit is the time limit of a request without a context; a wait for hits adds its own.
var askLimit = 30 * time.Second

// pageLimit is the largest number of records in one response.
const pageLimit = 10_000

// Client is the control plane of a running cluster.
type Client struct {
	control string
	token   string
	brokers []string
}

// ControlError is a rejection by the control plane.
type ControlError struct {
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Field  string `json:"field"`
}

func (e *ControlError) Error() string {
	if e.Field == "" {
		return e.Detail
	}
	return fmt.Sprintf("%s (field %s)", e.Detail, e.Field)
}

// FaultMatch has the conditions of a fault, joined by AND; the zero value matches every request.
type FaultMatch struct {
	API             string         `json:"api,omitempty"`
	Versions        *[2]int        `json:"versions,omitempty"`
	Broker          *int           `json:"broker,omitempty"`
	Listener        string         `json:"listener,omitempty"`
	ClientID        string         `json:"client_id,omitempty"`
	Topic           string         `json:"topic,omitempty"`
	Partition       *int           `json:"partition,omitempty"`
	Offset          *int64         `json:"offset,omitempty"`
	Group           string         `json:"group,omitempty"`
	TransactionalID string         `json:"transactional_id,omitempty"`
	Request         map[string]any `json:"request,omitempty"`
}

// Effect is what a fault does; exactly one of its fields is set.
type Effect struct {
	Error      string         `json:"error,omitempty"`
	DelayMs    int            `json:"delay_ms,omitempty"`
	Where      string         `json:"where,omitempty"`
	Drop       bool           `json:"drop,omitempty"`
	Disconnect string         `json:"disconnect,omitempty"`
	ThrottleMs int            `json:"throttle_ms,omitempty"`
	Alter      map[string]any `json:"alter,omitempty"`
	Bytes      map[string]any `json:"bytes,omitempty"`
	ApplyThen  *Effect        `json:"apply_then,omitempty"`
}

// Fault refuses, alters or delays matching requests. Times 0 is one request, -1 all of them.
type Fault struct {
	Match       FaultMatch
	Do          Effect
	Skip        int
	Times       int
	Probability float64
}

// FaultState is a fault on the server. Remaining is the number of further requests that it affects, and Times that of all;
// nil is any number. Meets and Does describe it in plain English.
type FaultState struct {
	ID          string         `json:"id"`
	Hits        int            `json:"hits"`
	Match       map[string]any `json:"match"`
	Do          map[string]any `json:"do"`
	Skip        int            `json:"skip"`
	Times       *int           `json:"times"`
	Probability float64        `json:"probability"`
	Remaining   *int           `json:"remaining"`
	Meets       string         `json:"meets"`
	Does        string         `json:"does"`
}

// Report is the cluster's report for a failed test; Text has all of it.
type Report struct {
	Text        string            `json:"text"`
	NowMs       int64             `json:"now_ms"`
	Requests    []ReportedRequest `json:"requests"`
	Refusals    []ReportedRefusal `json:"refusals"`
	UnmetFaults []FaultState      `json:"unmet_faults"`
	Diagrams    []string          `json:"diagrams"`
	Hints       []string          `json:"hints"`
}

// ReportedRequest is one line of the report.
type ReportedRequest struct {
	ID    int64    `json:"id"`
	AtMs  int64    `json:"at_ms"`
	Text  string   `json:"text"`
	API   string   `json:"api"`
	Error string   `json:"error"`
	Fault string   `json:"fault"`
	Names []string `json:"names"`
}

// ReportedRefusal is the last refusal of a transactional id, a producer or a group, and its reason.
type ReportedRefusal struct {
	Subject string `json:"subject"`
	Error   string `json:"error"`
	Why     string `json:"why"`
	AtMs    int64  `json:"at_ms"`
}

// Record is a record of a partition; bytes that are not UTF-8 are an object {"base64": ...}.
type Record struct {
	Offset int64 `json:"offset"`
	Key    any   `json:"key"`
	Value  any   `json:"value"`
}

// Connect returns the control plane of a running cluster, such as http://127.0.0.1:9099.
func Connect(control, token string) (*Client, error) {
	client := &Client{control: strings.TrimSuffix(control, "/"), token: token}
	var cluster struct {
		Brokers []struct {
			Host string `json:"host"`
			Port int    `json:"port"`
		} `json:"brokers"`
	}
	if err := client.Ask("GET", "/v1/cluster", nil, &cluster); err != nil {
		return nil, err
	}
	for _, each := range cluster.Brokers {
		client.brokers = append(client.brokers, net.JoinHostPort(each.Host, strconv.Itoa(each.Port)))
	}
	return client, nil
}

// Brokers returns HOST:PORT of each broker; a reset changes them.
func (c *Client) Brokers() []string { return c.brokers }

// BootstrapServers returns the brokers joined by commas, for clients that take a single string.
func (c *Client) BootstrapServers() string { return strings.Join(c.brokers, ",") }

// Control returns the URL of the control plane.
func (c *Client) Control() string { return c.control }

// Ask sends any verb of the control plane, such as Ask("POST", "/v1/clock/advance", map[string]any{"ms": 900_000}, nil).
// The answer is decoded from JSON; a *[]byte gets the body as it is, such as a packet capture. The time limit is 30 s.
func (c *Client) Ask(method, path string, body, answer any) error {
	return c.askWithin(askLimit, method, path, body, answer)
}

func (c *Client) askWithin(limit time.Duration, method, path string, body, answer any) error {
	until, done := context.WithTimeout(context.Background(), limit)
	defer done()
	err := c.AskContext(until, method, path, body, answer)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s %s: no answer from %s within %v; the server may still be processing it: %w", method, path, c.control, limit, err)
	}
	return err
}

// AskContext does the same until the context ends, and has no other time limit.
func (c *Client) AskContext(ctx context.Context, method, path string, body, answer any) error {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.control+path, content)
	if err != nil {
		return err
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := plane.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		problem := &ControlError{}
		if json.Unmarshal(text, problem) != nil || problem.Detail == "" { // of something else, such as a gateway
			problem.Detail = response.Status + " " + string(text)
		}
		problem.Status = response.StatusCode
		return fmt.Errorf("%s %s: %w", method, path, problem)
	}
	if plain, is := answer.(*[]byte); is {
		*plain = text
		return nil
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("%s %s: the answer is of another type: %w", method, path, err)
	}
	return nil
}

// Reset returns to the state after the start, disconnects all clients and moves to other ports.
func (c *Client) Reset() error {
	var done struct {
		Servers []string `json:"bootstrap_servers"`
	}
	if err := c.Ask("POST", "/v1/reset", map[string]any{"disconnect": true}, &done); err != nil {
		return err
	}
	if len(done.Servers) > 0 && c.token == "" {
		c.brokers = done.Servers
	}
	return nil
}

// Report returns the report for a failed test, of requests since a time of the cluster's clock in milliseconds, or 0.
func (c *Client) Report(sinceMs int64) (Report, error) {
	var report Report
	err := c.Ask("GET", fmt.Sprintf("/v1/report?since=%d", sinceMs), nil, &report)
	return report, err
}

// Advance moves the clock, and returns after all timers that became due have run.
func (c *Client) Advance(by time.Duration) error {
	return c.Ask("POST", "/v1/clock/advance", map[string]any{"ms": by.Milliseconds()}, nil)
}

// Freeze stops the clock; Thaw resumes it.
func (c *Client) Freeze() error { return c.Ask("POST", "/v1/clock/freeze", nil, nil) }

// Thaw resumes the clock.
func (c *Client) Thaw() error { return c.Ask("POST", "/v1/clock/thaw", nil, nil) }

// AddFault injects a fault.
func (c *Client) AddFault(fault Fault) (FaultState, error) {
	body := map[string]any{"match": fault.Match, "do": fault.Do, "skip": fault.Skip, "times": max(fault.Times, 1)}
	if fault.Times < 0 {
		body["times"] = nil
	}
	if fault.Probability != 0 {
		body["probability"] = fault.Probability
	}
	var state FaultState
	err := c.Ask("POST", "/v1/faults", body, &state)
	return state, err
}

// WaitHits returns a fault after that many requests have matched it, or an error after the time limit.
func (c *Client) WaitHits(id string, hits int, limit time.Duration) (FaultState, error) {
	var state FaultState
	path := fmt.Sprintf("/v1/faults/%s?wait_hits=%d&timeout_ms=%d", url.PathEscape(id), hits, limit.Milliseconds())
	err := c.askWithin(askLimit+limit, "GET", path, nil, &state)
	if err == nil && state.Hits < hits {
		err = fmt.Errorf("%d of %d requests met fault %s within %v", state.Hits, hits, id, limit)
	}
	return state, err
}

// UnmetFaults returns the faults that no request has matched.
func (c *Client) UnmetFaults() ([]FaultState, error) {
	var answer struct {
		Faults []FaultState `json:"faults"`
	}
	err := c.Ask("GET", "/v1/faults?unmet=true", nil, &answer)
	return answer.Faults, err
}

// ClearFaults removes all faults.
func (c *Client) ClearFaults() error { return c.Ask("DELETE", "/v1/faults", nil, nil) }

// CreateTopic creates a topic with that many partitions.
func (c *Client) CreateTopic(name string, partitions int) error {
	return c.Ask("POST", "/v1/topics", map[string]any{"name": name, "partitions": partitions}, nil)
}

// Write appends values to a topic without a Kafka client.
func (c *Client) Write(topic string, values ...string) error {
	var rows []map[string]any
	for _, each := range values {
		rows = append(rows, map[string]any{"value": each})
	}
	return c.Ask("POST", "/v1/topics/"+url.PathEscape(topic)+"/records", map[string]any{"records": rows}, nil)
}

// Records reads all records of a partition without a Kafka client.
func (c *Client) Records(topic string, partition int) ([]Record, error) {
	var found []Record
	where := fmt.Sprintf("/v1/topics/%s/partitions/%d/records?limit=%d", url.PathEscape(topic), partition, pageLimit)
	for path := where; ; path = fmt.Sprintf("%s&offset=%d", where, found[len(found)-1].Offset+1) {
		var answer struct {
			Records []Record `json:"records"`
		}
		if err := c.Ask("GET", path, nil, &answer); err != nil {
			return nil, err
		}
		found = append(found, answer.Records...)
		if len(answer.Records) < pageLimit {
			return found, nil
		}
	}
}

// KillBroker resets a broker's connections and loses its memory.
func (c *Client) KillBroker(id int) error {
	return c.Ask("POST", fmt.Sprintf("/v1/brokers/%d/kill", id), nil, nil)
}

// StopBroker performs a controlled shutdown of a broker.
func (c *Client) StopBroker(id int) error {
	return c.Ask("POST", fmt.Sprintf("/v1/brokers/%d/stop", id), nil, nil)
}

// StartBroker starts a broker again.
func (c *Client) StartBroker(id int) error {
	return c.Ask("POST", fmt.Sprintf("/v1/brokers/%d/start", id), nil, nil)
}

// WhyGroup explains the last refusal of a group's member.
func (c *Client) WhyGroup(id string) (string, error) {
	return c.why("/v1/groups/" + url.PathEscape(id) + "/why")
}

// WhyTransaction explains the last refusal of a transactional id.
func (c *Client) WhyTransaction(id string) (string, error) {
	return c.why("/v1/transactions/" + url.PathEscape(id) + "/why")
}

func (c *Client) why(path string) (string, error) {
	var answer struct {
		Why string `json:"why"`
	}
	err := c.Ask("GET", path, nil, &answer)
	return answer.Why, err
}
