/** Products of tiles and copies beside other work: who holds what, what is refused, and what waiting is for. */
import { describe, expect, it } from 'vitest';
import { ProgramBuilder } from '../ir/builder/builder.ts';
import type { KNode, Program } from '../ir/ir.ts';
import { elementOf, fragmentLanes, type MatrixForm, type MatrixPart, stepsOf } from '../ir/matrix.ts';
import { packProgram, sameCode } from '../ir/packed.ts';
import { unpackProgram } from '../ir/unpacked.ts';
import { printProgram } from '../ir/print.ts';
import { verifyProgram } from '../ir/verify/verify.ts';
import { interpret } from './interpret.ts';
import { toTf32 } from './matrix.ts';

const forms: readonly MatrixForm[] = [
  { dtype: 'float16', tile: 'm16n8k8' },
  { dtype: 'float16', tile: 'm16n8k16' },
  { dtype: 'bfloat16', tile: 'm16n8k16' },
  { dtype: 'float32', tile: 'm16n8k8' },
];

describe.each(forms)('$tile of $dtype', ({ dtype, tile }) => {
  it.each(['a', 'b', 'c'] as const)('every element of %s is held once', (part: MatrixPart) => {
    const steps = stepsOf(tile);
    const [rows, columns] = { a: [16, steps], b: [steps, 8], c: [16, 8] }[part] as [number, number];
    const met = new Set<number>();
    for (let thread = 0; thread < 32; thread++)
      for (let lane = 0; lane < fragmentLanes(part, tile); lane++) {
        const [row, column] = elementOf(part, dtype, thread, lane);
        expect(row < rows && column < columns).toBe(true);
        met.add(row * columns + column);
      }
    expect(met.size).toBe(rows * columns);
  });
});

/** 32 threads multiply a matrix of 16 x 16 by one of 16 x 8 whose elements are small whole numbers. */
function tile(write: (b: ProgramBuilder, a: KNode, x: KNode, c: KNode) => KNode): Program {
  const b = new ProgramBuilder();
  const { e } = b;
  const thread = e.special('local', 0, 32);
  const [x, y] = [e.param(0, 'float16', 'read', 256), e.param(1, 'float16', 'read', 128)];
  const [rows, columns] = [b.shared('rows', 'float16', 16 * 24), b.shared('columns', 'float16', 16 * 16)];
  b.loop(8, (i) => {
    const at = e.add(e.mul(i, 32), thread);
    b.store(rows, e.add(e.mul(e.idiv(at, 16), 24), e.irem(at, 16)), b.load(x, at));
  });
  b.loop(4, (i) => {
    const at = e.add(e.mul(i, 32), thread);
    b.store(columns, e.add(e.mul(e.idiv(at, 8), 16), e.irem(at, 8)), b.load(y, at));
  });
  b.barrier();
  const [m, n] = [
    { tile: 'm16n8k16', part: 'a', across: 24, along: 1 },
    { tile: 'm16n8k16', part: 'b', across: 1, along: 16 },
  ] as const;
  const left = b.here('FRAGMENT', 'float16', 8, [rows, e.i32(0)], m);
  const right = b.here('FRAGMENT', 'float16', 4, [columns, e.i32(0)], n);
  const sums = write(b, left, right, e.splat(e.f32(1), 4));
  const out = e.param(2, 'float32', 'write', 128);
  for (let i = 0; i < 4; i++) {
    const row = e.add(e.idiv(thread, 4), 8 * (i >> 1));
    b.store(out, e.add(e.mul(row, 8), e.add(e.mul(e.irem(thread, 4), 2), i & 1)), e.lane(sums, i));
  }
  return b.build({ name: 'tile', group: [32, 1, 1] });
}

const product = tile((b, x, y, c) => b.here('MATRIX', 'float32', 4, [x, y, c], { tile: 'm16n8k16' }));

/** Float16 bits of whole numbers from 0 to 7. */
const halves = [0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700];

