/** Models that the bench writes for LiteRT.js: the bytes, read by the rules of FlatBuffers, and the order of images. */
import { describe, expect, it } from 'vitest';
import { byte, data, encode, float, int, ints, list, table, text } from '../apps/bench/page/flatbuffer.mjs';
import { modelOf, turned } from '../apps/bench/page/tflite.mjs';
import { tools } from '../apps/bench/src/work/tools.ts';

/** A table of a buffer, by the number of the field: a reader that shares nothing with the writer. */
function reader(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const follow = (at) => at + view.getUint32(at, true);
  const field = (at, n) => {
    const vtable = at - view.getInt32(at, true);
    const offset = 4 + 2 * n < view.getUint16(vtable, true) ? view.getUint16(vtable + 4 + 2 * n, true) : 0;
    return offset === 0 ? null : at + offset;
  };
  const value = (at, n, read) => {
    const place = field(at, n);
    return place === null ? null : read(place);
  };
  return {
    root: follow(0),
    identifier: new TextDecoder().decode(bytes.subarray(4, 8)),
    int: (at, n) => value(at, n, (place) => view.getInt32(place, true)),
    byte: (at, n) => value(at, n, (place) => view.getInt8(place)),
    float: (at, n) => value(at, n, (place) => view.getFloat32(place, true)),
    table: (at, n) => value(at, n, follow),
    tables: (at, n) =>
      value(at, n, (place) => {
        const start = follow(place);
        return Array.from({ length: view.getUint32(start, true) }, (_, i) => follow(start + 4 + 4 * i));
      }),
    ints: (at, n) =>
      value(at, n, (place) => {
        const start = follow(place);
        return Array.from({ length: view.getUint32(start, true) }, (_, i) => view.getInt32(start + 4 + 4 * i, true));
      }),
    bytes: (at, n) =>
      value(at, n, (place) => {
        const start = follow(place);
        return { at: start + 4, bytes: bytes.subarray(start + 4, start + 4 + view.getUint32(start, true)) };
      }),
  };
}

describe('flatbuffers', () => {
  it('hold what was put into them, aligned', () => {
    const inner = table(undefined, text('name'), byte(-3));
    const bytes = encode(
      table(int(-7), undefined, float(0.5), ints([1, -2]), list([inner, table()]), data(Uint8Array.of(9, 8, 7))),
      'TEST',
    );
    const b = reader(bytes);
    expect(b.identifier).toBe('TEST');
    expect([b.int(b.root, 0), b.int(b.root, 1), b.float(b.root, 2), b.ints(b.root, 3)]).toEqual([
      -7,
      null,
      0.5,
      [1, -2],
    ]);
    const [first, second] = b.tables(b.root, 4);
    expect(new TextDecoder().decode(b.bytes(first, 1).bytes)).toBe('name');
    expect([b.int(first, 0), b.byte(first, 2), b.int(second, 0), b.int(b.root, 6)]).toEqual([null, -3, null, null]);
    const kept = b.bytes(b.root, 5);
    expect([[...kept.bytes], kept.at % 16]).toEqual([[9, 8, 7], 0]);
  });
});

describe('models', () => {
  const read = (work) => {
    const { bytes, inputs, arrange } = modelOf(tools, work);
    const b = reader(bytes);
    const [graph] = b.tables(b.root, 2);
    const codes = b.tables(b.root, 1).map((at) => b.int(at, 3));
    const tensors = b
      .tables(graph, 0)
      .map((at) => ({ shape: b.ints(at, 0), type: b.byte(at, 1), buffer: b.int(at, 2) }));
    const nodes = b.tables(graph, 3).map((at) => ({
      code: codes[b.int(at, 0)],
      inputs: b.ints(at, 1),
      outputs: b.ints(at, 2),
    }));
    const buffers = b.tables(b.root, 4).map((at) => b.bytes(at, 0));
    return { b, graph, tensors, nodes, buffers, inputs, arrange, ends: [b.ints(graph, 1), b.ints(graph, 2)] };
  };

  it('are products, with both operands from outside', () => {
    const { b, tensors, nodes, ends, inputs } = read({ kind: 'gemm', m: 2, n: 3, k: 4 });
    expect([b.identifier, b.int(b.root, 0)]).toEqual(['TFL3', 3]);
    expect(nodes).toEqual([{ code: 126, inputs: [0, 1], outputs: [2] }]);
    expect(tensors.map(({ shape }) => shape)).toEqual([
      [2, 4],
      [4, 3],
      [2, 3],
    ]);
    expect(ends).toEqual([[0, 1], [2]]);
    expect(inputs.map(([values]) => values.length)).toEqual([8, 12]);
  });

  it('are convolutions, channels last, with weights inside', () => {
    const { tensors, nodes, buffers, ends } = read({ kind: 'conv', batch: 2, channels: 3, side: 4, filters: 5 });
    expect(nodes).toEqual([{ code: 3, inputs: [0, 1, 2], outputs: [3] }]);
    expect(tensors.map(({ shape }) => shape)).toEqual([[2, 4, 4, 3], [5, 3, 3, 3], [5], [2, 4, 4, 5]]);
    expect(ends).toEqual([[0], [3]]);
    const { at, bytes } = buffers[tensors[1].buffer];
    expect([at % 16, bytes.length]).toEqual([0, 4 * 5 * 27]);
    const weights = new Float32Array(bytes.slice().buffer);
    const given = tools.fill(2, 5 * 27, -1, 1);
    // Filter 4, channel 2, place 7 of 9.
    expect(weights[(4 * 9 + 7) * 3 + 2]).toBe(given[(4 * 3 + 2) * 9 + 7]);
  });

  it('normalize rows by seven operators, and every value is made before it is used', () => {
    const { tensors, nodes } = read({ kind: 'layer-norm', n: 16 });
    expect(nodes.map(({ code }) => code)).toEqual([40, 41, 18, 40, 0, 76, 18]);
    const there = new Set([0, ...tensors.flatMap(({ buffer }, i) => (buffer > 0 ? [i] : []))]);
    for (const { inputs, outputs } of nodes) {
      for (const i of inputs) expect(there).toContain(i);
      for (const i of outputs) there.add(i);
    }
    expect(read({ kind: 'softmax', n: 16 }).nodes.map(({ code }) => code)).toEqual([25]);
    expect(() => modelOf(tools, { kind: 'mlp', batch: 1 })).toThrow('for inference only');
  });

  it('images change their order and back', () => {
    const values = Float32Array.from({ length: 12 }, (_, i) => i);
    expect([...turned(values, 2, 2, 3)]).toEqual([0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]);
    expect(turned(turned(values, 2, 2, 3), 2, 3, 2)).toEqual(values);
  });
});
