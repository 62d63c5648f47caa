/**
 * The instructions of arm64 that this package writes, one row each: name, fixed bits, operands and their fields. encode.ts encodes
 * them.
 *
 * Source: Arm Architecture Reference Manual for A-profile (DDI 0487), chapter C. Every row is compared with a disassembler (rows.test.ts).
 */
import {
  type Condition,
  type Operand as AnyOperand,
  type RegClass,
  rolesOf,
  type Row as AnyRow,
} from '../form/code.ts';

/**
 * Kinds of operands. `r`: a general register of 4 or 8 bytes as the instruction says; `w`, `x`: of 4, of 8; `X`: of 8, where 31 is
 * the stack pointer. `b h s d q`: the lowest 1, 2, 4, 8, 16 bytes of a vector. `4s 2d 16b ...`: a vector by its lanes. `S`, `D`: a vector of which the
 * next operand selects a lane. `ext`: as `x`, beside a stack pointer. `both`: `16b` in two fields. `list`: `16b` as a table. `m`: memory. `a`: a memory operand of which only the address is used. Others are numbers.
 */
export type OperandKind =
  | 'r'
  | 'w'
  | 'x'
  | 'X'
  | 'b'
  | 'h'
  | 's'
  | 'd'
  | 'q'
  | '16b'
  | '8b'
  | '8h'
  | '4h'
  | '4s'
  | '2s'
  | '2d'
  | '1d'
  | 'S'
  | 'D'
  | 'ext'
  | 'both'
  | 'list'
  | 'm'
  | 'a'
  | NumberKind;

/**
 * Kinds of numbers. `u12`: 12 bits. `u12h`: 12 bits, shifted by 12. `u16`: 16 bits. `hw`: 0, 16, 32 or 48. `lsl`, `shr`: a shift of a general
 * register. `by`: a shift of the last operand. `uxtw`: a shift of the last operand, of 4 bytes. `ones`: the number of low bits set. `shl`, `ushr`: a shift
 * of lanes. `lane`: the number of a lane. `bytes`: a number of bytes. `cond`: a condition's code; `not`: the opposite's.
 */
export type NumberKind =
  | 'u12'
  | 'u12h'
  | 'u16'
  | 'hw'
  | 'lsl'
  | 'shr'
  | 'by'
  | 'uxtw'
  | 'ones'
  | 'shl32'
  | 'shl64'
  | 'shr32'
  | 'shr64'
  | 'lane'
  | 'bytes'
  | 'cond'
  | 'not';

export interface Operand extends AnyOperand {
  readonly kind: OperandKind;
  /** Its lowest bit in the instruction. */
  readonly at: number;
}

export interface Row extends AnyRow {
  readonly code: number;
  readonly operands: readonly Operand[];
  /** True if the highest bit selects general registers of 8 bytes. */
  readonly sized: boolean;
  /** Bytes of memory that it accesses, or 0. */
  readonly bytes: number;
  /** The bits of its PC-relative form, or 0. */
  readonly literal: number;
}

const generals = ['r', 'w', 'x', 'X', 'ext'];
const vectors = ['b', 'h', 's', 'd', 'q', '16b', '8b', '8h', '4h', '4s', '2s', '2d', '1d', 'S', 'D', 'both', 'list'];

function classOf(kind: string): RegClass | null {
  if (generals.includes(kind)) return 'g';
  return vectors.includes(kind) ? 'v' : null;
}

/** Operands as text: kind, `@`, lowest bit, then `=` written, `+` read and written. */
function parse(text: string): readonly Operand[] {
  if (text === '') return [];
  return text.split(' ').map((t) => {
    const [, kind, at, flags] = /^(\w+)@(\d+)([=+]?)$/.exec(t)!;
    return {
      kind: kind as OperandKind,
      at: Number(at),
      reads: flags !== '=',
      writes: flags !== '',
      cls: classOf(kind!),
      folds: false,
    };
  });
}

