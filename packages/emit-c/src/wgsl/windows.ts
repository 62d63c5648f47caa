/**
 * Vectors that overlap in memory, as those of a window that moves by one element do, share their elements: WGSL gathers unaligned vectors element
 * by element, and compilers of software devices would gather each of them again.
 */
import {
  blocksOf,
  type KNode,
  type KNodeOf,
  type Program,
  type ProgramNode,
  uniqueNode,
  withSources,
} from '@polygrad/core/kernel';

/** A vector read from memory that the program only reads: from so many elements behind a value. */
interface Reading {
  readonly group: string;
  readonly root: KNode;
  readonly offset: number;
}

/** The value an index counts from, and the constant added to it. */
function placeOf(index: KNode): { readonly root: KNode; readonly offset: number } {
  let [root, offset] = [index, 0];
  for (;;) {
    const [x, y] = root.src as readonly KNode[];
    if (root.op !== 'ADD' || y?.op !== 'CONST') return { root, offset };
    offset += Number(y.arg.value);
    root = x as KNode;
  }
}

/** The loads that may share elements: without a gate, by the block they are in, their memory and what they count from. */
function readingsOf(program: Program, eligible: (mem: KNode) => string | null): ReadonlyMap<KNode, Reading> {
  const roots = new Map<KNode, number>();
  const readings = new Map<KNode, Reading>();
  const around = blocksOf(program);
  for (const [at, n] of program.body.entries()) {
    if (n.op !== 'LOAD' || n.lanes === 1 || n.src.length > 2) continue;
    const title = eligible(n.src[0]!);
    if (title === null) continue;
    const { root, offset } = placeOf(n.src[1]!);
    if (!roots.has(root)) roots.set(root, roots.size);
    readings.set(n, { group: `${around[at]} ${title} ${roots.get(root)}`, root, offset });
  }
  return readings;
}

/** Groups of loads that read some element more than once. */
function overlapping(readings: ReadonlyMap<KNode, Reading>): ReadonlySet<string> {
  const seen = new Map<string, Set<number>>();
  const found = new Set<string>();
  for (const [n, { group, offset }] of readings) {
    let elements = seen.get(group);
    if (elements === undefined) seen.set(group, (elements = new Set()));
    for (let i = offset; i < offset + n.lanes; i++) {
      if (elements.has(i)) found.add(group);
      elements.add(i);
    }
  }
  return found;
}

/**
 * The program with overlapping vectors made of elements that are read once.
 *
 * @param nameOf gives one name to parameters that are the same memory
 * @param packed names of the memories that are read as vectors
 */
export function shareElements(program: Program, nameOf: (mem: KNode) => string, packed: ReadonlySet<string>): Program {
  const written = new Set(program.params.filter((p) => p.arg.access !== 'read').map(nameOf));
  const readings = readingsOf(program, (mem) => {
    if (mem.op !== 'PARAM') return null;
    const title = nameOf(mem);
    return written.has(title) || packed.has(title) ? null : title;
  });
  const groups = overlapping(readings);
  if (groups.size === 0) return program;
  const now = new Map<KNode, KNode>();
  const elements = new Map<string, KNode>();
  const body: ProgramNode[] = [];
  const add = (n: ProgramNode): KNode => {
    body.push(n);
    return n;
  };
  const element = (load: KNodeOf<'LOAD'>, { group, root, offset }: Reading, lane: number): KNode => {
    const key = `${group} ${offset + lane}`;
    let found = elements.get(key);
    if (found === undefined) {
      let at = now.get(root) ?? root;
      const value = offset + lane;
      if (value !== 0) {
        const by = add(uniqueNode('CONST', 'int32', 1, [], { value }));
        at = add(uniqueNode('ADD', 'int32', 1, [at, by], null));
      }
      found = add(uniqueNode('LOAD', load.dtype, 1, [load.src[0], at], null));
      elements.set(key, found);
    }
    return found;
  };
  for (const n of program.body) {
    const reading = readings.get(n);
    if (n.op === 'LOAD' && reading !== undefined && groups.has(reading.group)) {
      const lanes = Array.from({ length: n.lanes }, (_, lane) => element(n, reading, lane));
      now.set(n, add(uniqueNode('VEC', n.dtype, n.lanes, lanes, null)));
      continue;
    }
    const src = n.src.map((s) => now.get(s) ?? s);
    now.set(n, add(src.every((s, i) => s === n.src[i]) ? n : withSources(n, src)));
  }
  return { ...program, body };
}
