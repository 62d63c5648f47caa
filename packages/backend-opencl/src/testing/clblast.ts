/**
 * For tests of CLBlast: an engine whose driver is watched, or computes products on the host as CLBlast documents them, and on whose clock
 * the library wins or loses; products of every form with what they must give.
 */
import { add, type DType, matmul, permute, relu, slice, tensor, type Tensor, transpose } from '@polygrad/core';
import type { Driver } from '../addon.ts';
import { clblast } from '../clblast.ts';
import { OpenClEngine } from '../engine.ts';
import { type OpenClEngineOptions, setUp } from '../setup.ts';

export interface Watched {
  readonly engine: OpenClEngine;
  /** Products CLBlast was given since the last call. */
  products(): number;
  /**
   * On the device's clock a product takes so many milliseconds from now on, with what is done to its sums; everything else 8. Default 4.
   */
  pace(milliseconds: number): void;
}

/**
 * `real`: CLBlast does them. `host`: loops on the host read and write the device's memory by the numbers of the command. `fails`:
 * each says that it cannot.
 */
export type Manner = 'real' | 'host' | 'fails';

/** A command of a batch: its place, its number, its cells. */
interface Cells {
  readonly at: number;
  readonly command: number;
  readonly cells: Float64Array;
}

const productKind = 4;

function commandsIn(bytes: Uint8Array, count: number): Cells[] {
  const all = new Float64Array(bytes.buffer, bytes.byteOffset, count);
  const found: Cells[] = [];
  for (let at = 0; at < count; at += all[at + 1]!)
    found.push({ at, command: found.length, cells: all.subarray(at, at + all[at + 1]!) });
  return found;
}

