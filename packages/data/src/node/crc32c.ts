/** CRC-32C (Castagnoli), the checksum of TensorFlow's records. Source: RFC 3720, appendix B.4. Node's zlib has the other CRC-32 alone. */

/** The polynomial 0x1EDC6F41, its bits turned round. */
const polynomial = 0x82f63b78;

const table: Uint32Array = /* @__PURE__ */ Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ polynomial : value >>> 1;
  return value;
});

/** The CRC-32C of some bytes, from 0 to 2^32 - 1. */
export function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ table[(crc ^ byte) & 0xff]!;
  return (crc ^ 0xffffffff) >>> 0;
}

/** As records hold it, so that the checksum of a checksum is no trap. Source: tensorflow/core/lib/hash/crc32c.h. */
export function maskedCrc32c(bytes: Uint8Array): number {
  const crc = crc32c(bytes);
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}
