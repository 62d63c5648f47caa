/** Operations on vectors, part by part; lane by lane where the machine has no instruction. */
import type { KNode } from '@polygrad/core/kernel';
import type { Reg, Lowered } from '../form/code.ts';
import { type DType, isFloat, kindOf, refuse, widthOf } from '../target.ts';
import { lowerBitcast, lowerCast } from './casts.ts';
import type { Make, Context } from '../form/machine.ts';
import { makeParts, partBytes } from '../form/vector-parts.ts';

/** Lowers a pure node that is no load and no declaration. */
export function lowerValue(ctx: Context, n: KNode): Lowered {
  switch (n.op) {
    case 'CONST':
      return constant(ctx, n.dtype as DType, n.lanes, n.arg.value);
    case 'IOTA':
      return iota(ctx, n.lanes);
    case 'VEC':
      return vectorOf(ctx, n);
    case 'LANE': {
      const kind = kindOf(n.dtype);
      const x = ctx.get(n.src[0]);
      const r = kind === 'bool' ? ctx.masks.lane(x, n.arg.lane) : ctx.machine.lanes.extract(ctx, kind, x, n.arg.lane);
      return { parts: [r], width: 4 };
    }
    case 'CAST':
      return lowerCast(ctx, n);
    case 'BITCAST':
      return lowerBitcast(ctx, n);
    default:
      return operation(ctx, n);
  }
}

function constant(ctx: Context, dtype: DType, lanes: number, value: number | bigint): Lowered {
  const kind = kindOf(dtype);
  const width = widthOf(kind);
  if (kind === 'bool' && lanes > 1) return ctx.masks.constant(Number(value) !== 0, lanes);
  if (isFloat(kind)) {
    const one = ctx.b.float(Number(value), width);
    return makeParts(ctx, lanes, width, () => one);
  }
  if (lanes === 1) return { parts: [ctx.b.integer(value, width)], width };
  const one = ctx.b.bits(value, width);
  return makeParts(ctx, lanes, width, () => one);
}

function iota(ctx: Context, lanes: number): Lowered {
  return makeParts(ctx, lanes, 4, (p) => {
    const first = (p * ctx.target.vectorBytes) / 4;
    return ctx.b.vector(new Uint8Array(Int32Array.from({ length: 16 }, (_, i) => first + i).buffer));
  });
}

function vectorOf(ctx: Context, n: KNode): Lowered {
  const kind = kindOf(n.dtype);
  const scalarOf = (i: number): Reg => ctx.get(n.src[i]!).parts[0]!;
  if (n.src.length > 1)
    return kind === 'bool'
      ? ctx.masks.gather(n.lanes, scalarOf)
      : ctx.machine.lanes.gather(ctx, kind, n.lanes, scalarOf);
  if (kind === 'bool') return ctx.masks.splat(scalarOf(0), n.lanes);
  const width = widthOf(kind);
  const one = ctx.machine.lanes.splat(ctx, kind, scalarOf(0), partBytes(ctx, n.lanes, width));
  return makeParts(ctx, n.lanes, width, () => one);
}

function operation(ctx: Context, n: KNode): Lowered {
  const better = n.op === 'WHERE' ? pickedExtremum(ctx, n) : n.op === 'OR' ? rotated(ctx, n) : null;
  if (better !== null) return better;
  const { src } = n;
  const kind = kindOf(src[n.op === 'WHERE' ? 1 : 0]!.dtype);
  const width = widthOf(kind);
  const { lanes, operations } = ctx.machine;
  if (n.lanes === 1) {
    const args = new Array<Reg>(src.length);
    for (let i = 0; i < src.length; i++) args[i] = ctx.get(src[i]!).parts[0]!;
    return { parts: [operations.scalar(ctx, n.op, kind, args, n)], width };
  }
  const operands = new Array<Lowered>(src.length);
  for (let i = 0; i < src.length; i++) operands[i] = ctx.get(src[i]!);
  if (kind === 'bool') return boolOperation(ctx, n, operands);
  const [x, y, z] = operands as [Lowered, Lowered, Lowered];
  switch (n.op) {
    case 'LT':
    case 'LE':
    case 'EQ':
      return ctx.masks.compare(kind, n.op, x.parts, y.parts, n.lanes);
    case 'ISNAN':
      if (!isFloat(kind)) return ctx.masks.constant(false, n.lanes);
      return ctx.masks.compare(kind, 'UNORD', x.parts, x.parts, n.lanes);
    case 'WHERE':
      return { parts: ctx.masks.select(x, y.parts, z.parts, n.lanes, width), width };
  }
  const bytes = partBytes(ctx, n.lanes, width);
  const make = operations.vector(ctx, n, kind, bytes);
  if (make === null) {
    const lane = (i: number): Reg => {
      const args = operands.map((o, k) => lanes.extract(ctx, kindOf(n.src[k]!.dtype), o, i));
      return operations.scalar(ctx, n.op, kind, args, null);
    };
    return lanes.gather(ctx, kindOf(n.dtype), n.lanes, lane);
  }
  // Most vectors have one part, and a list that grows has room for 17.
  const part = (p: number): Reg => {
    const args = new Array<Reg>(operands.length);
    for (let i = 0; i < args.length; i++) args[i] = operands[i]!.parts[p]!;
    return make(args);
  };
  const parts = [part(0)];
  for (let p = 1; p < x.parts.length; p++) parts.push(part(p));
  return { parts, width };
}

