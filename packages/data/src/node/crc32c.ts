/** CRC-32C (Castagnoli), the checksum of TensorFlow's records. Source: RFC 3720, appendix B.4. Node's zlib has the other CRC-32 alone. */
import { checksumBy } from '../checksum.ts';

/** The CRC-32C of some bytes, from 0 to 2^32 - 1. Its polynomial is 0x1EDC6F41. */
export const crc32c: (bytes: Uint8Array) => number = checksumBy(0x82f63b78);

/** As records hold it, so that the checksum of a checksum is no trap. Source: tensorflow/core/lib/hash/crc32c.h. */
export function maskedCrc32c(bytes: Uint8Array): number {
  const crc = crc32c(bytes);
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}
