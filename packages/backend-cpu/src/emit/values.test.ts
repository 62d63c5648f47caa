/** Every operation on every dtype, scalar and vectors of several widths, on special values, against plain TypeScript. */
import {
  type BinaryOp,
  type KNode,
  type KOp,
  ProgramBuilder,
  type TernaryOp,
  type UnaryOp,
} from '@polygrad/core/kernel';
import { describe, expect, it } from 'vitest';
import { detectFeatures } from '../features.ts';
import { plainTarget, runProgram } from '../testing/harness.ts';
import type { DType, EmitTarget } from './target.ts';

const features = detectFeatures();
const fused: EmitTarget = { ...plainTarget, fusedMadd: features.fusedMadd, laneSelect: features.laneSelect };

type Data = Float32Array | Float64Array | Int32Array | Uint32Array | Uint8Array;
const arrays = {
  float32: Float32Array,
  float64: Float64Array,
  int32: Int32Array,
  uint32: Uint32Array,
  bool: Uint8Array,
} as const;
type Tested = keyof typeof arrays;

const floats = [
  0,
  -0,
  1,
  -1,
  0.5,
  -0.5,
  1.5,
  2.5,
  -2.5,
  3.7,
  -3.7,
  1e10,
  -1e10,
  1e-40,
  3e38,
  Infinity,
  -Infinity,
  NaN,
  2147483648,
  4294967296,
  123456.789,
];
const special: Record<Tested, number[]> = {
  float32: floats,
  float64: [...floats, 1e300, 5e-324],
  int32: [0, 1, -1, 2, -2, 7, -7, 31, 32, 33, 100000, 2147483647, -2147483648, -2147483647, 65536],
  uint32: [0, 1, 2, 3, 7, 31, 32, 33, 100000, 2147483647, 2147483648, 4294967295, 65536],
  bool: [0, 1],
};

const isFloat = (d: Tested): boolean => d === 'float32' || d === 'float64';
const lanesOf = (d: Tested): number[] => (d === 'float64' ? [1, 2, 4, 8] : [1, 2, 4, 8, 16]);
/** Rounds or wraps to the dtype. */
const as = (d: Tested, x: number): number =>
  d === 'float32' ? Math.fround(x) : d === 'int32' ? x | 0 : d === 'uint32' ? x >>> 0 : x;

/** Runs `make` on whole arrays, `lanes` elements at a time, and returns the result array. */
function run(
  out: Tested,
  lanes: number,
  inputs: [Tested, number[]][],
  make: (b: ProgramBuilder, xs: KNode[]) => KNode,
  target: EmitTarget = plainTarget,
): number[] {
  const count = Math.ceil(inputs[0]![1].length / lanes) * lanes;
  const b = new ProgramBuilder();
  const { e } = b;
  const params = inputs.map(([d], i) => e.param(i, d, 'read', count));
  const result = e.param(inputs.length, out, 'write', count);
  b.loop(count / lanes, (i) => {
    const at = e.mul(i, e.i32(lanes));
    b.store(
      result,
      at,
      make(
        b,
        params.map((p) => b.load(p, at, lanes)),
      ),
    );
  });
  const data: Data[] = inputs.map(
    ([d, values]) => new arrays[d](Array.from({ length: count }, (_, i) => values[i % values.length]!)),
  );
  const output = new arrays[out](count);
  runProgram(b.build({ name: 'test', params: [...params, result] }), [...data, output], [], target);
  return [...output].slice(0, inputs[0]![1].length);
}

/** All pairs of two lists. */
function pairs(d: Tested): [number[], number[]] {
  const all = special[d].flatMap((x) => special[d].map((y) => [x, y] as const));
  return [all.map((p) => p[0]), all.map((p) => p[1])];
}

/** Equal numbers, NaN to NaN, and zeros with their signs. */
function same(got: number[], want: number[], what: string): void {
  expect(got.length, what).toBe(want.length);
  for (let i = 0; i < got.length; i++)
    if (!Object.is(got[i], want[i])) expect.fail(`${what}: element ${i} is ${got[i]}, expected ${want[i]}`);
}

