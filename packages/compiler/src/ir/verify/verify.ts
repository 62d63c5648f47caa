/**
 * Checks of programs: called by tests, by debug builds and by engines that want to be sure.
 *
 * A violation throws with the node's text and what is wrong with it. Programs come first, then loop nests, then
 * the rules that both stages share: dtypes, lanes, memory.
 */
import { type DType, dtypeInfo, isFloat, isInteger } from '../../shape/dtype.ts';
import type { KNode, KNodeOf, LoopKernel, LoopStore, Program } from '../ir.ts';
import { type BinaryOp, type TernaryOp, type UnaryOp, binaryOps, ternaryOps, unaryOps } from '../operations.ts';
import { highOf, lowOf } from '../node.ts';
import { fragmentLanes, isMatrixForm, matrixThreads } from '../matrix.ts';
import { partError } from '../parts.ts';
import { FreeRanges, ownRanges, type Range } from '../free-ranges.ts';
import { printLoopKernel, printNode, printProgram } from '../print.ts';

interface Open {
  readonly opener: KNode | null;
  readonly defined: Set<KNode>;
}

/** The `cause` of the error of a program: the node, and what is wrong with it. */
export interface Violation {
  readonly node: KNode;
  readonly wrong: string;
}

/**
 * Throws if a program breaks a rule of stage B.
 *
 * @example
 * verifyProgram(randomProgram(1).program);
 */
export function verifyProgram(p: Program): void {
  const open: Open[] = [{ opener: null, defined: new Set() }];
  const params = new Map(p.params.map((x) => [x.arg.slot, x]));
  p.body.forEach((n, at) => {
    const wrong = checkNode(n, p, open, params) ?? nodeError(n);
    if (wrong !== null)
      throw new Error(`[verify] ${p.name}, node ${at}: ${wrong}\n${printNode(n)}\nin\n${printProgram(p)}`, {
        cause: { node: n, wrong } satisfies Violation,
      });
    if (n.op === 'LOOP' || n.op === 'IF') open.push({ opener: n, defined: new Set([n]) });
    else if (n.op === 'ENDLOOP' || n.op === 'ENDIF') open.pop();
    else open[open.length - 1]?.defined.add(n);
  });
  if (open.length !== 1) throw new Error(`[verify] ${p.name}: ${open.length - 1} blocks are not closed`);
  for (const size of [...p.grid, ...p.group]) {
    if (!Number.isInteger(size) || size < 0)
      throw new Error(`[verify] ${p.name}: grid ${p.grid} and group ${p.group} must be whole numbers`);
  }
}

/** What is wrong with a node's place in the program, or null. */
function checkNode(n: KNode, p: Program, open: readonly Open[], params: ReadonlyMap<number, KNode>): string | null {
  const inside = (s: KNode): boolean => open.some((b) => b.defined.has(s));
  if (inside(n)) return 'appears twice';
  for (const [i, s] of n.src.entries()) {
    if (!inside(s)) return `source ${i} (${s.op}) is not defined before it in an open block`;
  }
  switch (n.op) {
    case 'ENDLOOP':
    case 'ENDIF': {
      const opener = open[open.length - 1]?.opener?.op;
      return opener === (n.op === 'ENDLOOP' ? 'LOOP' : 'IF') ? null : `ends ${opener ?? 'no block'}`;
    }
    case 'RANGE':
    case 'REDUCE':
    case 'STAGE':
      return 'belongs to loop nests';
    case 'PARAM': {
      const declared = params.get(n.arg.slot);
      if (declared === undefined) return `slot ${n.arg.slot} is not among the program's ${p.params.length} parameters`;
      return declared === n ||
        (declared.dtype === n.dtype && declared.op === 'PARAM' && declared.arg.access === n.arg.access)
        ? null
        : `slot ${n.arg.slot} is declared as another parameter`;
    }
    case 'SCALAR':
      return p.scalars[n.arg.slot] === n.dtype
        ? null
        : `scalar ${n.arg.slot} is declared as ${p.scalars[n.arg.slot] ?? 'nothing'}`;
    case 'REG':
    case 'SHARED':
      return open.length === 1 ? null : 'memory must be declared outside all blocks';
    case 'MATRIX':
    case 'FRAGMENT': {
      const threads = p.group[0] * p.group[1] * p.group[2];
      if (threads % matrixThreads !== 0)
        return `needs whole sets of ${matrixThreads} threads: the group has ${threads}`;
      return togetherIn(open);
    }
    case 'BARRIER': {
      const [x, y, z] = p.group;
      return togetherIn(open) ?? (n.arg === null ? null : partError(n.arg.part, x * y * z));
    }
    case 'SUBGROUP':
      return togetherIn(open);
    default:
      return null;
  }
}

