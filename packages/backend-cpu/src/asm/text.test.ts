import { describe, expect, it } from 'vitest';
import type { FunctionBody } from './module.ts';
import * as A from './atomics.ts';
import * as S from './simd.ts';
import * as W from './plain.ts';
import * as T from './types.ts';
import { instructionName } from './names.ts';
import { functionText } from './text.ts';

/** 'TruncSatF32U' to 'trunc_sat_f32_u'; a number after a letter stays with it. */
function snake(name: string): string {
  return name
    .replace(/(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g, '_')
    .toLowerCase()
    .replace(/^_/, '');
}

const lanes: Readonly<Record<string, string>> = {
  i8: 'i8x16',
  i16: 'i16x8',
  i32: 'i32x4',
  i64: 'i64x2',
  f32: 'f32x4',
  f64: 'f64x2',
};

function plainName(key: string): string {
  const [, type, rest] = /^([if](?:32|64))([A-Z].*)$/.exec(key) ?? [];
  if (type !== undefined) return `${type}.${snake(rest!)}`;
  const [, group, action] = /^(local|memory)([A-Z].*)$/.exec(key) ?? [];
  return group === undefined ? snake(key) : `${group}.${snake(action!)}`;
}

function vectorName(key: string): string {
  const [, type, rest] = /^([if]\d+)([A-Z].*)$/.exec(key) ?? [];
  if (type === undefined) return key === 'shuffle' ? 'i8x16.shuffle' : `v128.${snake(key)}`;
  const words = snake(rest!)
    .replace(/^(extract|replace)$/, '$1_lane')
    .replace(/_([if]\d+)/, (_, from: string) => `_${lanes[from]}`);
  return `${lanes[type]}.${words}`;
}

const atomicName = (key: string): string => plainName(key).replace('.', '.atomic.').replace('rmw_', 'rmw.');

/** Names as the specification's index of instructions has them. */
const published: [number, string][] = [
  [W.brIf, 'br_if'],
  [W.localTee, 'local.tee'],
  [W.i32Load16U, 'i32.load16_u'],
  [W.i32DivS, 'i32.div_s'],
  [W.i64ExtendI32U, 'i64.extend_i32_u'],
  [W.f32DemoteF64, 'f32.demote_f64'],
  [W.i32TruncSatF64U, 'i32.trunc_sat_f64_u'],
  [W.i32Extend8S, 'i32.extend8_s'],
  [W.memoryCopy, 'memory.copy'],
  [S.load, 'v128.load'],
  [S.load8x8U, 'v128.load8x8_u'],
  [S.load32Splat, 'v128.load32_splat'],
  [S.store8Lane, 'v128.store8_lane'],
  [S.shuffle, 'i8x16.shuffle'],
  [S.f32Extract, 'f32x4.extract_lane'],
  [S.f64Add, 'f64x2.add'],
  [S.bitselect, 'v128.bitselect'],
  [S.i16NarrowI32U, 'i16x8.narrow_i32x4_u'],
  [S.i32ExtendHighI16S, 'i32x4.extend_high_i16x8_s'],
  [S.i32TruncSatF64SZero, 'i32x4.trunc_sat_f64x2_s_zero'],
  [S.f64PromoteLowF32, 'f64x2.promote_low_f32x4'],
  [S.i64ExtmulLowI32U, 'i64x2.extmul_low_i32x4_u'],
  [S.f32RelaxedMadd, 'f32x4.relaxed_madd'],
  [A.i32RmwCmpxchg, 'i32.atomic.rmw.cmpxchg'],
];

describe('instructionName', () => {
  it.each([
    ['plain', W, plainName],
    ['simd', S, vectorName],
    ['atomics', A, atomicName],
  ] as const)('knows all of %s.ts', (_, codes, nameOf) => {
    const all = Object.entries(codes);
    expect(all.map(([, code]) => instructionName(code))).toEqual(all.map(([key]) => nameOf(key)));
  });

  for (const [code, name] of published) it(name, () => expect(instructionName(code)).toBe(name));
});

describe('functionText', () => {
  it('indents blocks and reads immediates', () => {
    const simd = (code: number): number[] => [0xfd, ...(code < 0x80 ? [code] : [(code & 0x7f) | 0x80, code >> 7])];
    const f32 = [...new Uint8Array(Float32Array.of(0.5).buffer)];
    const body: FunctionBody = {
      name: 'sum',
      params: [T.i32, T.i32],
      results: [],
      locals: [T.v128],
      // biome-ignore format: an instruction a line reads better
      code: Uint8Array.of(
        W.loop, 0x40,
        W.localGet, 0, ...simd(0x00), 4, 0x80, 0x01,
        ...simd(0x1f), 3,
        W.f32Const, ...f32,
        W.i32Const, 0x7f,
        ...simd(0xe4),
        W.brIf, 0,
        W.end,
      ),
    };
    expect(functionText(body)).toBe(
      [
        '(func $sum (param i32 i32)',
        '  (local v128)',
        '  loop',
        '    local.get 0',
        '    v128.load offset=128',
        '    f32x4.extract_lane 3',
        '    f32.const 0.5',
        '    i32.const -1',
        '    f32x4.add',
        '    br_if 0',
        '  end',
        ')',
      ].join('\n'),
    );
  });
});
