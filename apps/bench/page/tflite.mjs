/** Models in the format of LiteRT (TensorFlow Lite's schema.fbs, version 3), for inference: one of each case of the bench. */
import { byte, data, encode, float, int, ints, list, table, text } from './flatbuffer.mjs';

class Unsupported extends Error {
  name = 'Unsupported';
}

/** Numbers of operators, and of the tables of their options. */
const operators = {
  ADD: [0, 11],
  CONV_2D: [3, 1],
  MUL: [18, 21],
  SOFTMAX: [25, 9],
  MEAN: [40, 27],
  SUB: [41, 28],
  RSQRT: [76, 0],
  BATCH_MATMUL: [126, 101],
};
const types = { float32: 0, int32: 2 };

/** Builds a model step by step. */
function builder() {
  const tensors = [];
  const buffers = [table()];
  const codes = [];
  const nodes = [];
  const add = (shape, dtype, buffer) => {
    const name = `t${tensors.length}`;
    tensors.push(table(ints(shape), byte(types[dtype]), int(buffer), text(name)));
    return tensors.length - 1;
  };
  return {
    input: (shape) => add(shape, 'float32', 0),
    constant(values, shape) {
      const { buffer, byteOffset, byteLength } = values;
      buffers.push(table(data(new Uint8Array(buffer, byteOffset, byteLength))));
      return add(shape, values instanceof Int32Array ? 'int32' : 'float32', buffers.length - 1);
    },
    node(name, inputs, shape, ...options) {
      const [code, kind] = operators[name];
      if (!codes.includes(code)) codes.push(code);
      const output = add(shape, 'float32', 0);
      const given = kind === 0 ? [] : [byte(kind), table(...options)];
      nodes.push(table(int(codes.indexOf(code)), ints(inputs), ints([output]), ...given));
      return output;
    },
    bytes(inputs, output) {
      const graph = table(list(tensors), ints(inputs), ints([output]), list(nodes), text('main'));
      const known = codes.map((code) => table(byte(code), undefined, int(1), int(code)));
      return encode(table(int(3), list(known), list([graph]), text('case'), list(buffers)), 'TFL3');
    },
  };
}

/** Images that lie channel by channel, pixel by pixel; `inner` and `outer` exchange places in each of `count`. */
export function turned(values, count, outer, inner) {
  const result = new Float32Array(values.length);
  for (let n = 0; n < count; n++)
    for (let i = 0; i < outer; i++)
      for (let j = 0; j < inner; j++) result[(n * inner + j) * outer + i] = values[(n * outer + i) * inner + j];
  return result;
}

/**
 * The model of a case.
 *
 * @returns `bytes`, `inputs` as values and shapes, and `arrange`, which puts the results in the order of the bench
 */
export function modelOf({ fill }, work) {
  const b = builder();
  const asIs = (values) => values;
  switch (work.kind) {
    case 'gemm': {
      const { m, n, k } = work;
      const inputs = [b.input([m, k]), b.input([k, n])];
      const y = b.node('BATCH_MATMUL', inputs, [m, n]);
      const values = [
        [fill(1, m * k, -1, 1), [m, k]],
        [fill(2, k * n, -1, 1), [k, n]],
      ];
      return { bytes: b.bytes(inputs, y), inputs: values, arrange: asIs };
    }
    case 'softmax':
    case 'layer-norm': {
      const side = Math.round(Math.sqrt(work.n));
      const shape = [side, side];
      const x = b.input(shape);
      const y = work.kind === 'softmax' ? b.node('SOFTMAX', [x], shape, float(1)) : normalized(b, x, shape);
      return { bytes: b.bytes([x], y), inputs: [[fill(1, work.n, -1, 1), shape]], arrange: asIs };
    }
    case 'conv': {
      const { batch, channels, side, filters } = work;
      const shape = [batch, side, side, channels];
      const x = b.input(shape);
      // Weights belong to the model, which may bring them into any order.
      const kernel = turned(fill(2, filters * channels * 9, -1, 1), filters, channels, 9);
      const weights = b.constant(kernel, [filters, 3, 3, channels]);
      const bias = b.constant(new Float32Array(filters), [filters]);
      // Padding SAME is 0, strides are 1.
      const y = b.node('CONV_2D', [x, weights, bias], [batch, side, side, filters], byte(0), int(1), int(1));
      const images = turned(fill(1, batch * channels * side * side, -1, 1), batch, channels, side * side);
      const arrange = (values) => turned(values, batch, side * side, filters);
      return { bytes: b.bytes([x], y), inputs: [[images, shape]], arrange };
    }
    default:
      throw new Unsupported('for inference only');
  }
}

/** Layer normalization of rows, for which there is no operator. */
function normalized(b, x, shape) {
  const one = [shape[0], 1];
  const axis = b.constant(Int32Array.of(1), [1]);
  const mean = b.node('MEAN', [x, axis], one, byte(1));
  const centred = b.node('SUB', [x, mean], shape);
  const squared = b.node('MUL', [centred, centred], shape);
  const variance = b.node('MEAN', [squared, axis], one, byte(1));
  const shifted = b.node('ADD', [variance, b.constant(Float32Array.of(1e-5), [1])], one);
  return b.node('MUL', [centred, b.node('RSQRT', [shifted], one)], shape);
}
