/**
 * Loop nests in the kernel cache: their keys, and how a new one is lowered.
 *
 * The key of a kernel is its loop nest as integers.
 */
import { lowerPlain } from '@polygrad/compiler/codegen/plain';
import type { KNode, LoopKernel } from '@polygrad/compiler/ir/ir';
import { type Known, newMark, sourcesFirst } from '@polygrad/compiler/ir/node';
import type { IEngine } from '../../engine/engine.ts';
import { IntWriter, textOf } from '../capture/cache.ts';
import type { KernelCache, KernelEntry } from './kernel-cache.ts';
import type { LoweredKernel } from './lower.ts';

// Loop nests as integers: equal for nests that are lowered to the same programs. Names do not count.

/** A number for each string, valid in this process. */
const codes = new Map<string, number>();
const out = new IntWriter();
/** The mark before the current nest: its nodes get the marks after it, so a larger mark means "described already". */
let before = 0;

const isKnown = (n: KNode): boolean => (n as Known).mark > before;
const sourcesOf = (n: KNode): readonly KNode[] => n.src;

function push(value: string | number | bigint): void {
  out.reserve(3);
  if (typeof value !== 'string') out.number(value);
  else {
    if (!codes.has(value)) codes.set(value, codes.size);
    out.push(codes.get(value)!);
  }
}

/** Pushes the numbers of nodes; a node seen for the first time is described first, after its sources. */
function pushNodes(nodes: readonly KNode[]): void {
  for (const root of nodes) sourcesFirst(root, isKnown, sourcesOf, describe);
  out.reserve(nodes.length + 1);
  out.list(nodes.map((n) => (n as Known).mark - before));
}

function describe(n: KNode): void {
  (n as Known).mark = newMark();
  push(n.op);
  push(n.dtype);
  push(n.lanes);
  pushNodes(n.src);
  // Every RANGE has a distinct id, so ids do not count.
  for (const name in n.arg) if (name !== 'id') push((n.arg as Record<string, never>)[name]!);
}

/** A loop nest, and the way it is lowered, as a key of a Map. */
function nestKey({ params, scalars, stores }: LoopKernel, way: string): string {
  before = newMark();
  out.length = 0;
  push(way);
  // Slots that no expression uses are still part of the interface.
  pushNodes(params);
  for (const dtype of scalars) push(dtype);
  for (const { store, ranges } of stores) {
    pushNodes(ranges);
    pushNodes(store.src);
  }
  return textOf(out);
}

/** The entry of a loop nest; lowered but not compiled if it is new. */
export function entryOf(kernels: KernelCache, { loop, isContraction, e }: LoweredKernel, engine: IEngine): KernelEntry {
  return kernels.findOr(nestKey(loop, isContraction ? 'contraction' : 'loops'), () => {
    const { caps } = engine;
    return caps.lowering[isContraction ? 'contraction' : 'pairs']?.(loop, e, engine) ?? lowerPlain(loop, caps);
  });
}
