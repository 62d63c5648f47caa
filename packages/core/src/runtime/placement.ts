/**
 * Where work and values are: which engine holds which dtypes, and which values a lost device took along. Also which nodes are not in
 * memory yet: the needed ones, those that build on others, and those that are independent of each other.
 */
import type { IEngine } from '../engine/engine.ts';
import { EngineMissingError, UnsupportedError, DeviceLostError } from '../engine/errors.ts';
import { cpuEngine, getEngine } from '../engine/registry.ts';
import type { Node } from '../graph/node.ts';
import type { DType } from '@polygrad/compiler/shape/dtype';
import type { PoolBuffer } from '../engine/pool.ts';
import { showShape } from '@polygrad/compiler/shape/errors';
import { runs } from './state.ts';

/** True if the engine holds the dtypes of a node and of everything it is computed from. */
export function holds(engine: IEngine, node: Node): boolean {
  const { dtypes } = engine.caps;
  return dtypes.has(node.dtype) && node.src.every((source) => dtypes.has(source.dtype));
}

/** True for numbers and positions, which become part of any kernel that uses them. */
export function isFree(node: Node): boolean {
  return node.src.length === 0 && node.op !== 'buffer';
}

/** The engine that holds a dtype: the current one, or the CPU engine. Throws if there is none, or none yet. */
export function engineFor(where: string, dtype: DType): IEngine {
  const current = getEngine();
  if (current.caps.dtypes.has(dtype)) return current;
  const cpu = cpuEngine();
  if (cpu !== null && 'then' in cpu) {
    throw new EngineMissingError(
      where,
      `engine '${current.name}' does not hold ${dtype}, and the cpu engine, which does, is still starting; call await setEngine('cpu') once before setEngine('${current.name}')`,
    );
  }
  if (cpu === null) throw noCpu(where, dtype, current);
  if (!cpu.caps.dtypes.has(dtype)) throw heldByNone(where, dtype, current, cpu);
  return cpu;
}

export function noCpu(where: string, dtype: DType, current: IEngine): EngineMissingError {
  return new EngineMissingError(
    where,
    `engine '${current.name}' does not hold ${dtype}, only ${[...current.caps.dtypes].join(', ')}, and no cpu engine is there to hold it; ` +
      `import '@polygrad/backend-cpu', or cast to a dtype that '${current.name}' holds`,
  );
}

export function heldByNone(where: string, dtype: DType, current: IEngine, cpu: IEngine): UnsupportedError {
  const names = [...new Set([current.name, cpu.name])].map((name) => `'${name}'`).join(' nor ');
  return new UnsupportedError(where, `no engine here holds ${dtype}: neither ${names}; cast to another dtype`);
}

/** Name of the engine that will compute the node. */
export function placeOfNode(node: Node): string {
  const current = runs.placer?.engineOf(node) ?? getEngine();
  return holds(current, node) ? current.name : 'cpu';
}

/** Leaves of lost engines of which a copy exists, and the error of the loss. */
const rescued = new WeakMap<Node, DeviceLostError>();

/** Why a leaf's memory is gone: its engine was lost, or was disposed after the engine before it was lost. */
function lossOf(leaf: Node): DeviceLostError | null {
  const { lost, disposed } = (leaf.storage!.buffer as PoolBuffer).pool;
  return lost ?? (disposed ? (rescued.get(leaf) ?? null) : null);
}

/** True if a leaf's value is gone. If another engine has a copy, the leaf takes that. */
export function isGone(leaf: Node): boolean {
  const loss = lossOf(leaf);
  if (loss === null || leaf.shape.includes(0)) return false;
  const buffer = leaf.storage!.buffer as PoolBuffer;
  const there = buffer.copies?.findAlive(leaf) ?? null;
  if (there === null) return true;
  there.buffer.retain();
  leaf.storage = there;
  rescued.set(leaf, loss);
  buffer.release();
  return false;
}

/** The error of reading a value that is gone. */
export function goneError(leaf: Node): DeviceLostError {
  const { shape, dtype, op } = leaf;
  const lost = lossOf(leaf)!;
  const made = op === 'buffer' ? 'made from data' : `made by '${op}'`;
  return new DeviceLostError(
    lost.engine,
    lost.device,
    `${lost.reason}; ${dtype} ${showShape(shape)} ${made} lived only there`,
    { cause: lost },
  );
}

/** Nodes that are not in memory yet. */
export function open(nodes: readonly Node[]): readonly Node[] {
  return nodes.filter((node) => node.storage === null);
}

const isNeeded = (node: Node): boolean => node.storage === null && node.edges !== 'dead';

/** Nodes that have users and are not in memory. */
export function needed(nodes: readonly Node[]): readonly Node[] {
  // Usually all.
  for (let i = 0; i < nodes.length; i++) if (!isNeeded(nodes[i]!)) return nodes.filter(isNeeded);
  return nodes;
}

/** True if one of the nodes, or an unrealised source of them, is in `group`. */
export function buildsOn(nodes: readonly Node[], group: ReadonlySet<Node>): boolean {
  const seen = new Set(nodes);
  for (const node of seen) {
    if (group.has(node)) return true;
    for (const source of node.src) if (source.storage === null) seen.add(source);
  }
  return false;
}

/** Groups of roots that share no unrealised node; all of `together` are in one group. In the order of their first roots. */
export function componentsOf(roots: readonly Node[], together: ReadonlySet<Node>): Node[][] {
  const parent = roots.map((_, i) => i);
  const top = (i: number): number => {
    let at = i;
    while (parent[at] !== at) at = parent[at] = parent[parent[at]!]!;
    return at;
  };
  const owner = new Map<Node, number>();
  let first = -1;
  const join = (i: number, j: number): void => {
    const [a, b] = [top(i), top(j)];
    parent[Math.max(a, b)] = Math.min(a, b);
  };
  roots.forEach((root, i) => {
    if (together.has(root)) {
      if (first >= 0) join(first, i);
      else first = i;
    }
    const stack = [root];
    for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
      if (node.storage !== null || (isFree(node) && node !== root)) continue;
      const other = owner.get(node);
      if (other !== undefined) {
        join(other, i);
        continue;
      }
      owner.set(node, i);
      stack.push(...node.src);
    }
  });
  const parts = new Map<number, Node[]>();
  roots.forEach((root, i) => {
    const at = top(i);
    const part = parts.get(at) ?? [];
    part.push(root);
    parts.set(at, part);
  });
  return [...parts.values()];
}
