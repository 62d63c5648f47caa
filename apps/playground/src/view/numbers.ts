/** Numbers as the page writes them. */

const whole: Intl.NumberFormat = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

export const count = (value: number): string => whole.format(value);

/** A share as percent: 0.9512 is 95.1 %. */
export const percent = (share: number, digits = 1): string => `${(100 * share).toFixed(digits)} %`;

/** Three significant digits, without an exponent for numbers of everyday size. */
export function short(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  if (value === 0) return '0';
  // Of what is written: 999.9 is 1,000.
  const size = Math.abs(Number(value.toPrecision(3)));
  if (size >= 1e6) return value.toExponential(1);
  if (size >= 1000) return count(value);
  return size >= 1e-4 ? String(Number(value.toPrecision(3))) : value.toExponential(1);
}

export function bytes(value: number): string {
  if (value < 1e3) return `${count(value)} B`;
  if (value < 1e6) return `${short(value / 1e3)} kB`;
  return value < 1e9 ? `${short(value / 1e6)} MB` : `${short(value / 1e9)} GB`;
}

/** Milliseconds, as microseconds where they are few: of what is written, so that 999.9 µs are 1 ms. */
export const time = (milliseconds: number): string =>
  Number(milliseconds.toPrecision(3)) < 1 ? `${short(1000 * milliseconds)} µs` : `${short(milliseconds)} ms`;

/** Milliseconds of a text of `time`, rounded as that is; NaN for any other. */
export function millisecondsOf(text: string): number {
  const [, number = '', unit] = /^([\d.,e+-]+) (µs|ms)$/.exec(text) ?? [];
  const value = number === '' ? Number.NaN : Number(number.replaceAll(',', ''));
  return unit === 'µs' ? value / 1000 : value;
}
