/**
 * Long sides of WHERE that most data never take: computed only where a lane needs them.
 *
 * Functions are exact for every argument. What the largest ones need (a remainder of numbers a hundred binary digits apart, say) may be many times
 * the work of the others. Decompositions choose between both by WHERE; here the long side is put into an IF that asks whether any lane takes it.
 * What a lane gets does not depend on the others.
 */
import type { KNode, Program } from './ir.ts';
import { blocksOf, type Uses } from './uses.ts';

/** A WHERE, with what only one of its sides needs. */
export interface RareSide {
  /** Number of the side among the operands. */
  readonly side: 1 | 2;
  /** In the order of the body. */
  readonly nodes: readonly KNode[];
}

/** Operations below which a jump costs more than it saves. */
const leastNodes = 40;
/** Programs below this have no such side: most are far shorter. */
const leastBody = 60;

const never: ReadonlySet<string> = new Set([
  'LOAD',
  'VEC',
  'LANE',
  'LOOP',
  'IF',
  'ATOMIC',
  'STORE',
  'PARAM',
  'SCALAR',
  'SPECIAL',
  'REG',
  'SHARED',
]);

/**
 * What rare sides there are, and all nodes that are computed there.
 *
 * @example
 * const b = new ProgramBuilder();
 * const x = b.e.param(0, 'float32', 'readwrite', 8);
 * b.loop(b.e.i32(8), (i) => b.store(x, i, b.e.unary('EXP', b.e.load(x, i))));
 * const program = b.build({ name: 'exp' });
 * findRareSides(program, usesOf(program.body, operandsOf)).sides.size; // 0
 */
export function findRareSides(
  program: Program,
  uses: Uses,
): { readonly sides: ReadonlyMap<KNode, RareSide>; readonly inside: ReadonlySet<KNode> } {
  const { body } = program;
  const sides = new Map<KNode, RareSide>();
  const inside = new Set<KNode>();
  if (body.length < leastBody) return { sides, inside };
  /** Of each node the block it stands in. */
  let blocks: ReadonlyMap<KNode, number> | null = null;
  for (let at = 0; at < body.length; at++) {
    const n = body[at]!;
    if (n.op !== 'WHERE' || n.dtype === 'bool' || !uses.has(n)) continue;
    for (const side of [1, 2] as const) {
      // Most sides are short, whichever blocks their nodes stand in.
      if (onlyFor(n, side, uses, null).length < leastNodes) continue;
      const around = blocksOf(program);
      blocks ??= new Map(body.map((x, at) => [x, around[at]!]));
      // What an inner WHERE defers stays its own.
      const own = new Set(onlyFor(n, side, uses, blocks).filter((x) => !inside.has(x)));
      if (own.size < leastNodes) continue;
      for (const x of own) inside.add(x);
      sides.set(n, { side, nodes: body.filter((x) => own.has(x)) });
      break;
    }
  }
  return { sides, inside };
}

/** Pure nodes of the same block, or where no blocks are given of any, that nothing needs but this side. */
function onlyFor(where: KNode, side: 1 | 2, uses: Uses, blocks: ReadonlyMap<KNode, number> | null): KNode[] {
  const block = blocks?.get(where);
  const found: KNode[] = [];
  const counted = new Map<KNode, number>();
  const stack: KNode[] = [];
  const use = (n: KNode): void => {
    const count = (counted.get(n) ?? 0) + 1;
    counted.set(n, count);
    if (count < (uses.get(n)?.count ?? 0) || never.has(n.op) || blocks?.get(n) !== block) return;
    found.push(n);
    stack.push(n);
  };
  use(where.src[side]!);
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) for (const s of n.src) use(s);
  return found;
}
