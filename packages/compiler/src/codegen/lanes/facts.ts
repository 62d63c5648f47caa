/**
 * Whether the iterations of a program's loop may be lanes of vectors, and in which iterations.
 *
 * In: a loop of a program and its body. Out: `LaneFacts`, or null if an iteration could see effects of another one, or if
 * iterations diverge. Each value is expressed in terms of a symbol for the loop's variable (symbolic evaluation). That shows
 * whether lanes differ in it, and how an index moves from lane to lane. Nothing relies on promises of the program's author.
 */
import type { Exprs } from '../../ir/expr.ts';
import { uniqueNode } from '../../ir/expr.ts';
import type { KNode, KNodeOf, ProgramNode } from '../../ir/ir.ts';
import { assumeBounds, highOf, isArithmetic, type Linear, lowOf } from '../../ir/node.ts';
import { remake } from '../../ir/rewrite.ts';
import { formHigh, formLow, fromLinear, linearOf } from '../../ir/simplify/integers.ts';
import { dtypeInfo } from '../../shape/dtype.ts';

/** Facts of a loop whose iterations may be lanes. */
export interface LaneFacts {
  /** Nodes in which lanes differ. */
  readonly varying: ReadonlySet<KNode>;
  /** Variables of which each lane has its own copy. */
  readonly variables: ReadonlySet<KNode>;
  /** Bounds of indices that always hold between `from` and `to`: the replacement of each, or null for a condition that is true. */
  readonly settled: ReadonlyMap<KNode, KNode | null>;
  /** The first iteration in which they hold, and the first in which they no longer do: expressions outside of the loop; null for all. */
  readonly from: readonly KNode[];
  readonly to: readonly KNode[];
  /** Bytes of the narrowest numbers computed, at least four. */
  readonly bytes: number;
  /** Number of operations that become one vector operation. */
  readonly whole: number;
  /** Number of accesses that become one access per lane. */
  readonly apart: number;
}

/** Larger bodies are not vectorised, because they are written twice. */
const mostNodes = 600;

const refused: ReadonlySet<string> = new Set([
  'ATOMIC',
  'BARRIER',
  'SUBGROUP',
  'MATRIX',
  'FRAGMENT',
  'COPY',
  'COMMIT',
  'WAIT',
  'IOTA',
  'VEC',
  'LANE',
]);

interface Access {
  readonly memory: KNode;
  readonly index: KNode;
  readonly writes: boolean;
}

/**
 * The facts of the loop at `start`, which ends at `end`; null if its iterations must run in order.
 *
 * @param outer expressions of `e` for nodes outside of the loop
 */
export function laneFacts(
  e: Exprs,
  body: readonly ProgramNode[],
  start: number,
  end: number,
  outer: ReadonlyMap<KNode, KNode>,
): LaneFacts | null {
  const loop = body[start] as KNodeOf<'LOOP'>;
  const inner = body.slice(start + 1, end);
  if (inner.length > mostNodes || inner.some((n) => refused.has(n.op) || n.lanes !== 1)) return null;
  const own = ownVariables(body, start, end);
  if (own === null) return null;
  const addresses = leadingTo(inner, (n) => (n.op === 'LOAD' || n.op === 'STORE' ? [n.src[1]] : []));
  const gates = leadingTo(inner, (n) => {
    const gate = n.op === 'LOAD' ? n.src[2] : n.op === 'STORE' ? n.src[3] : undefined;
    return gate === undefined ? [] : [gate];
  });
  // A variable varies if anything that varies is stored in it; repeated until nothing changes.
  const variables = new Set<KNode>();
  for (;;) {
    const made = new Symbols(e, loop, outer, variables, addresses, gates).write(inner);
    if (made === null) return null;
    const more = inner.filter(
      (n) => n.op === 'STORE' && n.src[0].op === 'REG' && made.differs(n.src[2]) && !variables.has(n.src[0]),
    );
    if (more.length > 0) {
      for (const n of more) variables.add(n.src[0]!);
      continue;
    }
    for (const n of inner) {
      if ((n.op === 'LOOP' || n.op === 'IF') && made.differs(n.src[0])) return null;
      // A variable from outside would carry a value from one iteration to the next.
      if (n.op === 'STORE' && n.src[0].op === 'REG' && !own.has(n.src[0])) return null;
    }
    if (!independent(made, inner, highOf(loop.src[0]))) return null;
    return made.facts(inner);
  }
}

