/** CAST and BITCAST in WGSL. Floats to integers saturate and NaN gives 0; anything to bool is `!= 0`. */
import type { Context } from '../dialect.ts';
import type { DType } from '../kernel.ts';
import { call, expression, operand, type Part } from '../parts.ts';
import { suffix, typeName } from './types.ts';
import { bitsOf, isFloat, nanTest, u32 } from './values.ts';

/** Largest float32 below the first number too large, that number, and both ends of the integer dtype. */
const limits = {
  int32: { low: '-2147483648f', below: '2147483520f', above: '2147483648f', max: '2147483647i', zero: '0i' },
  uint32: { low: '0f', below: '4294967040f', above: '4294967296f', max: '4294967295u', zero: '0u' },
} as const;

/** `high`: the largest value an integer may have. */
export function wgslCast(c: Context, given: Part, to: DType, high: number): Part {
  const x = given.constant ? c.runtime(given) : given;
  const { dtype: from, lanes } = x;
  const type = typeName(to, lanes);
  if (to === 'bool') {
    // NaN is not zero: floats are compared by their bits but the sign.
    if (isFloat(from)) {
      const bits = `${bitsOf(x.text, from, lanes)} & ${u32('0x7fffffffu', lanes)}`;
      return expression(`(${bits}) != ${u32('0u', lanes)}`, 'bool', lanes);
    }
    const zero = from === 'uint32' ? '0u' : '0i';
    const all = lanes === 1 ? zero : `${typeName(from, lanes)}(${zero})`;
    return expression(`${operand(x)} != ${all}`, 'bool', lanes);
  }
  if (isFloat(from) && (to === 'int32' || to === 'uint32')) {
    const wide = from === 'float32' ? x : call(`${typeName('float32', lanes)}(${x.text})`, 'float32', lanes);
    return call(`${saturating(c, to, lanes)}(${wide.text})`, to, lanes);
  }
  if (from === 'uint32' && to === 'float32' && high > 2 ** 24)
    return call(`${nearest(c, lanes)}(${x.text})`, to, lanes);
  return call(`${type}(${x.text})`, to, lanes);
}

/** uint32 to float32, to nearest: the language lets devices take either neighbour, and some do. */
function nearest(c: Context, lanes: number): string {
  const name = `nearest_${suffix('float32', lanes)}`;
  const [from, type] = [typeName('uint32', lanes), typeName('float32', lanes)];
  return c.helper(
    name,
    () =>
      `fn ${name}(x: ${from}) -> ${type} {\n` +
      `  return ${type}(x >> ${u32('16u', lanes)}) * 65536f + ${type}(x & ${u32('0xffffu', lanes)});\n}`,
  );
}

function saturating(c: Context, to: 'int32' | 'uint32', lanes: number): string {
  const name = `to_${suffix(to, lanes)}`;
  const [from, type] = [typeName('float32', lanes), typeName(to, lanes)];
  const { low, below, above, max, zero } = limits[to];
  const nan = (nanTest(c, call('x', 'float32', lanes)) as Part).text;
  const all = (t: string, text: string): string => (lanes === 1 ? text : `${t}(${text})`);
  return c.helper(
    name,
    () =>
      `fn ${name}(x: ${from}) -> ${type} {\n` +
      `  let inside = ${type}(clamp(x, ${all(from, low)}, ${all(from, below)}));\n` +
      `  let limited = select(inside, ${all(type, max)}, x >= ${all(from, above)});\n` +
      `  return select(limited, ${all(type, zero)}, ${nan});\n}`,
  );
}

export function wgslBitcast(c: Context, given: Part, to: DType): Part {
  const { dtype: from, lanes } = given;
  if (to === 'bool' || from === 'bool' || to === 'float16' || from === 'float16')
    c.refuse(`no bitcast from ${from} to ${to} in WGSL`);
  // Bits of infinities and NaN may not be constant expressions.
  const x = given.constant ? c.runtime(given) : given;
  return call(`bitcast<${typeName(to, lanes)}>(${x.text})`, to, lanes);
}
