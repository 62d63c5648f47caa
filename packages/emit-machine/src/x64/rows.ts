/**
 * The instructions of x86-64 that this package writes, one row each: prefixes, opcode and operands. encode.ts encodes them.
 *
 * Sources: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2. Every row is compared with a disassembler (rows.test.ts).
 */

import {
  type Condition,
  type Operand as AnyOperand,
  type RegClass,
  rolesOf,
  type Row as AnyRow,
} from '../form/code.ts';

/**
 * Kinds of operands. Vectors: `v` as wide as the instruction says, `h` half, `q` a quarter, `e` an eighth of it (registers of
 * at least 16 bytes), `x` 16 bytes, `y` 32 bytes, `s` and `d` one float32 or float64. `k` masks. `r` a general register of 4 or 8 bytes as the
 * instruction says, `l` of 4 bytes, `o` of 8 bytes, `w` and `b` of 2 and 1. `i` a constant in the instruction.
 */
export type OperandKind = 'v' | 'h' | 'q' | 'e' | 'x' | 'y' | 's' | 'd' | 'k' | 'r' | 'l' | 'o' | 'w' | 'b' | 'i';

/** Where an operand is encoded: in the register or the register-or-memory field, in the prefix, in a byte behind, or as a constant. */
export type Field = 'R' | 'M' | 'V' | 'S' | 'I';

export interface Operand extends AnyOperand {
  readonly kind: OperandKind;
  readonly field: Field;
  /** Only memory or only a register is allowed; null: both if the field is M. */
  readonly only: 'memory' | 'register' | null;
}

export interface Row extends AnyRow {
  readonly name: string;
  /** Its name with an EVEX prefix. */
  readonly evexName: string;
  /** Which prefixes it has: legacy, VEX and EVEX. */
  readonly legacy: boolean;
  readonly vex: boolean;
  readonly evex: boolean;
  /** 0: one byte, 1: 0F, 2: 0F38, 3: 0F3A. */
  readonly map: number;
  /** 0: none, 1: 66, 2: F3, 3: F2. */
  readonly prefix: number;
  /** The W bit with VEX and with EVEX; legacy instructions take it from their size unless it is set. */
  readonly vexW: number;
  readonly evexW: number;
  readonly opcode: number;
  /** Fixed value of the register field if it holds no operand, or -1. */
  readonly extension: number;
  readonly operands: readonly Operand[];
  /** Which operand is in each field, -1 for none. */
  readonly at: Readonly<Record<Field, number>>;
  /** True if an operand is one byte of a general register. */
  readonly bytes: boolean;
  /** True if an operand is a general register of 4 or 8 bytes. */
  readonly general: boolean;
  /** The unit of short displacements with EVEX: a share of the vector's bytes, or bytes. */
  readonly unit: number | 'v' | 'h' | 'q' | 'e';
  /** Bytes of the constant, 0 without one; -1: one byte if that is enough, else four. */
  readonly constant: number;
  /** With VEX: the L bit is not the vector's size. */
  readonly long: number | null;
  /** True if the operand in memory is one element, which stands for all lanes. */
  readonly spread: boolean;
}

const table = new Map<string, Row>();

interface Extra {
  readonly evexName?: string;
  readonly only?: 'vex' | 'evex' | 'legacy';
  readonly vexW?: number;
  readonly extension?: number;
  readonly unit?: Row['unit'];
  readonly constant?: number;
  readonly long?: number;
  readonly spread?: boolean;
}

/** Operands as text: kind, field, then `=` written, `+` read and written; `!` memory only, `.` register only. */
function parse(text: string): readonly Operand[] {
  if (text === '') return [];
  return text.split(' ').map((t) => ({
    kind: t[0] as OperandKind,
    field: t[1] as Field,
    reads: !t.includes('='),
    writes: t.includes('=') || t.includes('+'),
    only: t.includes('!') ? 'memory' : t.includes('.') ? 'register' : null,
    cls: classOf(t[0] as OperandKind),
    folds: t[1] === 'M' && !t.includes('.'),
  }));
}

