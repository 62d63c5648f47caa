/**
 * The golden file: results of another framework. Written by tooling/goldens/container.py, which describes the format; read
 * here, in Node and in browsers.
 */
import type { DType } from '@polygrad/core';
import { count } from '../oracle/ndarray.ts';
import { type Drawn, viewedShape } from './draw.ts';

/** An argument or option of a call: a plain value, a list, `{ t }` tensor number t, or `{ n }` a number JSON has no word for. */
export type Coded = null | boolean | number | string | readonly Coded[] | { readonly [key: string]: Coded };

/** Shape, dtype ('same': the case's), and the values where they are integers too large for the numbers' format. */
export type CodedResult = readonly [shape: readonly number[], dtype: DType | 'same', values?: readonly string[]];

/** A case as the index holds it, under its operation. */
interface Entry {
  /** Label. */
  readonly n: string;
  /** Arguments, options, tensors, results. */
  readonly a: readonly Coded[];
  readonly o?: Readonly<Record<string, Coded>>;
  readonly t: readonly Drawn[];
  readonly r: readonly CodedResult[];
  /** Dtypes; float64 and float32 if left out. */
  readonly d?: readonly DType[];
  /** Terms that a result element sums. */
  readonly k?: number;
  /** Tensors to differentiate by; 1: twice. */
  readonly g?: readonly number[];
  readonly h?: 1;
}

export interface GoldenCase {
  readonly op: string;
  readonly label: string;
  readonly args: readonly Coded[];
  readonly options: Readonly<Record<string, Coded>> | null;
  readonly tensors: readonly Drawn[];
  readonly results: readonly CodedResult[];
  readonly dtypes: readonly DType[];
  readonly terms: number | null;
  readonly by: readonly number[];
  readonly twice: boolean;
  /** Reads the case's numbers. */
  readonly numbers: () => CaseNumbers;
}

export interface CaseNumbers {
  /** Of tensors whose numbers stand in the file, by position. */
  readonly inputs: ReadonlyMap<number, readonly number[]>;
  readonly results: readonly (readonly number[])[];
  /** The operation on the arguments' magnitudes, where terms are counted. */
  readonly magnitudes: readonly number[] | null;
  /** By each tensor of `by`: gradient, and gradient of <gradient, w>. */
  readonly first: readonly (readonly number[])[];
  readonly second: readonly (readonly number[])[];
}

async function gunzip(bytes: Uint8Array): Promise<Uint8Array> {
  const stream = new Blob([bytes.slice().buffer]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** The cases of a golden file. */
export async function readGoldens(file: Uint8Array): Promise<readonly GoldenCase[]> {
  const bytes = await gunzip(file);
  const words = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const magic = new TextDecoder().decode(bytes.subarray(0, 8));
  if (magic !== 'PGGOLD01') throw new Error(`[conformance] no golden file: it begins with '${magic}', not 'PGGOLD01'`);
  const start = 12 + words.getUint32(8, true);
  const index = JSON.parse(new TextDecoder().decode(bytes.subarray(12, start))) as { ops: Record<string, Entry[]> };
  const total = (bytes.length - start) / 6;
  let position = 0;
  const upper = new DataView(new ArrayBuffer(8));
  const numberAt = (i: number): number => {
    for (let plane = 0; plane < 6; plane++) upper.setUint8(plane, bytes[start + plane * total + i]!);
    return upper.getFloat64(0);
  };
  const cases: GoldenCase[] = [];
  for (const [op, entries] of Object.entries(index.ops)) {
    for (const entry of entries) {
      const { n: label, a: args, o: options = null, t: tensors, r: results, g: by = [], h, k: terms = null } = entry;
      const from = position;
      const shapes = by.map((i) => viewedShape(tensors[i]!));
      position += tensors.reduce((sum, t) => sum + (t.k[0] === 'b' ? count(t.s) : 0), 0);
      position += results.reduce((sum, [shape, , text]) => sum + (text ? 0 : count(shape)), 0);
      if (terms !== null) position += count(results[0]![0]);
      position += shapes.reduce((sum, shape) => sum + count(shape) * (h ? 2 : 1), 0);
      const numbers = (): CaseNumbers => {
        let at = from;
        const next = (shape: readonly number[]): number[] => Array.from({ length: count(shape) }, () => numberAt(at++));
        const inputs = new Map<number, number[]>();
        for (const [i, t] of tensors.entries()) if (t.k[0] === 'b') inputs.set(i, next(t.s));
        return {
          inputs,
          results: results.map(([shape, , text]) => (text ? [] : next(shape))),
          magnitudes: terms === null ? null : next(results[0]![0]),
          first: shapes.map(next),
          second: h ? shapes.map(next) : [],
        };
      };
      const dtypes = entry.d ?? ['float64', 'float32'];
      cases.push({ op, label, args, options, tensors, results, dtypes, terms, by, twice: h === 1, numbers });
    }
  }
  if (position !== total)
    throw new Error(`[conformance] the golden file holds ${total} numbers, its index ${position}`);
  return cases;
}

interface NodeModules {
  readonly process?: {
    readonly versions?: { readonly node?: string };
    readonly getBuiltinModule?: (name: 'node:fs') => typeof import('node:fs');
  };
}

/** The package's own golden file, or null where there are no files to read: in browsers, and in Node before 20.16. */
export function packagedGoldens(): Uint8Array | null {
  const { process } = globalThis as NodeModules;
  const files = process?.versions?.node === undefined ? undefined : process.getBuiltinModule?.('node:fs');
  const here = import.meta.url;
  if (files === undefined || !here.startsWith('file:')) return null;
  const path = new URL('../../goldens/torch.bin.gz', here);
  return files.existsSync(path) ? files.readFileSync(path) : null;
}
