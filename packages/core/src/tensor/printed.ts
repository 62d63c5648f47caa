/**
 * Elements as rows of text in NumPy's layout: brackets for axes, long axes shortened, long rows broken, one form for all floats.
 *
 * Pages load this file when something is printed. It imports types only: bundlers would move code that it shares into files of their own, which cost
 * more than they hold.
 */
import type { DType } from '@polygrad/compiler/shape/dtype';
import type { Floats } from '@polygrad/compiler/shape/host';
import type { Shape } from '@polygrad/compiler/shape/view';

const product = (shape: Shape): number => shape.reduce((size, n) => size * n, 1);

/** Elements shown at each end of a shortened axis. */
const edge = 3;
/** Axes are shortened if there are more elements than this in all. */
const threshold = 1000;
/** Rows are broken before they get longer. */
const lineWidth = 75;

/** Positions of an axis that are shown; -1 marks the gap. */
function positions(n: number, shorten: boolean): number[] {
  const left = shorten && n > 2 * edge ? n - 2 * edge : 0;
  const all = Array.from({ length: n - left }, (_, i) => (left > 0 && i >= edge ? i + left : i));
  if (left > 0) all.splice(edge, 0, -1);
  return all;
}

/** Row-major positions of the elements that formatRows shows. */
export function shownElements(shape: Shape): number[] {
  const size = product(shape);
  let at = [0];
  if (size === 0) return [];
  shape.forEach((n, axis) => {
    const steps = positions(n, size > threshold).filter((i) => i >= 0);
    const stride = product(shape.slice(axis + 1));
    at = at.flatMap((from) => steps.map((i) => from + i * stride));
  });
  return at;
}

/** The elements of a shape in brackets. `text` gives one by its row-major position; all should be equally long. */
export function formatRows(shape: Shape, text: (at: number) => string): string {
  const size = product(shape);
  if (size === 0) return '[]';
  const shorten = size > threshold;
  const write = (axis: number, from: number): string => {
    if (axis === shape.length) return text(from);
    const stride = product(shape.slice(axis + 1));
    const parts = positions(shape[axis]!, shorten).map((i) => (i < 0 ? '...' : write(axis + 1, from + i * stride)));
    const indent = ' '.repeat(axis + 1);
    if (axis < shape.length - 1) return `[${parts.join('\n'.repeat(shape.length - axis - 1) + indent)}]`;
    // Room is left for every bracket that closes behind the row.
    const width = lineWidth - shape.length;
    const lines: string[] = [];
    let line = '';
    for (const part of parts) {
      if (line !== '' && indent.length + line.length + part.length > width) {
        lines.push(line.trimEnd());
        line = '';
      }
      line += `${part} `;
    }
    return `[${[...lines, line.slice(0, -1)].join(`\n${indent}`)}]`;
  };
  return write(0, 0);
}

/** Most digits after the point, for elements of arrays. A single number gets all it needs. */
const precision = 8;
/** Decimal digits that every number of a dtype keeps (C's FLT_DIG). From this many digits before the point on, floats get exponents. */
const safeDigits: Partial<Readonly<Record<DType, number>>> = { float16: 3, bfloat16: 3, float32: 6 };

/** toFixed or toExponential, rounding to nearest, ties to even; JavaScript's own ties go away from zero. */
function rounded(size: number, form: 'toFixed' | 'toExponential', places: number): string {
  const [digits = '', exponent] = size[form](places).split('e');
  const rest = size[form](60).split('e')[0]!.slice(digits.length);
  const last = Number(digits.at(-1));
  const tie = /^\.?50*$/.test(rest) && last % 2 === 1;
  return `${tie ? digits.slice(0, -1) + (last - 1) : digits}${exponent ? `e${exponent}` : ''}`;
}

/** The shortest text with an exponent that identifies this number among those of the dtype. */
function shortest(size: number, { dtype, nearest: nearestOf }: Floats): string {
  for (let places = 0; dtype !== 'float64' && places < 9; places++) {
    const nearest = rounded(size, 'toExponential', places);
    // Below a power of two numbers are closer together: the nearest text may belong to the number below, and the next one to this.
    const [digits = '', power] = nearest.split('e');
    const next = Number(`${Number(digits.replace('.', '')) + 1}e${Number(power) - places}`).toExponential(places);
    for (const text of [nearest, next]) if (nearestOf(Number(text)) === size) return text;
  }
  return size.toExponential();
}

