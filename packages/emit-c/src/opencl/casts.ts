/** CAST and BITCAST in OpenCL C. Floats to integers saturate and NaN gives 0; integers wrap; anything to bool is `!= 0`, of float32 by its bits. */
import type { Context } from '../dialect.ts';
import type { DType } from '../kernel.ts';
import { call, expression, operand, type Part } from '../parts.ts';
import { bytesOf, isFloat, isUnsigned, openClConstant, typeName } from './types.ts';
import { mask, maskFor, nanTest } from './values.ts';

export function openClCast(c: Context, x: Part, to: DType): Part {
  const { dtype: from, lanes } = x;
  const type = typeName(to, lanes);
  if (to === 'bool') {
    if (from === 'float32') {
      // Devices may compare denormal numbers as 0.
      return expression(`(as_${typeName('int32', lanes)}(${x.text}) & 0x7fffffff) != 0`, 'bool', lanes);
    }
    const zero = openClConstant(from, from.endsWith('64') && !isFloat(from) ? 0n : 0, lanes).text;
    return mask(expression(`${operand(x)} != ${zero}`, 'bool', lanes), from);
  }
  if (from === 'bool') {
    if (lanes === 1) return call(`(${type})${operand(x)}`, to);
    return call(to === 'int32' ? `(${operand(x)} & 1)` : `convert_${type}(${operand(x)} & 1)`, to, lanes);
  }
  if (from === 'float16' && !isFloat(to)) return openClCast(c, openClCast(c, x, 'float32'), to);
  if (isFloat(from) && !isFloat(to)) return call(`${saturating(c, from, to, lanes)}(${x.text})`, to, lanes);
  // Between integers conversions wrap; to floats they round to nearest.
  return lanes === 1 ? call(`(${type})${operand(x)}`, to) : call(`convert_${type}(${x.text})`, to, lanes);
}

/** Bounds of the integer dtypes: least and largest value. */
function range(to: DType): readonly [bigint, bigint] {
  const bits = BigInt(8 * bytesOf(to));
  return isUnsigned(to) ? [0n, 2n ** bits - 1n] : [-(2n ** (bits - 1n)), 2n ** (bits - 1n) - 1n];
}

const precision = { float32: 24, float64: 53 } as const;

/** Own conversions: what the library's saturating ones make of NaN is left open. */
function saturating(c: Context, from: DType, to: DType, lanes: number): string {
  const [source, type] = [typeName(from, lanes), typeName(to, lanes)];
  const title = `${source}_to_${type}`;
  const [low, high] = range(to);
  const digits = precision[from as 'float32'];
  // The largest number of the float type that fits, and the first that does not.
  const bits = high.toString(2).length;
  const below = bits > digits ? 2 ** bits - 2 ** (bits - digits) : Number(high);
  const constant = (value: number): string => openClConstant(from, value, lanes).text;
  const whole = (value: bigint): string => openClConstant(to, to.endsWith('64') ? value : Number(value), lanes).text;
  const x: Part = call('x', from, lanes);
  const choice = (test: Part): string => operand(lanes === 1 ? test : maskFor(test, to));
  const over = mask(expression('x > high', 'bool', lanes), from);
  const limited = below === Number(high) && bits <= digits ? 'inside' : `(${choice(over)} ? ${whole(high)} : inside)`;
  return c.helper(title, () =>
    [
      `${type} ${title}(${source} x) {`,
      `  const ${source} low = ${constant(Number(low))};`,
      `  const ${source} high = ${constant(below)};`,
      `  const ${source} limited = x > high ? high : x > low ? x : low;`,
      `  const ${type} inside = ${lanes === 1 ? `(${type})limited` : `convert_${type}(limited)`};`,
      `  return ${choice(nanTest(x))} ? ${whole(0n)} : ${limited};`,
      '}',
    ].join('\n'),
  );
}

export function openClBitcast(c: Context, x: Part, to: DType): Part {
  if (x.dtype === 'bool' || to === 'bool') c.refuse(`no bitcast from ${x.dtype} to ${to}: cast`);
  return call(`as_${typeName(to, x.lanes)}(${x.text})`, to, x.lanes);
}
