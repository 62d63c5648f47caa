/**
 * Lanes of a vector, or neighbours in memory, that are added up, multiplied or compared by halves: the upper half and the lower half, then the halves of what
 * that gives. A few operations on vectors do what the program says with one for each lane, in the same order.
 */
import { type KNode, type KNodeOf, linearOf, type Program, type Uses } from '@polygrad/core/kernel';
import type { Reg, Lowered } from '../form/code.ts';
import type { Context } from '../form/machine.ts';
import { kindOf, widthOf } from '../target.ts';

/** What is combined: a vector, or elements of memory from a load on. */
export interface Fold {
  readonly source: KNode;
  readonly lanes: number;
}

/** The folds of a program by their last operation, and the nodes that are parts of them. */
export interface Folds {
  readonly roots: ReadonlyMap<KNode, Fold>;
  readonly inside: ReadonlySet<KNode>;
}

const combining: ReadonlySet<string> = new Set(['ADD', 'MUL', 'MAX', 'MIN']);

/** Operations between a fold's first lane and its last operation that would tell when a lane is read. */
const orders: ReadonlySet<string> = new Set(['STORE', 'LOOP', 'ENDLOOP', 'IF', 'ENDIF', 'BARRIER']);

/** Finds them, for registers of `vectorBytes` bytes. */
export function findFolds({ body }: Program, uses: Uses, vectorBytes: number): Folds {
  const roots = new Map<KNode, Fold>();
  const inside = new Set<KNode>();
  // Lanes and loads that no store and no border of a block stands behind.
  const recent = new Set<KNode>();
  for (const n of body) {
    if (n.op === 'LANE' || n.op === 'LOAD') recent.add(n);
    else if (orders.has(n.op)) recent.clear();
    if (n.lanes !== 1 || !combining.has(n.op) || !isLast(n, uses, body)) continue;
    const count = leavesOf(n);
    if (count * (n.dtype === 'float64' ? 8 : 4) < 16) continue;
    const nodes: KNode[] = [];
    const leaves = new Array<KNode>(count);
    if (!collect(n, 0, 1, { op: n.op, leaves, nodes }, uses) || !leaves.every((leaf) => recent.has(leaf))) continue;
    const source = sourceOf(leaves, n.dtype === 'float32' ? vectorBytes : 0);
    if (source === null) continue;
    roots.set(n, { source, lanes: count });
    for (const node of nodes) if (node !== n) inside.add(node);
  }
  return { roots, inside };
}

function isCombined({ op, lanes, dtype }: KNode): boolean {
  if (lanes !== 1 || !combining.has(op)) return false;
  // Of integers those that positions of extrema need.
  return dtype === 'float32' || dtype === 'float64' || (dtype === 'int32' && (op === 'MIN' || op === 'MAX'));
}

/** True for an operation that is no part of a larger tree. */
function isLast(n: KNode, uses: Uses, body: Program['body']): boolean {
  if (!isCombined(n)) return false;
  const use = uses.get(n);
  if (use === undefined) return false;
  const user = body[use.at];
  return !(use.count === 1 && user !== undefined && user.op === n.op && isCombined(user) && leavesOf(user) > 0);
}

/** The number of leaves of a whole tree of two operands each, along its first operands; 0 if it has no leaf to fold. */
function leavesOf(n: KNode): number {
  let count = 1;
  let node = n;
  for (; node.op === n.op && isCombined(node) && count <= 64; node = node.src[0]!) count *= 2;
  return node.op === 'LANE' || node.op === 'LOAD' ? count : 0;
}

/** A tree of one operation: its nodes, and its leaves in order. */
interface Tree {
  readonly op: string;
  readonly leaves: KNode[];
  readonly nodes: KNode[];
}

/** Collects the leaves that a node combines: every `step`th from `first` on. False if it is no such tree. */
function collect(n: KNode, first: number, step: number, tree: Tree, uses: Uses): boolean {
  const { op, leaves, nodes } = tree;
  if (step > 1 && uses.get(n)?.count !== 1) return false;
  nodes.push(n);
  if (step === leaves.length) {
    leaves[first] = n;
    return true;
  }
  if (n.op !== op || !isCombined(n)) return false;
  const [x, y] = n.src as readonly [KNode, KNode];
  return collect(x, first, step * 2, tree, uses) && collect(y, first + step, step * 2, tree, uses);
}

/** The vector whose lanes these are, all of them and in order, or the load from whose element on they lie; or null. */
function sourceOf(leaves: readonly KNode[], loadBytes: number): KNode | null {
  const [first] = leaves as [KNode];
  if (first.op === 'LANE') {
    const [vector] = first.src;
    const whole = vector.lanes === leaves.length;
    return whole && leaves.every((n, i) => n.op === 'LANE' && n.src[0] === vector && n.arg.lane === i) ? vector : null;
  }
  if (leaves.length * 4 > loadBytes || !isElement(first)) return null;
  const { terms, coefs, offset } = linearOf(first.src[1]);
  const follows = leaves.every((n, i) => {
    if (!isElement(n) || n.src[0] !== first.src[0]) return false;
    const form = linearOf(n.src[1]);
    if (form.offset !== offset + i || form.terms.length !== terms.length) return false;
    return form.terms.every((t, k) => t === terms[k] && form.coefs[k] === coefs[k]);
  });
  return follows ? first : null;
}

function isElement(n: KNode): n is KNodeOf<'LOAD'> {
  return n.op === 'LOAD' && n.lanes === 1 && n.src.length === 2 && n.src[0].op !== 'REG';
}

/** Lowers the last operation of a fold of these parts. */
export function lowerFold(ctx: Context, n: KNode, parts: readonly Reg[], lanes: number): Lowered {
  const { machine, target } = ctx;
  const kind = kindOf(n.dtype);
  const width = widthOf(kind);
  const at = (bytes: number, x: Reg, y: Reg): Reg => machine.operations.vector(ctx, n, kind, bytes)!([x, y]);
  let now = parts;
  for (; now.length > 1; ) {
    const half = now.length / 2;
    const upper = now.slice(half);
    now = now.slice(0, half).map((x, i) => at(target.vectorBytes, x, upper[i]!));
  }
  let [v] = now as [Reg];
  for (let bytes = Math.min(target.vectorBytes, lanes * width); bytes > 2 * width; bytes /= 2) {
    const upper = machine.lanes.half(ctx, v, bytes, true);
    v = at(Math.max(16, bytes / 2), machine.lanes.half(ctx, v, bytes, false), upper);
  }
  const lane = (i: number): Reg => machine.lanes.extract(ctx, kind, { parts: [v], width }, i);
  return { parts: [machine.operations.scalar(ctx, n.op, kind, [lane(0), lane(1)], null)], width };
}