function togetherIn(open: readonly Open[]): string | null {
  const all = open.every((b) => b.opener === null || isUniform(b.opener));
  return all ? null : 'is in a block that not all threads may enter';
}

/**
 * True if all threads of a group agree on a block's condition or trip count: it depends on no thread, no subgroup and no memory.
 *
 * @example
 * const p = new ProgramBuilder();
 * const y = p.e.param(0, 'float32', 'write', 64);
 * const thread = p.e.special('local', 0, 64);
 * p.ifThen(p.e.lt(thread, 8), () => p.store(y, thread, p.e.f32(1)));
 * const { body } = p.build({ name: 'some', group: [64, 1, 1] });
 * body.filter((n) => n.op === 'IF').map(isUniform); // [false]
 */
export function isUniform(opener: KNode): boolean {
  const seen = new Set<KNode>();
  const stack: KNode[] = [...opener.src];
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (seen.has(n)) continue;
    seen.add(n);
    if (n.op === 'LOAD' || n.op === 'SUBGROUP' || n.op === 'MATRIX' || n.op === 'FRAGMENT') return false;
    if (n.op === 'SPECIAL' && n.arg.kind !== 'group' && n.arg.kind !== 'subgroups') return false;
    stack.push(...n.src);
  }
  return true;
}

// Checks of loop nests (stage A): every range is bound where it is used, once, and every node obeys the common rules. What
// threads reduce together is the same for all of them.

/**
 * Throws if a loop nest breaks a rule of stage A.
 *
 * @example
 * const e = new Exprs();
 * const x = e.param(0, 'float32', 'read', 2);
 * const y = e.param(1, 'float32', 'write', 2);
 * const i = e.range(2);
 * const store = e.store(y, i, e.mul(e.load(x, i), 2));
 * const kernel: LoopKernel = { name: 'twice', params: [x, y], scalars: [], stores: [{ store, ranges: [i] }] };
 * verifyLoopKernel(kernel);
 */
export function verifyLoopKernel(k: LoopKernel): void {
  const free = new FreeRanges();
  const seen = new Set<KNode>();
  const slots = new Set(k.params.map((p) => p.arg.slot));
  for (const entry of k.stores) {
    const fail = (n: KNode, what: string): never => {
      throw new Error(`[verify] ${k.name}: ${what}\n${printNode(n)}\nin\n${printLoopKernel(k)}`);
    };
    checkBinding(entry, free, fail);
    const stack: KNode[] = [entry.store];
    for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
      if (seen.has(n)) continue;
      seen.add(n);
      const wrong = nodeError(n) ?? stageError(n, k, slots) ?? togetherError(n, free);
      if (wrong !== null) fail(n, wrong);
      stack.push(...n.src);
    }
  }
}

function stageError(n: KNode, k: LoopKernel, slots: ReadonlySet<number>): string | null {
  switch (n.op) {
    case 'LOOP':
    case 'ENDLOOP':
    case 'IF':
    case 'ENDIF':
    case 'BARRIER':
    case 'SUBGROUP':
    case 'MATRIX':
    case 'FRAGMENT':
    case 'COPY':
    case 'COMMIT':
    case 'WAIT':
    case 'REG':
    case 'SHARED':
      return 'belongs to programs';
    case 'PARAM':
      return slots.has(n.arg.slot) ? null : `slot ${n.arg.slot} is not among the kernel's parameters`;
    case 'SCALAR':
      return k.scalars[n.arg.slot] === n.dtype
        ? null
        : `scalar ${n.arg.slot} is declared as ${k.scalars[n.arg.slot] ?? 'nothing'}`;
    default:
      return n.dtype !== 'void' && n.lanes !== 1 ? 'has several lanes: vectors belong to programs' : null;
  }
}

/** Threads bring together what they have of one result: one for all of them. */
function togetherError(n: KNode, free: FreeRanges): string | null {
  const isLocal = (r: Range): boolean => r.arg.kind === 'local';
  if (n.op !== 'REDUCE' || !ownRanges(n).some(isLocal) || !free.of(n).some(isLocal)) return null;
  return 'is shared by the threads of a group and is of one thread';
}

