/** Numbers as the page writes them, given ones: the machine on which a test runs decides what a page shows. */
import { describe, expect, it } from 'vitest';
import { bytes, count, millisecondsOf, percent, short, time } from './numbers.ts';

describe('times', () => {
  it.each([
    [0, '0 µs'],
    [0.00123, '1.23 µs'],
    [0.79, '790 µs'],
    [0.9994, '999 µs'],
    [0.9999, '1 ms'],
    [1, '1 ms'],
    [12.345, '12.3 ms'],
    [999.9, '1,000 ms'],
    [1234, '1,234 ms'],
    [2.5e6, '2.5e+6 ms'],
  ])('%d milliseconds are %s, and read back as what they are', (milliseconds, text) => {
    expect(time(milliseconds)).toBe(text);
    expect(time(millisecondsOf(text))).toBe(text);
  });

  it('of other texts are no number', () => {
    for (const text of ['', '12', '12 s', 'soon', '. ms on CPU']) expect(millisecondsOf(text)).toBeNaN();
  });
});

it('other figures', () => {
  expect([count(1234567), percent(0.9512), percent(0.5, 0)]).toEqual(['1,234,567', '95.1 %', '50 %']);
  expect([short(0), short(0.00001234), short(2.34567), short(Number.NaN)]).toEqual(['0', '1.2e-5', '2.35', 'NaN']);
  expect([bytes(12), bytes(12_345), bytes(1.5e6), bytes(2.25e9)]).toEqual(['12 B', '12.3 kB', '1.5 MB', '2.25 GB']);
});
