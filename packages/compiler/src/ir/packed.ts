/**
 * Programs as lists of integers: what is kept of those that are compiled. Their nodes take ten times the memory, and a page that
 * meets many shapes has thousands of programs. unpacked.ts makes nodes of them again.
 */
import { showAs } from '#shown-as';
import type { KNode, Program } from './ir.ts';
import { type Known, newMark, sourcesFirst } from './node.ts';

/** All of a program but its nodes, and those as integers. */
export interface PackedProgram {
  readonly head: Omit<Program, 'params' | 'body'>;
  readonly paramCount: number;
  /** For each node, PARAMs of the interface first: what it is, its lanes and number of sources, and where those are among the nodes. */
  readonly words: Int32Array;
  /** Arguments of the nodes that have one. */
  readonly args: readonly (object | null)[];
  /** Equal for programs that print as the same code; others seldom share it. */
  readonly hash: number;
}

class Packed {
  constructor(fields: PackedProgram) {
    Object.assign(this, fields);
  }
}

// Words are for unpackProgram alone.
showAs(
  Packed.prototype as PackedProgram,
  ({ head, words }) => ({ name: head.name, grid: head.grid, group: head.group, words: words.length }),
  'PackedProgram',
);

/** Names of operations and dtypes by their numbers in words. */
export const names: string[] = [];
const codes = new Map<string, number>();

function codeOf(name: string): number {
  let code = codes.get(name);
  if (code === undefined) {
    code = names.push(name) - 1;
    codes.set(name, code);
  }
  return code;
}

// Flags in the first word of a node.
export const hasArg: number = 1 << 16;
export const isInBody: number = 1 << 17;
export const notNegative: number = 1 << 18;
export const positive: number = 1 << 19;
export const inInt32: number = 1 << 20;

/** What emitters use of an integer's bounds, which may come from outside the program. */
function signsOf({ dtype, lo, hi }: Known): number {
  if (dtype !== 'int32' && dtype !== 'uint32') return 0;
  return (lo >= 0 ? notNegative : 0) | (lo > 0 ? positive : 0) | (hi <= 0x7fffffff ? inInt32 : 0);
}

function mix(h: number, x: number): number {
  const mixed = Math.imul(h ^ (x | 0), 0x9e3779b1);
  return mixed ^ (mixed >>> 15);
}

/**
 * Packs a program.
 *
 * @example
 * const { program } = randomProgram(1);
 * packProgram(program).words.length > 0; // true
 */
export function packProgram(program: Program): PackedProgram {
  const { params, body, ...head } = program;
  const packer = new Packer();
  for (let i = 0; i < params.length; i++) packer.write(params[i]!, 0);
  packer.writeBody(body);
  const words = new Int32Array(packer.words);
  const first = mix(mix(params.length, head.grid[0]), head.grid[1] * 65599 + head.grid[2]);
  const hash = hashWords(words, hashValues(packer.args, first));
  const fields: PackedProgram = { head, paramCount: params.length, words, args: packer.args, hash };
  return new Packed(fields) as PackedProgram;
}

function hashWords(words: Int32Array, first: number): number {
  let hash = first;
  // As `mix`, without a call for each word.
  for (let i = 0; i < words.length; i++) {
    hash = Math.imul(hash ^ words[i]!, 0x9e3779b1);
    hash ^= hash >>> 15;
  }
  return hash;
}

/** Values of CONSTs, which alone have one. */
function hashValues(args: readonly object[], first: number): number {
  let hash = first;
  for (let i = 0; i < args.length; i++) {
    const { value } = args[i] as { value?: number | bigint };
    if (value !== undefined) hash = mix(hash, Number(value));
  }
  return hash;
}

/** Nodes being written, sources first. */
class Packer {
  readonly words: number[] = [];
  readonly args: object[] = [];
  /** The mark before that of the first node. Marks of nodes follow each other. */
  readonly #before: number = newMark();
  readonly #isKnown = (n: KNode): boolean => (n as Known).mark > this.#before;
  readonly #writeSource = (n: KNode): void => this.write(n, 0);

