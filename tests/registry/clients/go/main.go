// franz-go's client of schema registries: main URL. Prints what the test compares, one JSON document.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/sr"
)

const (
	avro       = `{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"id","type":"string"}]}`
	withInt    = `{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"n","type":"int"}]}`
	jsonSchema = `{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`
	protobuf   = `syntax = "proto3"; package shop; message Order { string id = 1; }`
)

type order struct {
	ID string `json:"id"`
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	ctx := context.Background()
	client, err := sr.NewClient(sr.URLs(os.Args[1]))
	check(err)
	found := map[string]any{}
	for name, schema := range map[string]sr.Schema{
		"avro-value":     {Schema: avro, Type: sr.TypeAvro},
		"json-value":     {Schema: jsonSchema, Type: sr.TypeJSON},
		"protobuf-value": {Schema: protobuf, Type: sr.TypeProtobuf},
	} {
		made, err := client.CreateSchema(ctx, name, schema)
		check(err)
		again, err := client.LookupSchema(ctx, name, schema)
		check(err)
		found[name] = map[string]any{"same": made.ID == again.ID, "version": again.Version, "type": again.Type.String()}
		if schema.Type == sr.TypeJSON {
			var serde sr.Serde
			serde.Register(made.ID, order{}, sr.EncodeFn(json.Marshal), sr.DecodeFn(json.Unmarshal))
			bytes, err := serde.Encode(order{"a"})
			check(err)
			var read order
			check(serde.Decode(bytes, &read))
			found["read"] = read.ID
		}
	}
	result, err := client.CheckCompatibility(ctx, "avro-value", -1, sr.Schema{Schema: withInt, Type: sr.TypeAvro})
	check(err)
	found["compatible"] = result.Is
	_, err = client.CreateSchema(ctx, "avro-value", sr.Schema{Schema: withInt, Type: sr.TypeAvro})
	var refused *sr.ResponseError
	if errors.As(err, &refused) {
		found["refused"] = refused.StatusCode
	}
	levels := client.SetCompatibility(ctx, sr.SetCompatibility{Level: sr.CompatFull}, "avro-value")
	check(levels[0].Err)
	found["level"] = client.Compatibility(ctx, "avro-value")[0].Level.String()
	modes := client.SetMode(ctx, sr.ModeReadOnly, "json-value")
	check(modes[0].Err)
	found["mode"] = client.Mode(ctx, "json-value")[0].Mode.String()
	_, err = client.DeleteSubject(ctx, "protobuf-value", sr.SoftDelete)
	check(err)
	_, err = client.DeleteSubject(ctx, "protobuf-value", sr.HardDelete)
	check(err)
	found["subjects"], err = client.Subjects(ctx)
	check(err)
	check(json.NewEncoder(os.Stdout).Encode(found))
}
