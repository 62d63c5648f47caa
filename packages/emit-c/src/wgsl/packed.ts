/**
 * Memories printed as arrays of vec4: those whose every access is of whole groups of four elements, provably so. Everything else is
 * an array of scalars. Their indices are divided by four where they are computed, term by term, so that no access divides.
 */
import { type KNode, type Program, type ProgramNode, uniqueNode, withSources } from '@polygrad/core/kernel';
import { divisorOf } from '@polygrad/core/kernel/emitters';

export interface Packed {
  /** The program with the indices of packed memories in groups of four. */
  readonly program: Program;
  /** Names of the memories to declare as arrays of vec4. */
  readonly names: ReadonlySet<string>;
}

/** Finds the memories to pack; `nameOf` gives one name to parameters that are the same memory. */
export function packMemories(program: Program, nameOf: (mem: KNode) => string): Packed {
  const divisors = new Map<KNode, number>();
  const good = new Set<string>();
  const bad = new Set<string>();
  for (const n of program.body) {
    if (n.op !== 'LOAD' && n.op !== 'STORE' && n.op !== 'ATOMIC') {
      divisors.set(n, divisorOf(n, divisors));
      continue;
    }
    const [mem, index, value] = n.src;
    if (mem.op !== 'PARAM' && mem.op !== 'SHARED') continue;
    const lanes = n.op === 'LOAD' ? n.lanes : (value?.lanes ?? 1);
    const whole = n.op !== 'ATOMIC' && mem.dtype !== 'bool' && lanes % 4 === 0 && (divisors.get(index) ?? 1) % 4 === 0;
    (whole ? good : bad).add(nameOf(mem));
  }
  for (const name of bad) good.delete(name);
  return good.size === 0
    ? { program, names: good }
    : { program: inQuarters(program, good, nameOf, divisors), names: good };
}

/** The same program with the indices of these memories divided by four. */
function inQuarters(
  program: Program,
  names: ReadonlySet<string>,
  nameOf: (mem: KNode) => string,
  divisors: ReadonlyMap<KNode, number>,
): Program {
  const { body } = program;
  const isPacked = (n: KNode): boolean => {
    const mem = n.src[0];
    if (n.op !== 'LOAD' && n.op !== 'STORE') return false;
    return (mem?.op === 'PARAM' || mem?.op === 'SHARED') && names.has(nameOf(mem));
  };
  const isSum = (n: KNode): boolean =>
    (n.op === 'ADD' || n.op === 'SUB' || n.op === 'MIN' || n.op === 'MAX') &&
    n.src.every((s) => (divisors.get(s) ?? 1) % 4 === 0);
  // Backwards: what is wanted divided by four, down to the terms.
  const wanted = new Set<KNode>();
  for (let at = body.length - 1; at >= 0; at--) {
    const n = body[at]!;
    if (isPacked(n)) wanted.add(n.src[1]!);
    if (wanted.has(n) && isSum(n)) for (const s of n.src) wanted.add(s);
  }
  const now = new Map<KNode, KNode>();
  const quarters = new Map<KNode, KNode>();
  const out: ProgramNode[] = [];
  const add = (n: ProgramNode): KNode => {
    out.push(n);
    return n;
  };
  const int = (op: 'ADD' | 'MUL' | 'SHR' | 'SUB' | 'MIN' | 'MAX', src: readonly KNode[]): KNode =>
    add(uniqueNode(op, 'int32', 1, src, null));
  const number = (value: number): KNode => add(uniqueNode('CONST', 'int32', 1, [], { value }));
  for (const n of body) {
    const src = n.src.map((s) => now.get(s) ?? s);
    if (isPacked(n)) src[1] = quarters.get(n.src[1]!) as KNode;
    const node = add(src.every((s, i) => s === n.src[i]) ? n : withSources(n, src));
    now.set(n, node);
    if (!wanted.has(n)) continue;
    const [x, y] = n.src as readonly KNode[];
    if (n.op === 'CONST') quarters.set(n, number(Number(n.arg.value) / 4));
    else if (isSum(n))
      quarters.set(
        n,
        int(
          n.op as 'ADD',
          n.src.map((s) => quarters.get(s) as KNode),
        ),
      );
    else if (n.op === 'MUL' && y?.op === 'CONST' && Number(y.arg.value) % 4 === 0) {
      const by = Number(y.arg.value) / 4;
      quarters.set(n, by === 1 ? (now.get(x as KNode) ?? (x as KNode)) : int('MUL', [src[0]!, number(by)]));
    } else quarters.set(n, int('SHR', [node, number(2)]));
  }
  return { ...program, body: out };
}
