/**
 * The walk over a program that all dialects share: order, names, blocks, and which line came from which node.
 *
 * Names follow the order of the program, so equal programs give equal text. What the language says is asked of the dialect.
 */
import { type KNode, type KNodeOf, type Program, type Uses, usesOf } from '@polygrad/core/kernel';
import { foldedValues } from '@polygrad/core/kernel/emitters';
import type { Context, Dialect, Memory } from './dialect.ts';
import { type DType, PrintError } from './kernel.ts';
import { expression, name, type Part, partLanes, type Value } from './parts.ts';
import { Memories } from './memories.ts';
import { Page } from './page.ts';

/** Text longer than this gets a name. */
const longest = 96;

export class Printer implements Context {
  readonly page: Page = new Page();
  readonly memories: Memories;
  readonly #dialect: Dialect;
  readonly #program: Program;
  readonly #uses: Uses;
  readonly #folded: ReadonlySet<KNode>;
  readonly #values = new Map<KNode, Value>();

  constructor(program: Program, dialect: Dialect, params: ReadonlyMap<number, string>) {
    this.#program = program;
    this.#dialect = dialect;
    this.#uses = usesOf(program.body, (n) => dialect.operands(n));
    this.#folded = foldedValues(program, this.#uses);
    this.memories = new Memories(program, params, dialect.widths);
  }

  /** Writes the kernel's body. */
  run(): void {
    for (const n of this.#program.body) {
      this.page.node = n;
      this.#statement(n);
    }
  }

  // --- what dialects ask

  stable(p: Part): Part {
    return p.stable ? p : this.#named(p);
  }

  runtime(p: Part): Part {
    return p.stable && !p.constant ? p : this.#named(p);
  }

  helper(title: string, text: () => string): string {
    return this.page.helper(title, text);
  }

  prologue(title: string, line: () => string): string {
    return this.page.prologue(title, line);
  }

  refuse(what: string): never {
    throw new PrintError(this.#dialect.name, what, this.page.node);
  }

  // --- values that are known

  #named(p: Part): Part {
    const title = this.page.fresh('v');
    this.page.line(this.#dialect.constantLine(title, p));
    return { ...name(title, p.dtype, p.lanes), ...(p.elements === undefined ? {} : { elements: p.elements }) };
  }

  #value(n: KNode | undefined): Value {
    const value = this.#values.get(n as KNode);
    if (value === undefined) this.refuse(`${n?.op} is used before it is defined`);
    return value;
  }

