/**
 * Numbers and texts as bytes, and back. A reader never looks beyond its bytes: bytes that end early, or hold impossible values, throw `Damaged`.
 */

/** Thrown for bytes that no writer can have written. */
export class Damaged extends Error {}

/** Throws unless it holds. */
export function check(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Damaged(what);
}

const text = { encoder: new TextEncoder(), decoder: new TextDecoder('utf-8', { fatal: true }) };
const latin1 = /* @__PURE__ */ new TextDecoder('latin1');
const float = new Float64Array(1);
const floatBytes = new Uint8Array(float.buffer);
const big = new BigInt64Array(float.buffer);

/** Bytes as a key of a Map: other bytes are another text. */
export function bytesAsText(bytes: Uint8Array): string {
  return latin1.decode(bytes);
}

/** Writes values one after the other. */
export class ByteWriter {
  #buffer = new Uint8Array(1024);
  #length = 0;

  #room(more: number): void {
    if (this.#length + more <= this.#buffer.length) return;
    const bigger = new Uint8Array(Math.max(this.#buffer.length * 2, this.#length + more));
    bigger.set(this.#buffer);
    this.#buffer = bigger;
  }

  byte(value: number): void {
    this.#room(1);
    this.#buffer[this.#length++] = value;
  }

  /** An integer of 0 or more, below 2^53. */
  uint(value: number): void {
    let rest = value;
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) this.byte((rest % 0x80) | 0x80);
    this.byte(rest);
  }

  /** Whole numbers between -2^52 and 2^52. */
  int(value: number): void {
    this.uint(value < 0 ? -2 * value - 1 : 2 * value);
  }

  ints(values: readonly number[]): void {
    this.list(values, (value) => this.int(value));
  }

  /** A number by its bits. */
  float(value: number): void {
    float[0] = value;
    this.raw(floatBytes);
  }

  /** A 64-bit integer, signed or not, by its bits. */
  bigint(value: bigint): void {
    big[0] = BigInt.asIntN(64, value);
    this.raw(floatBytes);
  }

  text(value: string): void {
    this.bytes(text.encoder.encode(value));
  }

  /** How many there are, and then each of them, which `one` writes. */
  list<T>(values: readonly T[], one: (value: T) => void): void {
    this.uint(values.length);
    for (const value of values) one(value);
  }

  /** Bytes, and before them how many. */
  bytes(value: Uint8Array): void {
    this.uint(value.length);
    this.raw(value);
  }

  raw(value: Uint8Array): void {
    this.#room(value.length);
    this.#buffer.set(value, this.#length);
    this.#length += value.length;
  }

  take(): Uint8Array<ArrayBuffer> {
    return this.#buffer.slice(0, this.#length);
  }
}

/** Reads what a ByteWriter has written. */
export class ByteReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get done(): boolean {
    return this.#at === this.#bytes.length;
  }

  byte(): number {
    check(this.#at < this.#bytes.length, 'the end');
    return this.#bytes[this.#at++]!;
  }

  uint(): number {
    const bytes = this.#bytes;
    let byte = bytes[this.#at++]!;
    // Most are small.
    if (byte < 0x80) return byte;
    let value = 0;
    let unit = 1;
    for (; byte >= 0x80; byte = bytes[this.#at++]!) {
      value += (byte & 0x7f) * unit;
      unit *= 0x80;
    }
    value += byte * unit;
    // Beyond the end `byte` is undefined, and so the value is NaN.
    check(Number.isSafeInteger(value), 'an integer');
    return value;
  }

  int(): number {
    const value = this.uint();
    return value % 2 === 1 ? -(value + 1) / 2 : value / 2;
  }

  /** A count of things that take a byte or more each, so it is at most the number of bytes left. */
  count(): number {
    const count = this.uint();
    check(count <= this.#bytes.length - this.#at, 'a count');
    return count;
  }

  list<T>(one: () => T): T[] {
    const count = this.count();
    const values: T[] = [];
    for (let i = 0; i < count; i++) values.push(one());
    return values;
  }

  ints(): number[] {
    return this.list(() => this.int());
  }

  float(): number {
    floatBytes.set(this.raw(8));
    return float[0]!;
  }

  bigint(signed: boolean): bigint {
    floatBytes.set(this.raw(8));
    return signed ? big[0]! : BigInt.asUintN(64, big[0]!);
  }

  text(): string {
    try {
      return text.decoder.decode(this.bytes());
    } catch {
      throw new Damaged('a text');
    }
  }

  bytes(): Uint8Array {
    return this.raw(this.count());
  }

  raw(count: number): Uint8Array {
    check(count <= this.#bytes.length - this.#at, 'the end');
    return this.#bytes.subarray(this.#at, (this.#at += count));
  }

  /** All unread bytes. */
  rest(): Uint8Array {
    return this.#bytes.subarray(this.#at);
  }

  /** An entry of a list, by its index. */
  among<T>(values: readonly T[]): T {
    const at = this.uint();
    check(at < values.length, 'a choice');
    return values[at]!;
  }
}
