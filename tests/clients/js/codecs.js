// The codecs that KafkaJS leaves to its users: snappy in Java's framing, lz4 frames, zstd.
'use strict';

const { CompressionTypes, CompressionCodecs } = require('kafkajs');
const snappy = require('kafkajs-snappy');
const lz4 = require('lz4js');
const xxh32 = require('lz4js/xxh32.js');
const { ZstdCodec } = require('zstd-codec');

CompressionCodecs[CompressionTypes.Snappy] = snappy;
// lz4js does not say that its blocks are independent (they are: each frame has one), and Kafka refuses dependent ones.
function independent(frame) {
  frame[4] |= 0x20;
  frame[6] = (xxh32.hash(0, frame, 4, 2) >> 8) & 0xff; // the header's check byte
  return frame;
}

CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: async (encoder) => independent(Buffer.from(lz4.compress(encoder.buffer))),
  decompress: async (buffer) => Buffer.from(lz4.decompress(buffer)),
});

const zstd = new Promise((resolve) => { ZstdCodec.run((loaded) => resolve(new loaded.Simple())); });
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async (encoder) => Buffer.from((await zstd).compress(encoder.buffer)),
  decompress: async (buffer) => Buffer.from((await zstd).decompress(buffer)),
});

module.exports = {
  none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4, zstd: CompressionTypes.ZSTD,
};