function classOf(kind: OperandKind): RegClass | null {
  if (kind === 'i') return null;
  return kind === 'k' ? 'k' : 'rlowb'.includes(kind) ? 'g' : 'v';
}

const units: Readonly<Partial<Record<OperandKind, Row['unit']>>> = {
  v: 'v',
  h: 'h',
  q: 'q',
  e: 'e',
  x: 16,
  y: 32,
  s: 4,
  d: 8,
  l: 4,
  o: 8,
  w: 2,
  b: 1,
};

function row(
  key: string,
  map: number,
  prefix: number,
  w: number,
  opcode: number,
  operands: string,
  extra: Extra = {},
): void {
  const parsed = parse(operands);
  const at = (field: Field): number => parsed.findIndex((o) => o.field === field);
  const rm = parsed[at('M')];
  const name = key.replace(/[:].*$/, '');
  const hasConstant = at('I') >= 0;
  table.set(key, {
    name,
    evexName: extra.evexName ?? name,
    legacy: extra.only === 'legacy',
    vex: extra.only === undefined || extra.only === 'vex',
    evex: extra.only === undefined || extra.only === 'evex',
    map,
    prefix,
    vexW: extra.vexW ?? w,
    evexW: w,
    opcode,
    extension: extra.extension ?? -1,
    operands: parsed,
    roles: rolesOf(parsed),
    at: { R: at('R'), M: at('M'), V: at('V'), S: at('S'), I: at('I') },
    bytes: parsed.some((o) => o.kind === 'b'),
    general: parsed.some((o) => o.kind === 'r'),
    unit: extra.unit ?? (rm === undefined ? 'v' : (units[rm.kind] ?? 'v')),
    constant: extra.constant ?? (hasConstant ? 1 : 0),
    long: extra.long ?? null,
    spread: extra.spread ?? false,
  });
}

// --- moves, also of lanes
row('vmovups', 1, 0, 0, 0x10, 'vR= vM!');
row('vmovups:store', 1, 0, 0, 0x11, 'vM=! vR');
row('vmovntps', 1, 0, 0, 0x2b, 'vM=! vR');
row('vmovaps', 1, 0, 0, 0x28, 'vR= vM.');
row('vmovss', 1, 2, 0, 0x10, 'sR= sM!');
row('vmovss:store', 1, 2, 0, 0x11, 'sM=! sR');
row('vmovsd', 1, 3, 1, 0x10, 'dR= dM!', { vexW: 0 });
row('vmovsd:store', 1, 3, 1, 0x11, 'dM=! dR', { vexW: 0 });
row('vmovd', 1, 1, 0, 0x6e, 'xR= lM');
row('vmovd:get', 1, 1, 0, 0x7e, 'lM= xR', { unit: 4 });
row('vmovq', 1, 1, 1, 0x6e, 'xR= oM.');
row('vmovq:get', 1, 1, 1, 0x7e, 'oM=. xR', { unit: 8 });
row('vbroadcastss', 2, 1, 0, 0x18, 'vR= sM');
row('vbroadcastsd', 2, 1, 1, 0x19, 'vR= dM', { vexW: 0 });
row('vmovddup', 1, 3, 1, 0x12, 'vR= dM', { vexW: 0 });
row('vinsertf128', 3, 1, 0, 0x18, 'yR= yV xM iI', { evexName: 'vinsertf32x4' });
row('vinsertf64x4', 3, 1, 1, 0x1a, 'vR= vV yM iI', { only: 'evex' });
row('vextractf128', 3, 1, 0, 0x19, 'xM= yR iI', { evexName: 'vextractf32x4' });
row('vextractf32x4', 3, 1, 0, 0x19, 'xM= vR iI', { only: 'evex' });
row('vextractf64x4', 3, 1, 1, 0x1b, 'yM= vR iI', { only: 'evex' });
row('vmovlhps', 1, 0, 0, 0x16, 'xR= xV xM.');
row('vmovhlps', 1, 0, 0, 0x12, 'xR= xV xM.');
row('vpshufd', 1, 1, 0, 0x70, 'vR= vM iI');
row('vpshufb', 2, 1, 0, 0x00, 'vR= vV vM');
row('vinsertps', 3, 1, 0, 0x21, 'xR= xV sM iI');
row('vshufps', 1, 0, 0, 0xc6, 'vR= vV vM iI');
row('vunpcklps', 1, 0, 0, 0x14, 'vR= vV vM');
row('vpermps', 2, 1, 0, 0x16, 'vR= vV vM');
row('vpermt2ps', 2, 1, 0, 0x7f, 'vR+ vV vM', { only: 'evex' });
row('vblendps', 3, 1, 0, 0x0c, 'vR= vV vM iI', { only: 'vex' });
row('vzeroupper', 1, 0, 0, 0x77, '', { only: 'vex', long: 0 });

