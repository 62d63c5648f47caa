/** Loads and stores of x86-64. */
import type { Builder } from '../form/builder.ts';
import { further, type Memory, type Reg } from '../form/code.ts';
import { makeParts, usedBytes } from '../form/vector-parts.ts';
import type { Context, Access } from '../form/machine.ts';
import { type DType, isFloat, kindOf, smallBits, widthOf } from '../target.ts';

/** Parts of four bytes a lane to bytes in memory: the lowest of each lane. */
function storeBytes(ctx: Context, to: Memory, parts: readonly Reg[], lanes: number, bytes: 1 | 2): void {
  const { b, target } = ctx;
  const used = usedBytes(ctx, lanes, 4);
  const perPart = used / 4;
  parts.forEach((part, p) => {
    const at = further(to, p * perPart * bytes);
    if (perPart >= 4 && target.isa === 'x64-v4') {
      b.ins(bytes === 1 ? 'vpmovdb' : 'vpmovdw', used, at, part);
      return;
    }
    const pattern = new Uint8Array(16).fill(0x80);
    for (let i = 0; i < 4; i++) for (let k = 0; k < bytes; k++) pattern[i * bytes + k] = i * 4 + k;
    const order = b.vector(pattern);
    for (let q = 0; q < Math.max(1, used / 16); q++) {
      const packed = b.op('vpshufb', 16, q === 0 ? part : ctx.machine.lanes.half(ctx, part, used, true), order);
      const place = further(at, q * 4 * bytes);
      access.storePart(b, Math.min(4, perPart) * bytes, place, packed);
    }
  });
}

/** Bytes or words from memory as parts of four bytes a lane. */
export function loadBytes(ctx: Context, from: Memory, lanes: number, bytes: 1 | 2, signed: boolean): readonly Reg[] {
  const { b } = ctx;
  const key = `vpmov${signed ? 's' : 'z'}x${bytes === 1 ? 'bd' : 'wd'}`;
  const used = usedBytes(ctx, lanes, 4);
  return makeParts(ctx, lanes, 4, (p) => {
    if (used >= 16) return b.op(key, used, further(from, (p * used * bytes) / 4));
    return b.op(key, 16, access.part(b, lanes * bytes, from));
  }).parts;
}

function element(b: Builder, dtype: DType, at: Memory): Reg {
  switch (dtype) {
    case 'float32':
      return b.op('vmovss', 16, at);
    case 'float64':
      return b.op('vmovsd', 16, at);
    case 'int64':
    case 'uint64':
      return b.op('mov', 8, at);
    case 'int8':
      return b.op('movsx:byte', 4, at);
    case 'int16':
      return b.op('movsx:word', 4, at);
    case 'uint8':
    case 'bool':
      return b.op('movzx:byte', 4, at);
    case 'uint16':
      return b.op('movzx:word', 4, at);
    default:
      return b.op('mov', 4, at);
  }
}

function storeElement(b: Builder, dtype: DType, at: Memory, r: Reg): void {
  const kind = kindOf(dtype);
  const bits = smallBits(dtype);
  if (kind === 'f32') b.ins('vmovss:store', 16, at, r);
  else if (kind === 'f64') b.ins('vmovsd:store', 16, at, r);
  else if (bits === 16) b.ins('mov:word', 4, at, r);
  else if (bits === 8 || kind === 'bool') b.ins('mov:byte', 4, at, r);
  else b.ins('mov:store', widthOf(kind), at, r);
}

function choose({ b, target }: Context, condition: Reg, yes: Reg, no: Reg): Reg {
  if (yes.cls === 'g') {
    const d = b.copy(no);
    b.test(condition);
    b.take('ne', d, yes);
    return d;
  }
  if (target.isa === 'x64-v4') {
    const d = b.reg('v');
    const all = b.copy(condition);
    b.ins('neg', 4, all);
    b.masked('vblendmps', 16, b.op('kmovd', 8, all), false, d, no, yes);
    return d;
  }
  const all = b.copy(condition);
  b.ins('neg', 8, all);
  return b.op('vblendvps', 16, no, yes, b.op('vmovq', 16, all));
}

export const access: Access = {
  scalar: (b, kind, at) =>
    b.op(kind === 'f32' ? 'vmovss' : kind === 'f64' ? 'vmovsd' : 'mov', isFloat(kind) ? 16 : widthOf(kind), at),
  element,
  storeElement,
  spread(b, width, bytes, at) {
    b.spreads = true;
    return b.op(width === 4 ? 'vbroadcastss' : bytes === 16 ? 'vmovddup' : 'vbroadcastsd', bytes, at);
  },
  part(b, bytes, at) {
    if (bytes === 2) return b.op('vmovd', 16, b.op('movzx:word', 4, at));
    if (bytes === 4) return b.op('vmovss', 16, at);
    return bytes === 8 ? b.op('vmovsd', 16, at) : b.op('vmovups', bytes, at);
  },
  storePart(b, bytes, at, part) {
    if (bytes === 2) b.ins('mov:word', 4, at, b.op('vmovd:get', 16, part));
    else if (bytes === 4) b.ins('vmovss:store', 16, at, part);
    else if (bytes === 8) b.ins('vmovsd:store', 16, at, part);
    else b.ins('vmovups:store', bytes, at, part);
  },
  streams: {
    test: (b, at, bytes) => b.ins('test:constant', 4, b.op('lea', 8, at), bytes - 1),
    store: (b, bytes, at, part) => b.ins('vmovntps', bytes, at, part),
    fence: (b) => b.ins('sfence', 16),
    prefetch: (b, at) => b.ins('prefetcht1', 4, at),
  },
  small: loadBytes,
  storeSmall: storeBytes,
  choose,
};