const table = new Map<string, Row>();

/** The name is the key up to its first colon. */
function row(key: string, code: number, operands: string, memory: { bytes?: number; literal?: number } = {}): void {
  const parsed = parse(operands);
  table.set(key, {
    name: key.replace(/:.*$/, ''),
    code: code >>> 0,
    operands: parsed,
    roles: rolesOf(parsed),
    sized: parsed.some(({ kind }) => kind === 'r'),
    bytes: memory.bytes ?? 0,
    literal: (memory.literal ?? 0) >>> 0,
  });
}

// --- general registers
for (const [name, code] of [
  ['add', 0x0b000000],
  ['sub', 0x4b000000],
  ['and', 0x0a000000],
  ['orr', 0x2a000000],
  ['eor', 0x4a000000],
  ['bic', 0x0a200000],
] as const)
  row(name, code, 'r@0= r@5 r@16 by@10');
row('cmp', 0x6b00001f, 'r@5 r@16');
row('neg', 0x4b0003e0, 'r@0= r@16');
row('mvn', 0x2a2003e0, 'r@0= r@16');
row('mov', 0x2a0003e0, 'r@0= r@16');
for (const [name, code] of [
  ['add', 0x11000000],
  ['sub', 0x51000000],
] as const) {
  row(`${name}:constant`, code, 'r@0= r@5 u12@10');
  row(`${name}:high`, code | 0x400000, 'r@0= r@5 u12h@10');
  row(`${name}:stack`, code | 0x80000000, 'X@0= X@5 u12@10');
  row(`${name}:stackhigh`, code | 0x80400000, 'X@0= X@5 u12h@10');
}
row('cmp:constant', 0x7100001f, 'r@5 u12@10');
row('cmn:constant', 0x3100001f, 'r@5 u12@10');
row('add:uxtw', 0x8b204000, 'X@0= X@5 w@16 uxtw@10');
row('add:uxtx', 0x8b206000, 'X@0= X@5 ext@16');
row('and:ones', 0x12000000, 'r@0= r@5 ones@10');
row('eor:ones', 0x52000000, 'r@0= r@5 ones@10');
row('lsl:constant', 0x53000000, 'r@0= r@5 lsl@10');
row('lsr:constant', 0x53000000, 'r@0= r@5 shr@10');
row('asr:constant', 0x13000000, 'r@0= r@5 shr@10');
for (const [name, code] of [
  ['lsl', 0x1ac02000],
  ['lsr', 0x1ac02400],
  ['asr', 0x1ac02800],
  ['udiv', 0x1ac00800],
  ['sdiv', 0x1ac00c00],
  ['mul', 0x1b007c00],
] as const)
  row(name, code, 'r@0= r@5 r@16');
row('madd', 0x1b000000, 'r@0= r@5 r@16 r@10');
row('msub', 0x1b008000, 'r@0= r@5 r@16 r@10');
row('umull', 0x9ba07c00, 'x@0= w@5 w@16');
row('sxtb', 0x13001c00, 'w@0= w@5');
row('sxth', 0x13003c00, 'w@0= w@5');
row('uxtb', 0x53001c00, 'w@0= w@5');
row('uxth', 0x53003c00, 'w@0= w@5');
row('sxtw', 0x93407c00, 'x@0= w@5');
row('mov:wide', 0x52800000, 'r@0= u16@5 hw@21');
row('mov:inverse', 0x12800000, 'r@0= u16@5 hw@21');
row('movk', 0x72800000, 'r@0+ u16@5 hw@21');
row('csel', 0x1a800000, 'r@0= r@5 r@16 cond@12');
row('cset', 0x1a9f07e0, 'r@0= not@12');
/** Any constant: written as one to four of the moves above. */
row('mov:constant', 0, 'r@0= bytes@0');

