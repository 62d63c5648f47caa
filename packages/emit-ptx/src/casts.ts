/** CAST and BITCAST of one lane. Floats to integers saturate and NaN gives 0; integers wrap; anything to bool is `!= 0`; each rounds once. */
import {
  bytesOf,
  computeType,
  isFloat,
  isHalf,
  isSmall,
  isUnsigned,
  literal,
  narrow,
  registerOf,
  widen,
  wrapped,
} from './dtypes.ts';
import type { DType } from './kernel.ts';
import type { Writer } from './writer.ts';

/** A value of one dtype as the nearest of another. */
export function cast(w: Writer, from: DType, to: DType, given: string): string {
  if (from === to) return given;
  const x = given.startsWith('%') || from === 'bool' ? given : inRegister(w, from, given);
  if (to === 'bool') return toBool(w, from, x);
  if (from === 'bool') return fromBool(w, to, x);
  if (isFloat(from)) return isFloat(to) ? betweenFloats(w, from, to, x) : toInteger(w, from, to, x);
  return isFloat(to) ? toFloat(w, from, to, x) : betweenIntegers(w, from, to, x);
}

/** Conversions take registers alone. */
function inRegister(w: Writer, dtype: DType, x: string): string {
  const kind = registerOf[dtype];
  const move = { h: 'mov.b16', r: 'mov.b32', rd: 'mov.b64', f: 'mov.f32', fd: 'mov.f64', p: 'mov.pred' }[kind];
  return w.op(kind, move, x);
}

function toBool(w: Writer, from: DType, x: string): string {
  if (isHalf(from)) return w.op('p', 'setp.neu.f32', widen(w, from, x), literal(w, 'float32', 0));
  if (isFloat(from)) return w.op('p', `setp.neu.${computeType[from as 'float32']}`, x, literal(w, from, 0));
  return w.op('p', `setp.ne.${computeType[from as 'int32']}`, x, '0');
}

function fromBool(w: Writer, to: DType, x: string): string {
  const kind = registerOf[to];
  const type = { h: 'b16', r: 'b32', rd: 'b64', f: 'f32', fd: 'f64', p: 'pred' }[kind];
  return w.op(kind, `selp.${type}`, literal(w, to, 1), literal(w, to, 0), x);
}

function betweenFloats(w: Writer, from: DType, to: DType, x: string): string {
  if (isHalf(to)) {
    if (isHalf(from)) return narrow(w, to, widen(w, from, x));
    if (from === 'float32') return narrow(w, to, x);
    if (to === 'float16') return w.op('h', 'cvt.rn.f16.f64', x);
    // Through float32 rounded to odd, after which rounding to fewer digits is right.
    const cut = w.op('f', 'cvt.rz.f32.f64', x);
    return narrow(w, to, toOdd(w, cut, w.op('p', 'setp.neu.f64', w.op('fd', 'cvt.f64.f32', cut), x)));
  }
  const single = isHalf(from) ? widen(w, from, x) : x;
  if (to === 'float32') return from === 'float64' ? w.op('f', 'cvt.rn.f32.f64', x) : single;
  return w.op('fd', 'cvt.f64.f32', single);
}

/** The last bit set where something was cut off. */
function toOdd(w: Writer, cut: string, isInexact: string): string {
  const rest = w.op('r', 'selp.b32', '1', '0', isInexact);
  return w.op('f', 'mov.b32', w.op('r', 'or.b32', w.op('r', 'mov.b32', cut), rest));
}

function toFloat(w: Writer, from: DType, to: DType, x: string): string {
  const type = computeType[from as 'int32'];
  if (!isHalf(to)) return w.op(registerOf[to], `cvt.rn.${computeType[to as 'float32']}.${type}`, x);
  if (to === 'float16') return w.op('h', `cvt.rn.f16.${type}`, x);
  if (isSmall(from)) return narrow(w, to, w.op('f', `cvt.rn.f32.${type}`, x));
  const cut = w.op('f', `cvt.rz.f32.${type}`, x);
  const back = w.op(registerOf[from], `cvt.rzi.${type}.f32`, cut);
  return narrow(w, to, toOdd(w, cut, w.op('p', `setp.ne.${type}`, back, x)));
}

/** Least and largest value of the small integers. */
const ranges: Readonly<Partial<Record<DType, readonly [number, number]>>> = {
  int8: [-128, 127],
  int16: [-32768, 32767],
  uint8: [0, 255],
  uint16: [0, 65535],
};

/** The instruction saturates. NaN gives 0 only between float32 and 32 bits. */
function toInteger(w: Writer, from: DType, to: DType, given: string): string {
  const x = isHalf(from) ? widen(w, from, given) : given;
  const source = computeType[from as 'float32'];
  const kind = registerOf[to];
  const range = ranges[to];
  const type = range === undefined ? computeType[to as 'int32'] : 's32';
  let whole = w.op(kind, `cvt.rzi.${type}.${source}`, x);
  if (range !== undefined) whole = w.op('r', 'min.s32', w.op('r', 'max.s32', whole, `${range[0]}`), `${range[1]}`);
  if (source === 'f32' && kind === 'r') return whole;
  return w.op(kind, kind === 'rd' ? 'selp.b64' : 'selp.b32', '0', whole, w.op('p', `setp.nan.${source}`, x, x));
}

function betweenIntegers(w: Writer, from: DType, to: DType, x: string): string {
  if (registerOf[from] === 'rd') return registerOf[to] === 'rd' ? x : wrapped(w, to, w.op('r', 'cvt.u32.u64', x));
  if (registerOf[to] === 'rd') return w.op('rd', isUnsigned(from) ? 'cvt.u64.u32' : 'cvt.s64.s32', x);
  return wrapped(w, to, x);
}

/** The same bits. */
export function bitcast(w: Writer, from: DType, to: DType, x: string): string {
  if (from === 'bool' || to === 'bool' || bytesOf(from) !== bytesOf(to))
    return w.refuse(`no bitcast from ${from} to ${to}: cast`);
  const [source, kind] = [registerOf[from], registerOf[to]];
  if (from === to) return x;
  if (source === kind) return kind === 'r' ? wrapped(w, to, x) : x;
  if (kind === 'h') return w.op('h', 'cvt.u16.u32', x.startsWith('%') ? x : inRegister(w, from, x));
  if (source === 'h')
    return w.op('r', to === 'int16' ? 'cvt.s32.s16' : 'cvt.u32.u16', x.startsWith('%') ? x : inRegister(w, from, x));
  return w.op(kind, bytesOf(to) === 8 ? 'mov.b64' : 'mov.b32', x);
}
