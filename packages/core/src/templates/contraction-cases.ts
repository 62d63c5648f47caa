/**
 * Contractions for the tests of this folder: kernels as the scheduler describes them, and the comparison of what a
 * template made of one with the direct evaluation of the loop nest in float64.
 */
import type { EngineCaps } from '../engine/engine.ts';
import { Exprs } from '../kernel/expr.ts';
import type { Range } from '../kernel/free-ranges.ts';
import { interpret } from '../kernel/interpret.ts';
import type { KNode, KNodeOf, LoopKernel } from '../kernel/ir.ts';
import { verifyProgram } from '../kernel/verify.ts';
import type { DType, TypedArray } from '../shape/dtype.ts';
import type { ContractionHint, Lowered } from './contract.ts';
import { evaluateExactly } from './exact-nest.ts';
import { lowerContraction } from './select.ts';

export const vectorCaps: EngineCaps = {
  dtypes: new Set<DType>(['float32', 'float64', 'int32', 'uint32', 'bool']),
  nativeOps: new Set(['MULADD', 'FMA']),
  simt: false,
  vectorBytes: 16,
  sharedBytes: 1 << 18,
  maxGroup: 1,
  maxBindings: 64,
  maxBufferBytes: 2 ** 31,
  bindAlign: 4,
  arena: true,
  parallelism: 2,
  atomics: new Set(),
};

/** What a case builder gets: the factory, the dtype of all numbers and a maker of tensors. */
export interface Making {
  readonly e: Exprs;
  readonly dtype: DType;
  param(length: number, access?: 'read' | 'write' | 'readwrite', dtype?: DType): KNodeOf<'PARAM'>;
  range(extent: number): Range;
  i(n: number): KNode;
  /** Sum of index times stride. */
  at(...terms: readonly (readonly [KNode, number] | number)[]): KNode;
}

export interface Parts {
  readonly a: KNode;
  readonly b: KNode;
  readonly k: readonly Range[];
  readonly loops: readonly Range[];
  /** The kernel's stores; `sum` is the contraction. */
  stores(sum: KNode): readonly (readonly [memory: KNode, index: KNode, value: KNode])[];
}

export interface Case {
  readonly kernel: LoopKernel;
  readonly hint: ContractionHint;
  readonly e: Exprs;
}

export function makeCase(dtype: DType, build: (m: Making) => Parts): Case {
  const e = new Exprs();
  const params: KNodeOf<'PARAM'>[] = [];
  const making: Making = {
    e,
    dtype,
    param(length, access = 'read', own = dtype) {
      const p = e.param(params.length, own, access, length);
      params.push(p);
      return p;
    },
    range: (extent) => e.range(extent),
    i: (n) => e.i32(n),
    at(...terms) {
      let index: KNode = e.i32(0);
      for (const t of terms) index = e.add(index, typeof t === 'number' ? e.i32(t) : e.mul(t[0], e.i32(t[1])));
      return index;
    },
  };
  const { a, b, k, loops, stores } = build(making);
  const reduce = e.reduce('sum', e.mul(a, b), k);
  const kernel: LoopKernel = {
    name: 'contraction',
    params,
    scalars: [],
    stores: stores(reduce).map(([memory, index, value]) => ({ store: e.store(memory, index, value), ranges: loops })),
  };
  const hint: ContractionHint = { reduce: reduce as KNodeOf<'REDUCE'>, a, b, batch: [], m: [], n: [], k };
  return { kernel, hint, e };
}

/** Numbers in [-1, 1), the same for every run. */
export function numbers(length: number, seed: number): Float64Array {
  let state = (seed * 2654435761 + 12345) >>> 0;
  return Float64Array.from({ length }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.fround(state / 2 ** 31 - 1);
  });
}

const arrays: Partial<Record<DType, (length: number) => TypedArray>> = {
  float32: (n) => new Float32Array(n),
  float64: (n) => new Float64Array(n),
  int32: (n) => new Int32Array(n),
  bool: (n) => new Uint8Array(n),
};

function buffersOf(kernel: LoopKernel, change: (x: number) => number): TypedArray[] {
  return kernel.params.map((p) => {
    const array = (arrays[p.dtype as DType] as (n: number) => TypedArray)(p.arg.length);
    if (p.arg.access === 'write') (array as Float64Array).fill(77);
    else (array as Float64Array).set(numbers(p.arg.length, p.arg.slot + 1).map(change));
    return array;
  });
}

/** Runs a lowered kernel on the interpreter; temporaries start as garbage. */
export function runLowered(lowered: Lowered, buffers: readonly TypedArray[]): void {
  const temps = lowered.temps.map((bytes) => {
    const memory = new ArrayBuffer(Math.ceil(bytes / 8) * 8);
    new Uint8Array(memory).fill(0xfb);
    return memory;
  });
  for (const { program, bindings } of lowered.dispatches) {
    verifyProgram(program);
    const bound = bindings.map((b, i): TypedArray => {
      if ('param' in b) return buffers[b.param] as TypedArray;
      const dtype = program.params.find((p) => p.arg.slot === i)?.dtype;
      const memory = temps[b.temp] as ArrayBuffer;
      return dtype === 'float64' ? new Float64Array(memory) : new Float32Array(memory);
    });
    interpret(program, bound);
  }
}

export interface Checked {
  readonly lowered: Lowered | null;
  /** Largest error as a part of what the error bound of a sum of K products allows. */
  readonly worst: number;
}

/**
 * Lowers a case for vectors, runs it and compares all outputs with the float64 evaluation. Outputs must be within
 * gamma_K times the same sum of magnitudes; K is the number of products and a few roundings of the epilogue.
 */
export function checkCase(dtype: DType, build: (m: Making) => Parts, caps: EngineCaps = vectorCaps): Checked {
  const { kernel, hint, e } = makeCase(dtype, build);
  const lowered = lowerContraction(kernel, hint, e, caps);
  if (lowered === null) return { lowered, worst: 0 };
  const got = buffersOf(kernel, (x) => x);
  runLowered(lowered, got);
  const exact = makeCase('float64', build).kernel;
  const want = buffersOf(exact, (x) => x);
  evaluateExactly(exact, want);
  const size = buffersOf(exact, Math.abs);
  evaluateExactly(exact, size);
  const roundings = hint.k.reduce((n, r) => n * r.arg.extent, 1) + 4;
  const unit = dtype === 'float32' ? 2 ** -24 : 2 ** -53;
  const gamma = (roundings * unit) / (1 - roundings * unit);
  let worst = 0;
  kernel.params.forEach((_, slot) => {
    const [g, w, s] = [got[slot], want[slot], size[slot]] as [Float64Array, Float64Array, Float64Array];
    for (let i = 0; i < g.length; i++) {
      const error = Math.abs((g[i] as number) - (w[i] as number));
      // Exact in both: inputs, masks, elements no store reaches.
      const part =
        error === 0 ? 0 : error / (gamma * Math.abs(s[i] as number) + (dtype === 'float64' ? 1e-300 : 1e-30));
      if (!(part <= worst)) worst = part;
    }
  });
  return { lowered, worst };
}