// --- memory
for (const [key, code, kind, bytes, literal] of [
  ['ldrb', 0x39400000, 'w', 1, 0],
  ['ldrsb', 0x39c00000, 'w', 1, 0],
  ['ldrh', 0x79400000, 'w', 2, 0],
  ['ldrsh', 0x79c00000, 'w', 2, 0],
  ['ldr:w', 0xb9400000, 'w', 4, 0],
  ['ldr:x', 0xf9400000, 'x', 8, 0],
  ['ldr:h', 0x7d400000, 'h', 2, 0],
  ['ldr:s', 0xbd400000, 's', 4, 0x1c000000],
  ['ldr:d', 0xfd400000, 'd', 8, 0x5c000000],
  ['ldr:q', 0x3dc00000, 'q', 16, 0x9c000000],
] as const)
  row(key, code, `${kind}@0= m@5`, { bytes, literal });
for (const [key, code, kind, bytes] of [
  ['strb', 0x39000000, 'w', 1],
  ['strh', 0x79000000, 'w', 2],
  ['str:w', 0xb9000000, 'w', 4],
  ['str:x', 0xf9000000, 'x', 8],
  ['str:h', 0x7d000000, 'h', 2],
  ['str:s', 0xbd000000, 's', 4],
  ['str:d', 0xfd000000, 'd', 8],
  ['str:q', 0x3d800000, 'q', 16],
] as const)
  row(key, code, `m@5 ${kind}@0`, { bytes });
row('adr', 0x10000000, 'x@0= a@5', { literal: 0x10000000 });

// --- scalar floats
for (const [kind, type] of [
  ['s', 0],
  ['d', 1 << 22],
] as const) {
  for (const [name, code] of [
    ['fmul', 0x0],
    ['fdiv', 0x1],
    ['fadd', 0x2],
    ['fsub', 0x3],
    ['fmax', 0x4],
    ['fmin', 0x5],
  ] as const)
    row(`${name}:${kind}`, 0x1e200800 | type | (code << 12), `${kind}@0= ${kind}@5 ${kind}@16`);
  for (const [name, code] of [
    ['fmov', 0],
    ['fabs', 1],
    ['fneg', 2],
    ['fsqrt', 3],
    ['frintn', 8],
    ['frintp', 9],
    ['frintm', 10],
    ['frintz', 11],
  ] as const)
    row(`${name}:${kind}`, 0x1e204000 | type | (code << 15), `${kind}@0= ${kind}@5`);
  row(`fmadd:${kind}`, 0x1f000000 | type, `${kind}@0= ${kind}@5 ${kind}@16 ${kind}@10`);
  row(`fcmp:${kind}`, 0x1e202000 | type, `${kind}@5 ${kind}@16`);
  row(`fcsel:${kind}`, 0x1e200c00 | type, `${kind}@0= ${kind}@5 ${kind}@16 cond@12`);
  row(`scvtf:${kind}`, 0x1e220000 | type, `${kind}@0= r@5`);
  row(`ucvtf:${kind}`, 0x1e230000 | type, `${kind}@0= r@5`);
  row(`fcvtzs:${kind}`, 0x1e380000 | type, `r@0= ${kind}@5`);
  row(`fcvtzu:${kind}`, 0x1e390000 | type, `r@0= ${kind}@5`);
}
row('fcvt:sd', 0x1e22c000, 'd@0= s@5');
row('fcvt:ds', 0x1e624000, 's@0= d@5');
row('fmov:ws', 0x1e260000, 'w@0= s@5');
row('fmov:sw', 0x1e270000, 's@0= w@5');
row('fmov:xd', 0x9e660000, 'x@0= d@5');
row('fmov:dx', 0x9e670000, 'd@0= x@5');

