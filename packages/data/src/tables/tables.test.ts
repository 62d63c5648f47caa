/** Tables against Python's csv module and NumPy; damaged files say where. */
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { batches } from '../batches.ts';
import { DataError, isDataError } from '../errors.ts';
import { Dataset } from '../pipeline/dataset.ts';
import { RandomStream } from '../random.ts';
import { csvRows, parseCsv } from './csv.ts';
import { FeatureEncoder, fitFeatures } from './features.ts';
import { DataFrame } from './frame.ts';
import { jsonLines, parseJsonLines } from './json-lines.ts';
import { fitNormalizer, Normalizer } from './normalizer.ts';

const goldens = JSON.parse(readFileSync(new URL('../fixtures/goldens.json', import.meta.url), 'utf8')) as {
  tables: { text: string; delimiter: string; rows: string[][] }[];
  normalisation: Record<string, number[]> & { rows: number[][]; images: number[][][][] };
};

/** All columns as text, nothing missing. */
const plain = (width: number) => ({
  missing: [],
  types: Object.fromEntries(Array.from({ length: width }, (_, i) => [`c${i}`, 'text' as const])),
}); // prettier-ignore

const textOf = (frame: DataFrame): unknown[][] =>
  Array.from({ length: frame.rows }, (_, row) => frame.names.map((name) => frame.column(name).values[row]));

/** A text's bytes cut at random places. */
function pieces(text: string, random: RandomStream): Uint8Array[] {
  const bytes = new TextEncoder().encode(text);
  const found: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = at + 1 + random.below(4);
    found.push(bytes.subarray(at, end));
    at = end;
  }
  return found;
}

it('a table shows its first and last rows', () => {
  const frame = DataFrame.fromRows([
    { city: 'Oslo', size: 1.5 },
    { city: null, size: null },
  ]);
  expect(String(frame)).toBe(['city  size', 'Oslo   1.5', 'null   NaN', '2 rows, 2 columns'].join('\n'));
  const long = DataFrame.fromRows(Array.from({ length: 40 }, (_, i) => ({ i })))
    .toString()
    .split('\n');
  expect([long.length, long[6], long[7], long.at(-1)]).toEqual([13, '...', '35', '40 rows, 1 columns']);
});

