/** Loads and stores of arm64. */
import type { Builder } from '../form/builder.ts';
import { further, type Memory, type Reg } from '../form/code.ts';
import { usedBytes } from '../form/vector-parts.ts';
import type { Context, Access } from '../form/machine.ts';
import type { DType, Kind } from '../target.ts';
import { spreadLane } from './lanes.ts';
import { conditions } from './rows.ts';

/** How elements of memory are loaded and stored. */
const elements: Readonly<Partial<Record<DType, readonly [load: string, store: string]>>> = {
  float32: ['ldr:s', 'str:s'],
  float64: ['ldr:d', 'str:d'],
  int64: ['ldr:x', 'str:x'],
  uint64: ['ldr:x', 'str:x'],
  int32: ['ldr:w', 'str:w'],
  uint32: ['ldr:w', 'str:w'],
  int16: ['ldrsh', 'strh'],
  uint16: ['ldrh', 'strh'],
  int8: ['ldrsb', 'strb'],
  uint8: ['ldrb', 'strb'],
  bool: ['ldrb', 'strb'],
};
const scalars: Readonly<Record<Kind, string>> = {
  f32: 'ldr:s',
  f64: 'ldr:d',
  i32: 'ldr:w',
  u32: 'ldr:w',
  bool: 'ldr:w',
  i64: 'ldr:x',
  u64: 'ldr:x',
};
const parts: Readonly<Record<number, string>> = { 2: 'h', 4: 's', 8: 'd', 16: 'q' };

/** Bytes or words from memory as parts of four bytes a lane. */
function small({ b, target }: Context, from: Memory, lanes: number, bytes: 1 | 2, signed: boolean): readonly Reg[] {
  const name = signed ? 'sxtl' : 'uxtl';
  const perPart = Math.min(lanes, target.vectorBytes / 4);
  return Array.from({ length: lanes / perPart }, (_, p) => {
    const raw = b.op(`ldr:${parts[perPart * bytes]}`, 16, further(from, p * perPart * bytes));
    return b.op(`${name}:4s`, 16, bytes === 1 ? b.op(`${name}:8h`, 16, raw) : raw);
  });
}

/** Parts of four bytes a lane to bytes or words in memory: the lowest of each lane. */
function storeSmall(ctx: Context, to: Memory, from: readonly Reg[], lanes: number, bytes: 1 | 2): void {
  const { b } = ctx;
  const perPart = usedBytes(ctx, lanes, 4) / 4;
  for (const [p, part] of from.entries()) {
    const words = b.op('xtn:4h', 16, part);
    const packed = bytes === 1 ? b.op('xtn:8b', 16, words) : words;
    b.ins(`str:${parts[perPart * bytes]}`, 16, further(to, p * perPart * bytes), packed);
  }
}

function spread(b: Builder, width: 4 | 8, _bytes: number, at: Memory): Reg {
  return spreadLane(b, b.op(width === 4 ? 'ldr:s' : 'ldr:d', 16, at), width);
}

export const access: Access = {
  scalar: (b, kind, at) => b.op(scalars[kind], 8, at),
  element: (b, dtype, at) => b.op(elements[dtype]![0], 8, at),
  storeElement: (b, dtype, at, r) => b.ins(elements[dtype]![1], 8, at, r),
  spread,
  part: (b, bytes, at) => b.op(`ldr:${parts[bytes]}`, 16, at),
  storePart: (b, bytes, at, part) => b.ins(`str:${parts[bytes]}`, 16, at, part),
  streams: null,
  small,
  storeSmall,
  choose({ b }, condition, yes, no) {
    b.test(condition);
    return b.op(yes.cls === 'g' ? 'csel' : 'fcsel:d', 8, yes, no, conditions.ne);
  },
};
