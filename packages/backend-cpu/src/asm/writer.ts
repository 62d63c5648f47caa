/**
 * A growing byte buffer with the number encodings of the WebAssembly binary format.
 *
 * Not an assembler: it knows LEB128, IEEE bytes and how codes are written, no instruction and no section.
 */

const scratch = new DataView(new ArrayBuffer(8));

/** Bytes written one after the other. */
export class ByteWriter {
  #buffer: Uint8Array<ArrayBuffer>;
  /** Number of bytes written so far. */
  length = 0;

  constructor(capacity: number = 256) {
    this.#buffer = new Uint8Array(capacity);
  }

  /** Forgets what was written, keeps the memory. */
  clear(): void {
    this.length = 0;
  }

  u8(value: number): void {
    if (this.length === this.#buffer.length) this.#grow(1);
    this.#buffer[this.length++] = value;
  }

  /** An instruction by its code in plain.ts, simd.ts or atomics.ts. */
  code(value: number): void {
    if (value < 0x100) this.u8(value);
    else {
      this.u8(value < 0x400 ? 0xfd : value < 0x800 ? 0xfc : 0xfe);
      this.uleb(value & 0x1ff);
    }
  }

  /** Unsigned LEB128 of an integer below 2^53. */
  uleb(value: number): void {
    while (value >= 0x80) {
      this.u8((value % 0x80) | 0x80);
      value = Math.floor(value / 0x80);
    }
    this.u8(value);
  }

  /** Signed LEB128 of a 32-bit integer. */
  sleb(value: number): void {
    for (;;) {
      const low = value & 0x7f;
      value >>= 7;
      if ((value === 0 && (low & 0x40) === 0) || (value === -1 && (low & 0x40) !== 0)) {
        this.u8(low);
        return;
      }
      this.u8(low | 0x80);
    }
  }

  /** Signed LEB128 of a 64-bit integer. */
  sleb64(value: bigint): void {
    for (;;) {
      const low = Number(value & 0x7fn);
      value >>= 7n;
      if ((value === 0n && (low & 0x40) === 0) || (value === -1n && (low & 0x40) !== 0)) {
        this.u8(low);
        return;
      }
      this.u8(low | 0x80);
    }
  }

  f32(value: number): void {
    scratch.setFloat32(0, value, true);
    for (let i = 0; i < 4; i++) this.u8(scratch.getUint8(i));
  }

  f64(value: number): void {
    scratch.setFloat64(0, value, true);
    for (let i = 0; i < 8; i++) this.u8(scratch.getUint8(i));
  }

  bytes(data: Uint8Array): void {
    if (this.length + data.length > this.#buffer.length) this.#grow(data.length);
    this.#buffer.set(data, this.length);
    this.length += data.length;
  }

  /** Length-prefixed name; ASCII only, other characters are replaced. */
  name(text: string): void {
    this.uleb(text.length);
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      this.u8(code >= 0x20 && code < 0x7f ? code : 0x5f);
    }
  }

  /** A view of what was written; valid until the next write. */
  view(): Uint8Array<ArrayBuffer> {
    return this.#buffer.subarray(0, this.length);
  }

  /** A copy of what was written. */
  take(): Uint8Array<ArrayBuffer> {
    return this.#buffer.slice(0, this.length);
  }

  #grow(extra: number): void {
    const next = new Uint8Array(Math.max(this.#buffer.length * 2, this.length + extra));
    next.set(this.#buffer.subarray(0, this.length));
    this.#buffer = next;
  }
}
