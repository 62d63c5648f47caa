/**
 * What threads of a group do together, on the interpreter, which finds races: groups of one thread and of many, one group and several, odd
 * lengths, on engines with subgroups and without.
 */
import { createReferenceEngine } from '@polygrad/testing';
import { afterAll, describe, expect, it } from 'vitest';
import type { KNode } from '../ir/ir.ts';
import { numbers, runOn } from './fixtures/programs.ts';
import {
  bisect,
  clearCounters,
  type Combining,
  counters,
  counting,
  countOf,
  eachDigit,
  groupReduce,
  groupScan,
  meet,
  placeCounters,
  scanList,
  take,
} from './groups.ts';
import { ProgramSet, type ProgramWriter } from './program-set.ts';

const engines = {
  'threads by themselves': createReferenceEngine(),
  groups: createReferenceEngine({ simt: true }),
  'groups with subgroups': createReferenceEngine({ simt: true, subgroup: 4 }),
  'groups with barriers for parts': createReferenceEngine({ simt: true }),
};
afterAll(() => {
  for (const engine of Object.values(engines)) engine.dispose();
});

/** The last number that is not zero: what is before matters. */
function latest({ e }: ProgramWriter): Combining {
  return { identity: e.i32(0), both: (before, value) => e.where(e.eq(value, 0), before, value) };
}

/** Whole numbers of 0 to 50, many of them zero. */
function wholes(length: number, seed: number): Int32Array {
  return Int32Array.from(numbers(length, seed), (x) => Math.max(0, Math.floor(x)));
}