  writeBody(body: readonly KNode[]): void {
    for (let at = 0; at < body.length; at++) {
      const n = body[at]!;
      const { src } = n;
      for (let i = 0; i < src.length; i++) {
        const s = src[i]!;
        if ((s as Known).mark <= this.#before) sourcesFirst(s, this.#isKnown, sourcesOf, this.#writeSource);
      }
      this.write(n, isInBody);
    }
  }

  write(n: KNode, place: number): void {
    const { words } = this;
    const { src, arg } = n;
    const first = this.#before + 1;
    (n as Known).mark = newMark();
    words.push(codeOf(n.op) | (codeOf(n.dtype) << 8) | (arg === null ? 0 : hasArg) | place | signsOf(n as Known));
    words.push(n.lanes | (src.length << 16));
    for (let i = 0; i < src.length; i++) words.push((src[i] as Known).mark - first);
    if (arg !== null) this.args.push(arg);
  }
}

const sourcesOf = (n: KNode): readonly KNode[] => n.src;

/** Of arguments, what says nothing of the code that is printed. */
const unprinted = ['name', 'low', 'high', 'fewer'];

/** True for a program whose body was left out, because its code is all that is needed of it. */
function isBodiless({ words, paramCount }: PackedProgram): boolean {
  // Of a PARAM there are two words.
  return words.length === 2 * paramCount;
}

/**
 * True if emitters print the same code for both: names, costs and lengths of tensors may differ. A program without a body is like no other.
 *
 * @example
 * const { program } = randomProgram(1);
 * sameCode(packProgram(program), packProgram({ ...program, name: 'other' })); // true
 */
export function sameCode(p: PackedProgram, q: PackedProgram): boolean {
  if (p === q) return true;
  if (isBodiless(p)) return false;
  if (p.hash !== q.hash || p.paramCount !== q.paramCount || p.words.length !== q.words.length) return false;
  if (p.words.some((word, i) => word !== q.words[i])) return false;
  const [a, b] = [p.head, q.head];
  if (a.grid.join() !== b.grid.join() || a.group.join() !== b.group.join() || a.scalars.join() !== b.scalars.join())
    return false;
  return p.args.every((x, i) => sameArg(x, q.args[i] as object | null));
}

/** Arguments of nodes of one operation. The length of a PARAM, which alone has an access, may differ. */
function sameArg(x: object | null, y: object | null): boolean {
  if (x === y) return true;
  const [a, b] = [x, y] as readonly Readonly<Record<string, unknown>>[];
  return Object.keys({ ...a, ...b }).every(
    (field) =>
      unprinted.includes(field) || Object.is(a?.[field], b?.[field]) || (field === 'length' && 'access' in (x ?? {})),
  );
}

/**
 * Code by the hash of its program; equal programs share it, whatever their names.
 *
 * @example
 * const program = packProgram(randomProgram(1).program);
 * const table = new CodeTable<{ program: PackedProgram }>();
 * table.add({ program });
 * table.find(program)?.program === program; // true
 */
export class CodeTable<Code extends { readonly program: PackedProgram }> {
  readonly #byHash = new Map<number, Code[]>();

  /** The code of an equal program, or undefined. */
  find(program: PackedProgram): Code | undefined {
    return this.#byHash.get(program.hash)?.find((c) => sameCode(c.program, program));
  }

  add(code: Code): void {
    const { hash } = code.program;
    const list = this.#byHash.get(hash);
    if (list === undefined) this.#byHash.set(hash, [code]);
    else list.push(code);
  }

  remove(code: Code): void {
    const { hash } = code.program;
    const rest = (this.#byHash.get(hash) ?? []).filter((c) => c !== code);
    if (rest.length > 0) this.#byHash.set(hash, rest);
    else this.#byHash.delete(hash);
  }

  clear(): void {
    this.#byHash.clear();
  }
}