// --- arithmetic on floats
for (const [name, opcode] of [
  ['add', 0x58],
  ['mul', 0x59],
  ['sub', 0x5c],
  ['min', 0x5d],
  ['div', 0x5e],
  ['max', 0x5f],
] as const) {
  row(`v${name}ps`, 1, 0, 0, opcode, 'vR= vV vM');
  row(`v${name}pd`, 1, 1, 1, opcode, 'vR= vV vM', { vexW: 0 });
  row(`v${name}ss`, 1, 2, 0, opcode, 'sR= sV sM');
  row(`v${name}sd`, 1, 3, 1, opcode, 'dR= dV dM', { vexW: 0 });
}
row('vsqrtps', 1, 0, 0, 0x51, 'vR= vM');
row('vsqrtpd', 1, 1, 1, 0x51, 'vR= vM', { vexW: 0 });
row('vsqrtss', 1, 2, 0, 0x51, 'sR= sV sM');
row('vsqrtsd', 1, 3, 1, 0x51, 'dR= dV dM', { vexW: 0 });
for (const [name, opcode] of [
  ['and', 0x54],
  ['andn', 0x55],
  ['or', 0x56],
  ['xor', 0x57],
] as const)
  row(`v${name}ps`, 1, 0, 0, opcode, 'vR= vV vM');
