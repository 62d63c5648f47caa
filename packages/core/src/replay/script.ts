/**
 * Scripts: the commands that one call of a compiled function submitted, with slots in place of memory and numbers; and the
 * comparison of two scripts. observation.ts makes them, run-script.ts runs them.
 */
import type { CompiledKernel, Groups } from '../engine/engine.ts';
import type { KnownRange } from '../graph/state.ts';
import { isOp, type Node } from '../graph/node.ts';
import type { KernelEntry } from '../planner/lowering/kernel-cache.ts';
import type { EngineState } from '../runtime/state.ts';
import type { DType, TypedArray } from '@polygrad/compiler/shape/dtype';
import type { Shape } from '@polygrad/compiler/shape/view';
import type { TensorHandle } from '../tensor/handle.ts';

/**
 * A name of an input: a tensor, and which argument it was, -1 for a tensor from outside. Null for an argument that was another tensor
 * in another call: any tensor may be passed. An argument that was always the same tensor may also be known to the function otherwise.
 */
export interface Source {
  handle: TensorHandle | null;
  readonly argument: number;
}

/** A value in memory that a call reads or assigns. */
export interface Input {
  /** All its names: they named one node, and must do so at each call. */
  readonly sources: Source[];
  /** How many different tensors these are. */
  names: number;
  readonly shape: Shape;
  readonly dtype: DType;
  readonly strides: readonly number[];
  /** Bytes of an element. */
  readonly unit: number;
  /** Bytes from the beginning of its buffer. */
  readonly offset: number;
  readonly requiresGrad: boolean;
  /** Its value, if known without reading: the graph may depend on it. */
  readonly value: number | bigint | null;
  /** The first input in the same buffer, and the distance from it in bytes. */
  readonly beside: number;
  readonly shift: number;
  /** Bounds that its integers were checked against, where they are known on the host. */
  limits: KnownRange | null;
  /** True if a run overwrites it. */
  written: boolean;
}

/** Memory that a call allocates: results and temporaries. */
export interface Fresh {
  readonly bytes: number;
  readonly sizeClass: number;
}

/** Host data from which the function made a tensor. */
export interface Upload {
  readonly handle: TensorHandle;
  readonly data: TypedArray;
}

/**
 * A position in memory. Slots count inputs first, then uploads; fresh memory is -1, -2 and so on. For inputs the offset counts from the
 * input's beginning.
 */
export interface Place {
  readonly slot: number;
  readonly offset: number;
  readonly bytes: number;
}

/** A number of a command: the number itself, or an index into the numbers of a call. */
export type Scalar = number | bigint | { readonly live: number };

export type Step =
  | {
      readonly kind: 'dispatch';
      readonly kernel: CompiledKernel;
      readonly bindings: readonly Place[];
      readonly scalars: readonly Scalar[];
      readonly groups: Groups | null | undefined;
    }
  | { readonly kind: 'copy'; readonly from: Place; readonly to: Place }
  | { readonly kind: 'fill'; readonly to: Place; readonly pattern: number };

/** A number read at each call, after `after` of its effects: in JavaScript, or as a word of a random key. */
export type Live = { readonly after: number } & (
  | { readonly kind: 'read'; readonly read: () => number; readonly dtype: DType }
  | { readonly kind: 'word'; readonly call: number; readonly path: readonly number[]; readonly word: number }
);

export interface Effect {
  readonly run: () => void;
  readonly undo: (() => void) | undefined;
}

/** A JavaScript value that decides what is recorded. */
export interface Decision {
  readonly read: () => unknown;
  readonly value: unknown;
}

/** Position of a value after a call; `offset` counts elements, from where places count bytes. */
export interface Storage {
  readonly slot: number;
  readonly offset: number;
  readonly strides: readonly number[];
}

/** A tensor that the call made and returned. */
export interface Made extends Storage {
  readonly shape: Shape;
  readonly dtype: DType;
  /** True if its history was used up, so that `backward()` must refuse it. */
  readonly released: boolean;
  readonly label: string;
}

/** A tensor that the call assigned. */
export interface Assigned extends Storage {
  readonly input: number;
  readonly source: number;
  /** True if the new value is where the old one was. */
  readonly inPlace: boolean;
}

/** A tensor in the result: an index into those made, or a source of an input. */
export class Result {
  readonly made: number;
  readonly input: number;
  readonly source: number;

  constructor(made: number, input: number, source: number) {
    this.made = made;
    this.input = input;
    this.source = source;
  }
}

/** What one flush of the call computed. */
export interface Flushed {
  readonly key: Int32Array;
  /** So many numbers of the key say what is computed; those after it, which memory may be overwritten. */
  readonly operations: number;
  /** The kernels of its plan: plans that are bound to sizes of one class have the same list. And these sizes. */
  readonly kernels: readonly KernelEntry[];
  readonly sizes: readonly number[];
  /** Slot and offset of each leaf, two numbers each; fresh memory is -1. */
  readonly leaves: readonly number[];
  readonly scalars: readonly Scalar[];
}

