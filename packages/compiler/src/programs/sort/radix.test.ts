/** Groups of threads sort small numbers: lengths around tiles, one tile of a group and several, on the interpreter, which finds races. */
import { afterAll, describe, expect, it } from 'vitest';
import { createReferenceEngine } from '@polygrad/testing';
import { threadCaps, vectorCaps } from '../../contraction/fixtures/cases.ts';
import { runOn } from '../fixtures/programs.ts';
import { ProgramSet, rowMajor } from '../program-set.ts';
import { lowerScatter } from '../scatter/update.ts';
import { lineSort } from './keys.ts';
import { partsOfGroups, radixInParts } from './radix.ts';
import { lowerSort, manyByDigits } from './sort.ts';

const engine = createReferenceEngine({ simt: true });
afterAll(() => engine.dispose());

/** Whole numbers below `limit`, the same on every run. */
function below(limit: number, length: number): Int32Array {
  let state = 7;
  return Int32Array.from({ length }, () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0;
    return (state >>> 1) % limit;
  });
}

describe('sorting by digits', () => {
  it.each([
    [1, 16, 1, 9],
    [255, 16, 4, 9],
    [256, 16, 4, 9],
    [257, 8, 5, 9],
    [1000, 16, 8, 1],
    [1000, 16, 9, 2],
    [5000, 32, 13, 3],
    [2047, 256, 3, 9],
    [2049, 256, 0, 9],
    [6001, 256, 10, 2],
    [300, 32, 31, 9],
  ])('%i numbers, groups of up to %i threads, %i bits, up to %i groups', (n, maxGroup, bits, groups) => {
    const limit = 2 ** bits;
    const numbers = below(limit, n);
    const keys = new Int32Array(n).fill(-1);
    const order = new Int32Array(n).fill(-1);
    runOn(
      engine,
      (caps) => {
        const set = new ProgramSet('digits', caps);
        const to = radixInParts(
          set,
          {
            lines: 1,
            n,
            count: n,
            from: 0,
            words: 1,
            bits,
            adjacent: true,
            open: (w) => {
              const memory = w.param(0, 'int32', 'read', n);
              return (_line, i) => w.e.bitcast(w.b.load(memory, i), 'uint32');
            },
            result: null,
          },
          partsOfGroups(n, maxGroup, groups),
        )!;
        set.add('_result', n, (w) => {
          const [key, at] = [w.temp(to.keys[0]!, 'read'), w.temp(to.order, 'read')];
          w.b.store(w.param(1, 'int32', 'write', n), w.group, w.e.bitcast(w.b.load(key, w.group), 'int32'));
          w.b.store(w.param(2, 'int32', 'write', n), w.group, w.b.load(at, w.group));
        });
        return set.result();
      },
      [numbers, keys, order],
    );
    const expected = Array.from(numbers.keys()).sort((i, j) => numbers[i]! - numbers[j]! || i - j);
    expect(Array.from(order)).toEqual(expected);
    expect(Array.from(keys)).toEqual(expected.map((i) => numbers[i]));
  });

  it('holds positions in the memory of the result between passes, so that a sort takes three temporaries of its length', () => {
    const n = manyByDigits;
    const sorted = (dtype: 'float32' | 'float64', count: number): number => {
      const spec = { axis: 0, descending: false, from: 0, out: rowMajor('int32', [count]), x: rowMajor(dtype, [n]) };
      const { temps } = lowerSort(spec, vectorCaps);
      return temps.filter((bytes) => bytes >= 4 * n).length;
    };
    expect([sorted('float32', n), sorted('float64', n), sorted('float32', n - 1)]).toEqual([3, 3, 4]);
  });

  it.each([
    [203, 1],
    [5001, 2],
    [20_003, 1],
  ])('%i floats, %i lines: keys are made by vectors, once', (n, lines) => {
    const spec = {
      axis: 1,
      descending: false,
      from: 0,
      out: rowMajor('int32', [lines, n]),
      x: rowMajor('float32', [lines, n]),
    };
    const special = [Number.NaN, -0, 0, Infinity, -Infinity];
    const x = Float32Array.from(below(4 * n, lines * n), (k, i) => (i % 11 === 0 ? special[i % 5]! : (k - 2 * n) / 8));
    const order = new Int32Array(lines * n).fill(-1);
    const single = createReferenceEngine();
    const made: number[] = [];
    runOn(
      single,
      (caps) => {
        const lowered = lowerSort(spec, { ...caps, vectorBytes: 16 });
        for (const { program } of lowered.dispatches)
          for (const k of program.body) if (k.op === 'LOAD' && k.dtype === 'float32') made.push(k.lanes);
        return lowered;
      },
      [order, x],
    );
    single.dispose();
    // Sorts in parts compare them with the first one.
    expect(made).toEqual(n > 2 ** 13 ? [1, 4, 1] : [4, 1]);
    for (let line = 0; line < lines; line++) {
      const row = x.subarray(line * n, (line + 1) * n);
      const rank = (v: number): number => (Number.isNaN(v) ? Infinity : v);
      const later = (i: number, j: number): number => {
        const [a, b] = [row[i]!, row[j]!];
        if (Number.isNaN(a) !== Number.isNaN(b)) return Number.isNaN(a) ? 1 : -1;
        return rank(a) === rank(b) ? i - j : rank(a) - rank(b);
      };
      expect(Array.from(order.subarray(line * n, (line + 1) * n))).toEqual(Array.from(row.keys()).sort(later));
    }
  });

  // Which bytes of a key differ, of 32 bits and of both words of 64; elements of the second line differ in all, or in none.
  const bytes = [...Array.from({ length: 16 }, (_, i) => i), 0x10, 0x80, 0x21, 0x46, 0x90, 0xff];
  it.each(bytes)('leaves elements in place where a digit does not differ: bytes %i', (chosen) => {
    const [n, lines] = [203, 2];
    const parts = { digitBits: 8, threads: 1, each: 51, turns: 1, many: 4 };
    const dtype = chosen > 15 ? 'uint64' : 'uint32';
    const mask = Array.from({ length: 8 }, (_, i) => ((chosen >> i) & 1 ? 0xffn << BigInt(8 * i) : 0n)).reduce(
      (a, b) => a | b,
    );
    const random = below(2 ** 31 - 1, 2 * n * lines);
    const keyAt = (i: number): bigint => {
      const key = (BigInt(random[2 * i]!) * 2n ** 40n + BigInt(random[2 * i + 1]!) * 77n) % 2n ** 64n;
      return i < n ? (key & mask) | (0x5a5a_5a5a_5a5a_5a5an & ~mask) : chosen % 2 === 0 ? key : 9n;
    };
    const keys = Array.from({ length: n * lines }, (_, i) => BigInt.asUintN(dtype === 'uint64' ? 64 : 32, keyAt(i)));
    const x = dtype === 'uint64' ? BigUint64Array.from(keys) : Uint32Array.from(keys, Number);
    const single = createReferenceEngine();
    for (const [lanes, keeps] of [
      [4, true],
      [1, false],
    ] as const) {
      const order = new Int32Array(lines * n).fill(-1);
      const spec = {
        axis: 1,
        descending: false,
        from: 0,
        out: rowMajor('int32', [lines, n]),
        x: rowMajor(dtype, [lines, n]),
      };
      const width = dtype === 'uint64' ? 1 : lanes;
      runOn(
        single,
        (caps) => {
          const set = new ProgramSet('digits', { ...caps, vectorBytes: 16 });
          radixInParts(set, lineSort(spec), parts, { lanes: width, keeps: keeps && width > 1 });
          return set.result();
        },
        [order, x],
      );
      for (let line = 0; line < lines; line++) {
        const row = keys.slice(line * n, (line + 1) * n);
        const expected = [...row.keys()].sort((i, j) => (row[i]! < row[j]! ? -1 : row[i]! > row[j]! ? 1 : i - j));
        expect(Array.from(order.subarray(line * n, (line + 1) * n))).toEqual(expected);
      }
    }
    single.dispose();
  });

  it('is how many updates are sorted, where groups have memory of their own', () => {
    const lower = (many: number, change: object): string[] =>
      lowerScatter(
        {
          op: 'add',
          axis: 0,
          out: rowMajor('float32', [300]),
          base: { constant: 0 },
          index: { slot: 1, view: rowMajor('int32', [many]) },
          updates: { constant: 1 },
        },
        { ...threadCaps, ...change },
      ).dispatches.map(({ program }) => program.name.replace(/^.*_/, ''));
    // 300 rows are three digits.
    const passes = [0, 1, 2].flatMap((p) => [`count${p}`, `places${p}`, `move${p}`]);
    expect(lower(manyByDigits, {}).slice(0, -2)).toEqual(['base', ...passes]);
    for (const names of [lower(manyByDigits - 1, {}), lower(manyByDigits, { sharedIsMemory: true })])
      expect(names.some((name) => /count|move/.test(name))).toBe(false);
  });

  it.each(['add', 'set', 'max'] as const)('scatters by %s, the updates of an element in their order', (op) => {
    const [many, rows] = [manyByDigits + 77, 37];
    const index = below(rows, many);
    const updates = Float32Array.from(index, (_, i) => ((i * 7) % 97) - 48);
    const expected = new Float32Array(rows).fill(2);
    index.forEach((row, i) => {
      const [there, value] = [expected[row]!, updates[i]!];
      expected[row] = op === 'add' ? there + value : op === 'set' ? value : Math.max(there, value);
    });
    const result = new Float32Array(rows).fill(7);
    const spec = {
      op,
      axis: 0,
      out: rowMajor('float32', [rows]),
      base: { constant: 2 },
      index: { slot: 1, view: rowMajor('int32', [many]) },
      updates: { slot: 2, view: rowMajor('float32', [many]) },
    } as const;
    runOn(engine, (caps) => lowerScatter(spec, caps), [result, index, updates]);
    expect(result).toEqual(expected);
  });
});
