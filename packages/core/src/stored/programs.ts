/**
 * Programs as bytes, and back: nodes in order of execution, each with the positions of its sources.
 *
 * Operations are written by name: a read program has only known operations, dtypes and fields, and is verified like any program.
 */
import { withSources, uniqueNode } from '@polygrad/compiler/ir/expr';
import type {
  Count,
  KArgs,
  KNode,
  KNodeOf,
  KOp,
  NestOp,
  Product,
  Program,
  ProgramNode,
} from '@polygrad/compiler/ir/ir';
import type { MatrixTile } from '@polygrad/compiler/ir/matrix';
import { highOf, type Known, lowOf, newMark, sourcesFirst } from '@polygrad/compiler/ir/node';
import { binaryOps, ternaryOps, unaryOps } from '@polygrad/compiler/ir/operations';
import { isCount } from '@polygrad/compiler/ir/groups';
import { programOf } from '@polygrad/compiler/ir/program';
import { verifyProgram } from '@polygrad/compiler/ir/verify/verify';
import { type DType, dtypeInfo } from '@polygrad/compiler/shape/dtype';
import { normalize } from '@polygrad/compiler/shape/host';
import { type ByteReader, type ByteWriter, check, Damaged } from './bytes.ts';
import { isLong } from './kernels.ts';

/** Operations of programs that are not arithmetic, and whether they have arguments. */
const others: Readonly<Record<Exclude<keyof KArgs, NestOp>, boolean>> = {
  PARAM: true,
  SCALAR: true,
  SHARED: true,
  REG: true,
  CONST: true,
  SPECIAL: true,
  LOAD: true,
  STORE: false,
  ATOMIC: true,
  LOOP: true,
  ENDLOOP: false,
  IF: false,
  ENDIF: false,
  BARRIER: true,
  SUBGROUP: true,
  MATRIX: true,
  FRAGMENT: true,
  COPY: true,
  COMMIT: false,
  WAIT: true,
  CAST: false,
  BITCAST: false,
  VEC: false,
  LANE: true,
  IOTA: false,
};
const ops = [unaryOps, binaryOps, ternaryOps, others].flatMap((table) => Object.keys(table)) as readonly KOp[];
const opNumbers: ReadonlyMap<string, number> = new Map(ops.map((op, i) => [op, i]));
const dtypes: readonly (DType | 'void')[] = ['void', ...(Object.keys(dtypeInfo) as DType[])];
const statements: ReadonlySet<string> = new Set([
  'STORE',
  'ATOMIC',
  'ENDLOOP',
  'IF',
  'ENDIF',
  'BARRIER',
  'COPY',
  'COMMIT',
  'WAIT',
]);

const accesses = ['read', 'write', 'readwrite'] as const;
const specials = ['group', 'local', 'subgroup', 'subgroups', 'leader'] as const;
const axes = [0, 1, 2] as const;
const atomics = ['add', 'max', 'min', 'or'] as const;
const tiles = ['m16n8k8', 'm16n8k16'] as const satisfies readonly MatrixTile[];
const factors = ['a', 'b'] as const;
const shared = ['sum', 'prod', 'max', 'min'] as const;

/** In place of an operation: a node that was written before, and the end of a list. */
const again = 254;
const end = 255;

/** Most lanes of a vector. */
const mostLanes = 1024;

/** Flags in the byte that holds the number of a dtype. */
const inList = 16;
const bounded = 32;

