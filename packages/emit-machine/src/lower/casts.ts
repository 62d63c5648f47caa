/** CAST and BITCAST. Float to integer saturates and NaN gives 0; integers wrap; anything to bool is `!= 0`. */
import type { KNode } from '@polygrad/core/kernel';
import type { Reg, Lowered } from '../form/code.ts';
import { castHalf } from './halves.ts';
import { isFloat, type Kind, kindOf, refuse, smallBits, widthOf } from '../target.ts';
import { makeParts, partBytes, partCount } from '../form/vector-parts.ts';
import type { Context } from '../form/machine.ts';

export function lowerCast(ctx: Context, n: KNode): Lowered {
  const [source] = n.src as readonly [KNode];
  if (source.dtype === 'float16' || n.dtype === 'float16') return castHalf(ctx, n);
  const from = kindOf(source.dtype);
  const to = kindOf(n.dtype);
  const x = ctx.get(source);
  const bits = smallBits(n.dtype);
  const made = convert(ctx, n.lanes, from, to, x);
  return bits !== 0 && smallBits(source.dtype) !== bits ? wrap(ctx, n, to, bits, made) : made;
}

/** Truncates to a small integer and extends again. */
function wrap(ctx: Context, n: KNode, kind: Kind, bits: 8 | 16, { parts, width }: Lowered): Lowered {
  const { b, machine } = ctx;
  const signed = kind === 'i32';
  if (n.lanes === 1) return { parts: [machine.casts.wrap(b, parts[0]!, bits, signed)], width };
  const bytes = partBytes(ctx, n.lanes, 4);
  return { parts: parts.map((v) => machine.casts.wrapLanes(b, v, bits, signed, bytes)), width };
}

function convert(ctx: Context, lanes: number, from: Kind, to: Kind, x: Lowered): Lowered {
  if (from === to) return x;
  const width = widthOf(to);
  if (lanes === 1) return { parts: [ctx.machine.casts.scalar(ctx, from, to, x.parts[0]!)], width };
  const { b, machine, masks } = ctx;
  if (to === 'bool') {
    const zero = b.bits(0, widthOf(from));
    return masks.compare(
      from,
      'NE',
      x.parts,
      x.parts.map(() => zero),
      lanes,
    );
  }
  if (from === 'bool') {
    const one = isFloat(to) ? b.float(1, width) : b.bits(1, width);
    const zero = b.bits(0, width);
    const all = (r: Reg): readonly Reg[] => makeParts(ctx, lanes, width, () => r).parts;
    return { parts: masks.select(x, all(one), all(zero), lanes, width), width };
  }
  const made = castVector(ctx, lanes, from, to, x);
  return made === null
    ? machine.lanes.gather(ctx, to, lanes, (i) =>
        machine.casts.scalar(ctx, from, to, machine.lanes.extract(ctx, from, x, i)),
      )
    : { parts: made, width };
}

/** A cast of a vector between numbers, or null if it is done lane by lane. */
function castVector(ctx: Context, lanes: number, from: Kind, to: Kind, x: Lowered): readonly Reg[] | null {
  const { casts, lanes: moves } = ctx.machine;
  const [wide, narrow] = [widthOf(to) > widthOf(from), widthOf(to) < widthOf(from)];
  if (!wide && !narrow) {
    const bytes = partBytes(ctx, lanes, widthOf(to));
    return mapAll(x.parts, (v) => casts.same(ctx, from, to, v, bytes, lanes));
  }
  if (wide) {
    const bytes = partBytes(ctx, lanes, 8);
    const cut = partCount(ctx, lanes, 8) > 1;
    const { vectorBytes } = ctx.target;
    const source = (p: number): Reg =>
      cut ? moves.half(ctx, x.parts[p >> 1]!, vectorBytes, (p & 1) === 1) : x.parts[0]!;
    return mapAll(
      Array.from({ length: partCount(ctx, lanes, 8) }, (_, p) => p),
      (p) => casts.widen(ctx, from, to, source(p), bytes, lanes),
    );
  }
  const bytes = partBytes(ctx, lanes, 8);
  const cut = mapAll(x.parts, (v) => casts.narrow(ctx, from, to, v, bytes, lanes));
  if (cut === null || cut.length === 1) return cut;
  return makeParts(ctx, lanes, 4, (p) => moves.join(ctx, cut[2 * p]!, cut[2 * p + 1]!, ctx.target.vectorBytes)).parts;
}

/** All results, or null if one is missing. */
function mapAll<T>(list: readonly T[], make: (x: T) => Reg | null): readonly Reg[] | null {
  const made: Reg[] = [];
  for (const x of list) {
    const r = make(x);
    if (r === null) return null;
    made.push(r);
  }
  return made;
}

export function lowerBitcast(ctx: Context, n: KNode): Lowered {
  const [source] = n.src as readonly [KNode];
  const from = kindOf(source.dtype);
  const to = kindOf(n.dtype);
  const x = ctx.get(source);
  if (from === to) return x;
  const width = widthOf(to);
  if (width !== widthOf(from)) refuse(`no bitcast from ${source.dtype} to ${n.dtype}: sizes differ`);
  const bits = smallBits(n.dtype);
  if (bits !== 0 && bits !== smallBits(source.dtype))
    refuse(`no bitcast from ${source.dtype} to ${n.dtype}: sizes differ`);
  if (n.lanes > 1 || isFloat(from) === isFloat(to)) {
    return bits === 0 ? { parts: x.parts, width } : wrap(ctx, n, to, bits, x);
  }
  return { parts: [ctx.machine.casts.bits(ctx.b, to, x.parts[0]!)], width };
}
