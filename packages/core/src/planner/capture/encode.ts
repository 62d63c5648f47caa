/**
 * Attributes as integers, for plan keys: one encoder per primitive, exhaustive.
 *
 * Two nodes of one primitive have the same integers exactly when every attribute that a kernel may depend on is equal.
 * A scalar's value is a binding and leaves no trace here. Shapes of computed nodes follow from primitive, attributes and
 * inputs, so only leaves write theirs.
 */
import type { Attrs, BinaryPrimitive, PrimitiveName, UnaryPrimitive } from '../../graph/attrs.ts';
import { dtypeInfo } from '../../shape/dtype.ts';
import { traits } from './traits.ts';

/** Growing list of 32-bit integers. `reserve` once per node, then `push` without checks. */
export class IntWriter {
  data: Int32Array;
  length = 0;

  constructor(capacity = 1024) {
    this.data = new Int32Array(capacity);
  }

  reserve(count: number): void {
    if (this.length + count <= this.data.length) return;
    const bigger = new Int32Array(Math.max(this.data.length * 2, this.length + count));
    bigger.set(this.data);
    this.data = bigger;
  }

  push(value: number): void {
    this.data[this.length++] = value;
  }

  list(values: readonly number[]): void {
    const { data } = this;
    let at = this.length;
    data[at++] = values.length;
    for (let i = 0; i < values.length; i++) data[at++] = values[i] as number;
    this.length = at;
  }

  /** The integers as a list. */
  values(): number[] {
    return Array.from(this.data.subarray(0, this.length));
  }

  /** All integers of another writer, their number first. */
  append({ data, length }: IntWriter): void {
    this.push(length);
    for (let i = 0; i < length; i++) this.data[this.length + i] = data[i] as number;
    this.length += length;
  }

  /** Which of both it is, and a number by its bits, so that 0 and -0, and numbers beyond 32 bits, differ; a bigint by its lowest 64 bits. */
  number(value: number | bigint): void {
    this.data[this.length++] = typeof value === 'bigint' ? 1 : 0;
    if (typeof value === 'bigint') bigBits[0] = BigInt.asIntN(64, value);
    else floatBits[0] = value;
    this.data[this.length++] = intBits[0] as number;
    this.data[this.length++] = intBits[1] as number;
  }
}

const floatBits = new Float64Array(1);
const intBits = new Int32Array(floatBits.buffer);
const bigBits = new BigInt64Array(floatBits.buffer);

/** Most integers one node's attributes can take per axis, with room to spare; used with `reserve`. */
export const intsPerAxis = 8;

type Encoder<P extends PrimitiveName> = (attr: Attrs[P], out: IntWriter) => void;
type ElementwiseName = UnaryPrimitive | BinaryPrimitive;

const reduceOps = { sum: 0, prod: 1, max: 2, min: 3 } as const;
const scatterOps = { set: 0, prod: 1, max: 2, min: 3 } as const;
const scanOps = { sum: 0, prod: 1, max: 2, min: 3, linear: 4 } as const;
const tieRules = { share: 0, first: 1 } as const;
const nothing = (): void => {};

const encoders: { readonly [P in Exclude<PrimitiveName, ElementwiseName>]: Encoder<P> } = {
  buffer: nothing,
  scalar: nothing,
  constant: (a, out) => out.number(a.value),
  iota: (a, out) => out.push(a.length),
  randomBits: (a, out) => out.list(a.shape),
  where: nothing,
  fma: nothing,
  cast: (a, out) => out.push(dtypeInfo[a.dtype].id),
  bitcast: (a, out) => out.push(dtypeInfo[a.dtype].id),
  reduce: (a, out) => {
    out.push(reduceOps[a.op] * 2 + tieRules[a.ties]);
    out.list(a.axes);
  },
  argReduce: (a, out) => {
    out.push(reduceOps[a.op]);
    out.list(a.axes);
  },
  reshape: (a, out) => out.list(a.shape),
  permute: (a, out) => out.list(a.axes),
  expand: (a, out) => out.list(a.shape),
  slice: (a, out) => {
    out.list(a.start);
    out.list(a.length);
    out.list(a.step);
  },
  pad: (a, out) => {
    out.list(a.low);
    out.list(a.high);
    out.number(a.value);
  },
  concat: (a, out) => out.push(a.axis),
  window: (a, out) => {
    out.list(a.size);
    out.list(a.stride);
    out.list(a.dilation);
  },
  fold: (a, out) => {
    out.list(a.size);
    out.list(a.stride);
    out.list(a.dilation);
    out.list(a.spatial);
  },
  dotGeneral: (a, out) => {
    out.list(a.lhsBatch);
    out.list(a.rhsBatch);
    out.list(a.lhsContract);
    out.list(a.rhsContract);
  },
  conv: (a, out) => {
    out.list(a.stride);
    out.list(a.padLow);
    out.list(a.padHigh);
    out.list(a.lhsDilation);
    out.list(a.rhsDilation);
    out.push(a.groups);
    out.push(a.batchGroups);
  },
  gather: (a, out) => out.push(a.axis),
  scatterAdd: (a, out) => out.push(a.axis),
  scatter: (a, out) => {
    out.push(a.axis);
    out.push(scatterOps[a.op]);
  },
  scan: (a, out) => {
    out.push(a.axis);
    out.push(scanOps[a.op] * 2 + Number(a.reverse));
  },
  argSort: (a, out) => {
    out.push(a.axis * 2 + Number(a.descending));
    out.push(a.count);
  },
  stopGradient: nothing,
  after: nothing,
  contiguous: nothing,
};

/** How a primitive goes into keys: its number, and its attributes if it has any. */
export interface PrimitiveCode {
  readonly id: number;
  readonly attr: ((attr: never, out: IntWriter) => void) | null;
}

/** One table, so that writing a node costs one look-up. */
export const primitiveCodes: Readonly<Record<PrimitiveName, PrimitiveCode>> = Object.fromEntries(
  Object.entries(traits).map(([op, { id }]) => [
    op,
    { id, attr: (encoders as Record<string, PrimitiveCode['attr']>)[op] ?? null },
  ]),
) as Record<PrimitiveName, PrimitiveCode>;

/** Writes the attributes of a node. Elementwise primitives have none. */
export function encodeAttr<P extends PrimitiveName>(op: P, attr: Attrs[P], out: IntWriter): void {
  primitiveCodes[op].attr?.(attr as never, out);
}