describe('parseCsv', () => {
  it("reads what Python's csv.writer writes, as csv.reader does", async () => {
    const random = new RandomStream(3);
    for (const { text, delimiter, rows } of goldens.tables) {
      const width = rows[0]?.length ?? 1;
      const options = { delimiter, ...plain(width) };
      expect(textOf(parseCsv(text, options))).toEqual(rows);
      expect(textOf(parseCsv(new TextEncoder().encode(text), options))).toEqual(rows);
      // The same in pieces of a few bytes.
      const streamed = await csvRows(() => pieces(text, random), options).toArray();
      expect(streamed.map((row) => Object.values(row))).toEqual(rows);
    }
  });

  it('finds the types of columns', () => {
    const frame = parseCsv(
      '\ufeffa,b,c,d,e\n1,x,true,,inf\n-2.5e3,3,FALSE,,-1\n NA,"y",true,,.5\n'.replace(' NA', 'NA'),
    );
    expect(JSON.parse(JSON.stringify(frame))).toEqual({
      rows: 3,
      columns: { a: 'number', b: 'text', c: 'bool', d: 'number', e: 'number' },
    });
    expect(frame.column('a').values).toEqual(Float64Array.of(1, -2500, Number.NaN));
    expect(frame.column('e').values).toEqual(Float64Array.of(Number.POSITIVE_INFINITY, -1, 0.5));
    expect(frame.column('c').values).toEqual([true, false, true]);
    expect(frame.row(0)).toEqual({ a: 1, b: 'x', c: true, d: Number.NaN, e: Number.POSITIVE_INFINITY });
    expect(parseCsv('1,2\n3,4', { header: false }).column('column1').values).toEqual(Float64Array.of(2, 4));
    expect(parseCsv('1,2', { header: ['x', 'y'], types: { y: 'text' } }).column('y').values).toEqual(['2']);
    expect(parseCsv('x\n0x10\n1_000').column('x').type).toBe('text');
    expect(parseCsv('a,b').rows).toBe(0);
  });

  it('takes columns of any name', () => {
    const frame = parseCsv('__proto__,constructor,toString\n1,x,true\n');
    expect(frame.names.map((name) => frame.column(name).type)).toEqual(['number', 'text', 'bool']);
  });

  it('says the line of what is wrong', () => {
    const failure = (text: string | Uint8Array, options = {}): DataError => {
      try {
        parseCsv(text, { source: 'cats.csv', ...options });
      } catch (error) {
        return error as DataError;
      }
      throw new Error('nothing was refused');
    };
    const cases: [string, string, RegExp][] = [
      ['a,b\n1,2\n3\n', 'format', /cats.csv, line 3: 1 field, and there are 2 columns/],
      ['a\n"x\n\ny"\n"z', 'truncated', /line 5: a quote is opened here and never closed/],
      ['a\nx"y\n', 'format', /line 2: a quote inside the field 'x'/],
      ['a\n"x\n" y\n', 'format', /line 3: ' ' behind the closing quote of 'x/],
      ['a,a\n', 'format', /line 1: two columns have the name 'a'/],
      ['', 'format', /cats.csv is empty/],
    ];
    for (const [text, code, message] of cases) {
      const error = failure(text);
      expect(error.message).toMatch(message);
      expect([error.code, error.source]).toEqual([code, 'cats.csv']);
    }
    expect(failure(Uint8Array.of(97, 10, 98, 10, 99, 0xff, 10)).message).toMatch(/line 3: the bytes are no UTF-8/);
    expect(failure('a\n1\nx', { types: { a: 'number' } }).message).toMatch(/line 3, column 'a': 'x' is no number/);
    expect(failure('a\n1', { types: { b: 'number' } }).message).toMatch(/has no column 'b'; its columns are a/);
    for (const options of [
      { delimiter: ',,' },
      { delimiter: '"' },
      { header: 1 },
      { missing: [1] },
      { types: { a: 'int' } },
      { sep: ';' },
    ])
      expect(failure('a\n1', options).code).toBe('argument');
  });

  it('refuses later rows of a stream that do not fit, with their line', async () => {
    const rows = csvRows(() => ['x\n', '1\n2\n', 'three\n'], { inferRows: 2 });
    await expect(rows.toArray()).rejects.toThrow(/line 4, column 'x': 'three' is no number; correct it, or set types/);
    expect(await csvRows(() => ['x\n', '1\n2\n', 'three\n']).toArray()).toEqual([
      { x: '1' },
      { x: '2' },
      { x: 'three' },
    ]);
    await expect(csvRows(() => []).toArray()).rejects.toThrow(/is empty/);
    const bad = csvRows(() => [new TextEncoder().encode('x\n1\n'), Uint8Array.of(50, 0xc3), Uint8Array.of(10)]);
    await expect(bad.toArray()).rejects.toThrow(/line 3: the bytes are no UTF-8/);
    await expect(csvRows(() => [1] as never).toArray()).rejects.toThrow(/gave 1; it must give text or bytes/);
    await expect(csvRows((() => 5) as never).toArray()).rejects.toThrow(DataError);
  });

  it('is not thrown off by damage: a table or a DataError, always', () => {
    const random = new RandomStream(11);
    for (const { text, delimiter } of goldens.tables) {
      const bytes = new TextEncoder().encode(text);
      for (let round = 0; round < 20; round++) {
        const damaged = bytes.slice(0, round % 2 ? random.below(bytes.length + 1) : bytes.length);
        if (damaged.length > 0)
          for (let i = 0; i < round % 4; i++) damaged[random.below(damaged.length)]! ^= 1 << random.below(8);
        try {
          expect(parseCsv(damaged, { delimiter }).rows).toBeGreaterThanOrEqual(0);
        } catch (error) {
          if (!isDataError(error)) throw error;
          expect(error.message).toMatch(/^\[(csv|parseCsv)\] CSV/);
        }
      }
    }
  });
});

describe('JSON lines', () => {
  it('are read whole and in pieces', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.jsonValue(), { maxLength: 8 }), fc.nat(1000), async (values, seed) => {
        const known = values.map((value) => JSON.parse(JSON.stringify(value)) as unknown);
        const text = known.map((value) => JSON.stringify(value)).join(seed % 2 ? '\r\n' : '\n');
        expect(parseJsonLines(text)).toEqual(known);
        expect(await jsonLines(() => pieces(text, new RandomStream(seed))).toArray()).toEqual(known);
      }),
      { seed: 2, numRuns: 60 },
    );
    expect(parseJsonLines('\n{"a":1}\n\n2\n')).toEqual([{ a: 1 }, 2]);
  });

  it('say the line of what is wrong', async () => {
    expect(() => parseJsonLines('1\n{"a":\n3', { source: 'x.jsonl' })).toThrow(/x.jsonl, line 2: .*every line must be/);
    await expect(jsonLines(() => ['1\n', '2\n{']).toArray()).rejects.toThrow(/line 3: /);
    expect(() => parseJsonLines(Uint8Array.of(49, 10, 0x80))).toThrow(/line 2: the bytes are no UTF-8/);
    for (const content of [undefined, null, 5, {}, Symbol('x')])
      expect(() => parseJsonLines(content as never)).toThrow(DataError); // prettier-ignore
  });
});

