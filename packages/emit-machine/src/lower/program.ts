/**
 * From a linear program to a function `(args, groupStart, groupEnd, scratch)`: walks the body once, in order.
 *
 * args: the address of 8 bytes per PARAM slot (the address of the bound bytes), and at `scalarOffset` 8 bytes per SCALAR slot.
 * groupStart, groupEnd: groups to run, counted through the grid with axis 0 fastest; at least one.
 * scratch: the address of the running thread's memory for SHARED. The function gives 0, or the number of the check that failed.
 */
import {
  endsOf,
  findRareSides,
  type KNode,
  type KNodeOf,
  operandsOf,
  type Program,
  type RareSide,
  type Uses,
  unrollFactor,
  usesOf,
} from '@polygrad/core/kernel';
import { Builder } from '../form/builder.ts';
import type { Block, Condition, Reg, Lowered } from '../form/code.ts';
import type { Machine, Context } from '../form/machine.ts';
import { isFloat, kindOf, type MachineTarget, refuse, widthOf } from '../target.ts';
import { makeParts, partBytes } from '../form/vector-parts.ts';
import type { Masks } from '../form/masks.ts';
import { Aliases } from './aliases.ts';
import { Comparisons, isComparison } from './comparisons.ts';
import { Copies, type Copy, type Linear } from './copies.ts';
import { findFolds, type Folds, lowerFold } from './folds.ts';
import { bitcastHalf, isPacked } from './halves.ts';
import { Accesses, type Scopes } from './memory.ts';
import { findTakenApart, steppedOf } from './elements.ts';
import { findNeighbours, type Neighbours } from './neighbours.ts';
import { Registers } from './registers.ts';
import { Squares } from './squares.ts';
import { asksNothing, lowerValue } from './vectors.ts';
import { Windows } from './windows.ts';

/** Lowers one program; throws MachineCodeError for what this package does not support. */
export function lowerProgram(program: Program, target: MachineTarget, machine: Machine): Builder {
  if (program.group.some((g) => g !== 1))
    refuse(`groups of ${program.group.join(' x ')} threads; this engine runs groups of one thread`);
  const lowering = new Lowering(program, target, machine);
  lowering.run();
  return lowering.b;
}

/** What a counter goes through: from `first` on below `limit`, `step` at a time. */
interface Count {
  readonly first: number;
  readonly limit: number | Reg;
  readonly step: number;
}

class Lowering implements Context {
  readonly b: Builder;
  readonly machine: Machine;
  readonly target: MachineTarget;
  readonly masks: Masks;
  readonly group: Block;
  readonly grid: Program['grid'];
  readonly cost: Program['cost'];
  innermost: Scopes['innermost'] = null;
  readonly #copies = new Copies();
  readonly #program: Program;
  readonly #uses: Uses;
  readonly #values = new Map<KNode, Lowered>();
  readonly #ends: Int32Array;
  readonly #accesses: Accesses;
  readonly #rare: ReturnType<typeof findRareSides>;
  readonly #registers: Registers;
  readonly #comparisons: Comparisons;
  readonly #found: Neighbours;
  readonly #folds: Folds;
  /** Parts of folds and of vectors of neighbours, and loads with a step whose lanes are read one by one. */
  readonly #left: ReadonlySet<KNode>;
  readonly #squares: Squares;
  readonly #windows: Windows;
  readonly #counter: Reg;
  readonly #to: Reg;

