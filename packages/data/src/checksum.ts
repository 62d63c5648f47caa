/** Cyclic redundancy checks of 32 bits, four bytes at a time. Source: RFC 1952, section 8, and "slicing" by M. E. Kounavis and F. L. Berry, 2005. */

/** What each byte does to the register, and the same followed by one, two and three bytes of zeros. */
function tablesOf(polynomial: number): readonly Uint32Array[] {
  const first = Uint32Array.from({ length: 256 }, (_, byte) => {
    let value = byte;
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ polynomial : value >>> 1;
    return value;
  });
  const tables = [first];
  for (let zeros = 1; zeros < 4; zeros++)
    tables.push(tables[zeros - 1]!.map((value) => (value >>> 8) ^ first[value & 0xff]!));
  return tables;
}

/** A function from bytes to their checksum, from 0 to 2^32 - 1, by a polynomial whose bits are turned round. Its tables are made at the first call. */
export function checksumBy(polynomial: number): (bytes: Uint8Array) => number {
  let tables: readonly Uint32Array[] | undefined;
  return (bytes) => {
    tables ??= tablesOf(polynomial);
    const [t0, t1, t2, t3] = tables as [Uint32Array, Uint32Array, Uint32Array, Uint32Array];
    let crc = 0xffffffff;
    let at = 0;
    for (const end = bytes.length - 3; at < end; at += 4) {
      crc ^= bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
      crc = t3[crc & 0xff]! ^ t2[(crc >>> 8) & 0xff]! ^ t1[(crc >>> 16) & 0xff]! ^ t0[crc >>> 24]!;
    }
    for (; at < bytes.length; at++) crc = (crc >>> 8) ^ t0[(crc ^ bytes[at]!) & 0xff]!;
    return (crc ^ 0xffffffff) >>> 0;
  };
}

/** CRC-32, the checksum of zip archives. */
export const crc32: (bytes: Uint8Array) => number = /* @__PURE__ */ checksumBy(0xedb88320);
