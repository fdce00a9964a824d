// @kafkajs/confluent-schema-registry: node kafkajs.js URL. Prints what the test compares, one JSON document.
const { SchemaRegistry, SchemaType } = require('@kafkajs/confluent-schema-registry')

const AVRO = JSON.stringify({ type: 'record', name: 'Order', namespace: 'shop', fields: [{ name: 'id', type: 'string' }] })
const JSON_SCHEMA = JSON.stringify({ type: 'object', properties: { id: { type: 'string' } }, required: ['id'] })
const PROTOBUF = 'syntax = "proto3"; package shop; message Order { string id = 1; }'

async function main(url) {
  const found = {}
  const cases = { avro: [SchemaType.AVRO, AVRO], json: [SchemaType.JSON, JSON_SCHEMA], protobuf: [SchemaType.PROTOBUF, PROTOBUF] }
  for (const [name, [type, schema]] of Object.entries(cases)) {
    const writer = new SchemaRegistry({ host: url })
    const { id } = await writer.register({ type, schema }, { subject: `${name}-value` })
    const bytes = await writer.encode(id, { id: 'a' })
    const read = await new SchemaRegistry({ host: url }).decode(bytes)
    const latest = await writer.getLatestSchemaId(`${name}-value`)
    found[name] = { id, latest, magic: bytes[0], wire: bytes.readInt32BE(1), read: { ...read } }
  }
  const incompatible = JSON.stringify({ type: 'record', name: 'Order', namespace: 'shop', fields: [{ name: 'n', type: 'int' }] })
  try {
    await new SchemaRegistry({ host: url }).register({ type: SchemaType.AVRO, schema: incompatible }, { subject: 'avro-value' })
  } catch (error) {
    found.refused = error.status
  }
  console.log(JSON.stringify(found))
}

main(process.argv[2]).catch((error) => { console.error(error); process.exit(1) })