function writeArg(out: ByteWriter, n: KNode): void {
  switch (n.op) {
    case 'PARAM':
      out.uint(n.arg.slot);
      out.uint(accesses.indexOf(n.arg.access));
      out.uint(n.arg.length * 2 + (n.arg.fewer ?? 0));
      break;
    case 'SCALAR': {
      const { slot, low, high } = n.arg;
      out.uint(slot);
      const has = low !== undefined && high !== undefined;
      out.byte(Number(has));
      if (has) out.ints([low, high]);
      break;
    }
    case 'SHARED':
    case 'REG':
      out.text(n.arg.name);
      out.uint(n.arg.length);
      break;
    case 'CONST':
      if (typeof n.arg.value === 'bigint') out.bigint(n.arg.value);
      else if (n.dtype === 'int32') out.int(n.arg.value);
      else out.float(n.arg.value);
      break;
    case 'SPECIAL':
      out.uint(specials.indexOf(n.arg.kind));
      out.uint(n.arg.axis);
      break;
    case 'ATOMIC':
      out.uint(atomics.indexOf(n.arg.op));
      break;
    case 'LOOP':
      out.byte(n.arg === null ? 0 : n.arg.unrollHint === undefined ? 1 : n.arg.unrollHint ? 3 : 2);
      break;
    case 'SUBGROUP':
      out.uint(shared.indexOf(n.arg.op));
      break;
    case 'LANE':
      out.uint(n.arg.lane);
      break;
    case 'LOAD':
      out.uint(n.arg === null ? 0 : n.arg.step);
      break;
    case 'MATRIX':
      out.uint(tiles.indexOf(n.arg.tile));
      break;
    case 'FRAGMENT':
      out.uint(tiles.indexOf(n.arg.tile));
      out.uint(factors.indexOf(n.arg.part));
      out.int(n.arg.across);
      out.int(n.arg.along);
      break;
    case 'COPY':
      out.uint(n.arg.lanes);
      break;
    case 'BARRIER':
      out.uint(n.arg === null ? 0 : n.arg.part);
      break;
    case 'WAIT':
      out.uint(n.arg.pending);
      break;
  }
}

const loopArgs = [null, {}, { unrollHint: false }, { unrollHint: true }] as const;

function readArg(from: ByteReader, op: KOp, dtype: DType | 'void'): object | null {
  switch (op) {
    case 'PARAM': {
      const slot = from.uint();
      const access = from.among(accesses);
      const size = from.uint();
      const length = Math.floor(size / 2);
      return size % 2 === 1 ? { slot, access, length, fewer: 1 } : { slot, access, length };
    }
    case 'SCALAR': {
      const slot = from.uint();
      if (from.byte() === 0) return { slot };
      const [low, high] = from.ints() as [number, number];
      return { slot, low, high };
    }
    case 'SHARED':
    case 'REG':
      return { name: from.text(), length: from.uint() };
    case 'CONST':
      return { value: readConstant(from, dtype as DType) };
    case 'SPECIAL':
      return { kind: from.among(specials), axis: from.among(axes) };
    case 'ATOMIC':
      return { op: from.among(atomics) };
    case 'LOOP':
      return from.among(loopArgs);
    case 'SUBGROUP':
      return { op: from.among(shared) };
    case 'LANE':
      return { lane: from.uint() };
    case 'LOAD': {
      const step = from.uint();
      return step === 0 ? null : { step };
    }
    case 'MATRIX':
      return { tile: from.among(tiles) };
    case 'FRAGMENT':
      return { tile: from.among(tiles), part: from.among(factors), across: from.int(), along: from.int() };
    case 'COPY':
      return { lanes: from.uint() };
    case 'BARRIER': {
      const part = from.uint();
      return part === 0 ? null : { part };
    }
    case 'WAIT':
      return { pending: from.uint() };
    default:
      return null;
  }
}

function readConstant(from: ByteReader, dtype: DType): number | bigint {
  if (isLong(dtype)) return from.bigint(dtype === 'int64');
  const value = dtype === 'int32' ? from.int() : from.float();
  check(Object.is(normalize(dtype, value), value), 'a constant');
  return value;
}

const sourcesOf = (n: KNode): readonly KNode[] => n.src;