/** One product by loops: element (i, j) of a matrix lies at offset + i * stride + j, or with both exchanged if it is transposed. */
function multiply(driver: Driver, cells: Float64Array): void {
  const [, , isDouble, m, n, k, batch] = cells as unknown as number[] as [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const element = isDouble ? 8 : 4;
  const matrix = (first: number) => {
    const [buffer, offset, stride, distance, transposed] = cells.subarray(first, first + 5) as unknown as number[];
    const bytes = new Uint8Array(element);
    const view = new DataView(bytes.buffer);
    const at = (z: number, i: number, j: number): number =>
      element * (offset! + z * distance! + (transposed ? j * stride! + i : i * stride! + j));
    return {
      get: (z: number, i: number, j: number): number => {
        driver.readSync(buffer!, at(z, i, j), bytes);
        return isDouble ? view.getFloat64(0, true) : view.getFloat32(0, true);
      },
      set: (z: number, i: number, j: number, value: number): void => {
        if (isDouble) view.setFloat64(0, value, true);
        else view.setFloat32(0, value, true);
        driver.upload(buffer!, at(z, i, j), bytes);
      },
    };
  };
  const [a, b, c] = [matrix(7), matrix(12), matrix(17)];
  const [x, y] = [new Float64Array(m * k), new Float64Array(k * n)];
  for (let z = 0; z < batch; z++) {
    for (let i = 0; i < m; i++) for (let s = 0; s < k; s++) x[i * k + s] = a.get(z, i, s);
    for (let s = 0; s < k; s++) for (let j = 0; j < n; j++) y[s * n + j] = b.get(z, s, j);
    for (let i = 0; i < m; i++)
      for (let j = 0; j < n; j++) {
        let sum = 0;
        for (let s = 0; s < k; s++) sum += x[i * k + s]! * y[s * n + j]!;
        c.set(z, i, j, sum);
      }
  }
}

const failure = (command: number): Error =>
  Object.assign(new Error('CLBlastSgemm failed with OpenCL error -1024'), {
    code: -1024,
    call: 'CLBlastSgemm',
    command,
    log: '',
  });

/** An engine that counts products. */
export function watched(manner: Manner, options: OpenClEngineOptions = {}): Watched {
  const setup = setUp({ cache: false, tuning: false, ...options });
  const own = setup.driver;
  let [products, pace, kernelsOnly] = [0, 4, true];
  const submit = (bytes: Uint8Array, count: number): void => {
    let from = 0;
    const pass = (to: number): void => {
      if (to > from) own.submit(bytes.subarray(8 * from, 8 * to), to - from);
      from = to;
    };
    for (const { at, command, cells } of commandsIn(bytes, count)) {
      if (cells[0] !== productKind) continue;
      products++;
      if (manner === 'real') continue;
      pass(at);
      if (manner === 'fails') throw failure(command);
      multiply(own, cells);
      from = at + cells.length;
    }
    pass(count);
  };
  const submitTimed = (bytes: Uint8Array, count: number): Float64Array => {
    submit(bytes, count);
    const kinds = commandsIn(bytes, count).map(({ cells }) => cells[0]);
    const other = kernelsOnly ? 8e6 : 0;
    return Float64Array.from(kinds, (kind) => (kind === productKind ? pace * 1e6 : other));
  };
  const driver: Driver = new Proxy(own, {
    get: (target, name) => {
      if (name === 'submit') return submit;
      if (name === 'submitTimed') return submitTimed;
      if (name === 'prepareProduct' && manner !== 'real') return () => Promise.resolve();
      return target[name as keyof Driver].bind(target);
    },
  });
  const library = manner === 'real' ? setup.library : clblast(driver, () => '', true);
  const engine = new OpenClEngine({ ...setup, driver, library });
  const timed = engine.submitTimed.bind(engine);
  engine.submitTimed = (commands) => {
    kernelsOnly = !commands.some((c) => c.kind === 'dispatch' && c.kernel.program.product !== undefined);
    return timed(commands);
  };
  return {
    engine,
    products: () => {
      const now = products;
      products = 0;
      return now;
    },
    pace: (milliseconds) => {
      pace = milliseconds;
    },
  };
}

export const numbers = (shape: readonly number[], dtype: DType = 'float32', seed = 1): Tensor =>
  tensor(
    Array.from({ length: shape.reduce((size, x) => size * x, 1) }, (_, i) => (((i * 7 + seed * 13) % 23) - 11) / 8),
    { shape, dtype },
  );

export const listOf = async (t: Tensor): Promise<number[]> => Array.from(await t.data(), Number);

/** Products of lists of numbers in plain loops, `batch` of them. */
export function plain(a: readonly number[], b: readonly number[], sizes: readonly number[]): number[] {
  const [m, n, k, batch = 1] = sizes as [number, number, number, number?];
  const y: number[] = [];
  for (let z = 0; z < batch; z++)
    for (let i = 0; i < m; i++)
      for (let j = 0; j < n; j++) {
        let sum = 0;
        for (let s = 0; s < k; s++) sum += a[(z * m + i) * k + s]! * b[(z * k + s) * n + j]!;
        y.push(sum);
      }
  return y;
}

/** What to compute, what it must be, and the length of its sums. */
export interface Form {
  readonly result: () => Tensor;
  readonly expected: readonly number[];
  readonly depth: number;
}

/** Odd sizes, so that CLBlast pads. */
export const sizes = { m: 37, n: 29, k: 41 };
const { m, n, k } = sizes;
const batch = 3;

export const forms: Readonly<Record<string, () => Promise<Form>>> = {
  'a b': async () => {
    const [a, b] = [numbers([m, k]), numbers([k, n], 'float32', 2)];
    return { result: () => matmul(a, b), expected: plain(await listOf(a), await listOf(b), [m, n, k]), depth: k };
  },
  'both transposed': async () => {
    const [a, b] = [numbers([k, m]), numbers([n, k], 'float32', 2)];
    const [x, y] = [await listOf(transpose(a)), await listOf(transpose(b))];
    return { result: () => matmul(transpose(a), transpose(b)), expected: plain(x, y, [m, n, k]), depth: k };
  },
  'one transposed, of batches': async () => {
    const [a, b] = [numbers([batch, m, k]), numbers([batch, n, k], 'float32', 2)];
    const turned = permute(b, [0, 2, 1]);
    const expected = plain(await listOf(a), await listOf(turned), [m, n, k, batch]);
    return { result: () => matmul(a, turned), expected, depth: k };
  },
  'parts of larger tensors': async () => {
    const rows = { start: 2, stop: m + 2 };
    const a = slice(numbers([m + 4, k + 3]), [rows, { start: 1, stop: k + 1 }]);
    const b = slice(numbers([k, n + 5], 'float32', 2), [{}, { start: 5 }]);
    return { result: () => matmul(a, b), expected: plain(await listOf(a), await listOf(b), [m, n, k]), depth: k };
  },
  'with something done to the sums': async () => {
    const [a, b, bias] = [numbers([m, k]), numbers([k, n], 'float32', 2), numbers([n], 'float32', 3)];
    const own = await listOf(bias);
    const sums = plain(await listOf(a), await listOf(b), [m, n, k]);
    const expected = sums.map((sum, i) => Math.max(0, sum + own[i % n]!));
    return { result: () => relu(add(matmul(a, b), bias)), expected, depth: k };
  },
  'a matrix with itself': async () => {
    const a = numbers([m, k]);
    const expected = plain(await listOf(a), await listOf(transpose(a)), [m, m, k]);
    return { result: () => matmul(a, transpose(a)), expected, depth: k };
  },
  'a long sum, few results': async () => {
    const [a, b] = [numbers([5, 1000]), numbers([1000, 3], 'float32', 2)];
    return { result: () => matmul(a, b), expected: plain(await listOf(a), await listOf(b), [5, 3, 1000]), depth: 1000 };
  },
  'of float64': async () => {
    const [a, b] = [numbers([m, k], 'float64'), numbers([k, n], 'float64', 2)];
    return { result: () => matmul(a, b), expected: plain(await listOf(a), await listOf(b), [m, n, k]), depth: 0 };
  },
};
