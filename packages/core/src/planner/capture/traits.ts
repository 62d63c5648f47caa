/**
 * What the planner knows about each primitive: the part it plays and what one element costs.
 *
 * Partition, cost and lowering branch on `role`, never on names, so a new primitive is scheduled by filling in its row.
 * Shape rules and gradient rules are elsewhere (graph/, primitives/).
 */
import type { Attrs, PrimitiveName } from '../../graph/attrs.ts';
import type { BinaryOp, TernaryOp, UnaryOp } from '../../ir/ir.ts';
import { type Shape, sizeOf } from '../../shape/view.ts';

/**
 * leaf: data from outside. elementwise: element i of the result needs element i of each source. movement: an index map.
 * generate: computed from the index. reduce: one result from many elements of its source. contraction: sums of products of
 * two sources. gather: an index map that depends on data. program: kernels written with the builder (scatters, scans, sorts).
 * pass: nothing at all, the value is the first source's. materialize: the identity, but in memory.
 */
export type Role =
  | 'leaf'
  | 'elementwise'
  | 'movement'
  | 'generate'
  | 'reduce'
  | 'contraction'
  | 'gather'
  | 'program'
  | 'pass'
  | 'materialize';

export interface Trait {
  readonly role: Role;
  /** Cost of one result element without its sources, in units of one addition (see planner/fusion/cost.ts). */
  readonly work: number;
  /** Kernel operation, for elementwise primitives that are exactly one. */
  readonly kernelOp?: UnaryOp | BinaryOp | TernaryOp;
  /** Small dense number for plan keys. */
  readonly id: number;
}

let count = 0;

function trait(role: Role, work: number, kernelOp?: UnaryOp | BinaryOp | TernaryOp): Trait {
  const id = ++count;
  return kernelOp === undefined ? { role, work, id } : { role, work, kernelOp, id };
}

function each(kernelOp: UnaryOp | BinaryOp | TernaryOp, work = 1): Trait {
  return trait('elementwise', work, kernelOp);
}

/** The table. */
export const traits: Readonly<Record<PrimitiveName, Trait>> = {
  buffer: trait('leaf', 0),
  scalar: trait('leaf', 0),
  constant: trait('generate', 0),
  iota: trait('generate', 1),
  randomBits: trait('generate', 90),

  neg: each('NEG'),
  not: each('NOT'),
  abs: each('ABS'),
  sign: trait('elementwise', 3),
  sqrt: each('SQRT', 3),
  rsqrt: each('RSQRT', 4),
  reciprocal: each('RECIP', 3),
  floor: each('FLOOR'),
  ceil: each('CEIL'),
  trunc: each('TRUNC'),
  round: each('ROUND', 2),
  exp: each('EXP', 10),
  exp2: each('EXP2', 9),
  expm1: each('EXPM1', 14),
  log: each('LOG', 12),
  log2: each('LOG2', 12),
  log10: each('LOG10', 12),
  log1p: each('LOG1P', 14),
  sin: each('SIN', 20),
  cos: each('COS', 20),
  tan: each('TAN', 28),
  asin: each('ASIN', 16),
  acos: each('ACOS', 16),
  atan: each('ATAN', 16),
  sinh: each('SINH', 18),
  cosh: each('COSH', 18),
  tanh: each('TANH', 14),
  erf: each('ERF', 20),
  isNaN: each('ISNAN', 2),

  add: each('ADD'),
  sub: each('SUB'),
  mul: each('MUL'),
  div: each('DIV', 3),
  idiv: each('IDIV', 6),
  irem: each('IREM', 6),
  fmod: each('FREM', 8),
  pow: each('POW', 30),
  atan2: each('ATAN2', 24),
  maximum: each('MAX'),
  minimum: each('MIN'),
  and: each('AND'),
  or: each('OR'),
  xor: each('XOR'),
  shl: each('SHL'),
  shr: each('SHR'),
  lt: each('LT'),
  le: each('LE'),
  eq: each('EQ'),
  where: trait('elementwise', 1),
  fma: each('FMA', 2),
  cast: trait('elementwise', 1),
  bitcast: trait('elementwise', 0),

  reduce: trait('reduce', 1),
  argReduce: trait('reduce', 3),
  fold: trait('reduce', 2),

  reshape: trait('movement', 0),
  permute: trait('movement', 0),
  expand: trait('movement', 0),
  slice: trait('movement', 0),
  window: trait('movement', 0),
  pad: trait('movement', 1),
  concat: trait('movement', 2),

  dotGeneral: trait('contraction', 2),
  conv: trait('contraction', 2),
  gather: trait('gather', 3),
  scatterAdd: trait('program', 4),
  scatter: trait('program', 4),
  scan: trait('program', 2),
  argSort: trait('program', 40),
  stopGradient: trait('pass', 0),
  after: trait('pass', 0),
  contiguous: trait('materialize', 0),
};

/** Scatters with at most this much work are done as reductions over all updates. */
const smallScatter = 1 << 22;

/** The part a particular node plays: a few primitives play different ones by their attributes or sizes. */
export function roleOf<P extends PrimitiveName>(
  op: P,
  attr: Attrs[P],
  src: readonly { readonly shape: Shape }[],
): Role {
  if (op === 'fold' && foldIsMovement(attr as Attrs['fold'])) return 'movement';
  if (
    op === 'scatterAdd' &&
    sizeOf((src[0] as { shape: Shape }).shape) * sizeOf((src[1] as { shape: Shape }).shape) <= smallScatter
  )
    return 'reduce';
  return traits[op].role;
}

/** True if no two windows overlap: then `fold` is an index map. */
export function foldIsMovement(attr: Attrs['fold']): boolean {
  return attr.size.every((n, i) => n === 1 || ((attr.dilation[i] as number) === 1 && n <= (attr.stride[i] as number)));
}
