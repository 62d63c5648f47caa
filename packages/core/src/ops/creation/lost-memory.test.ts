/** Views whose ArrayBuffer was detached or shrunk: an error, where an empty tensor came out. */
import { beforeAll, expect, it } from 'vitest';
import * as pg from '../../index.ts';
import { createReferenceEngine } from '@polygrad/testing';

beforeAll(() => pg.setEngine(createReferenceEngine()));

function transferred<T extends ArrayBufferView>(view: T): T {
  structuredClone(view.buffer, { transfer: [view.buffer as ArrayBuffer] });
  return view;
}

/** A view of the last half of a buffer of 16 bytes that then has 8. */
function shrunk(length?: number): Float32Array {
  const buffer = new (ArrayBuffer as unknown as new (bytes: number, options: object) => ArrayBuffer)(16, {
    maxByteLength: 16,
  });
  const view = new Float32Array(buffer, 12, length);
  (buffer as ArrayBuffer & { resize: (bytes: number) => void }).resize(8);
  return view;
}

function grownOver(): Float32Array {
  const memory = new WebAssembly.Memory({ initial: 1 });
  const view = new Float32Array(memory.buffer, 0, 4);
  memory.grow(1);
  return view;
}

const says = /\[tensor\] data has lost its memory: 0 elements.*detached or shrunk/;

it.each([
  ['transferred', () => transferred(new Float32Array(4))],
  ['of 64-bit integers', () => transferred(new BigInt64Array(4))],
  ['of a buffer that shrank', () => shrunk(1)],
  ['as long as a buffer that shrank', () => shrunk()],
  ['of WebAssembly memory that grew', grownOver],
] as const)('a view %s', (_, make) => {
  expect(() => pg.tensor(make())).toThrow(says);
  expect(() => pg.tensor(make(), { shape: [4] })).toThrow(says);
  expect(() => pg.tensor(make(), { shape: [0] })).toThrow(says);
  expect(() => pg.tensor(make(), { dtype: 'float16' })).toThrow(says);
  expect(() => pg.tensor([make(), make()] as unknown as number[][])).toThrow(says);
});

it('indices too', () => {
  expect(() => pg.take(pg.ones([3]), transferred(new Int32Array(2)) as unknown as number[])).toThrow(/lost its memory/);
});

it('data views, detached or not, are no arrays of numbers', () => {
  const view = new DataView(new ArrayBuffer(8));
  const as = view as unknown as Float32Array;
  expect(() => pg.tensor(as)).toThrow(/data is a DataView/);
  transferred(view);
  expect(() => pg.tensor(as)).toThrow(says);
});

it('empty views make empty tensors', () => {
  for (const empty of [new Float32Array(0), new Float32Array(new ArrayBuffer(8), 8)])
    expect(pg.tensor(empty).shape).toEqual([0]);
});

it('engines refuse them as uploads', () => {
  const engine = createReferenceEngine();
  const buffer = engine.alloc(16);
  expect(() => engine.upload({ buffer, offset: 0, bytes: 16 }, transferred(new Float32Array(4)))).toThrow(/\[upload\]/);
  expect(() => engine.upload({ buffer, offset: 0, bytes: 16 }, shrunk(1))).toThrow(/\[upload\] data has lost/);
});