/** Writes a program. Throws Damaged for one with operations of loop nests, which could not be read again. */
export function writeProgram(out: ByteWriter, program: Program): void {
  const { name, params, scalars, grid, group, groups, body, cost, transforms, product } = program;
  out.text(name);
  for (const size of [...grid, ...group]) out.uint(size);
  out.uint(scalars.length);
  for (const dtype of scalars) out.uint(dtypes.indexOf(dtype));
  out.float(cost.flops);
  out.float(cost.bytes);
  out.uint(transforms === undefined ? 0 : transforms.length + 1);
  // Ids of loops depend on the process, so a program's loops are numbered from 0.
  const numbers = new Map<number, number>();
  const numberOf = (loop: number): number => {
    if (!numbers.has(loop)) numbers.set(loop, numbers.size);
    return numbers.get(loop)!;
  };
  for (const { name: step, loops, made, args } of transforms ?? []) {
    out.text(step);
    out.ints(loops.map(numberOf));
    out.ints(made.map(numberOf));
    out.text(JSON.stringify(args));
  }
  writeProduct(out, product);

  const writer = new NodeWriter(out);
  out.uint(params.length);
  for (const n of params) writer.write(n as KNode);
  for (const n of body) writer.writeIn(n);
  out.byte(end);
  if (groups !== undefined) writer.writeIn(groups);
  out.byte(end);
}

/** Writes nodes, sources first. */
class NodeWriter {
  readonly #out: ByteWriter;
  /** Nodes are marked with consecutive numbers after this one. */
  readonly #before: number = newMark();
  #count = 0;
  readonly #isKnown = (n: KNode): boolean => (n as Known).mark > this.#before;
  readonly #writeSource = (n: KNode): void => this.write(n);

  constructor(out: ByteWriter) {
    this.#out = out;
  }

