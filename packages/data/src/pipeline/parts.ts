/** Which rows go to which part when a data set is divided: shares to numbers of rows, random orders, and classes dealt out evenly. */
import { checkFits, checkInteger, DataError, shown, isList } from '../errors.ts';
import { shuffledIndices } from '../random.ts';

interface PartsOptions {
  readonly seed?: number;
  readonly stratify?: ArrayLike<number | string>;
}

/** Rows of each part: the first parts get what does not divide evenly, as in scikit-learn's KFold. */
function countsOf(op: string, length: number, shares: readonly number[]): number[] {
  const isWanted =
    isList(shares) && shares.length > 0 && shares.every((share) => typeof share === 'number' && share >= 0);
  checkFits(op, 'shares', shares, isWanted, 'a list of fractions, or of numbers of items');
  const total = shares.reduce((sum, share) => sum + share, 0);
  if (shares.every(Number.isInteger) && total === length) return [...shares];
  if (Math.abs(total - 1) > 1e-9)
    throw new DataError(
      'argument',
      'shares',
      `[${op}] shares ${shares.join(', ')} add up to ${total}; they must add up to 1, or to the ${length} items`,
    );
  // Rounded down, and what is left to the largest remainders, the first of equals first.
  const exact = shares.map((share) => (share / total) * length);
  // 0.1 of 10 is 1, whatever its last bit says.
  const counts = exact.map((value) => Math.floor(value + 1e-9));
  const byRest = exact
    .map((_, part) => part)
    .sort((a, b) => exact[b]! - counts[b]! - (exact[a]! - counts[a]!) || a - b);
  let left = length - counts.reduce((sum, count) => sum + count, 0);
  for (const part of byRest) if (left-- > 0) counts[part]!++;
  return counts;
}

/** Rows in an order in which those of a class are neighbours, the classes in the order they are first met. */
function byClass(op: string, order: Uint32Array, classes: ArrayLike<number | string>): Uint32Array {
  const isWanted = typeof classes === 'object' && classes !== null && classes.length === order.length;
  if (!isWanted)
    throw new DataError(
      'argument',
      'stratify',
      `[${op}] stratify is ${shown(classes)} of ${shown(classes?.length)}; it must be a list of ${order.length} classes, one per item`,
    );
  const groups = new Map<number | string, number[]>();
  for (let row = 0; row < classes.length; row++) groups.set(classes[row]!, []);
  for (const row of order) groups.get(classes[row]!)!.push(row);
  return Uint32Array.from([...groups.values()].flat());
}

/** The rows of each part, ascending where they are not dealt out at random. */
export function partsOf(
  op: string,
  length: number,
  shares: readonly number[],
  { seed, stratify }: PartsOptions,
): Uint32Array[] {
  const counts = countsOf(op, length, shares);
  if (seed !== undefined) checkInteger(op, 'seed', seed, 0);
  const order = seed === undefined ? new Uint32Array(length).map((_, row) => row) : shuffledIndices(length, seed);
  if (stratify === undefined) {
    let start = 0;
    return counts.map((count) => order.slice(start, (start += count)));
  }
  const parts = counts.map((): number[] => []);
  // Each row goes to the part that is furthest behind its share: so are all classes, one after the other.
  byClass(op, order, stratify).forEach((row, dealt) => {
    let chosen = 0;
    let most = Number.NEGATIVE_INFINITY;
    counts.forEach((count, part) => {
      const behind =
        parts[part]!.length < count ? (count / length) * (dealt + 1) - parts[part]!.length : Number.NEGATIVE_INFINITY;
      if (behind > most + 1e-9) [most, chosen] = [behind, part];
    });
    parts[chosen]!.push(row);
  });
  return parts.map((rows) => {
    const found = Uint32Array.from(rows);
    return seed === undefined ? found.sort() : found;
  });
}

/** The rows to train with and those held out, for each way to hold one part of `count` out. */
export function foldsOf(
  op: string,
  length: number,
  count: number,
  options: PartsOptions,
): { readonly train: Uint32Array; readonly validation: Uint32Array }[] {
  checkInteger(op, 'count', count, 2, Math.max(2, length));
  const parts = partsOf(op, length, new Array<number>(count).fill(1 / count), options);
  return parts.map((validation, fold) => {
    const train = parts.filter((_, part) => part !== fold).flatMap((rows) => Array.from(rows));
    return { train: Uint32Array.from(train).sort(), validation };
  });
}
