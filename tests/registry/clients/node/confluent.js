// @confluentinc/schemaregistry: node confluent.js URL. Prints what the test compares, one JSON document.
const {
  AvroDeserializer, AvroSerializer, JsonDeserializer, JsonSerializer, SchemaRegistryClient, SerdeType,
} = require('@confluentinc/schemaregistry')

const AVRO = JSON.stringify({ type: 'record', name: 'Order', namespace: 'shop', fields: [{ name: 'id', type: 'string' }] })
const JSON_SCHEMA = JSON.stringify({ type: 'object', properties: { id: { type: 'string' } }, required: ['id'] })

async function main(url) {
  const found = {}
  const cases = { avro: ['AVRO', AVRO, AvroSerializer, AvroDeserializer], json: ['JSON', JSON_SCHEMA, JsonSerializer, JsonDeserializer] }
  for (const [name, [schemaType, schema, Serializer, Deserializer]] of Object.entries(cases)) {
    const client = new SchemaRegistryClient({ baseURLs: [url] })
    const id = await client.register(`${name}-value`, { schemaType, schema })
    const bytes = await new Serializer(client, SerdeType.VALUE, { useLatestVersion: true }).serialize(name, { id: 'a' })
    const other = new SchemaRegistryClient({ baseURLs: [url] })
    const read = await new Deserializer(other, SerdeType.VALUE, {}).deserialize(name, bytes)
    const latest = (await client.getLatestSchemaMetadata(`${name}-value`)).id
    found[name] = { id, latest, magic: bytes[0], wire: bytes.readInt32BE(1), read: { ...read } }
  }
  const client = new SchemaRegistryClient({ baseURLs: [url] })
  found.subjects = await client.getAllSubjects()
  const incompatible = JSON.stringify({ type: 'record', name: 'Order', namespace: 'shop', fields: [{ name: 'n', type: 'int' }] })
  try {
    await client.register('avro-value', { schemaType: 'AVRO', schema: incompatible })
  } catch (error) {
    found.refused = error.status
  }
  console.log(JSON.stringify(found))
}

main(process.argv[2]).catch((error) => { console.error(error); process.exit(1) })