row('vpternlogd', 3, 1, 0, 0x25, 'vR+ vV vM iI', { only: 'evex' });
row('vroundps', 3, 1, 0, 0x08, 'vR= vM iI', { evexName: 'vrndscaleps' });
row('vroundpd', 3, 1, 1, 0x09, 'vR= vM iI', { evexName: 'vrndscalepd', vexW: 0 });
row('vroundss', 3, 1, 0, 0x0a, 'sR= sV sM iI', { evexName: 'vrndscaless' });
row('vroundsd', 3, 1, 1, 0x0b, 'dR= dV dM iI', { evexName: 'vrndscalesd', vexW: 0 });
for (const [name, opcode] of [
  ['132', 0x98],
  ['213', 0xa8],
  ['231', 0xb8],
] as const) {
  row(`vfmadd${name}ps`, 2, 1, 0, opcode, 'vR+ vV vM');
  row(`vfmadd${name}pd`, 2, 1, 1, opcode, 'vR+ vV vM');
  row(`vfmadd${name}ps:spread`, 2, 1, 0, opcode, 'vR+ vV sM!', { only: 'evex', spread: true });
  row(`vfmadd${name}pd:spread`, 2, 1, 1, opcode, 'vR+ vV dM!', { only: 'evex', spread: true });
  row(`vfmadd${name}ss`, 2, 1, 0, opcode + 1, 'sR+ sV sM');
  row(`vfmadd${name}sd`, 2, 1, 1, opcode + 1, 'dR+ dV dM');
}
row('vcmpps', 1, 0, 0, 0xc2, 'vR= vV vM iI', { only: 'vex' });
row('vcmppd', 1, 1, 0, 0xc2, 'vR= vV vM iI', { only: 'vex' });
row('vcmpss', 1, 2, 0, 0xc2, 'sR= sV sM iI', { only: 'vex' });
row('vcmpsd', 1, 3, 0, 0xc2, 'dR= dV dM iI', { only: 'vex' });
row('vcmpps:k', 1, 0, 0, 0xc2, 'kR= vV vM iI', { only: 'evex' });
row('vcmppd:k', 1, 1, 1, 0xc2, 'kR= vV vM iI', { only: 'evex' });
row('vcmpss:k', 1, 2, 0, 0xc2, 'kR= sV sM iI', { only: 'evex' });
row('vcmpsd:k', 1, 3, 1, 0xc2, 'kR= dV dM iI', { only: 'evex' });
row('vblendvps', 3, 1, 0, 0x4a, 'vR= vV vM vS', { only: 'vex', constant: 1 });
row('vblendmps', 2, 1, 0, 0x65, 'vR= vV vM', { only: 'evex' });
row('vblendmpd', 2, 1, 1, 0x65, 'vR= vV vM', { only: 'evex' });
row('vucomiss', 1, 0, 0, 0x2e, 'sR sM');
row('vucomisd', 1, 1, 1, 0x2e, 'dR dM', { vexW: 0 });

// --- arithmetic on vectors of integers
for (const [name, map, opcode, w] of [
  ['vpaddd', 1, 0xfe, 0],
  ['vpaddq', 1, 0xd4, 1],
  ['vpsubd', 1, 0xfa, 0],
  ['vpsubq', 1, 0xfb, 1],
  ['vpmulld', 2, 0x40, 0],
  ['vpmuludq', 1, 0xf4, 1],
  ['vpmaxsd', 2, 0x3d, 0],
  ['vpmaxud', 2, 0x3f, 0],
  ['vpminsd', 2, 0x39, 0],
  ['vpminud', 2, 0x3b, 0],
] as const)
  row(name, map, 1, w, opcode, 'vR= vV vM', { vexW: 0 });
row('vpackusdw', 2, 1, 0, 0x2b, 'vR= vV vM');
row('vpackuswb', 1, 1, 0, 0x67, 'vR= vV vM');
for (const [name, opcode] of [
  ['vpmullq', 0x40],
  ['vpmaxsq', 0x3d],
  ['vpmaxuq', 0x3f],
  ['vpminsq', 0x39],
  ['vpminuq', 0x3b],
] as const)
  row(name, 2, 1, 1, opcode, 'vR= vV vM', { only: 'evex' });
row('vpabsb', 2, 1, 0, 0x1c, 'vR= vM');
row('vpabsd', 2, 1, 0, 0x1e, 'vR= vM');
row('vpabsq', 2, 1, 1, 0x1f, 'vR= vM', { only: 'evex' });
for (const [name, opcode, extension, w] of [
  ['vpslld', 0x72, 6, 0],
  ['vpsrld', 0x72, 2, 0],
  ['vpsrad', 0x72, 4, 0],
  ['vpsllq', 0x73, 6, 1],
  ['vpsrlq', 0x73, 2, 1],
] as const)
  row(name, 1, 1, w, opcode, 'vV= vM. iI', { extension, vexW: 0 });
row('vpsraq', 1, 1, 1, 0x72, 'vV= vM. iI', { extension: 4, only: 'evex' });
row('vprold', 1, 1, 0, 0x72, 'vV= vM. iI', { extension: 1, only: 'evex' });
row('vprolq', 1, 1, 1, 0x72, 'vV= vM. iI', { extension: 1, only: 'evex' });
for (const [name, opcode, w] of [
  ['vpsllvd', 0x47, 0],
  ['vpsllvq', 0x47, 1],
  ['vpsrlvd', 0x45, 0],
  ['vpsrlvq', 0x45, 1],
  ['vpsravd', 0x46, 0],
] as const)
  row(name, 2, 1, w, opcode, 'vR= vV vM');