function boolOperation({ masks }: Context, n: KNode, operands: readonly Lowered[]): Lowered {
  const [x, y, z] = operands as [Lowered, Lowered, Lowered];
  const { lanes } = n;
  switch (n.op) {
    case 'AND':
    case 'MUL':
    case 'MIN':
      return masks.logic('AND', x, y, lanes);
    case 'OR':
    case 'ADD':
    case 'MAX':
      return masks.logic('OR', x, y, lanes);
    case 'XOR':
      return masks.logic('XOR', x, y, lanes);
    case 'EQ':
      return masks.logic('EQ', x, y, lanes);
    case 'LT':
      return masks.logic('ANDNOT', y, x, lanes);
    case 'LE':
      return masks.not(masks.logic('ANDNOT', x, y, lanes), lanes);
    case 'NOT':
      return masks.not(x, lanes);
    case 'ISNAN':
      return masks.constant(false, lanes);
    case 'WHERE':
      return masks.logic('OR', masks.logic('AND', x, y, lanes), masks.logic('ANDNOT', z, x, lanes), lanes);
    default:
      return refuse(`${n.op} on bool is not an instruction of this engine; decompose it first`);
  }
}

/** `x < y ? y : x` and `x < y ? x : y`, where the machine has something for them, which asks for no comparison. */
function extremumOf(ctx: Context, n: KNode): Make | null {
  if (n.op !== 'WHERE' || n.lanes === 1) return null;
  const kind = kindOf(n.dtype);
  if (!isFloat(kind)) return null;
  const [cond, yes, no] = n.src as readonly [KNode, KNode, KNode];
  const [x, y] = cond.src;
  if (cond.op !== 'LT' || !((x === no && y === yes) || (x === yes && y === no))) return null;
  return ctx.machine.operations.extremum(ctx, kind, y === yes, partBytes(ctx, n.lanes, widthOf(kind)));
}

/** True for an operation that is lowered without one of its operands: a choice without its condition, a rotation without its shifts. */
export function asksNothing(ctx: Context, n: KNode): boolean {
  return extremumOf(ctx, n) !== null || rotationOf(ctx, n) !== null;
}

function pickedExtremum(ctx: Context, n: KNode): Lowered | null {
  const make = extremumOf(ctx, n);
  if (make === null) return null;
  const [a, c] = [ctx.get(n.src[1]!), ctx.get(n.src[2]!)];
  return { parts: a.parts.map((v, i) => make([v, c.parts[i]!])), width: widthOf(kindOf(n.dtype)) };
}

/** What two shifts that are joined turn to the left, and by how many bits, where the machine has an instruction for it. */
function rotationOf(ctx: Context, n: KNode): { readonly of: Lowered; readonly make: Make } | null {
  if (n.op !== 'OR' || n.lanes === 1) return null;
  const kind = kindOf(n.dtype);
  if (kind !== 'u32' && kind !== 'u64') return null;
  const [left, right] = n.src[0]!.op === 'SHL' ? n.src : [n.src[1], n.src[0]];
  if (left?.op !== 'SHL' || right?.op !== 'SHR' || left.src[0] !== right.src[0]) return null;
  const [up, down] = [left.src[1], right.src[1]];
  if (up?.op !== 'CONST' || down?.op !== 'CONST') return null;
  const width = widthOf(kind);
  const by = Number(up.arg.value);
  if (by <= 0 || by + Number(down.arg.value) !== width * 8) return null;
  const of = ctx.get(left.src[0]!);
  // Shifts read a register of the program before it is written again; who joins them stands behind that.
  if (of.parts.some((r) => r.mutable)) return null;
  const make = ctx.machine.operations.rotation(ctx, width, by, partBytes(ctx, n.lanes, width));
  return make === null ? null : { of, make };
}

function rotated(ctx: Context, n: KNode): Lowered | null {
  const found = rotationOf(ctx, n);
  return found === null ? null : { parts: found.of.parts.map((v) => found.make([v])), width: widthOf(kindOf(n.dtype)) };
}