/** Variables that every iteration sets before reading them, and that nothing else reads; null if others are written. */
function ownVariables(body: readonly ProgramNode[], start: number, end: number): ReadonlySet<KNode> | null {
  const own = new Set<KNode>();
  const seen = new Set<KNode>();
  let depth = 0;
  for (let at = start + 1; at < end; at++) {
    const n = body[at]!;
    if (n.op === 'LOOP' || n.op === 'IF') depth++;
    else if (n.op === 'ENDLOOP' || n.op === 'ENDIF') depth--;
    if ((n.op !== 'STORE' && n.op !== 'LOAD') || n.src[0].op !== 'REG') continue;
    const [memory] = n.src;
    if (memory.arg.length !== 1) return null;
    if (n.op === 'STORE' && n.src.length > 3) return null;
    if (!seen.has(memory) && n.op === 'STORE' && depth === 0) own.add(memory);
    seen.add(memory);
  }
  for (let at = 0; at < body.length; at++) {
    if (at > start && at < end) continue;
    const n = body[at]!;
    if (n.op === 'LOAD' || n.op === 'STORE') own.delete(n.src[0]);
  }
  return own;
}

/** Nodes from which some operands are computed by arithmetic alone. */
function leadingTo(nodes: readonly KNode[], roots: (n: KNode) => readonly KNode[]): ReadonlySet<KNode> {
  const found = new Set<KNode>();
  const stack = nodes.flatMap(roots);
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (found.has(n)) continue;
    found.add(n);
    if (isArithmetic(n.op)) stack.push(...n.src);
  }
  return found;
}

/** The values of a loop in terms of a symbol for its variable. */
class Symbols {
  readonly #e: Exprs;
  readonly #symbol: KNode;
  readonly #loop: KNode;
  readonly #known: Map<KNode, KNode>;
  readonly #variables: Set<KNode>;
  readonly #addresses: ReadonlySet<KNode>;
  readonly #gates: ReadonlySet<KNode>;
  /** Leaves for loaded values and counters inside of the loop, and whether lanes differ in them. */
  readonly #leaves = new Map<KNode, boolean>();
  readonly #depends = new Map<KNode, { readonly inside: boolean; readonly differs: boolean }>();
  readonly #settled = new Map<KNode, KNode | null>();
  readonly #from = new Set<KNode>();
  readonly #to = new Set<KNode>();

  constructor(
    e: Exprs,
    loop: KNodeOf<'LOOP'>,
    outer: ReadonlyMap<KNode, KNode>,
    variables: Set<KNode>,
    addresses: ReadonlySet<KNode>,
    gates: ReadonlySet<KNode>,
  ) {
    this.#e = e;
    this.#loop = loop;
    this.#known = new Map(outer);
    this.#variables = variables;
    this.#addresses = addresses;
    this.#gates = gates;
    this.#symbol = this.#leaf(loop, true);
    this.#known.set(loop, this.#symbol);
  }