/** Kernels in use by one script, or by several that do the same at several sizes. */
export interface Hold {
  readonly entries: readonly KernelEntry[];
  users: number;
}

export interface Script {
  readonly state: EngineState;
  /** Identifies the set of known plans: if all were forgotten since, kernels may differ. */
  readonly forgotten: object | undefined;
  /** True if gradients flowed to leaves. */
  readonly tracked: boolean;
  readonly inputs: readonly Input[];
  readonly uploads: readonly Upload[];
  /** Null if the memory is an upload's. */
  readonly fresh: readonly (Fresh | null)[];
  readonly steps: readonly Step[];
  readonly flushed: readonly Flushed[];
  readonly live: readonly Live[];
  readonly effects: readonly Effect[];
  readonly decisions: readonly Decision[];
  /** Keys drawn from the generator. */
  readonly draws: number;
  readonly assigned: readonly Assigned[];
  readonly made: readonly Made[];
  /** The result with `Result`s in place of tensors. */
  readonly result: unknown;
  readonly flushes: number;
  readonly kernels: number;
  hold: Hold;
}

/** The number that fills a node, if the graph knows it, whether it is in memory or not. */
export function knownValue(node: Node): number | bigint | null {
  return isOp(node, 'constant') || isOp(node, 'scalar') ? node.attr.value : null;
}

export const sameNumbers = (a: ArrayLike<number>, b: ArrayLike<number>): boolean => {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
};

/** True if two lists have the same length and matching entries. */
export function alike<T>(a: readonly T[], b: readonly T[], same: (x: T, y: T) => boolean): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (!same(a[i]!, b[i]!)) return false;
  return true;
}

const samePlace = (a: Place, b: Place): boolean => a.slot === b.slot && a.offset === b.offset && a.bytes === b.bytes;
const sameScalar = (a: Scalar, b: Scalar): boolean =>
  typeof a === 'object' && typeof b === 'object' ? a.live === b.live : Object.is(a, b);

function sameStep(a: Step, b: Step): boolean {
  if (a.kind === 'dispatch')
    return (
      b.kind === 'dispatch' &&
      a.kernel === b.kernel &&
      alike(a.bindings, b.bindings, samePlace) &&
      alike(a.scalars, b.scalars, sameScalar) &&
      sameNumbers(a.groups ?? [], b.groups ?? [])
    );
  if (a.kind === 'copy') return b.kind === 'copy' && samePlace(a.from, b.from) && samePlace(a.to, b.to);
  return b.kind === 'fill' && samePlace(a.to, b.to) && a.pattern === b.pattern;
}

/** The planner chooses memory, so slots may differ; only fresh must match fresh. */
const sameStorage = (a: Storage, b: Storage): boolean =>
  a.slot < 0 || b.slot < 0
    ? a.slot < 0 && b.slot < 0
    : a.slot === b.slot && a.offset === b.offset && sameNumbers(a.strides, b.strides);

/** Whether two inputs have the same layout; each run checks that itself. */
const liesAlike = (a: Input, b: Input): boolean =>
  a.dtype === b.dtype &&
  sameNumbers(a.shape, b.shape) &&
  sameNumbers(a.strides, b.strides) &&
  a.requiresGrad === b.requiresGrad &&
  Object.is(a.value, b.value) &&
  a.beside === b.beside &&
  a.shift === b.shift;

export const namedAlike = (a: Input, b: Input): boolean =>
  alike(a.sources, b.sources, (x, y) => x.argument === y.argument && (x.argument >= 0 || x.handle === y.handle));

const bytesOf = ({ buffer, byteOffset, byteLength }: TypedArray): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);

export const sameUpload = (a: Upload, b: Upload): boolean =>
  a.handle.dtype === b.handle.dtype &&
  sameNumbers(a.handle.shape, b.handle.shape) &&
  sameNumbers(bytesOf(a.data), bytesOf(b.data));

export function sameResult(a: unknown, b: unknown): boolean {
  if (a instanceof Result)
    return b instanceof Result && a.made === b.made && a.input === b.input && a.source === b.source;
  if (Array.isArray(a)) return Array.isArray(b) && alike(a, b, sameResult);
  if (typeof a !== 'object' || a === null || Object.getPrototypeOf(a) !== Object.prototype) return Object.is(a, b);
  if (typeof b !== 'object' || b === null || Object.getPrototypeOf(b) !== Object.prototype) return false;
  return (
    alike(Object.keys(a), Object.keys(b), (x, y) => x === y) && alike(Object.values(a), Object.values(b), sameResult)
  );
}

export const sameLive = (a: Live, b: Live): boolean =>
  a.after === b.after &&
  (a.kind === 'read'
    ? b.kind === 'read' && a.dtype === b.dtype
    : b.kind === 'word' && a.call === b.call && a.word === b.word && sameNumbers(a.path, b.path));

export const sameDecisions = (a: readonly Decision[], b: readonly Decision[]): boolean =>
  alike(a, b, (x, y) => Object.is(x.value, y.value));

