/**
 * Memories printed as arrays of vec4: those whose every access is of whole groups of four elements, provably so. Everything else is
 * an array of scalars.
 */
import type { KNode, Program } from '@polygrad/core/kernel';

const most = 1 << 16;

/** Names of the memories to declare as arrays of vec4; `nameOf` gives one name to parameters that are the same memory. */
export function packedMemories(program: Program, nameOf: (mem: KNode) => string): ReadonlySet<string> {
  const divisors = new Map<KNode, number>();
  const good = new Set<string>();
  const bad = new Set<string>();
  for (const n of program.body) {
    if (n.op !== 'LOAD' && n.op !== 'STORE' && n.op !== 'ATOMIC') {
      divisors.set(n, divisorOf(n, divisors));
      continue;
    }
    const [mem, index, value] = n.src as readonly [KNode, KNode, KNode?];
    if (mem.op !== 'PARAM' && mem.op !== 'SHARED') continue;
    const lanes = n.op === 'LOAD' ? n.lanes : (value?.lanes ?? 1);
    const whole = n.op !== 'ATOMIC' && mem.dtype !== 'bool' && lanes % 4 === 0 && (divisors.get(index) ?? 1) % 4 === 0;
    (whole ? good : bad).add(nameOf(mem));
  }
  for (const name of bad) good.delete(name);
  return good;
}

/** A power of two that divides an integer value for certain. */
function divisorOf(n: KNode, known: ReadonlyMap<KNode, number>): number {
  const of = (i: number): number => known.get(n.src[i] as KNode) ?? 1;
  switch (n.op) {
    case 'CONST': {
      const value = Number(n.arg.value);
      return value === 0 ? most : Math.min(most, value & -value);
    }
    case 'MUL':
      return Math.min(most, of(0) * of(1));
    case 'SHL':
      return n.src[1]?.op === 'CONST' ? Math.min(most, of(0) * 2 ** (Number(n.src[1].arg.value) & 31)) : of(0);
    case 'AND':
      return Math.max(of(0), of(1));
    case 'ADD':
    case 'SUB':
    case 'MAX':
    case 'MIN':
    case 'OR':
    case 'XOR':
      return Math.min(of(0), of(1));
    case 'WHERE':
      return Math.min(of(1), of(2));
    case 'NEG':
      return of(0);
    default:
      return 1;
  }
}