  #leaf(n: KNode, differs: boolean): KNode {
    const leaf = uniqueNode('REG', n.dtype, 1, [], { name: 'leaf', length: 1 });
    if (n.dtype === 'int32') assumeBounds(leaf, lowOf(n), highOf(n));
    this.#leaves.set(leaf, differs);
    return leaf;
  }

  /** The expression of a program's node. */
  of(n: KNode): KNode {
    return this.#known.get(n)!;
  }

  differs(n: KNode): boolean {
    return this.#dependsOn(this.of(n)).differs;
  }

  #dependsOn(x: KNode): { readonly inside: boolean; readonly differs: boolean } {
    const known = this.#depends.get(x);
    if (known !== undefined) return known;
    const stack = [x];
    while (stack.length > 0) {
      const n = stack[stack.length - 1]!;
      const open = n.src.filter((s) => !this.#depends.has(s));
      if (open.length > 0) {
        stack.push(...open);
        continue;
      }
      stack.pop();
      const leaf = this.#leaves.get(n);
      const parts = n.src.map((s) => this.#depends.get(s)!);
      this.#depends.set(n, {
        inside: leaf !== undefined || n.op === 'LOAD' || parts.some((p) => p.inside),
        differs: leaf ?? parts.some((p) => p.differs),
      });
    }
    return this.#depends.get(x)!;
  }

  /** Expresses all values; null if one of them cannot be vectorised. */
  write(inner: readonly ProgramNode[]): this | null {
    for (const n of inner) {
      if (n.dtype === 'void') continue;
      if (n.op === 'LOOP') {
        this.#known.set(n, this.#leaf(n, false));
        continue;
      }
      if (n.op === 'LOAD') {
        const differs =
          n.src[0].op === 'REG' ? this.#variables.has(n.src[0]) : n.src.slice(1).some((s) => this.differs(s));
        this.#known.set(n, this.#leaf(n, differs));
        continue;
      }
      if (n.op === 'PARAM' || n.op === 'SCALAR' || n.op === 'REG' || n.op === 'SHARED') {
        // Declared outside, except for parameters that only this loop reads.
        if (!this.#known.has(n)) this.#known.set(n, n.op === 'PARAM' || n.op === 'SCALAR' ? memoryIn(this.#e, n) : n);
        continue;
      }
      const src = n.src.map((s) => this.of(s));
      const made = this.#settle(n, src) ?? remake(this.#e, n, src);
      if (n.dtype === 'int32' && made.op !== 'CONST') assumeBounds(made, lowOf(n), highOf(n));
      this.#known.set(n, made);
    }
    return this;
  }

  /** Settles bounds of indices and conditions of accesses that hold in a range of iterations. */
  #settle(n: KNode, src: readonly KNode[]): KNode | null {
    const [a, b] = src as [KNode, KNode];
    if ((n.op === 'MAX' || n.op === 'MIN') && n.dtype === 'int32' && this.#addresses.has(n)) {
      for (const [at, x, bound] of [
        [0, a, b],
        [1, b, a],
      ] as const) {
        if (bound.op !== 'CONST') continue;
        const value = bound.arg.value as number;
        // x >= value of MAX, x <= value of MIN.
        const sign = n.op === 'MAX' ? -1 : 1;
        if (!this.#bound(x, sign, -sign * value)) continue;
        this.#settled.set(n, n.src[at]!);
        return x;
      }
    }
    if ((n.op === 'LT' || n.op === 'LE') && n.src[0].dtype === 'int32' && this.#gates.has(n)) {
      const [fa, fb] = [linearOf(a), linearOf(b)];
      const one = fa.terms.includes(this.#symbol) ? a : fb.terms.includes(this.#symbol) ? b : null;
      const other = one === a ? b : a;
      if (one === null || other.op !== 'CONST') return null;
      const value = other.arg.value as number;
      const strict = n.op === 'LT' ? 1 : 0;
      const sign = one === a ? 1 : -1;
      if (!this.#bound(one, sign, -sign * value + strict)) return null;
      this.#settled.set(n, null);
      return this.#e.bool(true);
    }
    return null;
  }

  /** Ensures sign * x + add <= 0 by limiting the iterations, if x is the symbol plus something uniform. */
  #bound(x: KNode, sign: 1 | -1, add: number): boolean {
    if (lowOf(x) <= -(2 ** 31) || highOf(x) >= 2 ** 31 - 1) return false;
    const form = linearOf(x);
    const at = form.terms.indexOf(this.#symbol);
    if (at < 0 || form.coefs[at] !== 1) return false;
    const rest = { terms: [] as KNode[], coefs: [] as number[], offset: form.offset };
    let [low, high] = [0, 0];
    for (const [i, term] of form.terms.entries()) {
      if (i === at) continue;
      const { inside, differs } = this.#dependsOn(term);
      if (differs) return false;
      if (!inside) {
        rest.terms.push(term);
        rest.coefs.push(form.coefs[i]!);
        continue;
      }
      const ends = [form.coefs[i]! * lowOf(term), form.coefs[i]! * highOf(term)];
      low += Math.min(...ends);
      high += Math.max(...ends);
    }
    const e = this.#e;
    // Upwards: symbol <= -add - rest - high. Downwards: symbol >= add - rest - low.
    const most = sign === 1 ? -add - high : add - low;
    const [restLow, restHigh] = [formLow(rest as Linear), formHigh(rest as Linear)];
    const fits = (v: number): boolean => Math.abs(v) < 2 ** 30;
    if (![most, restLow, restHigh].every(fits)) return false;
    const edge = e.sub(most, fromLinear(e, rest as Linear));
    if (sign === 1) this.#to.add(e.add(edge, 1));
    else this.#from.add(edge);
    return true;
  }

  /** How an index moves: by `step` elements from lane to lane, and the rest of it; null if it moves differently. */
  moves(index: KNode): { readonly step: number; readonly form: Linear; readonly apart: number } | null {
    const form = linearOf(index);
    const at = form.terms.indexOf(this.#symbol);
    if (at < 0) return null;
    let apart = 0;
    for (const [i, term] of form.terms.entries()) {
      if (i === at) continue;
      const { inside, differs } = this.#dependsOn(term);
      if (differs) return null;
      if (inside) apart = divisor(apart, Math.abs(form.coefs[i]!));
    }
    return { step: form.coefs[at]!, form, apart };
  }

  facts(inner: readonly ProgramNode[]): LaneFacts {
    const varying = new Set<KNode>([this.#loop]);
    let [bytes, whole, apart] = [8, 0, 0];
    for (const n of inner) {
      if (n.op === 'STORE') {
        if (n.src[0].op === 'REG') continue;
        bytes = Math.min(bytes, dtypeInfo[n.src[0].dtype].bytes);
        if (this.moves(this.of(n.src[1]))?.step !== 1 || (n.src[3] !== undefined && this.differs(n.src[3]))) apart++;
        continue;
      }
      if (n.dtype === 'void' || n.op === 'LOOP' || n.op === 'PARAM' || n.op === 'REG' || n.op === 'SHARED') continue;
      if (!this.differs(n)) continue;
      varying.add(n);
      if (n.op === 'LOAD') {
        if (n.src[0].op === 'REG') continue;
        if (this.moves(this.of(n.src[1]))?.step !== 1 || (n.src[2] !== undefined && this.differs(n.src[2]))) apart++;
      } else if (!this.#addresses.has(n) && !this.#gates.has(n)) whole++;
      if (n.dtype !== 'bool' && !this.#addresses.has(n)) bytes = Math.min(bytes, dtypeInfo[n.dtype].bytes);
    }
    return {
      varying,
      variables: this.#variables,
      settled: this.#settled,
      from: [...this.#from],
      to: [...this.#to],
      bytes: Math.max(4, bytes),
      whole,
      apart,
    };
  }
}

/** A parameter or a scalar in expressions of another factory. */
export function memoryIn(e: Exprs, n: KNodeOf<'PARAM'> | KNodeOf<'SCALAR'>): KNode {
  if (n.op === 'PARAM') return e.param(n.arg.slot, n.dtype, n.arg.access, n.arg.length, n.arg.fewer);
  return e.scalar(n.arg.slot, n.dtype, n.arg.low, n.arg.high);
}

function divisor(a: number, b: number): number {
  return b === 0 ? a : divisor(b, a % b);
}

/** True if no iteration writes what another one reads or writes. */
function independent(made: Symbols, inner: readonly ProgramNode[], extent: number): boolean {
  const accesses: Access[] = [];
  const written = new Set<KNode>();
  for (const n of inner) {
    if ((n.op !== 'LOAD' && n.op !== 'STORE') || n.src[0].op === 'REG') continue;
    const writes = n.op === 'STORE';
    if (writes) written.add(made.of(n.src[0]));
    accesses.push({ memory: made.of(n.src[0]), index: made.of(n.src[1]), writes });
  }
  const reach = (step: number): number => Math.abs(step) * (extent - 1);
  for (const a of accesses) {
    if (!a.writes) continue;
    const ma = made.moves(a.index);
    // Iterations of inner loops are further apart than the lanes reach.
    if (ma === null || ma.step === 0 || (ma.apart !== 0 && ma.apart <= reach(ma.step))) return false;
    for (const b of accesses) {
      if (b.memory !== a.memory || b === a) continue;
      if (highOf(a.index) < lowOf(b.index) || highOf(b.index) < lowOf(a.index)) continue;
      const mb = made.moves(b.index);
      if (mb === null || mb.step !== ma.step) return false;
      const same = (f: Linear, g: Linear): boolean =>
        f.terms.length === g.terms.length &&
        f.terms.every((t, i) => {
          const j = g.terms.indexOf(t);
          return j >= 0 && g.coefs[j] === f.coefs[i];
        });
      if (!same(ma.form, mb.form)) return false;
      const distance = Math.abs(ma.form.offset - mb.form.offset);
      if (distance === 0) continue;
      if (ma.apart !== 0) return false;
      if (distance <= reach(ma.step) && distance % Math.abs(ma.step) === 0) return false;
    }
  }
  return written.size > 0;
}
