/**
 * When two programs print as the same code: a hash that is equal then, and the comparison that decides.
 *
 * Names, costs and tensor lengths are left out; the grid counts, because group indices are derived from it.
 */
import { highOf, type KNode, lowOf, type Program } from '@polygrad/core/kernel';

/** Equal for programs with the same code; others seldom share it. It looks at operations and constants, not at what feeds what. */
export function hashProgram(p: Program): number {
  let h = mix(mix(mix(p.params.length, p.scalars.length), p.grid[0]), p.grid[1] * 65599 + p.grid[2]);
  for (const n of p.body) {
    const { op } = n;
    h = mix(h, op.length * 64 + op.charCodeAt(op.length >> 1) + n.lanes * 4096);
    if (op === 'CONST') h = mix(h, Number(n.arg.value));
  }
  return h;
}

function mix(h: number, x: number): number {
  h = Math.imul(h ^ (x | 0), 0x9e3779b1);
  return h ^ (h >>> 15);
}

/** True if the emitter prints the same code for both. */
export function sameCode(p: Program, q: Program): boolean {
  if (p === q) return true;
  if (p.body.length !== q.body.length || p.params.length !== q.params.length) return false;
  if (p.grid.join() !== q.grid.join() || p.group.join() !== q.group.join()) return false;
  if (p.scalars.join() !== q.scalars.join()) return false;
  const partner = new Map<KNode, KNode>();
  for (let i = 0; i < p.body.length; i++) {
    const a = p.body[i]!;
    const b = q.body[i]!;
    if (a.op !== b.op || a.dtype !== b.dtype || a.lanes !== b.lanes || a.src.length !== b.src.length) return false;
    for (let k = 0; k < a.src.length; k++) if (partner.get(a.src[k]!) !== b.src[k]) return false;
    if (!sameArgument(a, b) || !sameSigns(a, b)) return false;
    partner.set(a, b);
  }
  return true;
}

/** Integers: the emitter uses what is known of their signs, which may come from outside the program. */
function sameSigns(a: KNode, b: KNode): boolean {
  if (a.dtype !== 'int32' && a.dtype !== 'uint32') return true;
  if (lowOf(a) >= 0 !== lowOf(b) >= 0 || lowOf(a) > 0 !== lowOf(b) > 0) return false;
  return highOf(a) <= 0x7fffffff === highOf(b) <= 0x7fffffff;
}

/** What the emitter reads of nodes' arguments. */
const read: Readonly<Record<string, readonly string[]>> = {
  PARAM: ['slot', 'access'],
  SCALAR: ['slot'],
  CONST: ['value'],
  REG: ['length'],
  SHARED: ['length'],
  SPECIAL: ['kind', 'axis'],
  LANE: ['lane'],
  ATOMIC: ['op'],
  LOOP: ['unrollHint'],
};

/** Compares the arguments of two nodes; their operations are equal. */
function sameArgument(a: KNode, b: KNode): boolean {
  const [x, y] = [a.arg, b.arg] as readonly Readonly<Record<string, unknown>>[];
  return (read[a.op] ?? []).every((field) => Object.is(x?.[field], y?.[field]));
}