/** The store's ranges cover everything free in it, and no reduction inside binds one of them again. */
function checkBinding({ store, ranges }: LoopStore, free: FreeRanges, fail: (n: KNode, what: string) => never): void {
  const outer = new Set<Range>(ranges);
  if (outer.size !== ranges.length) fail(store, 'a range appears twice among the loops of a store');
  for (const r of free.of(store))
    if (!outer.has(r)) fail(store, `range of extent ${r.arg.extent} is used but not bound by the store`);
  const seen = new Set<KNode>();
  const stack: KNode[] = [store];
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (seen.has(n)) continue;
    seen.add(n);
    if (n.op === 'REDUCE' || n.op === 'STAGE') {
      for (const r of ownRanges(n)) if (outer.has(r)) fail(n, 'binds a range that is a loop of its store');
    }
    stack.push(...n.src);
  }
}

// Rules every node obeys on its own, in both stages: number and dtypes of sources, lanes, memory accesses.

type Kind = (typeof unaryOps)[UnaryOp] | (typeof binaryOps)[BinaryOp];

function accepts(kind: Kind, dtype: DType | 'void'): boolean {
  if (dtype === 'void') return false;
  switch (kind) {
    case 'any':
    case 'compare':
      return true;
    case 'float':
      return isFloat(dtype);
    case 'integer':
      return isInteger(dtype);
    case 'logical':
      return isInteger(dtype) || dtype === 'bool';
    case 'number':
      return true; // MAX and MIN take bool as well
    default:
      return kind satisfies never;
  }
}

function count(n: KNode, low: number, high: number = low): string | null {
  const { length } = n.src;
  return length >= low && length <= high
    ? null
    : `takes ${low}${high === low ? '' : ` to ${high}`} sources: has ${length}`;
}

function isIndex(n: KNode): boolean {
  return n.dtype === 'int32' && n.lanes === 1;
}

/** What is wrong with a node by itself, or null. */
export function nodeError(n: KNode): string | null {
  if (n.op in unaryOps) return unaryError(n, unaryOps[n.op as UnaryOp]);
  if (n.op in binaryOps) return binaryError(n, binaryOps[n.op as BinaryOp]);
  if (n.op in ternaryOps) return ternaryError(n, n.op as TernaryOp);
  const [a] = n.src;
  switch (n.op) {
    case 'PARAM':
    case 'SCALAR':
    case 'SHARED':
      return n.lanes === 1 ? count(n, 0) : 'has one lane';
    case 'REG':
      return n.arg.length > 0 ? count(n, 0) : 'has no registers';
    case 'CONST':
      return (typeof n.arg.value === 'bigint') === (n.dtype === 'int64' || n.dtype === 'uint64')
        ? count(n, 0)
        : 'has a value of another dtype';
    case 'SPECIAL':
      return isIndex(n) ? count(n, 0) : 'is an int32 scalar';
    case 'SUBGROUP': {
      const { op } = n.arg;
      if (n.dtype !== a.dtype || n.lanes !== 1 || dtypeInfo[a.dtype].bytes !== 4)
        return `takes and gives a scalar of four bytes: got ${a.dtype} x ${a.lanes} for ${n.dtype} x ${n.lanes}`;
      return (
        count(n, 1) ?? (isFloat(a.dtype) && (op === 'max' || op === 'min') ? `${op} takes integers` : sameLanes(n))
      );
    }
    case 'MATRIX':
    case 'FRAGMENT':
    case 'COPY':
    case 'COMMIT':
    case 'WAIT':
      return matrixError(n);
    case 'RANGE':
      return isIndex(n) && (a === undefined || isIndex(a)) ? count(n, 0, 1) : 'and its limit are int32 scalars';
    case 'LOOP':
      return count(n, 1) ?? (isIndex(n) && isIndex(a) ? null : 'and its extent are int32 scalars');
    case 'IF':
      return (
        count(n, 1) ?? (a.dtype === 'bool' && a.lanes === 1 ? null : `takes a bool scalar: got ${a.dtype} x ${a.lanes}`)
      );
    case 'REDUCE': {
      const arg = n.arg.op === 'argmax' || n.arg.op === 'argmin';
      if (n.dtype !== (arg ? 'int32' : a.dtype)) return `of ${a.dtype} cannot be ${n.dtype}`;
      return bindsRanges(n);
    }
    case 'STAGE':
      return n.dtype === a.dtype ? bindsRanges(n) : `of ${a.dtype} cannot be ${n.dtype}`;
    case 'LOAD':
      return count(n, 2, 4) ?? accessError(n, n.lanes);
    case 'STORE':
    case 'ATOMIC':
      return count(n, 3, 4) ?? accessError(n, n.src[2]?.lanes);
    case 'CAST':
      return count(n, 1) ?? sameLanes(n);
    case 'BITCAST': {
      const fits = dtypeInfo[a.dtype as DType].bytes === dtypeInfo[n.dtype].bytes;
      return count(n, 1) ?? (fits ? sameLanes(n) : `from ${a.dtype} to ${n.dtype}: sizes differ`);
    }
    case 'VEC':
      if (n.src.length !== 1 && n.src.length !== n.lanes)
        return `of ${n.lanes} lanes takes 1 or ${n.lanes} sources: has ${n.src.length}`;
      return n.src.every((s) => s.lanes === 1 && s.dtype === n.dtype) ? null : 'takes scalars of its dtype';
    case 'LANE':
      if (n.arg.lane < 0 || n.arg.lane >= a.lanes) return `${n.arg.lane} of a vector of ${a.lanes} lanes`;
      return n.lanes === 1 && n.dtype === a.dtype ? count(n, 1) : 'is a scalar of the dtype of its vector';
    case 'IOTA':
      return n.dtype === 'int32' ? count(n, 0) : 'is an int32 vector';
    default:
      return null;
  }
}

