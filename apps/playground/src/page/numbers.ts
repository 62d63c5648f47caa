/** Numbers as the page writes them. */

const whole: Intl.NumberFormat = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

export const count = (value: number): string => whole.format(value);

/** A share as percent: 0.9512 is 95.1 %. */
export const percent = (share: number, digits = 1): string => `${(100 * share).toFixed(digits)} %`;

/** Three significant digits, without an exponent for numbers of everyday size. */
export function short(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e6) return value.toExponential(1);
  if (size >= 1000) return count(value);
  return size >= 1e-4 ? String(Number(value.toPrecision(3))) : value.toExponential(1);
}

export function bytes(value: number): string {
  if (value < 1e3) return `${count(value)} B`;
  if (value < 1e6) return `${short(value / 1e3)} kB`;
  return value < 1e9 ? `${short(value / 1e6)} MB` : `${short(value / 1e9)} GB`;
}

/** Milliseconds, as microseconds where they are few. */
export const time = (milliseconds: number): string =>
  milliseconds < 1 ? `${short(1000 * milliseconds)} µs` : `${short(milliseconds)} ms`;