const roundEven = (x: number): number => {
  if (!Number.isFinite(x) || Math.abs(x) >= 2 ** 52) return x;
  const r = Math.round(x);
  const even = Math.abs(x % 1) === 0.5 ? 2 * Math.round(x / 2) : r;
  return even === 0 ? (Object.is(x, -0) || x < 0 ? -0 : 0) : even;
};
const unary: Partial<Record<KOp, { on: Tested[]; f: (x: number) => number; out?: Tested }>> = {
  NEG: { on: ['float32', 'float64', 'int32', 'uint32'], f: (x) => -x },
  ABS: { on: ['float32', 'float64', 'int32', 'uint32'], f: Math.abs },
  SQRT: { on: ['float32', 'float64'], f: Math.sqrt },
  FLOOR: { on: ['float32', 'float64'], f: Math.floor },
  CEIL: { on: ['float32', 'float64'], f: Math.ceil },
  TRUNC: { on: ['float32', 'float64'], f: Math.trunc },
  ROUND: { on: ['float32', 'float64'], f: roundEven },
  RECIP: { on: ['float32', 'float64'], f: (x) => 1 / x },
  ISNAN: { on: ['float32', 'float64'], f: (x) => Number(Number.isNaN(x)), out: 'bool' },
};
const int = (d: Tested): boolean => d === 'int32' || d === 'uint32';
const binary: Partial<Record<KOp, { on: Tested[]; f: (x: number, y: number, d: Tested) => number; out?: Tested }>> = {
  ADD: { on: ['float32', 'float64', 'int32', 'uint32'], f: (x, y) => x + y },
  SUB: { on: ['float32', 'float64', 'int32', 'uint32'], f: (x, y) => x - y },
  MUL: { on: ['float32', 'float64', 'int32', 'uint32'], f: (x, y, d) => (int(d) ? Math.imul(x, y) : x * y) },
  DIV: { on: ['float32', 'float64'], f: (x, y) => x / y },
  MAX: { on: ['float32', 'float64', 'int32', 'uint32', 'bool'], f: (x, y) => Math.max(x, y) },
  MIN: { on: ['float32', 'float64', 'int32', 'uint32', 'bool'], f: (x, y) => Math.min(x, y) },
  IDIV: { on: ['int32', 'uint32'], f: (x, y) => (y === 0 ? 0 : Math.trunc(x / y)) },
  IREM: { on: ['int32', 'uint32'], f: (x, y) => (y === 0 ? 0 : x % y) },
  AND: { on: ['int32', 'uint32', 'bool'], f: (x, y) => x & y },
  OR: { on: ['int32', 'uint32', 'bool'], f: (x, y) => x | y },
  XOR: { on: ['int32', 'uint32', 'bool'], f: (x, y) => x ^ y },
  SHL: { on: ['int32', 'uint32'], f: (x, y) => x << (y & 31) },
  SHR: { on: ['int32', 'uint32'], f: (x, y, d) => (d === 'int32' ? x >> (y & 31) : x >>> (y & 31)) },
  LT: { on: ['float32', 'float64', 'int32', 'uint32', 'bool'], f: (x, y) => Number(x < y), out: 'bool' },
  LE: { on: ['float32', 'float64', 'int32', 'uint32', 'bool'], f: (x, y) => Number(x <= y), out: 'bool' },
  EQ: { on: ['float32', 'float64', 'int32', 'uint32', 'bool'], f: (x, y) => Number(x === y), out: 'bool' },
  MULHI: { on: ['uint32'], f: (x, y) => Number((BigInt(x) * BigInt(y)) >> 32n) },
};

/** The later one only where it is beyond the other: NaN and zeros as comparisons see them. */
const larger = (now: number, later: number): number => {
  if (now < later) return later;
  return now;
};
const smaller = (now: number, later: number): number => {
  if (later < now) return later;
  return now;
};
const flipped =
  (f: (x: number, y: number) => number) =>
  (x: number, y: number): number =>
    f(y, x);

describe('unary operations', () => {
  for (const [op, { on, f, out }] of Object.entries(unary)) {
    it(op, () => {
      for (const d of on) {
        const xs = special[d].map((x) => as(d, x));
        const to = out ?? d;
        for (const lanes of lanesOf(d)) {
          const got = run(to, lanes, [[d, xs]], (b, [x]) => b.e.unary(op as UnaryOp, x!));
          same(
            got,
            xs.map((x) => (int(to) ? as(to, f(x)) : as(to, f(x)))),
            `${op} ${d} x ${lanes}`,
          );
        }
      }
    });
  }

  it('NOT', () => {
    for (const lanes of [1, 4, 8]) {
      same(
        run('int32', lanes, [['int32', special.int32]], (b, [x]) => b.e.not(x!)),
        special.int32.map((x) => ~x),
        'NOT int32',
      );
      same(
        run('bool', lanes, [['bool', [0, 1]]], (b, [x]) => b.e.not(x!)),
        [1, 0],
        'NOT bool',
      );
      for (const d of ['float32', 'float64', 'int32'] as const) {
        const [x, y] = pairs(d).map((v) => v.map((q) => as(d, q))) as [number[], number[]];
        same(
          run(
            'bool',
            lanes,
            [
              [d, x],
              [d, y],
            ],
            (b, [p, q]) => b.e.ne(p!, q!),
          ),
          x.map((v, i) => Number(v !== y[i])),
          `NE ${d} x ${lanes}`,
        );
      }
    }
  });
});