for (const [name, engine] of Object.entries(engines)) {
  const sizes = name === 'threads by themselves' ? [1] : [2, 8, 32, 256];

  describe(name, () => {
    it.each(sizes)('a scan and a reduction over %i, in a loop', (threads) => {
      const [groups, turns] = [3, 2];
      const x = wholes(groups * turns * threads, threads);
      const result = (): Int32Array => new Int32Array(x.length).fill(-1);
      const [before, whole, reduced] = [result(), result(), result()];
      const lower = (caps: typeof engine.caps) => {
        const set = new ProgramSet('scan', name.endsWith('parts') ? { ...caps, parts: 8 } : caps);
        const write = (w: ProgramWriter): void => {
          const { b, e, group, thread } = w;
          const source = w.param(0, 'int32', 'read', x.length);
          const targets = [1, 2, 3].map((slot) => w.param(slot, 'int32', 'write', x.length));
          b.loop(turns, (turn) => {
            const at = e.add(e.mul(e.add(e.mul(group, turns), turn), threads), thread);
            const found = groupScan(w, b.load(source, at), latest(w));
            const all = groupReduce(w, b.load(source, at), latest(w));
            for (const [i, value] of [found.before, found.whole, all].entries()) b.store(targets[i]!, at, value);
            meet(w);
          });
        };
        set.add('', groups, write, threads);
        return set.result();
      };
      runOn(engine, lower, [x, before, whole, reduced]);
      for (let from = 0; from < x.length; from += threads) {
        let last = 0;
        for (let i = from; i < from + threads; i++) {
          expect(before[i]).toBe(last);
          last = x[i] || last;
        }
        for (const all of [whole, reduced])
          expect(Array.from(all.subarray(from, from + threads))).toEqual(new Array(threads).fill(last));
      }
    });

    it.each(sizes)('sums of floats over %i: the same bits from a reduction as from a scan', (threads) => {
      const x = Float32Array.from(numbers(threads, 5), (v) => v / 3);
      const [scanned, reduced] = [new Float32Array(1), new Float32Array(1)];
      const lower = (caps: typeof engine.caps) => {
        const set = new ProgramSet('sums', caps);
        const write = (w: ProgramWriter): void => {
          const { b, e, thread } = w;
          const value = b.load(w.param(0, 'float32', 'read', threads), thread);
          const sums: Combining = { identity: e.f32(-0), both: (before, y) => e.add(before, y) };
          const results = [groupScan(w, value, sums).whole, groupReduce(w, value, sums)];
          for (const [i, result] of results.entries()) {
            const target = w.param(i + 1, 'float32', 'write', 1);
            b.ifThen(e.eq(thread, 0), () => b.store(target, 0, result));
          }
        };
        set.add('', 1, write, threads);
        return set.result();
      };
      runOn(engine, lower, [x, scanned, reduced]);
      expect(reduced).toEqual(scanned);
      expect(reduced[0]).toBeCloseTo(
        x.reduce((a, v) => a + v, 0),
        3,
      );
    });

    it.each(sizes.slice(0, 3).flatMap((threads) => [1, 7, 64, 101].map((length) => [threads, length] as const)))(
      'lists scanned by %i, %i numbers',
      (threads, length) => {
        const lists = 2;
        // Backwards, every other number.
        const x = wholes(lists * length * 2, length);
        const got = x.slice();
        const wholesOf = new Int32Array(lists).fill(-1);
        const lower = (caps: typeof engine.caps) => {
          const set = new ProgramSet('lists', caps);
          const write = (w: ProgramWriter): void => {
            const { b, e, group, thread } = w;
            const memory = w.param(0, 'int32', 'readwrite', x.length);
            const target = w.param(1, 'int32', 'write', lists);
            const at = (i: KNode): KNode => e.mul(e.sub(e.sub(e.mul(e.add(group, 1), length), 1), i), 2);
            const whole = scanList(w, { memory, length, at }, latest(w));
            b.ifThen(e.eq(thread, 0), () => b.store(target, group, whole));
          };
          set.add('', lists, write, threads);
          return set.result();
        };
        runOn(engine, lower, [got, wholesOf]);
        const expected = x.slice();
        for (let list = 0; list < lists; list++) {
          let last = 0;
          for (let i = 0; i < length; i++) {
            const at = ((list + 1) * length - 1 - i) * 2;
            expected[at] = last;
            last = x[at] || last;
          }
          expect(wholesOf[list]).toBe(last);
        }
        expect(got).toEqual(expected);
      },
    );

    it.each(sizes)('counts and ranks of digits by %i', (threads) => {
      const [digits, groups, each] = [7, 2, 5];
      const n = groups * threads * each;
      const x = Int32Array.from(wholes(n, 3), (v) => v % digits);
      const counts = new Int32Array(groups * digits).fill(-1);
      const [ranks, alls] = [new Int32Array(n).fill(-1), new Int32Array(groups).fill(-1)];
      const lower = (caps: typeof engine.caps) => {
        const set = new ProgramSet('digits', caps);
        const write = (w: ProgramWriter): void => {
          const { b, e, group, thread } = w;
          const source = w.param(0, 'int32', 'read', n);
          const [toCounts, toRanks] = [w.param(1, 'int32', 'write', counts.length), w.param(2, 'int32', 'write', n)];
          const toAll = w.param(3, 'int32', 'write', groups);
          // Two tables in one.
          const table = counters(w, 2 * digits);
          const at = (u: KNode): KNode => e.add(e.mul(e.add(e.mul(group, threads), thread), each), u);
          clearCounters(w, table, 2 * digits);
          b.loop(each, (u) => take(w, table, b.load(source, at(u))));
          meet(w);
          eachDigit(w, digits, (d) => b.store(toCounts, e.add(e.mul(group, digits), d), countOf(w, table, d)));
          meet(w);
          const all = placeCounters(w, table, 0, digits);
          meet(w);
          b.loop(each, (u) => {
            const second = take(w, table, e.add(b.load(source, at(u)), digits));
            const rank = take(w, table, b.load(source, at(u)));
            b.store(toRanks, at(u), e.where(e.lt(each - 1, second), -2, rank));
          });
          b.ifThen(e.eq(thread, 0), () => b.store(toAll, group, all));
        };
        set.add('', groups, write, threads);
        return set.result();
      };
      runOn(engine, lower, [x, counts, ranks, alls]);
      for (let group = 0; group < groups; group++) {
        const own = Array.from(x.subarray((group * n) / groups, ((group + 1) * n) / groups));
        const expected = Array.from({ length: digits }, (_, d) => own.filter((v) => v === d).length);
        expect(Array.from(counts.subarray(group * digits, (group + 1) * digits))).toEqual(expected);
        const order = own.map((_, i) => i).sort((i, j) => own[i]! - own[j]! || i - j);
        const rankOf = own.map((_, i) => order.indexOf(i));
        expect(Array.from(ranks.subarray((group * n) / groups, ((group + 1) * n) / groups))).toEqual(rankOf);
        expect(alls[group]).toBe(own.length);
      }
    });

    it('a search finds the first number that a condition does not hold for', () => {
      const most = 9;
      const all = Array.from({ length: most + 1 }, (_, from) =>
        Array.from({ length: most + 1 }, (_, to) => Array.from({ length: most + 1 }, (_, end) => [from, to, end])),
      ).flat(2);
      const cases = all.filter(([from, to]) => (from as number) <= (to as number));
      const [inputs, got] = [Int32Array.from(cases.flat()), new Int32Array(cases.length).fill(-1)];
      const lower = (caps: typeof engine.caps) => {
        const set = new ProgramSet('search', caps);
        set.add('', cases.length, (w) => {
          const { b, e, group } = w;
          const source = w.param(0, 'int32', 'read', inputs.length);
          const [from, to, end] = [0, 1, 2].map((i) => b.load(source, e.add(e.mul(group, 3), i)));
          const found = bisect(w, from!, to!, most, (i) => e.lt(i, end!));
          b.store(w.param(1, 'int32', 'write', got.length), group, found);
        });
        return set.result();
      };
      runOn(engine, lower, [inputs, got]);
      expect(Array.from(got)).toEqual(cases.map(([from, to, end]) => Math.max(from!, Math.min(to!, end!))));
    });

    it('sums of whole numbers begin at zero', () => {
      const got = new Int32Array(2);
      const lower = (caps: typeof engine.caps) => {
        const set = new ProgramSet('sums', caps);
        set.add('', 1, (w) => {
          const { identity, both } = counting(w);
          const target = w.param(0, 'int32', 'write', 2);
          w.b.store(target, 0, identity);
          w.b.store(target, 1, both(w.e.i32(3), w.e.i32(4)));
        });
        return set.result();
      };
      runOn(engine, lower, [got]);
      expect(Array.from(got)).toEqual([0, 7]);
    });
  });
}