describe('DataFrame', () => {
  it('is folded, with classes of a column in every part', () => {
    const frame = DataFrame.fromRows(Array.from({ length: 20 }, (_, i) => ({ i, kind: i % 4 ? 'a' : 'b' })));
    const folds = frame.folds(5, { seed: 1, stratify: 'kind' });
    const held = folds.map(({ train, validation }) => {
      expect([train.rows, validation.rows]).toEqual([16, 4]);
      expect(Array.from(validation.column('kind').values as string[]).sort()).toEqual(['a', 'a', 'a', 'b']);
      return Array.from(validation.column('i').values as Float64Array);
    });
    expect(held.flat().sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, i) => i));
    const kinds = Array.from({ length: 20 }, (_, i) => i % 4);
    expect(frame.folds(5, { stratify: kinds }).length).toBe(5);
    const [half] = frame.split([0.5, 0.5], { stratify: 'kind' });
    expect(Array.from(half!.column('kind').values as string[]).filter((kind) => kind === 'b').length).toBeGreaterThan(
      1,
    );
    expect(() => frame.folds(5, { stratify: 'what' })).toThrow(/no column 'what'/);
    expect(() => frame.folds(21)).toThrow(/count is 21/);
  });

  it('is made of rows, and cut into parts', async () => {
    const rows = [
      { x: 1, name: 'a', ok: true },
      { x: null, name: null, ok: false },
      { x: 3, name: 'c', ok: null },
    ];
    const frame = DataFrame.fromRows(rows);
    expect(frame.column('x').values).toEqual(Float64Array.of(1, Number.NaN, 3));
    expect(frame.take([2, 0]).column('name').values).toEqual(['c', 'a']);
    expect((await frame.dataset().toArray())[2]).toEqual({ x: 3, name: 'c', ok: null });
    expect(frame.split([1, 2]).map((part) => part.rows)).toEqual([1, 2]);
    expect(() => frame.column('y')).toThrow(/no column 'y'; the columns are x, name, ok/);
    expect(() => frame.row(3)).toThrow(/row is 3; it must be an integer from 0 to 2/);
    expect(() => DataFrame.fromRows([{ x: 1 }, { x: 'a' }])).toThrow(/row 1 has 'a' as 'x', row 0 a number/);
    expect(() => DataFrame.fromRows([{ x: 1 }, { y: 1 }])).toThrow(/row 1 has no 'x'/);
    expect(() => DataFrame.fromRows([{ x: 1 }, { x: 1, y: 1 }])).toThrow(/row 1 has 2 names, row 0 1/);
    expect(() => DataFrame.fromRows([{ x: [] }])).toThrow(/has a list of 0 as 'x'/);
  });
});

describe('fitFeatures', () => {
  const train = parseCsv('size,city,garden,price\n1,Rome,true,10\n2,Oslo,false,20\n6,,true,33\n');

  it('normalises numbers and makes texts one-hot, as on the training rows', () => {
    const features = fitFeatures(train, { target: 'price' });
    expect(features.names).toEqual(['size', 'city=Oslo', 'city=Rome', 'city=', 'garden']);
    const { x, y } = features.encode(train).gather(Uint32Array.of(0, 1, 2), 0, 3);
    const deviation = Math.sqrt((4 + 1 + 9) / 3);
    const expected = [
      [-2 / deviation, 0, 1, 0, 1],
      [-1 / deviation, 1, 0, 0, 0],
      [3 / deviation, 0, 0, 1, 1],
    ];
    expect(x).toEqual({ dtype: 'float32', shape: [3, 5], data: Float32Array.from(expected.flat()) });
    expect(y).toEqual({ dtype: 'float32', shape: [3, 1], data: Float32Array.of(10, 20, 33) });
    const row = features.encodeRow({ size: 3, city: 'Oslo', garden: true });
    expect(row.data).toEqual(Float32Array.of(0, 1, 0, 0, 1));
    const again = FeatureEncoder.fromJSON(JSON.parse(JSON.stringify(features)));
    expect(again.encodeRow({ size: 2, city: null, garden: false })).toEqual(
      features.encodeRow({ size: 2, city: null, garden: false }),
    );
  });

  it('numbers classes, and fits batches and data sets', async () => {
    const features = fitFeatures(train, { inputs: ['size'], target: 'garden', normalize: false });
    expect(features.classes).toEqual(['false', 'true']);
    const data = features.encode(train);
    for await (const { x, y } of batches(data, { batchSize: 3 })) {
      expect(x.data).toEqual(Float32Array.of(1, 2, 6));
      expect(y).toEqual({ dtype: 'int32', shape: [3], data: Int32Array.of(1, 0, 1) });
    }
    const [batch] = await Dataset.from(data).batch(2).toArray();
    expect(batch!.y.data).toEqual(Int32Array.of(1, 0));
  });

  it('says what a table lacks', () => {
    const features = fitFeatures(train, { target: 'price' });
    const other = (text: string): DataFrame => parseCsv(`size,city,garden\n${text}\n`);
    expect(() => features.inputs(other('1,Paris,true'))).toThrow(/row 0 has 'Paris' as 'city'.*unknown: 'zeros'/);
    expect(() => features.inputs(other(',Rome,true\n1,Rome,true'))).toThrow(/row 0 has no 'size'.*missing: 'mean'/);
    expect(() => features.inputs(other('big,Rome,true'))).toThrow(/holds text here, and number when/);
    expect(() => features.targets(other('1,Rome,true'))).toThrow(/no column 'price'/);
    const kind = fitFeatures(train, { target: 'price', unknown: 'zeros', missing: 'mean' });
    expect(kind.inputs(other(',Paris,true\n1,Rome,true')).data.subarray(0, 5)).toEqual(Float32Array.of(0, 0, 0, 0, 1));
    expect(() => fitFeatures(train, { inputs: ['price'], target: 'price' })).toThrow(/target and among the inputs/);
    expect(() => fitFeatures(train, { target: 'cost' })).toThrow(/no column 'cost'/);
    expect(() => fitFeatures(train, { target: 'city' })).toThrow(/row 2 has no 'city', the target/);
    expect(() => features.encodeRow({ size: '3', city: 'Oslo', garden: true })).toThrow(/row has '3' as 'size'/);
    for (const value of [null, {}, { inputs: [{}], target: null, unknown: 'error' }, { inputs: 3 }, [], 'x'])
      expect(() => FeatureEncoder.fromJSON(value)).toThrow(/not what a FeatureEncoder gives/);
  });
});

