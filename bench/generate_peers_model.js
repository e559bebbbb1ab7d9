// node generate_peers_model.js f32|f16|int8|int4 FILE: GPT-2 (124 M) with random weights as a GGUF file, for
// bench/generate_peers.
//
// The types are llama.cpp's F32, F16, Q8_0 and Q4_0 for every matrix, with the token embeddings, which are the output
// layer too; biases, norms and positions stay f32, as in its converter.
'use strict';
const fs = require('fs');

const LAYERS = 12, WIDTH = 768, FFN = 3072, HEADS = 12, VOCABULARY = 50257, POSITIONS = 1024;
const ALIGNMENT = 32;                                    // of tensors, GGUF's default
const UINT32 = 4, FLOAT32 = 6, STRING = 8, ARRAY = 9;    // types of metadata
const HALF_0_0003 = 0x0cea;                              // the scale of blocks, 0.0003 in f16

// Small random numbers; the values do not affect the speed. Exponents of f16 are limited to 0.008 … 0.06.
const randomBytes = (count) => {
  const bytes = Buffer.alloc(count);
  let state = 1;
  for (let i = 0; i < count; ++i) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes[i] = state >>> 24;
  }
  return bytes;
};
function floats(count) {
  const values = new Float32Array(count);
  const bytes = randomBytes(count);
  for (let i = 0; i < count; ++i) values[i] = (bytes[i] - 127.5) / 3600;
  return Buffer.from(values.buffer);
}
function halves(count) {
  const bytes = randomBytes(2 * count);
  for (let i = 1; i < bytes.length; i += 2) bytes[i] = 0x20 | (bytes[i] & 0x8b);
  return bytes;
}
// Blocks of 32 numbers: a scale in f16, then `bytes` of integers.
function blocks(count, bytes) {
  const all = randomBytes(count / 32 * (2 + bytes));
  for (let i = 0; i < all.length; i += 2 + bytes) all.writeUInt16LE(HALF_0_0003, i);
  return all;
}
// ggml's type number, the file type, bytes of 32 numbers, and a generator.
const TYPES = {
  f32: {ggml: 0, file: 0, bytes: 128, make: floats},
  f16: {ggml: 1, file: 1, bytes: 64, make: halves},
  int8: {ggml: 8, file: 7, bytes: 34, make: (count) => blocks(count, 32)},
  int4: {ggml: 2, file: 2, bytes: 18, make: (count) => blocks(count, 16)},
};

function uint32(value) {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
function uint64(value) {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}
const string = (text) => Buffer.concat([uint64(Buffer.byteLength(text)), Buffer.from(text)]);
function float32(value) {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return bytes;
}
const strings = (texts) => Buffer.concat([uint32(STRING), uint64(texts.length), ...texts.map(string)]);

// [name, type, value] of each; the vocabulary is a placeholder.
function metadata(type) {
  const words = Array.from({length: VOCABULARY}, (_, i) => 'w' + i);
  return [
    ['general.architecture', STRING, string('gpt2')],
    ['general.file_type', UINT32, uint32(TYPES[type].file)],
    ['gpt2.context_length', UINT32, uint32(POSITIONS)],
    ['gpt2.embedding_length', UINT32, uint32(WIDTH)],
    ['gpt2.feed_forward_length', UINT32, uint32(FFN)],
    ['gpt2.block_count', UINT32, uint32(LAYERS)],
    ['gpt2.attention.head_count', UINT32, uint32(HEADS)],
    ['gpt2.attention.layer_norm_epsilon', FLOAT32, float32(1e-5)],
    ['tokenizer.ggml.model', STRING, string('gpt2')],
    ['tokenizer.ggml.pre', STRING, string('gpt-2')],
    ['tokenizer.ggml.tokens', ARRAY, strings(words)],
    ['tokenizer.ggml.merges', ARRAY, strings(['w 0'])],
    ['tokenizer.ggml.bos_token_id', UINT32, uint32(VOCABULARY - 1)],
    ['tokenizer.ggml.eos_token_id', UINT32, uint32(VOCABULARY - 1)],
  ];
}

// Name, shape (the inner dimension first) and type of each tensor.
function tensors(type) {
  const list = [];
  const matrix = (name, input, output) => list.push({name: name + '.weight', shape: [input, output], type});
  const vector = (name, size) => list.push({name, shape: [size], type: 'f32'});
  const linear = (name, input, output) => {
    matrix(name, input, output);
    vector(name + '.bias', output);
  };
  const norm = (name) => {
    vector(name + '.weight', WIDTH);
    vector(name + '.bias', WIDTH);
  };
  matrix('token_embd', WIDTH, VOCABULARY);
  list.push({name: 'position_embd.weight', shape: [WIDTH, POSITIONS], type: 'f32'});
  for (let layer = 0; layer < LAYERS; ++layer) {
    const block = `blk.${layer}.`;
    norm(block + 'attn_norm');
    linear(block + 'attn_qkv', WIDTH, 3 * WIDTH);
    linear(block + 'attn_output', WIDTH, WIDTH);
    norm(block + 'ffn_norm');
    linear(block + 'ffn_up', WIDTH, FFN);
    linear(block + 'ffn_down', FFN, WIDTH);
  }
  norm('output_norm');
  return list;
}

const countOf = (tensor) => tensor.shape.reduce((a, b) => a * b);
const padding = (size) => Buffer.alloc(-size & (ALIGNMENT - 1));

function write(type, file) {
  const list = tensors(type);
  const pools = {};  // of the largest tensor of a type; the others use a prefix of it
  for (const name of new Set(list.map((tensor) => tensor.type))) {
    pools[name] = TYPES[name].make(Math.max(...list.filter((t) => t.type === name).map(countOf)));
  }
  const infos = [], parts = [];
  let offset = 0;
  for (const tensor of list) {
    const {ggml, bytes} = TYPES[tensor.type];
    const data = pools[tensor.type].subarray(0, countOf(tensor) / 32 * bytes);
    infos.push(string(tensor.name), uint32(tensor.shape.length), ...tensor.shape.map(uint64), uint32(ggml),
               uint64(offset));
    parts.push(data, padding(data.length));
    offset += data.length + padding(data.length).length;
  }
  const described = metadata(type);
  const head = Buffer.concat([
    Buffer.from('GGUF'), uint32(3), uint64(list.length), uint64(described.length),
    ...described.flatMap(([name, kind, value]) => [string(name), uint32(kind), value]), ...infos,
  ]);
  const out = fs.openSync(file, 'w');
  for (const part of [head, padding(head.length), ...parts]) fs.writeSync(out, part);
  fs.closeSync(out);
}

const [type, file] = process.argv.slice(2);
write(type, file);