describe('binary operations', () => {
  for (const [op, { on, f, out }] of Object.entries(binary)) {
    it(op, () => {
      for (const d of on) {
        const [x, y] = pairs(d).map((v) => v.map((q) => as(d, q))) as [number[], number[]];
        const to = out ?? d;
        for (const lanes of lanesOf(d)) {
          const got = run(
            to,
            lanes,
            [
              [d, x],
              [d, y],
            ],
            (b, [p, q]) => b.e.binary(op as BinaryOp, p!, q!),
          );
          same(
            got,
            x.map((v, i) => as(to, f(v, y[i]!, d))),
            `${op} ${d} x ${lanes}`,
          );
        }
      }
    });
  }

  it('MAX, MIN, IDIV, IREM and shifts against constants', () => {
    for (const d of ['float32', 'float64', 'int32', 'uint32'] as const) {
      const xs = special[d].map((x) => as(d, x));
      const ops = isFloat(d) ? ['MAX', 'MIN'] : ['MAX', 'MIN', 'IDIV', 'IREM', 'SHL', 'SHR'];
      for (const op of ops) {
        for (const c of isFloat(d)
          ? [0, -0, 1.5, -1, Infinity, -Infinity]
          : d === 'int32'
            ? [0, 1, -1, 3, 8, -8, -2147483648]
            : [0, 1, 3, 8, 4294967295]) {
          for (const lanes of lanesOf(d)) {
            for (const swap of [false, true]) {
              if (swap && op !== 'MAX' && op !== 'MIN') continue;
              const got = run(d, lanes, [[d, xs]], (b, [x]) => {
                const k = b.e.constant(d, c, lanes);
                return b.e.intern(op as KOp, d, lanes, swap ? [k, x!] : [x!, k]);
              });
              same(
                got,
                xs.map((x) => as(d, binary[op as KOp]!.f(x, c, d))),
                `${op} ${d} x ${lanes} with ${c}`,
              );
            }
          }
        }
      }
    }
  });
});

describe('division of numbers known not to be negative', () => {
  it('by constants', () => {
    const xs = [0, 1, 2, 3, 6, 7, 8, 9, 10, 640, 641, 999_999_999, 1_000_000_007, 2147483646, 2147483647, 1431655765];
    for (const c of [1, 2, 3, 5, 7, 8, 10, 14, 28, 641, 65536, 1_000_003, 715827883, 2147483647]) {
      for (const lanes of [1, 4, 8]) {
        for (const op of ['IDIV', 'IREM'] as const) {
          const got = run('int32', lanes, [['int32', xs]], (b, [x]) =>
            b.e.binary(op, b.e.and(x!, b.e.i32(0x7fffffff)), b.e.i32(c)),
          );
          same(
            got,
            xs.map((x) => binary[op]!.f(x, c, 'int32')),
            `${op} x ${lanes} by ${c}`,
          );
        }
      }
    }
  });
});