function unaryError(n: KNode, kind: Kind): string | null {
  const [a] = n.src;
  const wrong = count(n, 1);
  if (wrong !== null) return wrong;
  if (!accepts(kind, a.dtype)) return `does not take ${a.dtype}`;
  if (n.dtype !== (n.op === 'ISNAN' ? 'bool' : a.dtype)) return `of ${a.dtype} cannot be ${n.dtype}`;
  return sameLanes(n);
}

function binaryError(n: KNode, kind: Kind): string | null {
  const [a, b] = n.src;
  const wrong = count(n, 2);
  if (wrong !== null) return wrong;
  if (a.dtype !== b.dtype) return `takes operands of one dtype: got ${a.dtype} and ${b.dtype}`;
  if (!accepts(kind, a.dtype)) return `does not take ${a.dtype}`;
  if (n.dtype !== (kind === 'compare' ? 'bool' : a.dtype)) return `of ${a.dtype} cannot be ${n.dtype}`;
  return sameLanes(n);
}

function ternaryError(n: KNode, op: TernaryOp): string | null {
  const [a, b, c] = n.src;
  const wrong = count(n, 3);
  if (wrong !== null) return wrong;
  if (a.dtype !== (op === 'WHERE' ? 'bool' : n.dtype) || b.dtype !== n.dtype || c.dtype !== n.dtype) {
    return `of ${n.dtype} got ${a.dtype}, ${b.dtype}, ${c.dtype}`;
  }
  if (op !== 'WHERE' && !isFloat(n.dtype as DType)) return `does not take ${n.dtype}`;
  return sameLanes(n);
}

function sameLanes(n: KNode): string | null {
  for (const s of n.src) if (s.lanes !== n.lanes) return `has ${n.lanes} lanes but a source has ${s.lanes}`;
  return null;
}

function bindsRanges(n: KNode): string | null {
  if (n.src.length < 2) return 'binds no range';
  return n.src.every((s, i) => i === 0 || s.op === 'RANGE') ? null : 'takes a value and ranges';
}

/** Rules of LOAD, STORE and ATOMIC, and indices that cannot be right. */
function accessError(n: KNode, lanes: number): string | null {
  const [mem, index, value] = n.src;
  const gate = n.op === 'LOAD' ? n.src[2] : n.src[3];
  if (!isIndex(index)) return `index must be an int32 scalar: got ${index.dtype} x ${index.lanes}`;
  if (gate !== undefined && (gate.dtype !== 'bool' || gate.lanes !== 1))
    return `gate must be a bool scalar: got ${gate.dtype} x ${gate.lanes}`;
  if (n.op === 'LOAD') {
    const alt = n.src[3];
    if (n.dtype !== mem.dtype) return `of ${mem.dtype} cannot be ${n.dtype}`;
    if (gate !== undefined && alt === undefined) return 'with a gate needs an alternative';
    if (alt !== undefined && (alt.dtype !== n.dtype || alt.lanes !== lanes))
      return `has ${lanes} lanes but its alternative ${alt.dtype} x ${alt.lanes}`;
    if (n.arg !== null) return steppedError(n, n.arg.step);
  } else if (value?.dtype !== mem.dtype) return `stores ${value?.dtype} to ${mem.dtype}`;
  if (mem.op === 'PARAM' && mem.arg.length === 0) return null; // in a loop that never runs
  if (mem.op === 'PARAM') {
    if (n.op !== 'LOAD' && mem.arg.access === 'read') return 'writes a parameter that is only read';
    if (n.op === 'LOAD' && mem.arg.access === 'write') return 'reads a parameter that is only written';
    return gate === undefined ? outOfRange(index, mem.arg.length - lanes) : null;
  }
  if (mem.op === 'SHARED') return gate === undefined ? outOfRange(index, mem.arg.length - lanes) : null;
  if (mem.op === 'REG') {
    if (index.op !== 'CONST') return 'of registers needs a constant index';
    return lanes === mem.lanes
      ? outOfRange(index, mem.arg.length - 1)
      : `of registers of ${mem.lanes} lanes has ${lanes}`;
  }
  return mem.op === 'STAGE' ? null : `${mem.op} is no memory`;
}