  #scalar(n: KNode | undefined): Part {
    return this.#value(n)[0]!;
  }

  // --- nodes

  #statement(n: KNode): void {
    switch (n.op) {
      case 'PARAM':
      case 'SHARED':
        return;
      case 'REG':
        this.#register(n);
        return;
      case 'LOOP': {
        const limit = this.stable(this.#scalar(n.src[0]));
        const counter = this.page.fresh('i');
        for (const text of this.#dialect.loopLines(counter, limit, n.arg?.unrollHint === true)) this.page.line(text);
        this.#values.set(n, [name(counter, 'int32')]);
        this.page.inner();
        return;
      }
      case 'IF':
        this.page.open(this.#dialect.ifLine(this.#scalar(n.src[0])));
        return;
      case 'ENDLOOP':
      case 'ENDIF':
        this.page.close();
        return;
      case 'BARRIER':
        for (const text of this.#dialect.barrierLines()) this.page.line(text);
        return;
      case 'STORE':
        this.#gated(n.src[3], () => this.#store(n));
        return;
      case 'ATOMIC':
        this.#gated(n.src[3], () => this.#atomic(n));
        return;
      default:
        if (this.#uses.has(n)) this.#define(n);
    }
  }

  #register(n: KNodeOf<'REG'>): void {
    for (const { variable, lanes } of this.memories.register(n, (prefix) => this.page.fresh(prefix)))
      this.page.line(this.#dialect.variableLine(variable, n.dtype as DType, lanes));
  }

  /** The cells of a register vector a LOAD or STORE is about. */
  #cells(mem: KNode, index: KNode | undefined): readonly string[] {
    if (index?.op !== 'CONST') this.refuse('registers need a constant index');
    return this.memories.cells(mem, Number(index.arg.value));
  }

  #gated(gate: KNode | undefined, write: () => void): void {
    if (gate !== undefined) this.page.open(this.#dialect.ifLine(this.#scalar(gate)));
    write();
    if (gate !== undefined) this.page.close();
  }

  #store(n: KNodeOf<'STORE'>): void {
    const [mem, at, from] = n.src;
    const value = this.#value(from);
    if (mem.op === 'REG') {
      const cells = this.#cells(mem, at);
      // Parts of one value may read the variables that are written.
      const parts = value.length > 1 ? value.map((p) => this.stable(p)) : value;
      for (const [i, cell] of cells.entries()) {
        const { text } = parts[i]!;
        if (text !== cell) this.page.line(`${cell} = ${text};`);
      }
      return;
    }
    for (const text of this.#dialect.store(this, this.#memory(mem), this.#scalar(at), value)) this.page.line(text);
  }

  #atomic(n: KNodeOf<'ATOMIC'>): void {
    const [mem, at, value] = n.src;
    if (value.lanes !== 1) this.refuse(`ATOMIC on ${value.lanes} lanes: atomics are scalar`);
    const { atomic } = this.#dialect;
    this.page.line(
      atomic.call(this.#dialect, this, n.arg.op, this.#memory(mem), this.#scalar(at), this.#scalar(value)),
    );
  }

  #memory(mem: KNode): Memory {
    return this.memories.find(mem) ?? this.refuse(`${mem.op} is no memory`);
  }

  #define(n: KNode): void {
    const value = this.#lower(n);
    const fold = this.#folded.has(n);
    const names = new Map<string, Part>();
    const named = (p: Part): Part => {
      // Parts of a splat are equal.
      const own = names.get(p.text) ?? this.#named(p);
      names.set(p.text, own);
      return own;
    };
    this.#values.set(
      n,
      value.map((p) => (p.stable || (fold && p.text.length <= longest) ? p : named(p))),
    );
  }

  #lower(n: KNode): Value {
    const d = this.#dialect;
    const dtype = n.dtype as DType;
    const sizes = partLanes(n.lanes, d.widths);
    switch (n.op) {
      case 'CONST':
        return sizes.map((lanes) => d.constant(this, dtype, n.arg.value, lanes));
      case 'SPECIAL':
        return [d.special(this, n.arg.kind, n.arg.axis)];
      case 'SCALAR':
        return [d.scalar(this, n.arg.slot, dtype)];
      case 'SUBGROUP':
        return [d.subgroup(this, n.arg.op, this.#scalar(n.src[0]))];
      case 'IOTA': {
        const count = (i: number): Part => d.constant(this, 'int32', i, 1);
        return pieces(sizes, (first, lanes) =>
          lanes === 1
            ? count(first)
            : d.vector(
                this,
                dtype,
                lanes,
                Array.from({ length: lanes }, (_, i) => count(first + i)),
              ),
        );
      }
      case 'VEC':
        return this.#vector(n, sizes);
      case 'LANE': {
        let { lane } = n.arg;
        for (const part of this.#value(n.src[0])) {
          if (lane < part.lanes) return [part.lanes === 1 ? part : (part.elements?.[lane] ?? d.lane(this, part, lane))];
          lane -= part.lanes;
        }
        return this.refuse('a lane outside its vector');
      }
      case 'LOAD':
        return this.#load(n, sizes);
      case 'CAST':
        return this.#value(n.src[0]).map((p) => (p.dtype === dtype ? p : d.cast(this, n, p, dtype)));
      case 'BITCAST':
        return this.#value(n.src[0]).map((p) => (p.dtype === dtype ? p : d.bitcast(this, p, dtype)));
      default: {
        const args = d.operands(n).map((s) => this.#value(s));
        return sizes.map((_, i) =>
          d.operation(
            this,
            n,
            args.map((a) => a[i]!),
          ),
        );
      }
    }
  }

  #vector(n: KNode, sizes: readonly number[]): Value {
    const d = this.#dialect;
    let scalars = n.src.map((s) => this.#scalar(s));
    if (scalars.length === 1 && sizes.length > 1) scalars = [this.stable(scalars[0]!)];
    return pieces(sizes, (first, lanes) => {
      const own = scalars.length === 1 ? scalars : scalars.slice(first, first + lanes);
      return lanes === 1 ? own[0]! : d.vector(this, n.dtype as DType, lanes, own);
    });
  }

  #load(n: KNodeOf<'LOAD'>, sizes: readonly number[]): Value {
    const [mem, at, open, other] = n.src;
    const dtype = n.dtype as DType;
    if (mem.op === 'REG') {
      const cells = this.#cells(mem, at);
      const value = sizes.map((lanes, i) => ({ ...expression(cells[i]!, dtype, lanes), atom: true }));
      if (open === undefined) return value;
      const [gate, otherwise] = [this.stable(this.#scalar(open)), this.#value(other)];
      return value.map((v, i) => this.#dialect.choose(gate, v, otherwise[i]!));
    }
    const gate = open === undefined ? null : this.#scalar(open);
    const alt = other === undefined ? null : this.#value(other);
    return this.#dialect.load(this, this.#memory(mem), this.#scalar(at), sizes, gate, alt);
  }
}

function pieces(sizes: readonly number[], make: (first: number, lanes: number) => Part): Value {
  let first = 0;
  return sizes.map((lanes) => {
    const made = make(first, lanes);
    first += lanes;
    return made;
  });
}