  constructor(program: Program, target: MachineTarget, machine: Machine) {
    const b = new Builder(target, machine);
    this.b = b;
    this.machine = machine;
    this.target = target;
    this.#program = program;
    this.grid = program.grid;
    this.cost = program.cost;
    this.masks = machine.masks(this);
    this.#ends = endsOf(program);
    this.#uses = usesOf(program.body, operandsOf);
    this.#rare = findRareSides(program, this.#uses);
    const aliases = new Aliases(program, this.#ends, this.#rare);
    this.#registers = new Registers(this, aliases, (bool) => this.#open(bool));
    this.#comparisons = new Comparisons(program, this.#uses, this.#rare);
    const from = b.parameter('from');
    this.#to = b.parameter('to');
    this.#counter = b.reg('g', true);
    b.move(this.#counter, from);
    this.group = b.openLoop(true);
    this.#accesses = new Accesses(this, this);
    this.#found = findNeighbours(program, this.#uses, target.vectorBytes);
    this.#folds = findFolds(program, this.#uses, target.vectorBytes);
    const folded = [...this.#folds.roots.values()].map(({ source }) => source);
    const apart = findTakenApart(program, this.#uses, new Set(folded));
    this.#left = new Set([...this.#found.unread, ...this.#folds.inside, ...apart]);
    const row = (load: KNodeOf<'LOAD'>, at: number, lanes: number): Reg => this.#accesses.row(load, at, lanes);
    this.#squares = new Squares(this, row);
    this.#windows = new Windows(this, row);
  }

  run(): void {
    const { b } = this;
    this.#walk(0, this.#program.body.length);
    this.machine.basics.count(b, this.#counter, 1);
    b.compare(4, this.#counter, this.#to);
    b.closeLoop('l');
    if (this.#accesses.streamed) this.machine.access.streams?.fence(b);
  }

  uses(node: KNode): number {
    return this.#uses.get(node)?.count ?? 0;
  }

  get(node: KNode): Lowered {
    let value = this.#values.get(node);
    if (value === undefined) {
      value = this.#leaf(node);
      // Constants are made where they are used.
      if (node.op !== 'CONST') this.#values.set(node, value);
    }
    return value;
  }

  #leaf(n: KNode): Lowered {
    switch (n.op) {
      case 'SPECIAL':
        return this.b.in(this.group, () => ({
          parts: [n.arg.kind === 'local' ? this.b.integer(0) : this.#groupAxis(n.arg.axis)],
          width: 4,
        }));
      case 'SCALAR':
        return this.#accesses.scalar(n.dtype, n.arg.slot);
      case 'CONST':
      case 'IOTA':
        return lowerValue(this, n);
      case 'LOOP': {
        const { block, base, by } = this.#copies.get(n) ?? refuse('a counter is used outside of its loop');
        const { b, machine } = this;
        return {
          parts: [b.in(block, () => (base === null ? b.integer(by) : machine.basics.add(b, base, by)))],
          width: 4,
        };
      }
      default:
        return refuse(`${n.op} is used before it stands in the body`);
    }
  }

  #groupAxis(axis: 0 | 1 | 2): Reg {
    const { b } = this;
    const { grid } = this.#program;
    const [x, y, z] = grid;
    if (grid[axis] === 1) return b.integer(0);
    const flat = b.copy(this.#counter);
    if (axis === 0 && y * z === 1) return flat;
    const divide = (a: Reg, by: number, rest: boolean): Reg =>
      by === 1 ? a : this.machine.basics.divide(b, a, b.integer(by), rest);
    if (axis === 0) return divide(flat, x, true);
    const above = divide(flat, axis === 1 ? x : x * y, false);
    return axis === 1 && z !== 1 ? divide(above, y, true) : above;
  }

  #walk(from: number, to: number): void {
    const { body } = this.#program;
    for (let i = from; i < to; i++) {
      const n = body[i]!;
      switch (n.op) {
        case 'PARAM':
        case 'REG':
        case 'SHARED':
        case 'SCALAR':
        case 'SPECIAL':
        case 'CONST':
        case 'IOTA':
        case 'BARRIER':
          break;
        case 'STORE':
          if (n.src[0].op === 'REG') this.#registers.store(n, n.src[0]);
          else i = this.#stores(n, i, to);
          break;
        case 'LOOP':
          this.#loop(n, i + 1, this.#ends[i]!);
          i = this.#ends[i]!;
          break;
        case 'IF':
          this.#open(n.src[0]);
          this.#walk(i + 1, this.#ends[i]!);
          this.b.closeIf();
          i = this.#ends[i]!;
          break;
        case 'ATOMIC':
        case 'SUBGROUP':
        case 'ENDLOOP':
        case 'ENDIF':
          refuse(`${n.op} has no place in a linear program here`);
          break;
        default:
          if (!this.#rare.inside.has(n)) this.#node(n, i);
      }
    }
  }

  /** Stores to memory: those that follow under the same condition are under one jump with it. Answers where the last one stands. */
  #stores(n: KNodeOf<'STORE'>, at: number, to: number): number {
    const { body } = this.#program;
    const gate = n.src[3];
    if (gate === undefined) {
      this.#accesses.store(n);
      return at;
    }
    this.#open(gate);
    this.#accesses.store(n);
    let last = at;
    for (let i = at + 1; i < to; i++) {
      const next = body[i]!;
      if (next.op === 'STORE' && next.src[0].op !== 'REG' && next.src[3] === gate) {
        this.#accesses.store(next);
        last = i;
      } else if (!isIndex(next) || !this.#isLeftOut(next)) break;
    }
    this.b.closeIf();
    return last;
  }

  /** Lowers a node that only computes a value. */
  #node(n: KNode, at: number): void {
    if (!this.#isLeftOut(n)) this.#values.set(n, this.#value(n, at));
  }

  /** True for a value that nobody reads, or who asks for it makes. */
  #isLeftOut(n: KNode): boolean {
    if (!this.#uses.has(n) || this.#left.has(n)) return true;
    if (n.op === 'LT' || n.op === 'SHL' || n.op === 'SHR') return this.#isComparedLater(n) || this.#isUnasked(n);
    return n.dtype === 'bool' && isComparison(n) && this.#isComparedLater(n);
  }

  /** Of comparisons and shifts: true for one that only an operation uses which needs none. */
  #isUnasked(n: KNode): boolean {
    if (n.lanes === 1) return false;
    const use = this.#uses.get(n);
    const user = use?.count === 1 ? this.#program.body[use.at] : undefined;
    return user !== undefined && !this.#rare.sides.has(user) && asksNothing(this, user);
  }

  #isComparedLater(n: KNode): boolean {
    return this.#comparisons.isLater(n, (operand) => this.get(operand).parts[0]!.mutable);
  }

  /** Computes a comparison that was left to its user. */
  #compare(n: KNode): Condition {
    const [x, y] = n.src as [KNode, KNode];
    const right = this.get(y).parts[0]!;
    return this.machine.operations.compare(this, n.op as 'LT', kindOf(x.dtype), this.get(x).parts[0]!, right, n);
  }

  /** The code that follows runs if a bool is true. */
  #open(bool: KNode): void {
    if (this.#values.has(bool) || !isComparison(bool) || !this.#isComparedLater(bool))
      this.b.openIf(this.get(bool).parts[0]!);
    else this.b.openUnless(unless[this.#compare(bool)]!);
  }

  /** A select between integers by a comparison that was left to it, or null. */
  #chosen(n: KNode): Lowered | null {
    const condition = n.src[0];
    if (n.op !== 'WHERE' || condition === undefined || this.#values.has(condition)) return null;
    if (!this.#isComparedLater(condition)) return null;
    const { b } = this;
    const [yes, no] = [this.get(n.src[1]!).parts[0]!, this.get(n.src[2]!).parts[0]!];
    const d = b.copy(no);
    b.take(this.#compare(condition), d, yes);
    return { parts: [d], width: widthOf(kindOf(n.dtype)) };
  }

  #value(n: KNode, at: number): Lowered {
    const side = n.op === 'WHERE' ? this.#rare.sides.get(n) : undefined;
    if (side !== undefined) return this.#rarely(n, side, at);
    if (n.op === 'LOAD' && n.arg !== null) return this.#neighbours(n) ?? this.#accesses.stepped(n, n.arg.step);
    if (n.op === 'LOAD')
      return n.src[0].op === 'REG'
        ? this.#registers.load(n, n.src[0], at)
        : this.#accesses.load(n, this.#splatLanes(n), this.#isPacked(n));
    if (n.op === 'BITCAST' && (n.dtype === 'float16' || n.src[0].dtype === 'float16'))
      return bitcastHalf(this, n, this.#isPacked(n.src[0]) || this.#isPacked(n));
    const stepped = n.op === 'LANE' ? steppedOf(n) : null;
    if (stepped !== null) return this.#accesses.element(stepped, stepped.arg!.step * (n as KNodeOf<'LANE'>).arg.lane);
    const made = this.#better(n) ?? lowerValue(this, n);
    // The value must not change with the register that it is in.
    let changes = false;
    for (let i = 0; i < made.parts.length; i++) if (made.parts[i]!.mutable) changes = true;
    if (!changes) return made;
    return { parts: made.parts.map((r) => (r.mutable ? this.b.copy(r) : r)), width: made.width };
  }

  /** What is made otherwise than by the node alone, or null. */
  #better(n: KNode): Lowered | null {
    if (n.op === 'VEC') return n.src.length === 1 ? this.#splatted(n) : this.#neighbours(n);
    if (n.op === 'WHERE') return this.#chosen(n);
    return this.#folded(n);
  }

  /** A vector of neighbouring elements. */
  #neighbours(n: KNode): Lowered | null {
    const columns = this.#found.squares.get(n);
    if (columns !== undefined) return this.#squares.vector(n, columns);
    const parts = this.#found.windows.get(n);
    return parts === undefined ? null : this.#windows.vector(n, parts);
  }

  /** The sum or product of all lanes of a vector, or of neighbours in memory. */
  #folded(n: KNode): Lowered | null {
    const fold = this.#folds.roots.get(n);
    if (fold === undefined) return null;
    const { source, lanes } = fold;
    const parts =
      source.op === 'LOAD' && source.lanes === 1 ? [this.#accesses.row(source, 0, lanes)] : this.get(source).parts;
    return lowerFold(this, n, parts, lanes);
  }

  /** True for bits of float16 that stay packed from memory, or to memory. */
  #isPacked(n: KNode): boolean {
    const use = this.#uses.get(n);
    return use?.count === 1 && isPacked(n, this.#program.body[use.at]);
  }

  /** The lanes of the only vector that uses a scalar load, as a splat; or 0. */
  #splatLanes(n: KNode): number {
    const use = this.#uses.get(n);
    const user = use?.count === 1 ? this.#program.body[use.at] : undefined;
    return user?.op === 'VEC' && user.src.length === 1 && n.dtype !== 'bool' ? user.lanes : 0;
  }

  /** A VEC whose scalar was loaded into all lanes. */
  #splatted(n: KNode): Lowered | null {
    if (n.op !== 'VEC' || n.src.length !== 1) return null;
    const [source] = n.src;
    const kind = kindOf(n.dtype);
    if (source.op !== 'LOAD' || source.src[0].op === 'REG' || this.#splatLanes(source) === 0) return null;
    const [r] = this.get(source).parts;
    // An integer in a vector register was loaded in that way; floats always are in one, and reading them again is as cheap.
    if (r!.cls !== 'v' || (isFloat(kind) && source.src.length > 3)) return null;
    const width = widthOf(kind);
    return makeParts(this, n.lanes, width, () => r!);
  }

  /** A WHERE with a side that is computed only if a lane takes it. */
  #rarely(n: KNode, { side, nodes }: RareSide, at: number): Lowered {
    const { b } = this;
    const condition = this.get(n.src[0]!);
    const other = this.get(n.src[3 - side]!);
    const width = widthOf(kindOf(n.dtype));
    const bytes = partBytes(this, n.lanes, width);
    const cells = other.parts.map((part) => {
      const cell = b.reg(part.cls, true);
      b.move(cell, part, bytes);
      return cell;
    });
    if (n.lanes === 1) {
      const [c] = condition.parts;
      b.test(c!);
      b.openUnless(side === 1 ? 'e' : 'ne');
    } else {
      const some = this.masks.some(condition, n.lanes, side === 2);
      b.test(some);
      b.openUnless('e');
    }
    for (const x of nodes) this.#node(x, at);
    const chosen =
      n.lanes === 1
        ? [
            this.machine.operations.scalar(
              this,
              'WHERE',
              kindOf(n.dtype),
              n.src.map((s) => this.get(s).parts[0]!),
              n,
            ),
          ]
        : lowerValue(this, n).parts;
    for (const [i, part] of chosen.entries()) b.move(cells[i]!, part, bytes);
    b.closeIf();
    return { parts: cells.map((cell) => b.copy(cell, bytes)), width: other.width };
  }

  #loop(n: KNodeOf<'LOOP'>, from: number, to: number): void {
    const { b } = this;
    const extent = n.src[0];
    if (extent.op !== 'CONST') {
      const limit = this.get(extent).parts[0]!;
      const fixed = limit.mutable ? b.copy(limit) : limit;
      this.machine.basics.sign(b, fixed);
      b.openUnless('le');
      this.#oneLoop(n, from, to, { first: 0, limit: fixed, step: 1 });
      b.closeIf();
      return;
    }
    const count = Number(extent.arg.value);
    if (count <= 0) return;
    const factor = this.#factor(n, from, to, count);
    if (factor >= count) {
      for (let by = 0; by < count; by++) this.#copy(n, from, to, { block: b.current, base: null, by });
      return;
    }
    const whole = count - (count % factor);
    this.#oneLoop(n, from, to, { first: 0, limit: whole, step: factor });
    if (whole < count) this.#oneLoop(n, from, to, { first: whole, limit: count, step: 1 });
  }

  /** How often a body is unrolled. Vectors of neighbours are found by their nodes, which copies would share, so their loops are not. */
  #factor(n: KNodeOf<'LOOP'>, from: number, to: number, count: number): number {
    const { body } = this.#program;
    for (let i = from; i < to; i++) {
      const n = body[i]!;
      if (n.op === 'VEC' ? n.src.length > 1 : n.op === 'LOAD' && n.arg !== null) return 1;
    }
    return unrollFactor(n, body, from, to, count);
  }

  #oneLoop(n: KNodeOf<'LOOP'>, from: number, to: number, { first, limit, step }: Count): void {
    const { b } = this;
    const start = b.integer(first);
    const block = b.openLoop(typeof limit === 'number');
    const counter = b.reg('g', true);
    counter.isCounter = true;
    b.in(block.parent!, () => b.move(counter, start));
    for (let by = 0; by < step; by++) this.#copy(n, from, to, { block, base: counter, by });
    this.machine.basics.count(b, counter, step);
    b.compare(4, counter, limit);
    b.closeLoop('l');
  }

  /** Lowers the body of a loop once, for one copy of the counter. */
  #copy(n: KNodeOf<'LOOP'>, from: number, to: number, copy: Copy): void {
    const outer = this.innermost;
    this.innermost = { loop: n, body: this.#program.body, from, to };
    if (copy.base !== null && copy.by === 0) this.#values.set(n, { parts: [copy.base], width: 4 });
    else this.#copies.set(n, copy);
    this.#walk(from, to);
    this.#values.delete(n);
    this.#copies.delete(n);
    this.#forget(from, to);
    this.innermost = outer;
  }

  /** Forgets what a copy of a body computed: in the next copy a comparison may be left to its user. */
  #forget(from: number, to: number): void {
    const { body } = this.#program;
    for (let i = from; i < to; i++) {
      const { op } = body[i]!;
      if (op !== 'SPECIAL' && op !== 'SCALAR' && op !== 'IOTA') this.#values.delete(body[i]!);
    }
  }

  /** A sum of products including what unrolled copies add to their counters. */
  unshifted(form: Linear): Linear {
    return this.#copies.unshifted(form);
  }

  /** The register of a term of such a sum. */
  term(t: KNode): Reg {
    return this.#copies.get(t)?.base ?? this.get(t).parts[0]!;
  }
}

function isIndex({ op }: KNode): boolean {
  return op === 'ADD' || op === 'SUB' || op === 'MUL' || op === 'CONST';
}

/** The opposite of each condition. */
const unless: Readonly<Record<string, Condition>> = {
  l: 'ge',
  ge: 'l',
  b: 'ae',
  ae: 'b',
  le: 'g',
  g: 'le',
  be: 'a',
  a: 'be',
  e: 'ne',
};
