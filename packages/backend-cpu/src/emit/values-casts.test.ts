/** Casts between all dtypes and lanes of vectors, on special values, against plain TypeScript. */
import { ProgramBuilder } from '@polygrad/core/kernel';
import { describe, it } from 'vitest';
import { runProgram } from '../testing/harness.ts';
import { arrays, as, isFloat, run, same, special, type Tested } from './fixtures/values.ts';
import type { DType } from './target.ts';

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
