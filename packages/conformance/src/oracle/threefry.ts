/** The random bits that the suite and its random programs expect, written out apart from the library. */

/** Threefry-2x32-20 (Salmon et al., SC 2011, section 4.1 and table 2), both words. */
export function threefry(key: readonly [number, number], counter: readonly [number, number]): [number, number] {
  const rotations = [13, 15, 26, 6, 17, 29, 16, 24];
  const words = [key[0], key[1], key[0] ^ key[1] ^ 0x1bd11bda];
  let a = (counter[0] + (words[0] as number)) | 0;
  let b = (counter[1] + (words[1] as number)) | 0;
  for (let round = 0; round < 20; round++) {
    const r = rotations[round % 8] as number;
    a = (a + b) | 0;
    b = ((b << r) | (b >>> (32 - r))) ^ a;
    if (round % 4 !== 3) continue;
    const injection = (round + 1) / 4;
    a = (a + (words[injection % 3] as number)) | 0;
    b = (b + (words[(injection + 1) % 3] as number) + injection) | 0;
  }
  return [a >>> 0, b >>> 0];
}
