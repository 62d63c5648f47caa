/** Loop nests as integers: equal for nests that are lowered to the same programs. Names are for people and do not count. */
import type { KNode, LoopKernel } from '../../ir/ir.ts';
import { type Known, newMark } from '../../ir/node.ts';
import { sourcesFirst } from '../../ir/traverse.ts';
import { IntWriter } from '../capture/encode.ts';

/** Words by number, in this process. */
const codes = new Map<string, number>();
const out = new IntWriter();
/** The mark before that of the first node; those of nodes follow each other. */
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

/** The numbers of nodes, which are described before where they are new, after their sources. */
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
  // Every RANGE has an id of its own.
  for (const name in n.arg) if (name !== 'id') push((n.arg as Record<string, never>)[name]!);
}

/** The integers of a nest and of how it is to be lowered, two letters each. */
export function nestKey({ params, scalars, stores }: LoopKernel, way: string): string {
  before = newMark();
  out.length = 0;
  push(way);
  // Slots that no expression uses any more are in the interface all the same.
  pushNodes(params);
  for (const dtype of scalars) push(dtype);
  for (const { store, ranges } of stores) {
    pushNodes(ranges);
    pushNodes(store.src);
  }
  return textOf(out);
}

/** Integers as a key of a Map. */
export function textOf({ data, length }: IntWriter): string {
  let text = '';
  for (let i = 0; i < length; i++) text += String.fromCharCode(data[i]!, data[i]! >>> 16);
  return text;
}