// --- vectors of floats
/** Vector shapes with lanes of 4 and of 8 bytes, and the size field: one bit for floats, two for integers. */
const shapes = [
  ['4s', 0, 2 << 22],
  ['2d', 1 << 22, 3 << 22],
] as const;
const same = (lanes: string): string => `${lanes}@0= ${lanes}@5 ${lanes}@16`;
for (const [lanes, sz, size] of shapes) {
  for (const [name, code] of [
    ['fadd', 0x4e20d400],
    ['fsub', 0x4ea0d400],
    ['fmul', 0x6e20dc00],
    ['fdiv', 0x6e20fc00],
    ['fmax', 0x4e20f400],
    ['fmin', 0x4ea0f400],
    ['fcmeq', 0x4e20e400],
    ['fcmge', 0x6e20e400],
    ['fcmgt', 0x6ea0e400],
  ] as const)
    row(`${name}:${lanes}`, code | sz, same(lanes));
  row(`fmla:${lanes}`, 0x4e20cc00 | sz, `${lanes}@0+ ${lanes}@5 ${lanes}@16`);
  for (const [name, code] of [
    ['fneg', 0x6ea0f800],
    ['fabs', 0x4ea0f800],
    ['fsqrt', 0x6ea1f800],
    ['frintn', 0x4e218800],
    ['frintm', 0x4e219800],
    ['frintp', 0x4ea18800],
    ['frintz', 0x4ea19800],
    ['scvtf', 0x4e21d800],
    ['ucvtf', 0x6e21d800],
    ['fcvtzs', 0x4ea1b800],
    ['fcvtzu', 0x6ea1b800],
  ] as const)
    row(`${name}:${lanes}`, code | sz, `${lanes}@0= ${lanes}@5`);

  // --- vectors of integers
  for (const [name, code] of [
    ['add', 0x4e208400],
    ['sub', 0x6e208400],
    ['cmgt', 0x4e203400],
    ['cmge', 0x4e203c00],
    ['cmhi', 0x6e203400],
    ['cmhs', 0x6e203c00],
    ['cmeq', 0x6e208c00],
    ['sshl', 0x4e204400],
    ['ushl', 0x6e204400],
  ] as const)
    row(`${name}:${lanes}`, code | size, same(lanes));
  row(`neg:${lanes}`, 0x6e20b800 | size, `${lanes}@0= ${lanes}@5`);
  row(`abs:${lanes}`, 0x4e20b800 | size, `${lanes}@0= ${lanes}@5`);
  const width = lanes === '4s' ? 32 : 64;
  row(`shl:${lanes}`, 0x4f005400, `${lanes}@0= ${lanes}@5 shl${width}@16`);
  row(`sshr:${lanes}`, 0x4f000400, `${lanes}@0= ${lanes}@5 shr${width}@16`);
  row(`ushr:${lanes}`, 0x6f000400, `${lanes}@0= ${lanes}@5 shr${width}@16`);
  for (const [name, code] of [
    ['uzp1', 0x4e001800],
    ['uzp2', 0x4e005800],
    ['zip1', 0x4e003800],
    ['zip2', 0x4e007800],
  ] as const)
    row(`${name}:${lanes}`, code | size, same(lanes));
}
for (const [name, code] of [
  ['mul', 0x4ea09c00],
  ['smax', 0x4ea06400],
  ['smin', 0x4ea06c00],
  ['umax', 0x6ea06400],
  ['umin', 0x6ea06c00],
] as const)
  row(`${name}:4s`, code, same('4s'));
for (const [name, code] of [
  ['and', 0x4e201c00],
  ['bic', 0x4e601c00],
  ['orr', 0x4ea01c00],
  ['eor', 0x6e201c00],
] as const)
  row(`${name}:16b`, code, same('16b'));