row('vpsravq', 2, 1, 1, 0x46, 'vR= vV vM', { only: 'evex' });
row('vpcmpeqd', 1, 1, 0, 0x76, 'vR= vV vM', { only: 'vex' });
row('vpcmpgtd', 1, 1, 0, 0x66, 'vR= vV vM', { only: 'vex' });
row('vpcmpeqq', 2, 1, 0, 0x29, 'vR= vV vM', { only: 'vex' });
row('vpcmpgtq', 2, 1, 0, 0x37, 'vR= vV vM', { only: 'vex' });
row('vpcmpd:k', 3, 1, 0, 0x1f, 'kR= vV vM iI', { only: 'evex' });
row('vpcmpud:k', 3, 1, 0, 0x1e, 'kR= vV vM iI', { only: 'evex' });
row('vpcmpq:k', 3, 1, 1, 0x1f, 'kR= vV vM iI', { only: 'evex' });
row('vpcmpuq:k', 3, 1, 1, 0x1e, 'kR= vV vM iI', { only: 'evex' });
row('vptestmb', 2, 1, 0, 0x26, 'kR= vV vM', { only: 'evex' });
row('vptestmd', 2, 1, 0, 0x27, 'kR= vV vM', { only: 'evex' });
row('vmovmskps', 1, 0, 0, 0x50, 'lR= vM.', { only: 'vex' });

// --- conversions
row('vcvtdq2ps', 1, 0, 0, 0x5b, 'vR= vM');
row('vcvttps2dq', 1, 2, 0, 0x5b, 'vR= vM');
row('vcvtudq2ps', 1, 3, 0, 0x7a, 'vR= vM', { only: 'evex' });
row('vcvttps2udq', 1, 0, 0, 0x78, 'vR= vM', { only: 'evex' });
row('vcvtps2pd', 1, 0, 0, 0x5a, 'vR= hM');
row('vcvtdq2pd', 1, 2, 0, 0xe6, 'vR= hM');
row('vcvtudq2pd', 1, 2, 0, 0x7a, 'vR= hM', { only: 'evex' });
row('vcvtpd2ps', 1, 1, 1, 0x5a, 'hR= vM', { vexW: 0 });
row('vcvttpd2dq', 1, 1, 1, 0xe6, 'hR= vM', { vexW: 0 });
row('vcvttpd2udq', 1, 0, 1, 0x78, 'hR= vM', { only: 'evex' });
row('vcvtqq2pd', 1, 2, 1, 0xe6, 'vR= vM', { only: 'evex' });
row('vcvtuqq2pd', 1, 2, 1, 0x7a, 'vR= vM', { only: 'evex' });
row('vcvtqq2ps', 1, 0, 1, 0x5b, 'hR= vM', { only: 'evex' });
row('vcvtuqq2ps', 1, 3, 1, 0x7a, 'hR= vM', { only: 'evex' });
row('vcvttpd2qq', 1, 1, 1, 0x7a, 'vR= vM', { only: 'evex' });
row('vcvttpd2uqq', 1, 1, 1, 0x78, 'vR= vM', { only: 'evex' });
row('vcvtss2sd', 1, 2, 0, 0x5a, 'sR= sV sM');
row('vcvtsd2ss', 1, 3, 1, 0x5a, 'dR= dV dM', { vexW: 0 });
row('vcvtsi2ss', 1, 2, 0, 0x2a, 'xR= xV lM');
row('vcvtsi2ss:long', 1, 2, 1, 0x2a, 'xR= xV oM');
row('vcvtsi2sd', 1, 3, 0, 0x2a, 'xR= xV lM');
row('vcvtsi2sd:long', 1, 3, 1, 0x2a, 'xR= xV oM');
row('vcvttsd2si:long', 1, 3, 1, 0x2c, 'oR= dM');
row('vcvtph2ps', 2, 1, 0, 0x13, 'vR= hM');
row('vcvtps2ph', 3, 1, 0, 0x1d, 'hM= vR iI');
for (const [name, opcode, kind, unit] of [
  ['vpmovsxbd', 0x21, 'q', 'q'],
  ['vpmovsxwd', 0x23, 'h', 'h'],
  ['vpmovsxdq', 0x25, 'h', 'h'],
  ['vpmovzxbd', 0x31, 'q', 'q'],
  ['vpmovzxwd', 0x33, 'h', 'h'],
  ['vpmovzxdq', 0x35, 'h', 'h'],
] as const)
  row(name, 2, 1, 0, opcode, `vR= ${kind}M`, { unit });
