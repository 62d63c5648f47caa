/** Elements that lanes of vectors are: a load each, or one of those that a LOAD with a step reads; and the rows that they are neighbours in. */
import {
  blocksOf,
  idOf,
  type KNode,
  type KNodeOf,
  linearOf,
  type Program,
  type RunPlace,
  type Uses,
} from '@polygrad/core/kernel';

/** An element: so many behind the index of a load. */
export interface Element {
  readonly load: KNodeOf<'LOAD'>;
  readonly by: number;
}

/** The load with a step that a lane is of, or null: such a lane is read from memory. */
export function steppedOf(n: KNode): KNodeOf<'LOAD'> | null {
  return n.op === 'LANE' && n.src[0].op === 'LOAD' && n.src[0].arg !== null ? n.src[0] : null;
}

/** Loads with a step of which nothing but single lanes is asked. `whole`: those that are asked for besides. */
export function findTakenApart({ body }: Program, uses: Uses, whole: ReadonlySet<KNode>): ReadonlySet<KNode> {
  const lanes = new Map<KNode, number>();
  for (const n of body) {
    const load = n.op === 'LANE' ? steppedOf(n) : null;
    if (load !== null && uses.has(n) && !whole.has(load)) lanes.set(load, (lanes.get(load) ?? 0) + 1);
  }
  return new Set([...lanes].filter(([load, count]) => uses.get(load)?.count === count).map(([load]) => load));
}

/** Elements of one row lie less than so many apart. */
const nearby = 4;

/** The elements of a vector, of which all are loads; null: another one. Scalar loads come from `scalars`, so that one is one element. */
export function elementsOf(n: KNode, scalars: Map<KNode, Element>): readonly Element[] | null {
  if (n.op === 'LOAD') {
    if (n.arg === null) return null;
    const { step } = n.arg;
    return Array.from({ length: n.lanes }, (_, k) => ({ load: n, by: k * step }));
  }
  if (n.op !== 'VEC' || n.src.length < 2) return null;
  const made: Element[] = [];
  for (const load of n.src) {
    if (load.op !== 'LOAD') return null;
    let element = scalars.get(load);
    if (element === undefined) scalars.set(load, (element = { load, by: 0 }));
    made.push(element);
  }
  return made;
}

/** Where elements stand in rows: those at constant distances in one block, with the same gate or none. */
export function findRows(program: Program, vectors: Iterable<readonly Element[]>): ReadonlyMap<Element, RunPlace> {
  const wanted = new Map<KNode, Set<Element>>();
  for (const elements of vectors) {
    for (const element of elements) {
      const own = wanted.get(element.load);
      if (own === undefined) wanted.set(element.load, new Set([element]));
      else own.add(element);
    }
  }
  const places = new Map<Element, RunPlace>();
  if (wanted.size === 0) return places;
  const groups = new Map<string, Placed[]>();
  const around = blocksOf(program);
  for (const [at, n] of program.body.entries()) {
    const own = wanted.get(n);
    if (own === undefined || n.op !== 'LOAD') continue;
    const { terms, coefs, offset } = linearOf(n.src[1]);
    // Terms are in the order of their numbers.
    const sum = terms.map((t, k) => `${idOf(t)}*${coefs[k]}`);
    const key = `${around[at]} ${idOf(n.src[0])} ${n.src[2] && idOf(n.src[2])} ${sum.join('+')}`;
    let group = groups.get(key);
    if (group === undefined) groups.set(key, (group = []));
    for (const element of own) group.push({ element, at: offset + element.by });
  }
  for (const group of groups.values()) cutIntoRows(group, places);
  return places;
}

interface Placed {
  readonly element: Element;
  readonly at: number;
}

function cutIntoRows(group: Placed[], places: Map<Element, RunPlace>): void {
  group.sort((a, b) => a.at - b.at);
  for (let start = 0; start < group.length; ) {
    let end = start + 1;
    while (end < group.length && group[end]!.at - group[end - 1]!.at < nearby) end++;
    const { element, at } = group[start]!;
    const length = group[end - 1]!.at - at + 1;
    const run = { first: element.load, from: element.by, length };
    if (length > 1)
      for (let i = start; i < end; i++) places.set(group[i]!.element, { run, position: group[i]!.at - at });
    start = end;
  }
}
