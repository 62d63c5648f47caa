/**
 * Products of tiles of matrices by a warp (MATRIX, FRAGMENT), and copies to shared memory beside other work (COPY).
 *
 * Factors are packed: two elements of 16 bits to a register. What the thread of a warp adds to the address of a fragment is computed once.
 */
import type { KNodeOf, Program } from '@polygrad/core/kernel';
import { bytesOf } from './dtypes.ts';
import type { DType } from './kernel.ts';
import { laneOf } from './threads.ts';
import type { Writer } from './writer.ts';

type MatrixTile = KNodeOf<'MATRIX'>['arg']['tile'];

/** Registers of 32 bits that a thread holds of a factor. */
export function packedCount({ dtype, lanes }: { readonly dtype: string; readonly lanes: number }): number {
  return dtype === 'float32' ? lanes : lanes / 2;
}

const kinds: Readonly<Partial<Record<DType, string>>> = { float16: 'f16', bfloat16: 'bf16', float32: 'tf32' };

/** The product of a tile, with factors as they are packed, written to `to`. */
export function multiply(
  w: Writer,
  tile: MatrixTile,
  dtype: DType,
  to: readonly string[],
  a: readonly string[],
  b: readonly string[],
  c: readonly string[],
): void {
  const least = dtype === 'float16' && tile === 'm16n8k8' ? 75 : 80;
  if (w.capability < least) w.refuse(`tiles ${tile} of ${dtype} take sm_${least}: this is sm_${w.capability}`);
  // TF32 is float32 without the last 13 bits, rounded.
  const given = (x: string): string => (dtype === 'float32' ? w.op('r', 'cvt.rna.tf32.f32', x) : x);
  const list = (registers: readonly string[]): string => `{${registers.join(', ')}}`;
  const kind = kinds[dtype] ?? w.refuse(`MATRIX of ${dtype}`);
  const [x, y] = [a.map(given), b.map(given)];
  w.line(`mma.sync.aligned.${tile}.row.col.f32.${kind}.${kind}.f32 ${list(to)}, ${list(x)}, ${list(y)}, ${list(c)};`);
}

/** A fragment out of shared memory, packed. `address` gives that of an element with so many bytes added, which a register may hold. */
export function fragment(
  w: Writer,
  program: Program,
  { arg, dtype, lanes }: KNodeOf<'FRAGMENT'>,
  address: (key: string, spread: () => string) => (behind: number) => string,
): readonly string[] {
  const { part, across, along } = arg;
  const bytes = bytesOf(dtype);
  const count = packedCount({ dtype, lanes });
  if (bytes === 4 && along !== 1) return singles(w, program, arg, lanes, address);
  // Matrices of eight lines of 16 bytes: thread t has the address of a line of matrix t / 8.
  const line = 16 / bytes;
  const turned = along !== 1;
  const spread = (): string => {
    const lane = laneOf(w, program);
    const inside = w.op('r', 'and.b32', lane, '7');
    const matrix = w.op('r', 'shr.u32', lane, '3');
    // Of a the number of the matrix says which rows, then which steps; of b which steps.
    const odd = w.op('r', 'and.b32', matrix, '1');
    const half = part === 'a' ? w.op('r', 'shr.u32', matrix, '1') : odd;
    const rows = part === 'a' ? w.op('r', 'shl.b32', odd, '3') : '0';
    const steps = count > (part === 'a' ? 2 : 1) ? w.op('r', 'mul.lo.u32', half, `${line}`) : '0';
    const [row, step] = turned
      ? [rows, w.op('r', 'add.s32', steps, inside)]
      : [w.op('r', 'add.s32', rows, inside), steps];
    const first = w.op('r', 'mul.lo.u32', row, `${across * bytes}`);
    return w.op('r', 'mad.lo.s32', step, `${along * bytes}`, first);
  };
  const at = address(`${part} ${count} ${bytes} ${across} ${along}`, spread);
  const to = Array.from({ length: count }, () => w.fresh('r'));
  const how = `ldmatrix.sync.aligned.m8n8.x${count}${turned ? '.trans' : ''}.shared.b16`;
  w.line(`${how} {${to.join(', ')}}, ${at(0)};`);
  return to;
}

/** Elements of four bytes one by one. */
function singles(
  w: Writer,
  program: Program,
  { part, across, along }: KNodeOf<'FRAGMENT'>['arg'],
  lanes: number,
  address: (key: string, spread: () => string) => (behind: number) => string,
): readonly string[] {
  const spread = (): string => {
    const lane = laneOf(w, program);
    const row = w.op('r', 'shr.u32', lane, '2');
    const step = w.op('r', 'and.b32', lane, '3');
    return w.op('r', 'mad.lo.s32', step, `${4 * along}`, w.op('r', 'mul.lo.u32', row, `${4 * across}`));
  };
  const at = address(`single ${across} ${along}`, spread);
  return Array.from({ length: lanes }, (_, i) => {
    const [row, step] = part === 'a' ? [8 * (i & 1), 4 * (i >> 1)] : [0, 4 * i];
    return w.op('r', 'ld.shared.b32', at(4 * (row * across + step * along)));
  });
}

/** Copies 4, 8 or 16 bytes, or writes as many zeros if the gate is false. Copies of 16 bypass the first cache: no other code reads them soon. */
export function copy(w: Writer, to: string, from: string, bytes: number, gate: string | null): void {
  if (w.capability < 80) w.refuse(`copies to shared memory take sm_80: this is sm_${w.capability}`);
  const given = gate === null ? '' : `, ${w.op('r', 'selp.b32', `${bytes}`, '0', gate)}`;
  w.line(`cp.async.${bytes === 16 ? 'cg' : 'ca'}.shared.global ${to}, ${from}, ${bytes}${given};`);
}
