/** Attributes as integers, for plan keys: the list they are written to. What is written is in definitions (`encode`). */
import type { Attrs, PrimitiveName } from '../../graph/attrs.ts';
import { definitionOf } from '../../graph/definition.ts';

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
    for (let i = 0; i < values.length; i++) data[at++] = values[i]!;
    this.length = at;
  }

  /** The integers as a list. */
  values(): number[] {
    return Array.from(this.data.subarray(0, this.length));
  }

  /** All integers of another writer, their number first. */
  append({ data, length }: IntWriter): void {
    this.push(length);
    for (let i = 0; i < length; i++) this.data[this.length + i] = data[i]!;
    this.length += length;
  }

  /** Which of both it is, and a number by its bits, so that 0 and -0, and numbers beyond 32 bits, differ; a bigint by its lowest 64 bits. */
  number(value: number | bigint): void {
    this.data[this.length++] = typeof value === 'bigint' ? 1 : 0;
    if (typeof value === 'bigint') bigBits[0] = BigInt.asIntN(64, value);
    else floatBits[0] = value;
    this.data[this.length++] = intBits[0]!;
    this.data[this.length++] = intBits[1]!;
  }
}

const floatBits = new Float64Array(1);
const intBits = new Int32Array(floatBits.buffer);
const bigBits = new BigInt64Array(floatBits.buffer);

/** Most integers one node's attributes can take per axis, with room to spare; used with `reserve`. */
export const intsPerAxis = 8;

/** Writes the attributes of a node. */
export function encodeAttr<P extends PrimitiveName>(op: P, attr: Attrs[P], out: IntWriter): void {
  definitionOf(op).encode?.(attr, out);
}
