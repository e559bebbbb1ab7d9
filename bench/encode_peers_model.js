// node encode_peers_model.js f32|int8 FILE: BERT-base with random weights as an ONNX file, for bench/encode_peers.
//
// ONNX is protobuf, written here field by field (field numbers of onnx.proto), so that nothing has to be installed. The
// graph is that of ONNX Runtime's Transformer optimizer: fused attention, skip + norm and bias + GELU (domain
// com.microsoft), its fastest form. int8 is its dynamic quantization: u8 rows, s8 weights of 7 bits with a scale for
// each column.
'use strict';
const fs = require('fs');

const LAYERS = 12, WIDTH = 768, FFN = 3072, HEADS = 12, VOCABULARY = 30522, LENGTH = 128;
const EPSILON = 1e-12;  // of BERT's layer norms
const FLOAT = 1, INT8 = 3, INT64 = 7;  // TensorProto.DataType

// A message is a list of buffers that are joined only in the file, so weights are not copied.
const sizeOf = (message) => message.reduce((sum, part) => sum + part.length, 0);

function varint(value) {
  const bytes = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push(value % 128 + 128);
  bytes.push(value);
  return Buffer.from(bytes);
}
const integer = (field, value) => [varint(field * 8), varint(value)];
function float(field, value) {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return [varint(field * 8 + 5), bytes];
}
const message = (field, ...parts) => {
  const inside = parts.flat();
  return [varint(field * 8 + 2), varint(sizeOf(inside)), ...inside];
};
const string = (field, text) => message(field, Buffer.from(text));

// Random numbers from a pool; the values do not affect the speed.
function randomPool(Type, count, draw) {
  const pool = new Type(count);
  let state = 1;
  for (let i = 0; i < count; ++i) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    pool[i] = draw(state / 2 ** 32);
  }
  return pool;
}
const bytesOf = (array) => Buffer.from(array.buffer, array.byteOffset, array.byteLength);
const FLOATS = randomPool(Float32Array, VOCABULARY * WIDTH, (u) => 0.07 * (u - 0.5));
const BYTES = randomPool(Int8Array, FFN * WIDTH, (u) => Math.floor(128 * u) - 64);

class Graph {
  nodes = [];
  initializers = [];

  tensor(name, type, shape, data) {
    this.initializers.push(message(5, ...shape.map((n) => integer(1, n)), integer(2, type), string(8, name),
                                   message(9, bytesOf(data))));
    return name;
  }
  weights(name, ...shape) {
    return this.tensor(name, FLOAT, shape, FLOATS.subarray(0, shape.reduce((a, b) => a * b)));
  }
  filled(name, value, ...shape) {
    return this.tensor(name, FLOAT, shape, new Float32Array(shape.reduce((a, b) => a * b, 1)).fill(value));
  }
  // The name of the node's output.
  node(type, inputs, name, {domain = '', outputs = [name], ...attributes} = {}) {
    const described = Object.entries(attributes).map(([key, value]) => {
      const whole = Number.isInteger(value);
      return message(5, string(1, key), whole ? integer(3, value) : float(2, value), integer(20, whole ? 2 : 1));
    });
    this.nodes.push(message(1, ...inputs.map((i) => string(1, i)), ...outputs.map((o) => string(2, o)),
                            string(3, name), string(4, type), ...described, string(7, domain)));
    return name;
  }
  // With ids [batch, LENGTH] and y [batch, LENGTH, WIDTH].
  write(file) {
    const value = (field, name, type, ...shape) => message(
        field, string(1, name),
        message(2, message(1, integer(1, type), message(2, ...shape.map((n) => message(
            1, typeof n === 'string' ? string(2, n) : integer(1, n)))))));
    const model = [
      integer(1, 8),  // IR version
      message(7, ...this.nodes, string(2, 'bert'), ...this.initializers,
              value(11, 'ids', INT64, 'batch', LENGTH), value(12, 'y', FLOAT, 'batch', LENGTH, WIDTH)),
      message(8, string(1, ''), integer(2, 17)),
      message(8, string(1, 'com.microsoft'), integer(2, 1)),
    ].flat();
    const out = fs.openSync(file, 'w');
    for (const part of model) fs.writeSync(out, part);
    fs.closeSync(out);
  }
}

const microsoft = (attributes = {}) => ({domain: 'com.microsoft', ...attributes});

// x [batch, LENGTH, input] times a weight [input, output].
function product(g, x, name, input, output, type) {
  if (type === 'f32') return g.node('MatMul', [x, g.weights(name + '.weight', input, output)], name);
  const weight = g.tensor(name + '.weight', INT8, [input, output], BYTES.subarray(0, input * output));
  return g.node('DynamicQuantizeMatMul', [x, weight, g.filled(name + '.scale', 0.0005, output)], name, microsoft());
}

// q, k and v in one matmul, and attention up to the concatenated heads.
function attention(g, x, name, type) {
  const bias = g.filled(name + '.bias', 0.01, 3 * WIDTH);
  if (type === 'f32') {
    const weight = g.weights(name + '.weight', WIDTH, 3 * WIDTH);
    return g.node('Attention', [x, weight, bias], name, microsoft({num_heads: HEADS}));
  }
  const quantized = [name + '.x', name + '.x.scale', name + '.x.zero'];
  g.node('DynamicQuantizeLinear', [x], quantized[0], {outputs: quantized});
  const weight = g.tensor(name + '.weight', INT8, [WIDTH, 3 * WIDTH], BYTES.subarray(0, 3 * WIDTH * WIDTH));
  const scale = g.filled(name + '.scale', 0.0005, 3 * WIDTH);
  const zero = g.tensor(name + '.zero', INT8, [3 * WIDTH], new Int8Array(3 * WIDTH));
  return g.node('QAttention', [quantized[0], weight, bias, quantized[1], scale, '', quantized[2], zero], name,
                microsoft({num_heads: HEADS}));
}

function addAndNorm(g, x, branch, name, output = name) {
  const inputs = [x, branch, g.filled(name + '.gamma', 1, WIDTH), g.filled(name + '.beta', 0, WIDTH),
                  g.filled(name + '.bias', 0.01, WIDTH)];
  g.node('SkipLayerNormalization', inputs, name, microsoft({outputs: [output], epsilon: EPSILON}));
  return output;
}

function bert(type) {
  const g = new Graph();
  const words = g.node('Gather', [g.weights('words', VOCABULARY, WIDTH), 'ids'], 'embedded');
  const sum = g.node('Add', [words, g.weights('positions_and_type', 1, LENGTH, WIDTH)], 'positioned');
  let x = g.node('LayerNormalization', [sum, g.filled('norm.gamma', 1, WIDTH), g.filled('norm.beta', 0, WIDTH)],
                 'norm', {epsilon: EPSILON});
  for (let layer = 0; layer < LAYERS; ++layer) {
    const name = (part) => `layer${layer}.${part}`;
    const heads = attention(g, x, name('attention'), type);
    x = addAndNorm(g, x, product(g, heads, name('output'), WIDTH, WIDTH, type), name('attention_norm'));
    const up = product(g, x, name('up'), WIDTH, FFN, type);
    const active = g.node('BiasGelu', [up, g.filled(name('up.bias'), 0.01, FFN)], name('gelu'), microsoft());
    const down = product(g, active, name('down'), FFN, WIDTH, type);
    x = addAndNorm(g, x, down, name('ffn_norm'), layer === LAYERS - 1 ? 'y' : name('ffn_norm'));
  }
  return g;
}

const [type, file] = process.argv.slice(2);
bert(type).write(file);
