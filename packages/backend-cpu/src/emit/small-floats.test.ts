/** 16-bit floats on the machine itself: every pattern through every kind of rounding, NaN of any digits among them. */
import type { EngineCaps } from '@polygrad/core/engine';
import { type KNode, legalize, ProgramBuilder } from '@polygrad/core/kernel';
import { describe, expect, it } from 'vitest';
import { createCpuEngine } from '../engine.ts';
import { plainTarget, runProgram } from '../testing/harness.ts';

type SmallFloat = 'float16' | 'bfloat16';
type Make = (b: ProgramBuilder, ...x: KNode[]) => KNode;

const size = 65536;
const lanes = 8;

/** out[i] = f(inputs[i] ...), as vectors of 8. */
function run(
  caps: EngineCaps,
  make: Make,
  from: 'float32' | SmallFloat,
  to: SmallFloat,
  inputs: readonly (Uint16Array | Uint32Array)[],
): Uint16Array {
  const b = new ProgramBuilder();
  const params = inputs.map((_, i) => b.e.param(i + 1, from, 'read', size));
  const out = b.e.param(0, to, 'write', size);
  b.loop(size / lanes, (i) => {
    const at = b.e.mul(i, b.e.i32(lanes));
    b.store(out, at, make(b, ...params.map((p) => b.load(p, at, lanes))));
  });
  const program = legalize(b.build({ name: 'small', params: [out, ...params] }), caps);
  const result = new Uint16Array(size);
  const bytes = (a: Uint16Array | Uint32Array): Uint8Array => new Uint8Array(a.buffer);
  runProgram(program, [bytes(result), ...inputs.map(bytes)], [], plainTarget);
  return result;
}

function meaning(dtype: SmallFloat, bits: number): number {
  const [fraction, bias] = dtype === 'float16' ? [10, 15] : [7, 127];
  const exponent = (bits & 0x7fff) >> fraction;
  const rest = bits & (2 ** fraction - 1);
  const sign = bits & 0x8000 ? -1 : 1;
  if (exponent === 2 * bias + 1) return rest === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  if (exponent === 0) return sign * rest * 2 ** (1 - bias - fraction);
  return sign * (2 ** fraction + rest) * 2 ** (exponent - bias - fraction);
}

/** To nearest, ties to even, of a float64 that is exact or far from a tie. */
function rounded(dtype: SmallFloat, x: number): number {
  const [fraction, bias] = dtype === 'float16' ? [10, 15] : [7, 127];
  if (x === 0 || !Number.isFinite(x)) return x;
  const exponent = Math.max(Math.floor(Math.log2(Math.abs(x))), 1 - bias);
  const step = 2 ** (exponent - fraction);
  const whole = Math.floor(Math.abs(x) / step);
  const rest = Math.abs(x) / step - whole;
  const up = rest > 0.5 || (rest === 0.5 && whole % 2 === 1);
  const near = (whole + (up ? 1 : 0)) * step;
  return Math.sign(x) * (near >= 2 ** (bias + 1) ? Number.POSITIVE_INFINITY : near);
}

const patterns = Uint16Array.from({ length: size }, (_, i) => i);
const others = Uint16Array.from({ length: size }, (_, i) => (i * 40503 + (i >> 3)) & 0xffff);

describe.each(['float16', 'bfloat16'] as const)('%s', (dtype) => {
  const engine = createCpuEngine({ threads: 1 });
  const { caps } = engine;
  engine.dispose();

  const expectAll = (got: Uint16Array, want: (x: number, y: number) => number): void => {
    for (let i = 0; i < size; i++) {
      const [g, w] = [meaning(dtype, got[i]!), want(meaning(dtype, patterns[i]!), meaning(dtype, others[i]!))];
      if (!Object.is(g, w)) throw new Error(`of ${patterns[i]} and ${others[i]}: ${g}, expected ${w}`);
    }
  };

  it.each<[string, Make, (x: number, y: number) => number]>([
    ['x + y', (b, x, y) => b.e.add(x!, y!), (x, y) => rounded(dtype, x + y)],
    ['x - y', (b, x, y) => b.e.sub(x!, y!), (x, y) => rounded(dtype, x - y)],
    ['x * y', (b, x, y) => b.e.mul(x!, y!), (x, y) => rounded(dtype, x * y)],
    ['x / y', (b, x, y) => b.e.div(x!, y!), (x, y) => rounded(dtype, x / y)],
    ['sqrt x', (b, x) => b.e.unary('SQRT', x!), (x) => rounded(dtype, Math.sqrt(x))],
    [
      'x * y + x - y',
      (b, x, y) => b.e.sub(b.e.add(b.e.mul(x!, y!), x!), y!),
      (x, y) => rounded(dtype, rounded(dtype, rounded(dtype, x * y) + x) - y),
    ],
  ])('%s', (_, make, want) => {
    expectAll(run(caps, make, dtype, dtype, [patterns, others]), want);
  });

  it('NaN of any digits stays NaN through later operations', () => {
    // Every digit above the lowest ten, both signs; the lowest digits are what carries could spill over.
    const odd = Uint32Array.from(
      { length: size },
      (_, i) => 0x7f800001 + ((i & 0x3fff) << 9) + (i & 1 ? 0x800001fe : 0),
    );
    const got = run(
      caps,
      (b, x) => {
        const y = b.e.cast(x!, dtype);
        return b.e.mul(b.e.add(y, b.e.constant(dtype, 1, lanes)), b.e.constant(dtype, 0.5, lanes));
      },
      'float32',
      dtype,
      [odd],
    );
    expect(got.findIndex((bits) => !Number.isNaN(meaning(dtype, bits)))).toBe(-1);
  });
});