row('bsl:16b', 0x6e601c00, '16b@0+ 16b@5 16b@16');
row('mvn:16b', 0x6e205800, '16b@0= 16b@5');
row('mov:16b', 0x4ea01c00, '16b@0= both@5');
row('umaxv', 0x6eb0a800, 's@0= 4s@5');
row('umaxp:2s', 0x2ea0a400, same('2s'));
row('rev64:4s', 0x4ea00800, '4s@0= 4s@5');
row('uaddlp:2d', 0x6ea02800, '2d@0= 4s@5');
row('umull:2d', 0x2ea0c000, '2d@0= 2s@5 2s@16');
row('umull2:2d', 0x6ea0c000, '2d@0= 4s@5 4s@16');
row('umlal:2d', 0x2ea08000, '2d@0+ 2s@5 2s@16');

// --- widths of lanes
row('xtn:2s', 0x0ea12800, '2s@0= 2d@5');
row('xtn:4h', 0x0e612800, '4h@0= 4s@5');
row('xtn:8b', 0x0e212800, '8b@0= 8h@5');
row('sqxtn:2s', 0x0ea14800, '2s@0= 2d@5');
row('uqxtn:2s', 0x2ea14800, '2s@0= 2d@5');
for (const [name, code] of [
  ['sxtl', 0x0f00a400],
  ['uxtl', 0x2f00a400],
] as const) {
  row(`${name}:8h`, code | (8 << 16), '8h@0= 8b@5');
  row(`${name}:4s`, code | (16 << 16), '4s@0= 4h@5');
  row(`${name}:2d`, code | (32 << 16), '2d@0= 2s@5');
}
row('fcvtl:2d', 0x0e617800, '2d@0= 2s@5');
row('fcvtn:2s', 0x0e616800, '2s@0= 2d@5');
row('fcvtl:4s', 0x0e217800, '4s@0= 4h@5');
row('fcvtn:4h', 0x0e216800, '4h@0= 4s@5');

// --- moving lanes
row('dup:4s', 0x4e040400, '4s@0= S@5 lane@19');
row('dup:2d', 0x4e080400, '2d@0= D@5 lane@20');
row('dup:w', 0x4e040c00, '4s@0= w@5');
row('dup:x', 0x4e080c00, '2d@0= x@5');
row('mov:lane_s', 0x5e040400, 's@0= S@5 lane@19');
row('mov:lane_d', 0x5e080400, 'd@0= D@5 lane@20');
row('mov:get_w', 0x0e043c00, 'w@0= S@5 lane@19');
row('mov:get_x', 0x4e083c00, 'x@0= D@5 lane@20');
row('mov:set_s', 0x6e040400, 'S@0+ lane@19 S@5 lane@13');
row('mov:set_w', 0x4e041c00, 'S@0+ lane@19 w@5');
row('mov:set_x', 0x4e081c00, 'D@0+ lane@20 x@5');
row('ext:16b', 0x6e000000, '16b@0= 16b@5 16b@16 bytes@11');
row('tbl:16b', 0x4e000000, '16b@0= list@5 16b@16');
row('tbx:16b', 0x4e001000, '16b@0+ list@5 16b@16');
row('fmla:lane_s', 0x4f801000, '4s@0+ 4s@5 S@16 lane@21');
row('fmla:lane_d', 0x4fc01000, '2d@0+ 2d@5 D@16 lane@11');

row('ret', 0xd65f03c0, '');
row('bti', 0xd503245f, '');
row('nop', 0xd503201f, '');

/** Conditions by their code: those of comparisons of integers, and of floats where s is less, be is at most and p is unordered. */
export const conditions: Readonly<Record<Condition, number>> = {
  e: 0,
  ne: 1,
  ae: 2,
  b: 3,
  s: 4,
  ns: 5,
  p: 6,
  np: 7,
  a: 8,
  be: 9,
  ge: 10,
  l: 11,
  g: 12,
  le: 13,
};

/** All rows by key: the name, and after a colon the form if there are several. */
export const rows: ReadonlyMap<string, Row> = table;

/** The row of a key. */
export function rowOf(key: string): Row {
  const found = table.get(key);
  if (found === undefined) throw new Error(`[emit-machine] no instruction ${key}`);
  return found;
}