row('vpmovdb', 2, 2, 0, 0x31, 'qM= vR', { only: 'evex' });
row('vpmovdw', 2, 2, 0, 0x33, 'hM= vR', { only: 'evex' });
row('vpmovqd', 2, 2, 0, 0x35, 'hM= vR', { only: 'evex' });

// --- masks
row('vpmovm2b', 2, 2, 0, 0x28, 'vR= kM.', { only: 'evex' });
row('vpmovm2d', 2, 2, 0, 0x38, 'vR= kM.', { only: 'evex' });
row('kmovd', 1, 3, 0, 0x92, 'kR= lM.', { only: 'vex', long: 0 });
row('kmovd:get', 1, 3, 0, 0x93, 'lR= kM.', { only: 'vex', long: 0 });
row('kmovq', 1, 0, 1, 0x90, 'kR= kM', { only: 'vex', long: 0 });
row('kmovq:store', 1, 0, 1, 0x91, 'kM=! kR', { only: 'vex', long: 0 });
row('kandq', 1, 0, 1, 0x41, 'kR= kV kM.', { only: 'vex', long: 1 });
row('kandnq', 1, 0, 1, 0x42, 'kR= kV kM.', { only: 'vex', long: 1 });
row('korq', 1, 0, 1, 0x45, 'kR= kV kM.', { only: 'vex', long: 1 });
row('kxnorq', 1, 0, 1, 0x46, 'kR= kV kM.', { only: 'vex', long: 1 });
row('kxorq', 1, 0, 1, 0x47, 'kR= kV kM.', { only: 'vex', long: 1 });
row('knotq', 1, 0, 1, 0x44, 'kR= kM.', { only: 'vex', long: 0 });
row('kshiftlq', 3, 1, 1, 0x33, 'kR= kM. iI', { only: 'vex', long: 0 });
row('kshiftrq', 3, 1, 1, 0x31, 'kR= kM. iI', { only: 'vex', long: 0 });