describe('MATRIX', () => {
  it('is a product of matrices added to what was there', () => {
    const [a, b] = [(i: number): number => (i * 5) % 8, (i: number): number => (i * 3 + 1) % 8];
    const out = new Float32Array(128);
    const [x, y] = [
      Uint16Array.from({ length: 256 }, (_, i) => halves[a(i)]!),
      Uint16Array.from({ length: 128 }, (_, i) => halves[b(i)]!),
    ];
    interpret(product, [x, y, out]);
    const expected = Array.from({ length: 128 }, (_, at) => {
      let sum = 1;
      for (let k = 0; k < 16; k++) sum += a(Math.floor(at / 8) * 16 + k) * b(k * 8 + (at % 8));
      return sum;
    });
    expect([...out]).toEqual(expected);
  });

  it('is printed, packed and unpacked', () => {
    const text = printProgram(product);
    expect(text).toContain('= FRAGMENT b m16n8k16 1 16 ');
    expect(text).toContain('= MATRIX m16n8k16 ');
    const packed = packProgram(product);
    expect(printProgram(unpackProgram(packed))).toBe(text);
    const other = tile((b, x, y, c) => b.here('MATRIX', 'float32', 4, [x, y, c], { tile: 'm16n8k8' }));
    expect(sameCode(packed, packProgram(product))).toBe(true);
    expect(sameCode(packed, packProgram(other))).toBe(false);
  });

  it('takes whole sets of threads, fragments of its tile, and stands where all threads get to', () => {
    verifyProgram(product);
    expect(() => verifyProgram({ ...product, group: [48, 1, 1] })).toThrow('needs whole sets of 32 threads');
    const wrong =
      (write: Parameters<typeof tile>[0]): (() => void) =>
      () =>
        verifyProgram(tile(write));
    expect(wrong((b, x, y, c) => b.here('MATRIX', 'float32', 4, [x, y, c], { tile: 'm16n8k8' }))).toThrow(
      'takes and gives 4,2,4,4 lanes',
    );
    expect(wrong((b, x, _, c) => b.here('MATRIX', 'float32', 4, [x, x, c], { tile: 'm16n8k16' }))).toThrow('lanes');
    const inside = wrong((b, x, y, c) => {
      const sums = b.reg('sums', 'float32', 4);
      b.store(sums, 0, c);
      b.ifThen(b.e.lt(b.e.special('local', 0, 32), 16), () =>
        b.store(sums, 0, b.here('MATRIX', 'float32', 4, [x, y, c], { tile: 'm16n8k16' })),
      );
      return b.load(sums, 0);
    });
    expect(inside).toThrow('not all threads may enter');
  });

  it('rounds float32 to TF32, ties away from zero', () => {
    expect([1 + 2 ** -10, 1 + 2 ** -11, 1 + 2 ** -12, -1 - 2 ** -11].map(toTf32)).toEqual([
      1 + 2 ** -10,
      1 + 2 ** -10,
      1,
      -1 - 2 ** -10,
    ]);
    expect(toTf32(Number.POSITIVE_INFINITY)).toBe(Number.POSITIVE_INFINITY);
  });
});

describe('COPY', () => {
  /** 64 threads copy so many elements of four bytes each and read what their neighbour copied. */
  const copies = (commit: boolean, pending: number | null, barrier: boolean, offset = 0, lanes = 4): Program => {
    const b = new ProgramBuilder();
    const { e } = b;
    const thread = e.special('local', 0, 64);
    const [x, y] = [e.param(0, 'float32', 'read', 260), e.param(1, 'float32', 'write', 64)];
    const cells = b.shared('cells', 'float32', 256);
    const at = e.mul(thread, 4);
    b.here('COPY', 'void', 1, [cells, at, x, e.add(at, offset), e.lt(thread, 60)], { lanes });
    if (commit) b.here('COMMIT', 'void', 1, [], null);
    if (pending !== null) b.here('WAIT', 'void', 1, [], { pending });
    if (barrier) b.barrier();
    b.store(y, thread, b.load(cells, e.mul(e.irem(e.add(thread, 1), 64), 4)));
    return b.build({ name: 'copies', group: [64, 1, 1] });
  };
  const run = (program: Program): number[] => {
    const y = new Float32Array(64);
    interpret(program, [Float32Array.from({ length: 260 }, (_, i) => i), y]);
    return [...y];
  };

  it.each([1, 2, 4])('brings %i elements of four bytes, or zeros where the gate is closed', (lanes) => {
    const expected = Array.from({ length: 64 }, (_, t) => ((t + 1) % 64 < 60 ? 4 * ((t + 1) % 64) : 0));
    expect(run(copies(true, 0, true, 0, lanes))).toEqual(expected);
    expect(run(unpackProgram(packProgram(copies(true, 0, true, 0, lanes))))).toEqual(expected);
  });

  it('is refused for any other number of bytes', () => {
    for (const lanes of [3, 8])
      expect(() => verifyProgram(copies(true, 0, true, 0, lanes))).toThrow('4, 8 or 16 bytes');
  });

  it('is there once it was waited for, and for other threads behind a barrier', () => {
    expect(() => run(copies(true, 1, true))).toThrow('is read before it is written');
    expect(() => run(copies(false, 0, true))).toThrow('is read before it is written');
    expect(() => run(copies(true, null, true))).toThrow('is read before it is written');
    expect(() => run(copies(true, 0, false))).toThrow(/race|before it is written/);
  });

  it('goes by what it copies', () => {
    expect(() => run(copies(true, 0, true, 2))).toThrow('COPY at element 2: it goes by 4');
  });
});