describe('ternary operations', () => {
  it('WHERE that picks the larger or the smaller number', () => {
    for (const d of ['float32', 'float64'] as const) {
      const [x, y] = pairs(d).map((v) => v.map((q) => as(d, q))) as [number[], number[]];
      for (const lanes of lanesOf(d)) {
        const shapes = [
          { pick: (p: KNode, q: KNode, b: ProgramBuilder) => b.e.where(b.e.lt(p, q), q, p), f: larger },
          { pick: (p: KNode, q: KNode, b: ProgramBuilder) => b.e.where(b.e.lt(q, p), q, p), f: smaller },
          { pick: (p: KNode, q: KNode, b: ProgramBuilder) => b.e.where(b.e.lt(q, p), p, q), f: flipped(larger) },
          { pick: (p: KNode, q: KNode, b: ProgramBuilder) => b.e.where(b.e.lt(p, q), p, q), f: flipped(smaller) },
        ];
        shapes.forEach(({ pick, f }, i) => {
          const got = run(
            d,
            lanes,
            [
              [d, x],
              [d, y],
            ],
            (b, [p, q]) => pick(p!, q!, b),
          );
          same(
            got,
            x.map((v, k) => f(v, y[k]!)),
            `picking ${i} of ${d} x ${lanes}`,
          );
        });
      }
    }
  });

  it('WHERE', () => {
    for (const d of Object.keys(arrays) as Tested[]) {
      const [x, y] = pairs(d).map((v) => v.map((q) => as(d, q))) as [number[], number[]];
      const cond = x.map((_, i) => (i % 3 === 0 ? 1 : 0));
      for (const lanes of lanesOf(d)) {
        const got = run(
          d,
          lanes,
          [
            ['bool', cond],
            [d, x],
            [d, y],
          ],
          (b, [c, p, q]) => b.e.where(c!, p!, q!),
        );
        same(
          got,
          x.map((v, i) => (cond[i] ? v : y[i]!)),
          `WHERE ${d} x ${lanes}`,
        );
        for (const zeroFirst of [true, false]) {
          const cleared = run(
            d,
            lanes,
            [
              ['bool', cond],
              [d, x],
            ],
            (b, [c, p]) => {
              const zero = b.e.constant(d, 0, lanes);
              return zeroFirst ? b.e.where(c!, zero, p!) : b.e.where(c!, p!, zero);
            },
          );
          same(
            cleared,
            x.map((v, i) => ((cond[i] === 1) === zeroFirst ? 0 : v)),
            `WHERE ${d} x ${lanes} with zero ${zeroFirst ? 'first' : 'second'}`,
          );
        }
        // Condition computed on the other width of lanes.
        const other = d === 'float64' ? 'float32' : 'float64';
        const keys = cond.map((c) => (c ? 5 : -5));
        const mixed = run(
          d,
          lanes,
          [
            [other, keys],
            [d, x],
            [d, y],
          ],
          (b, [c, p, q]) => b.e.where(b.e.lt(b.e.constant(other, 0, lanes), c!), p!, q!),
        );
        same(
          mixed,
          x.map((v, i) => (cond[i] ? v : y[i]!)),
          `WHERE ${d} x ${lanes}, condition on ${other}`,
        );
      }
    }
  });

  it.runIf(features.fusedMadd)('FMA and MULADD round once, scalars like vectors', () => {
    for (const d of ['float32', 'float64'] as const) {
      // Few enough bits that the sum is exact in float64 (float32), or a case where two roundings give zero (float64).
      const bits = d === 'float32' ? 24 : 53;
      const xs =
        d === 'float32'
          ? Array.from({ length: 64 }, (_, i) => Math.fround(1 + ((i * 2654435761) % 2 ** 23) / 2 ** 23))
          : [1 + 2 ** -40, 1 - 2 ** -45, 3 + 2 ** -30];
      const ys = [...xs].reverse();
      const zs = xs.map((x, i) => as(d, -x * ys[i]!));
      for (const op of ['FMA', 'MULADD'] as const) {
        const all = lanesOf(d).map((lanes) =>
          run(
            d,
            lanes,
            [
              [d, xs],
              [d, ys],
              [d, zs],
            ],
            (b, [x, y, z]) => b.e.intern(op, d, lanes, [x!, y!, z!]),
            fused,
          ),
        );
        for (const got of all) same(got, all[0]!, `${op} ${d}`);
        if (d === 'float32')
          same(
            all[0]!,
            xs.map((x, i) => Math.fround(x * ys[i]! + zs[i]!)),
            `${op} ${bits}`,
          );
        else expect(all[0]!.some((x) => x !== 0)).toBe(true);
      }
    }
  });

  it.runIf(features.laneSelect)('WHERE with relaxed lane selection', () => {
    for (const d of Object.keys(arrays) as Tested[]) {
      const [x, y] = pairs(d).map((v) => v.map((q) => as(d, q))) as [number[], number[]];
      const cond = x.map((_, i) => (i % 3 === 0 ? 1 : 0));
      for (const lanes of lanesOf(d)) {
        const got = run(
          d,
          lanes,
          [
            ['bool', cond],
            [d, x],
            [d, y],
          ],
          (b, [c, p, q]) => b.e.where(c!, p!, q!),
          fused,
        );
        same(
          got,
          x.map((v, i) => (cond[i] ? v : y[i]!)),
          `WHERE ${d} x ${lanes}`,
        );
      }
    }
  });

  it('MULADD without fused hardware, and on integers', () => {
    for (const d of ['float32', 'float64', 'int32'] as const) {
      const [x, y] = pairs(d).map((v) => v.map((q) => as(d, q))) as [number[], number[]];
      for (const lanes of lanesOf(d)) {
        const got = run(
          d,
          lanes,
          [
            [d, x],
            [d, y],
            [d, y],
          ],
          (b, [p, q, r]) => b.e.intern('MULADD' as TernaryOp, d, lanes, [p!, q!, r!]),
        );
        const product = (a: number, c: number): number => (d === 'int32' ? Math.imul(a, c) : as(d, a * c));
        same(
          got,
          x.map((v, i) => as(d, product(v, y[i]!) + y[i]!)),
          `MULADD ${d} x ${lanes}`,
        );
      }
    }
  });
});

