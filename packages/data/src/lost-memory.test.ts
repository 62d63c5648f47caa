/** Views whose ArrayBuffer was detached or shrunk say that they are empty: refused, whichever way they come in. */
import { expect, it } from 'vitest';
import { encodeIdx, parseIdx, readIdxHeader } from './idx.ts';
import { memoryDataset } from './columns.ts';
import { decodeSafetensors, encodeSafetensors } from './safetensors.ts';

/** The view after its memory went elsewhere. */
function detached<T extends ArrayBufferView>(view: T): T {
  structuredClone(view.buffer, { transfer: [view.buffer as ArrayBuffer] });
  return view;
}

function shrunk(): Float32Array {
  const buffer = new (ArrayBuffer as unknown as new (bytes: number, options: object) => ArrayBuffer)(16, {
    maxByteLength: 16,
  });
  const view = new Float32Array(buffer, 0, 4);
  (buffer as ArrayBuffer & { resize: (bytes: number) => void }).resize(8);
  return view;
}

const lost = /lost its memory: 0 elements.*detached or shrunk/;

it.each([
  ['detached', () => detached(new Float32Array(4))],
  ['shrunk', shrunk],
])('arrays that are %s', (_, make) => {
  for (const shape of [[4], [0]]) {
    const array = { dtype: 'float32', shape, data: make() } as const;
    expect(() => encodeSafetensors({ w: array })).toThrow(lost);
    expect(() => encodeIdx(array)).toThrow(lost);
    expect(() => memoryDataset({ x: { array } })).toThrow(lost);
  }
});

it('files in memory', () => {
  const idx = encodeIdx({ dtype: 'uint8', shape: [1], data: Uint8Array.of(7) });
  const safetensors = encodeSafetensors({ w: { dtype: 'uint8', shape: [1], data: Uint8Array.of(7) } });
  expect(() => parseIdx(detached(idx), 'digits')).toThrow(/\[idx\] digits: .*lost its memory/);
  expect(() => readIdxHeader(idx)).toThrow(lost);
  for (const file of [detached(safetensors), safetensors.buffer as ArrayBuffer])
    expect(() => decodeSafetensors(file, 'weights')).toThrow(/\[safetensors\] weights: .*lost its memory/);
});

it('columns that lose their memory after the data set was made', () => {
  const data = new Uint8Array([1, 2, 3, 4]);
  for (const as of ['float32', 'int32', 'stored'] as const) {
    const bytes = data.slice();
    const set = memoryDataset({ x: { array: { dtype: 'uint8', shape: [4], data: bytes }, as } });
    expect(set.gather(Uint32Array.of(3), 0, 1).x.data.length).toBe(1);
    detached(bytes);
    expect(() => set.gather(Uint32Array.of(3), 0, 1)).toThrow(
      /column 'x' has lost its memory: 0 of 4 elements are left/,
    );
  }
});

it('empty arrays stay what they are', () => {
  const array = { dtype: 'float32', shape: [0], data: new Float32Array(0) } as const;
  expect(decodeSafetensors(encodeSafetensors({ w: array })).tensors.get('w')?.shape).toEqual([0]);
  expect(memoryDataset({ x: { array } }).size).toBe(0);
});