/** Rules of a LOAD whose lanes lie apart. */
function steppedError({ src: [mem, index, gate], lanes }: KNodeOf<'LOAD'>, step: number): string | null {
  if (!Number.isInteger(step) || step < 2 || lanes < 2) return `takes lanes, two or more apart: got ${lanes}, ${step}`;
  if (mem.op !== 'PARAM' || mem.arg.access !== 'read' || gate !== undefined)
    return 'with a step reads a parameter that is only read, without a gate';
  return mem.arg.length === 0 ? null : outOfRange(index, mem.arg.length - 1 - (lanes - 1) * step);
}

/** Rules of products of tiles, and of copies to group memory. */
function matrixError(n: KNode): string | null {
  const [a, b, c, d] = n.src;
  switch (n.op) {
    case 'MATRIX': {
      const { tile } = n.arg;
      const wrong = count(n, 3);
      if (wrong !== null) return wrong;
      if (a.dtype !== b.dtype || !isMatrixForm(a.dtype, tile))
        return `has no tile ${tile} of ${a.dtype} and ${b.dtype}`;
      if (n.dtype !== 'float32' || c.dtype !== 'float32') return `of ${c.dtype} for ${n.dtype}: sums are float32`;
      const lanes = [fragmentLanes('a', tile), fragmentLanes('b', tile), 4, 4];
      const has = [a, b, c, n].map((x) => x.lanes);
      return has.every((x, i) => x === lanes[i]) ? null : `takes and gives ${lanes} lanes: got ${has}`;
    }
    case 'FRAGMENT': {
      const { tile, part, across, along } = n.arg;
      const wrong = count(n, 2);
      if (wrong !== null) return wrong;
      if (a.op !== 'SHARED' || a.dtype !== n.dtype || !isIndex(b))
        return 'takes group memory of its dtype and an index';
      if (!isMatrixForm(n.dtype, tile)) return `has no tile ${tile} of ${n.dtype}`;
      const unit = 16 / dtypeInfo[n.dtype].bytes;
      const [near, far] = across === 1 ? [across, along] : [along, across];
      if (near !== 1 || !(far >= unit) || far % unit !== 0) return `lies at distances ${across} and ${along}`;
      return n.lanes === fragmentLanes(part, tile) ? null : `has ${fragmentLanes(part, tile)} lanes`;
    }
    case 'COPY': {
      const wrong = count(n, 4, 5);
      if (wrong !== null) return wrong;
      const [, , , , gate] = n.src;
      if (a.op !== 'SHARED' || c?.op !== 'PARAM' || c.arg.access !== 'read' || a.dtype !== c.dtype)
        return 'goes to group memory, from a parameter of its dtype that is only read';
      if (!isIndex(b) || d === undefined || !isIndex(d)) return 'takes indices that are int32 scalars';
      if (gate !== undefined && (gate.dtype !== 'bool' || gate.lanes !== 1)) return 'has a gate that is no bool scalar';
      const { lanes } = n.arg;
      const bytes = lanes * dtypeInfo[a.dtype].bytes;
      if (bytes !== 4 && bytes !== 8 && bytes !== 16) return `copies 4, 8 or 16 bytes: got ${bytes}`;
      return outOfRange(b, a.arg.length - lanes) ?? (gate ? null : outOfRange(d, c.arg.length - lanes));
    }
    case 'WAIT':
      return Number.isInteger(n.arg.pending) && n.arg.pending >= 0
        ? count(n, 0)
        : 'waits for a whole number of batches';
    default:
      return count(n, 0);
  }
}

function outOfRange(index: KNode, last: number): string | null {
  const [low, high] = [lowOf(index), highOf(index)];
  return low > last || high < 0 ? `index is in ${low} .. ${high}, allowed is 0 .. ${last}` : null;
}