describe('casts', () => {
  const clamp = (x: number, lo: number, hi: number): number =>
    Number.isNaN(x) ? 0 : Math.min(hi, Math.max(lo, Math.trunc(x))) + 0;
  const convert = (from: Tested, to: Tested, x: number): number => {
    if (to === 'bool') return Number(x !== 0);
    if (isFloat(to)) return as(to, x);
    if (!isFloat(from)) return as(to, x);
    return to === 'int32' ? clamp(x, -2147483648, 2147483647) : clamp(x, 0, 4294967295);
  };
  it('between all dtypes', () => {
    for (const from of Object.keys(arrays) as Tested[]) {
      for (const to of Object.keys(arrays) as Tested[]) {
        const xs = special[from].map((x) => as(from, x));
        for (const lanes of [1, 2, 4, 8]) {
          const got = run(to, lanes, [[from, xs]], (b, [x]) => b.e.intern('CAST', to as DType, lanes, [x!]));
          same(
            got,
            xs.map((x) => convert(from, to, x)),
            `CAST ${from} to ${to} x ${lanes}`,
          );
        }
      }
    }
  });

  it('reinterprets bits', () => {
    for (const lanes of [1, 4, 8]) {
      const bits = run('int32', lanes, [['float32', special.float32]], (b, [x]) => b.e.bitcast(x!, 'int32'));
      same(bits, [...new Int32Array(Float32Array.from(special.float32).buffer)], 'BITCAST to int32');
      same(
        run('float32', lanes, [['uint32', bits.map((x) => x >>> 0)]], (b, [x]) => b.e.bitcast(x!, 'float32')),
        special.float32.map(Math.fround),
        'BITCAST back',
      );
    }
  });
});

describe('vectors', () => {
  it('builds, splits and counts lanes', () => {
    for (const d of Object.keys(arrays) as Tested[]) {
      for (const lanes of [2, 4, 8]) {
        const xs = special[d]
          .slice(0, 2)
          .concat(special[d])
          .map((x) => as(d, x));
        const reversed = run(d, lanes, [[d, xs]], (b, [x]) =>
          b.e.vec(Array.from({ length: lanes }, (_, i) => b.e.lane(x!, lanes - 1 - i))),
        );
        const want = xs.map((_, i) => xs[(Math.floor(i / lanes) * lanes + (lanes - 1 - (i % lanes))) % xs.length]!);
        same(reversed, want, `reverse ${d} x ${lanes}`);
        const first = run(d, lanes, [[d, xs]], (b, [x]) => b.e.splat(b.e.lane(x!, 1), lanes));
        same(
          first,
          xs.map((_, i) => xs[(Math.floor(i / lanes) * lanes + 1) % xs.length]!),
          `splat ${d} x ${lanes}`,
        );
      }
    }
    for (const lanes of [2, 4, 8]) {
      const got = run('int32', lanes, [['int32', special.int32]], (b, [x]) => b.e.add(x!, b.e.iota(lanes)));
      same(
        got,
        special.int32.map((x, i) => (x + (i % lanes)) | 0),
        `IOTA x ${lanes}`,
      );
    }
  });

  it('splats scalar loads of every dtype', () => {
    for (const d of Object.keys(arrays) as Tested[]) {
      const b = new ProgramBuilder();
      const { e } = b;
      const n = special[d].length;
      const x = e.param(0, d, 'read', n);
      const out = e.param(1, d, 'write', 4 * n);
      b.loop(n, (i) => b.store(out, e.mul(i, e.i32(4)), e.splat(b.load(x, i), 4)));
      const data = arrays[d].from(special[d]);
      const result = new arrays[d](4 * n);
      runProgram(b.build({ name: 'splat' }), [data, result]);
      same(
        [...result],
        [...result].map((_, i) => data[i >> 2]!),
        `splat ${d}`,
      );
    }
  });
});