  /** How many nodes ago a node was written. */
  #back(n: KNode): number {
    return this.#count - ((n as Known).mark - this.#before - 1);
  }

  /** Writes the node as the next of a list; it may have been written before. */
  writeIn(n: KNode): void {
    for (const s of n.src) sourcesFirst(s, this.#isKnown, sourcesOf, this.#writeSource);
    if (this.#isKnown(n)) {
      this.#out.byte(again);
      this.#out.uint(this.#back(n));
    } else this.write(n, inList);
  }

  write(n: KNode, place = 0): void {
    const out = this.#out;
    const op = opNumbers.get(n.op);
    check(op !== undefined, `${n.op} in a program`);
    // Dtype and bounds that follow from the sources are left out.
    const usual = withSources(n, n.src);
    const tells = lowOf(usual) !== lowOf(n) || highOf(usual) !== highOf(n);
    out.byte(op);
    out.byte(dtypes.indexOf(n.dtype) | place | (tells ? bounded : 0));
    out.uint(n.lanes);
    out.uint(n.src.length);
    for (const s of n.src) out.uint(this.#back(s));
    writeArg(out, n);
    if (tells) {
      out.float(lowOf(n));
      out.float(highOf(n));
    }
    (n as Known).mark = newMark();
    this.#count++;
  }
}

/** Reads a program and verifies it. */
export function readProgram(from: ByteReader): Program {
  const name = from.text();
  const sizes = [0, 0, 0, 0, 0, 0].map(() => from.uint());
  const [x, y, z, gx, gy, gz] = sizes as [number, number, number, number, number, number];
  const scalars = from.list(() => dtypeOf(from));
  const cost = { flops: from.float(), bytes: from.float() };
  const steps = from.uint();
  const transforms =
    steps === 0 ? undefined : Array.from({ length: Math.min(steps - 1, 1 << 16) }, () => readTransform(from));
  const product = readProduct(from);
  const paramCount = from.count();
  const nodes: KNode[] = [];
  const body = readList(from, nodes) as ProgramNode[];
  const [groups, ...others] = readList(from, nodes);
  check(others.length === 0 && (groups === undefined || isCount(groups)), 'a number of groups');
  check(paramCount <= nodes.length, 'parameters');
  const params = nodes.slice(0, paramCount) as KNodeOf<'PARAM'>[];
  check(
    params.every(({ op, arg }, slot) => op === 'PARAM' && arg.slot === slot),
    'parameters',
  );
  const fields = { name, params, scalars, grid: [x, y, z], group: [gx, gy, gz], body, cost } as const;
  const program = programOf({
    ...fields,
    ...(transforms === undefined ? {} : { transforms }),
    ...(product === null ? {} : { product }),
    ...(groups === undefined ? {} : { groups }),
  });
  try {
    verifyProgram(program);
  } catch (error) {
    throw new Damaged((error as Error).message.split('\n')[0]);
  }
  return program;
}

/** Reads nodes written one after another; also adds their sources to `nodes`. */
function readList(from: ByteReader, nodes: KNode[]): KNode[] {
  const list: KNode[] = [];
  for (let code = from.byte(); code !== end; code = from.byte()) {
    if (code === again) list.push(nodeBefore(nodes, from));
    else {
      const op = ops[code];
      const what = from.byte();
      const n = readNode(from, op, what, nodes);
      nodes.push(n);
      if ((what & inList) !== 0) list.push(n);
    }
  }
  return list;
}

function nodeBefore(nodes: readonly KNode[], from: ByteReader): KNode {
  const n = nodes[nodes.length - from.uint()];
  check(n !== undefined, 'a node');
  return n;
}

function readNode(from: ByteReader, op: KOp | undefined, what: number, nodes: readonly KNode[]): KNode {
  const dtype = dtypes[what & 15];
  check(op !== undefined && dtype !== undefined, 'an operation');
  check((dtype === 'void') === statements.has(op), 'a dtype');
  const lanes = from.uint();
  check(lanes > 0 && lanes <= mostLanes, 'lanes');
  const src: KNode[] = [];
  const sources = from.uint();
  check(sources >= leastSources(op) && sources <= mostLanes, 'sources');
  for (let s = 0; s < sources; s++) src.push(nodeBefore(nodes, from));
  const n = uniqueNode(op, dtype, lanes, src, readArg(from, op, dtype) as never) as KNode;
  if ((what & bounded) !== 0) {
    (n as Known).lo = from.float();
    (n as Known).hi = from.float();
  }
  return n;
}

/** How many sources a rule of bounds may look at before a node is verified. */
function leastSources(op: KOp): number {
  if (op in ternaryOps) return 3;
  if (op in binaryOps) return 2;
  if (op in unaryOps) return 1;
  switch (op) {
    case 'COPY':
      return 4;
    case 'STORE':
    case 'ATOMIC':
    case 'MATRIX':
      return 3;
    case 'LOAD':
    case 'FRAGMENT':
      return 2;
    case 'LOOP':
    case 'IF':
    case 'SUBGROUP':
    case 'CAST':
    case 'BITCAST':
    case 'VEC':
    case 'LANE':
      return 1;
    default:
      return 0;
  }
}

function dtypeOf(from: ByteReader): DType {
  const dtype = from.among(dtypes);
  check(dtype !== 'void', 'a dtype');
  return dtype;
}

function readTransform(from: ByteReader): NonNullable<Program['transforms']>[number] {
  const name = from.text();
  const [loops, made] = [from.ints(), from.ints()];
  const args = parsed(from.text(), 'a transform');
  check(Array.isArray(args) && args.every((x) => typeof x === 'string' || typeof x === 'number'), 'a transform');
  return { name, loops, made, args };
}

/** Writes a product as JSON: few programs have one, and only an engine's library reads it, whose addon checks every number. */
function writeProduct(out: ByteWriter, product: Product<Count> | undefined): void {
  out.text(product === undefined ? '' : JSON.stringify(product));
}

function readProduct(from: ByteReader): Product<Count> | null {
  const text = from.text();
  if (text === '') return null;
  const product = parsed(text, 'a product') as Product<Count> | null;
  check(Boolean(product?.kind), 'a product');
  return product;
}

function parsed(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Damaged(what);
  }
}
