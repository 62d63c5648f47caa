/**
 * Accuracy of functions of numbers over the whole range, in units in the last place: the bounds of docs/numerics.md. References are
 * JavaScript's Math and the oracle's series in float64, for float64 of special functions values of 50 digits.
 */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import { evaluateSpecial, specialValues } from '@polygrad/testing';
import type { ConformanceCase, SkipReason } from '../case.ts';
import type { Target } from '../target.ts';
import { arrayOf } from '../host.ts';
import { seedOf } from '../oracle/random.ts';
import { type FloatType, isDenormal, samples, unitsOff } from '../oracle/units.ts';
import { type AccuracyRow, accuracyRows } from './accuracy-rows.ts';

interface Found {
  units: number;
  text: string;
}

/** The smallest normal numbers. */
const smallest: Readonly<Record<FloatType, number>> = { float32: 2 ** -126, float64: 2 ** -1022 };

/** The worst of some results. Where `flushes`, zeros in place of numbers below the normal ones are right, too. */
function worstOf(
  row: AccuracyRow,
  type: FloatType,
  columns: readonly (readonly number[])[],
  got: ArrayLike<number>,
  flushes: boolean,
): Found {
  const { exact, size, domain } = row;
  const found: Found = { units: 0, text: '' };
  const flushed = (x: number): number => (isDenormal(type, x) ? 0 * x : x);
  for (let i = 0; i < got.length; i++) {
    const x = columns.map((c) => c[i]!);
    if (domain !== undefined && !domain(...x)) continue;
    const value = got[i]!;
    const want = exact(...x);
    let units = unitsOff(type, value, want, size?.(...x) ?? want);
    if (flushes && units > 0) {
      // What is computed on the way is lost there, too.
      if (Math.abs(value - want) <= 2 * smallest[type]) units = 0;
      else units = Math.min(units, unitsOff(type, flushed(value), exact(...x.map(flushed))));
    }
    if (units > found.units)
      Object.assign(found, {
        units,
        text: `${units.toFixed(2)} units at ${x.join(', ')}: ${value} where ${want} is exact`,
      });
  }
  return found;
}

async function check(
  row: AccuracyRow,
  type: FloatType,
  columns: number[][],
  bound: number,
  { flushesDenormals }: Target,
): Promise<undefined | SkipReason> {
  const flushes = type === 'float32' && flushesDenormals;
  if (flushes && row.powers === true) return { skip: 'powers below the normal numbers, which the device takes for 0' };
  const got = await arrayOf(pg.scope(() => row.run(...columns.map((data) => pg.tensor(data, { dtype: type })))));
  const { units, text } = worstOf(row, type, columns, got.data, flushes);
  if (units > bound) throw new Error(`${text} (at most ${bound})`);
  return undefined;
}

/** Arguments: one list, or two that meet in many ways. */
function columnsOf({ name, ranges }: AccuracyRow, type: FloatType): number[][] {
  const lists = ranges.map((range, k) => samples(type, range, seedOf(`${name} ${k}`)));
  const length = Math.max(...lists.map((l) => l.length));
  // Strides that share no factor with the lengths, so that special numbers meet ordinary ones.
  return lists.map((list, k) => Array.from({ length }, (_, i) => list[(i * (k === 0 ? 1 : 7)) % list.length]!));
}

/** In float64 a few units: what the references are good for. */
const doubleUnits = 1e-15 * 2 ** 52;

export function accuracyCases(target: Target): ConformanceCase[] {
  const cases: ConformanceCase[] = [];
  const wide = target.holds('float64');
  for (const row of accuracyRows) {
    const [withDouble, without] = row.float32;
    cases.push({
      name: `accuracy / ${row.name} / float32`,
      run: () => check(row, 'float32', columnsOf(row, 'float32'), target.computesDouble ? withDouble : without, target),
    });
    const { float64 } = row;
    if (wide && float64 !== undefined) {
      cases.push({
        name: `accuracy / ${row.name} / float64`,
        run: () => check(row, 'float64', columnsOf(row, 'float64'), float64 * doubleUnits, target),
      });
    }
  }
  for (const table of specialValues) {
    for (const type of wide ? (['float32', 'float64'] as const) : (['float32'] as const)) {
      const known = new Map(table.values);
      const exact = (x: number): number => known.get(x) as number;
      const run = (x: Tensor): Tensor => evaluateSpecial(table, x);
      // Below 0 the units are those of the reflection formula's terms.
      const size = (x: number): number => (x < 0 ? Math.max(1, Math.abs(exact(x))) : exact(x));
      const row = { name: table.name, run, exact, size, ranges: [], float32: [5, 5], powers: table.order > 6 } as const;
      const bound = table.name === 'polygamma' ? 5 + table.order : 5;
      cases.push({
        name: `accuracy / ${table.name} ${table.order} at known values / ${type}`,
        run: () => check(row as AccuracyRow, type, [table.values.map(([x]) => x)], bound, target),
      });
    }
  }
  return cases;
}