// --- general registers
const legacy = { only: 'legacy' } as const;
row('mov', 0, 0, 0, 0x8b, 'rR= rM', legacy);
row('mov:store', 0, 0, 0, 0x89, 'rM=! rR', legacy);
row('mov:word', 0, 1, 0, 0x89, 'wM=! wR', legacy);
row('mov:byte', 0, 0, 0, 0x88, 'bM=! bR', legacy);
row('mov:constant', 0, 0, 0, 0xc7, 'rM= iI', { ...legacy, extension: 0, constant: 4 });
row('movabs', 0, 0, 1, 0xb8, 'oR= iI', { ...legacy, constant: 8 });
row('movzx:byte', 1, 0, 0, 0xb6, 'lR= bM', legacy);
row('movzx:word', 1, 0, 0, 0xb7, 'lR= wM', legacy);
row('movsx:byte', 1, 0, 0, 0xbe, 'lR= bM', legacy);
row('movsx:word', 1, 0, 0, 0xbf, 'lR= wM', legacy);
row('movsxd', 0, 0, 1, 0x63, 'oR= lM', legacy);
row('lea', 0, 0, 0, 0x8d, 'rR= rM!', legacy);
for (const [i, name] of ['add', 'or', '', '', 'and', 'sub', 'xor', 'cmp'].entries()) {
  if (name === '') continue;
  const first = name === 'cmp' ? 'rR' : 'rR+';
  row(name, 0, 0, 0, i * 8 + 3, `${first} rM`, legacy);
  row(`${name}:constant`, 0, 0, 0, 0x81, `rM${name === 'cmp' ? '' : '+'} iI`, {
    ...legacy,
    extension: i,
    constant: -1,
  });
}
row('test', 0, 0, 0, 0x85, 'rM rR', legacy);
row('test:constant', 0, 0, 0, 0xf7, 'rM. iI', { ...legacy, extension: 0, constant: 4 });
row('imul', 1, 0, 0, 0xaf, 'rR+ rM', legacy);
row('imul:constant', 0, 0, 0, 0x69, 'rR= rM iI', { ...legacy, constant: -1 });
row('not', 0, 0, 0, 0xf7, 'rM+', { ...legacy, extension: 2 });
row('neg', 0, 0, 0, 0xf7, 'rM+', { ...legacy, extension: 3 });
row('div', 0, 0, 0, 0xf7, 'rM', { ...legacy, extension: 6 });
row('idiv', 0, 0, 0, 0xf7, 'rM', { ...legacy, extension: 7 });
row('cdq', 0, 0, 0, 0x99, '', legacy);
row('cqo', 0, 0, 1, 0x99, '', legacy);
row('shl', 0, 0, 0, 0xc1, 'rM+ iI', { ...legacy, extension: 4 });
row('shr', 0, 0, 0, 0xc1, 'rM+ iI', { ...legacy, extension: 5 });
row('sar', 0, 0, 0, 0xc1, 'rM+ iI', { ...legacy, extension: 7 });
row('shlx', 2, 1, 0, 0xf7, 'rR= rM rV', { only: 'vex', long: 0 });
row('sarx', 2, 2, 0, 0xf7, 'rR= rM rV', { only: 'vex', long: 0 });
row('shrx', 2, 3, 0, 0xf7, 'rR= rM rV', { only: 'vex', long: 0 });

/** Conditions of jumps, moves and flags by their code. Unsigned: b, ae, be, a. */
export const conditions: Readonly<Record<Condition, number>> = {
  b: 2,
  ae: 3,
  e: 4,
  ne: 5,
  be: 6,
  a: 7,
  s: 8,
  ns: 9,
  p: 10,
  np: 11,
  l: 12,
  ge: 13,
  le: 14,
  g: 15,
};
for (const [name, code] of Object.entries(conditions)) {
  row(`set${name}`, 1, 0, 0, 0x90 + code, 'bM=.', { ...legacy, extension: 0 });
  row(`cmov${name}`, 1, 0, 0, 0x40 + code, 'rR+ rM', legacy);
}
row('push', 0, 0, 0, 0x50, 'oR', legacy);
row('pop', 0, 0, 0, 0x58, 'oR=', legacy);
row('ret', 0, 0, 0, 0xc3, '', legacy);
row('sfence', 1, 0, 0, 0xae, '', { ...legacy, extension: 7 });
row('prefetcht1', 1, 0, 0, 0x18, 'bM!', { ...legacy, extension: 2 });

/** All rows by key: the name, and after a colon the form if there are several. */
export const rows: ReadonlyMap<string, Row> = table;

/** The row of a key. */
export function rowOf(key: string): Row {
  const found = table.get(key);
  if (found === undefined) throw new Error(`[emit-machine] no instruction ${key}`);
  return found;
}