describe('fitNormalizer', () => {
  it("has NumPy's means and deviations", async () => {
    const { rows, mean, std, images, channel_mean, channel_std } = goldens.normalisation;
    const close = (a: Float64Array, b: readonly number[]): void => {
      expect(a.length).toBe(b.length);
      a.forEach(
        (value, i) => void expect(Math.abs(value - b[i]!)).toBeLessThanOrEqual(1e-13 * Math.abs(b[i]!) + 1e-15),
      ); // prettier-ignore
    };
    const columns = await fitNormalizer(rows, (row) => row);
    close(columns.mean, mean!);
    // A column that never changes keeps its deviation of 1.
    close(
      columns.std,
      std!.map((value) => value || 1),
    ); // prettier-ignore
    const arrays = images.map(
      (image) => ({ dtype: 'float32', shape: [3, 2, 4], data: Float32Array.from(image.flat(2)) }) as const,
    ); // prettier-ignore
    const channels = await fitNormalizer(Dataset.from(arrays), (image) => image, { per: 'channel' });
    channels.mean.forEach((value, i) => void expect(value).toBeCloseTo(channel_mean![i]!, 6));
    channels.std.forEach((value, i) => void expect(value).toBeCloseTo(channel_std![i]!, 6));
    const first = channels.apply(arrays[0]);
    expect(first.shape).toEqual([3, 2, 4]);
    expect(first.data[23]).toBeCloseTo((images[0]![2]![1]![3]! - channel_mean![2]!) / channel_std![2]!, 5);
    const back = Normalizer.fromJSON(JSON.parse(JSON.stringify(channels))).invert(first);
    back.data.forEach((value, i) => void expect(value).toBeCloseTo(arrays[0]!.data[i]!, 5));
  });

  it('refuses what cannot be measured or does not fit', async () => {
    await expect(fitNormalizer([], (row) => row)).rejects.toThrow(/no rows/);
    await expect(fitNormalizer([[1], [1, 2]], (row) => row)).rejects.toThrow(/row 1 has 2 means, row 0 1/);
    await expect(fitNormalizer([[Number.NaN]], (row) => row)).rejects.toThrow(/row 0 holds NaN/);
    await expect(fitNormalizer(['a'], (row) => row)).rejects.toThrow(/a row is 'a'; it must be/);
    await expect(fitNormalizer([1], 'x' as never)).rejects.toThrow(DataError);
    expect(() => new Normalizer('all', [1], [0])).toThrow(/not 0/);
    expect(() => new Normalizer('all', [1], [1]).apply({})).toThrow(DataError);
    expect(() => new Normalizer('element', [1], [1]).apply([1, 2])).toThrow(/has 2 means, and 1 were fitted/);
    expect(() => Normalizer.fromJSON({ per: 'some' })).toThrow(DataError);
  });
});