/** How two calls differ, as a phrase for messages; `seen`: a run would have noticed it, and not begun. */
export interface Difference {
  readonly text: string;
  readonly seen: boolean;
}

/** The first relevant difference between two calls; null if there is none. */
export function differenceOf(a: Script, b: Script): Difference | null {
  if (a.state !== b.state) return { text: 'it ran on another engine', seen: true };
  if (!sameDecisions(a.decisions, b.decisions) || a.tracked !== b.tracked)
    return { text: 'a value given to hostValue (such as the mode of a module) is another one', seen: true };
  const text = unseenDifference(a, b);
  if (text !== null) return { text, seen: false };
  const same = alike(a.inputs, b.inputs, liesAlike) && alike(a.flushed, b.flushed, overwritesAlike);
  return same ? null : { text: 'its tensors lie otherwise in memory', seen: true };
}

const computesAlike = (a: Flushed, b: Flushed): boolean =>
  sameNumbers(a.key.subarray(0, a.operations), b.key.subarray(0, b.operations)) && sameNumbers(a.leaves, b.leaves);

/** Memory that a copy of its tensor uses too, as `snapshot` makes them, is not overwritten. A run sees that before it begins. */
const overwritesAlike = (a: Flushed, b: Flushed): boolean => sameNumbers(a.key, b.key);

function unseenDifference(a: Script, b: Script): string | null {
  if (!alike(a.uploads, b.uploads, sameUpload)) return 'data of the host that it makes tensors of is other data';
  if (!alike(a.inputs, b.inputs, namedAlike)) return 'it uses other tensors from outside';
  if (
    a.draws !== b.draws ||
    !alike(a.live, b.live, sameLive) ||
    a.effects.length !== b.effects.length ||
    a.flushed.length !== b.flushed.length
  )
    return 'it records other operations';
  if (!alike(a.inputs, b.inputs, liesAlike)) return null;
  if (!alike(a.flushed, b.flushed, computesAlike)) return 'it records other operations';
  for (const [i, { scalars }] of a.flushed.entries())
    for (const [k, scalar] of scalars.entries()) {
      const other = b.flushed[i]!.scalars[k]!;
      if (!sameScalar(scalar, other)) return `a number in it is ${told(other)}, and was ${told(scalar)}`;
    }
  if (!alike(a.flushed, b.flushed, overwritesAlike)) return null;
  if (!alike(a.assigned, b.assigned, (x, y) => sameStorage(x, y) && x.input === y.input && x.source === y.source))
    return 'it assigns other tensors';
  const sameMade = (x: Made, y: Made): boolean => sameStorage(x, y) && x.released === y.released;
  if (!alike(a.made, b.made, sameMade) || !sameResult(a.result, b.result)) return 'it returns something else';
  return null;
}

const told = (scalar: Scalar): string => (typeof scalar === 'object' ? 'one that is asked for' : String(scalar));

const sameSlot = (a: Storage, b: Storage): boolean =>
  a.slot === b.slot && a.offset === b.offset && sameNumbers(a.strides, b.strides);

/** True if both hand the same commands to the engine: equal work may have been planned again. */
export function sameCommands(a: Script, b: Script): boolean {
  return (
    a.forgotten === b.forgotten &&
    alike(a.inputs, b.inputs, (x, y) => x.written === y.written) &&
    alike(a.fresh, b.fresh, (x, y) => x?.sizeClass === y?.sizeClass) &&
    alike(a.made, b.made, sameSlot) &&
    alike(a.assigned, b.assigned, (x, y) => sameSlot(x, y) && x.inPlace === y.inPlace) &&
    alike(a.steps, b.steps, sameStep)
  );
}

/** Marks arguments free for which both calls had different tensors. */
export function freeArguments(a: Script, b: Script): void {
  for (const [i, { sources }] of a.inputs.entries())
    for (const [k, source] of sources.entries()) {
      const other = b.inputs[i]!.sources[k]!;
      if (source.handle !== other.handle) [source.handle, other.handle] = [null, null];
    }
}

/** Bytes that a script takes, about, with those of its runs, and of what it holds besides kernels. */
export function weightOf({ inputs, uploads, fresh, steps, flushed }: Script): number {
  let bytes = 1024 + 256 * (inputs.length + fresh.length);
  for (const { data } of uploads) bytes += 2 * data.byteLength;
  for (const step of steps) bytes += 256 + (step.kind === 'dispatch' ? 96 * step.bindings.length : 96);
  for (const { key, leaves, scalars } of flushed) bytes += key.byteLength + 8 * (leaves.length + scalars.length);
  return bytes;
}

/** Releases what a script holds. */
export function endScript({ uploads, state, hold }: Script): void {
  for (const { handle } of uploads) handle.dispose();
  state.recordings = (state.recordings ?? 0) - 1;
  dropHold(hold, state);
}

/** Releases kernels that nobody else holds. */
export function dropHold(hold: Hold, { pool, kernelCache }: EngineState): void {
  // A lost engine has no kernels to release.
  if (--hold.users === 0 && pool.lost === null) kernelCache.drop(hold.entries);
}
