/** Tables of values at special points: how they are read, and when a result agrees with an entry. */

/** Numbers of a line, null where nothing is promised. "nan*3" is NaN three times. */
function numbers(text: string): (number | null)[] {
  return text.split(' ').flatMap((entry) => {
    const [word, times = '1'] = entry.split('*') as [string, string?];
    const value = word === '.' ? null : word === 'nan' ? Number.NaN : Number(word.replace('inf', 'Infinity'));
    return new Array<number | null>(Number(times)).fill(value);
  });
}

export interface SpecialTable {
  readonly points: readonly number[];
  readonly names: readonly string[];
  /** The values of a function, or of one of its derivatives. */
  readonly values: (name: string, order: string | number) => readonly (number | null)[];
}

/** The first line has the points, each other one a name, an order of derivative and values. */
export function readTable(text: string): SpecialTable {
  const lines = text
    .trim()
    .split('\n')
    .map((line) => line.split(' | ') as [name: string, order: string, values: string]);
  const byName = new Map(lines.slice(1).map(([name, order, values]) => [`${name} ${order}`, numbers(values)]));
  const [first, ...rest] = lines;
  return {
    points: numbers(first![2]) as number[],
    names: [...new Set(rest.map(([name]) => name))],
    values: (name, order) => byName.get(`${name} ${order}`)!,
  };
}

/** Relative, and absolute where values are small beside what they are made of. */
export const specialTolerances: Readonly<
  Record<'float32' | 'float64', { readonly rtol: number; readonly atol: number; readonly largest: number }>
> = {
  float32: { rtol: 2e-5, atol: 1e-6, largest: 2 ** 128 },
  float64: { rtol: 1e-12, atol: 1e-14, largest: Number.MAX_VALUE },
};

export const showPoint = (x: number): string => (Object.is(x, -0) ? '-0' : String(x));

/** Throws where a result does not agree with an entry of the table. */
export function checkEntry(got: number, exact: number | null, dtype: 'float32' | 'float64', what: () => string): void {
  if (exact === null) return;
  const wanted = dtype === 'float32' ? Math.fround(exact) : exact;
  const { rtol, atol, largest } = specialTolerances[dtype];
  if (Object.is(got, wanted) || Math.abs(got - wanted) <= rtol * Math.abs(wanted) + atol) return;
  // At the end of the range one rounding decides.
  const [a, b] = [got, wanted].map((v) => Math.sign(v) * Math.min(Math.abs(v), largest)) as [number, number];
  if (Math.abs(a) > largest / 2 && Math.abs(a - b) <= rtol * largest) return;
  throw new Error(`${what()} is ${got} where ${wanted} is expected`);
}