/** A finite number without its sign in at most `most` digits after the point: `[before the point, after it, exponent]`. */
function digitsOf(size: number, floats: Floats, exponential: boolean, most: number): [string, string, string] {
  let text = shortest(size, floats);
  const [mantissa = '', power = ''] = text.split('e');
  const exponent = Number(power);
  const places = Math.max(0, mantissa.length - 2);
  if (exponential) {
    if (places > most) text = rounded(size, 'toExponential', most);
  } else if (places - exponent > most) {
    text = rounded(size, 'toFixed', most);
  } else {
    const digits = mantissa.replace('.', '');
    text =
      exponent < 0
        ? `0.${'0'.repeat(-exponent - 1)}${digits}`
        : `${digits.slice(0, exponent + 1).padEnd(exponent + 1, '0')}.${digits.slice(exponent + 1)}`;
  }
  return partsOf(text);
}

/** A number's text in three parts, without the zeros at its end. */
function partsOf(text: string): [string, string, string] {
  const [number = '', power] = text.split('e');
  const [whole = '', fraction = ''] = number.split('.');
  return [whole, fraction.replace(/0+$/, ''), power ? `e${power.replace(/^([+-])(\d)$/, '$10$2')}` : ''];
}

/** How a column of floats is written: one form and one width for all. */
function floatFormatter(values: readonly number[], floats: Floats, alone: boolean): (value: number) => string {
  const { dtype, nearest } = floats;
  const finite = values.filter(Number.isFinite);
  const sizes = finite.filter((value) => value !== 0).map(Math.abs);
  const largest = sizes.reduce((most, size) => Math.max(most, size), 0);
  const smallest = sizes.reduce((least, size) => Math.min(least, size), Number.POSITIVE_INFINITY);
  const limit = 10 ** Math.min(alone ? 16 : precision, safeDigits[dtype] ?? 16);
  const exponential =
    largest >= limit || smallest < (alone ? 1e-4 : nearest(1e-4)) || nearest(largest / smallest) > 1000;
  const parts = finite.map((value) => digitsOf(Math.abs(value), floats, exponential, alone ? 60 : precision));
  const longest = (part: number): number => parts.reduce((most, texts) => Math.max(most, texts[part]!.length), 0);
  const [places, powerWidth] = [longest(1), longest(2) - 2];
  return (value) => {
    if (Number.isNaN(value)) return 'nan';
    const sign = value < 0 || Object.is(value, -0) ? '-' : '';
    const size = Math.abs(value);
    if (size === Number.POSITIVE_INFINITY) return `${sign}inf`;
    if (!exponential) {
      const [whole, fraction] = digitsOf(size, floats, false, alone ? 60 : precision);
      return `${sign}${whole}.${alone ? fraction || '0' : fraction.padEnd(places)}`;
    }
    let [whole, fraction, power] = digitsOf(size, floats, true, alone ? 60 : precision);
    // If other elements need more digits, NumPy shows more of this one too.
    if (fraction.length < places) [whole, fraction, power] = partsOf(rounded(size, 'toExponential', places));
    const point = alone && fraction === '' ? '' : '.';
    return `${sign}${whole}${point}${fraction.padEnd(places, '0')}${power.slice(0, 2)}${power.slice(2).padStart(powerWidth, '0')}`;
  };
}

/**
 * Elements of a shape as text.
 *
 * @param at an element by its row-major position
 * @param floats facts of the dtype, for floats
 */
export function textOf(shape: Shape, at: (i: number) => number | boolean | bigint, floats: Floats | null): string {
  const shown = shownElements(shape).map(at);
  const float = floats && floatFormatter(shown.map(Number), floats, shape.length === 0);
  const text = (value: number | boolean | bigint): string => (float === null ? String(value) : float(Number(value)));
  const width = shown.reduce<number>((most, value) => Math.max(most, text(value).length), 0);
  return formatRows(shape, (i) => text(at(i)).padStart(width));
}
