/**
 * Kernels of plans as bytes, without the bodies of their programs (programs.ts): what a dispatch binds, how much work it is, and the engine's code.
 *
 * A page that brings its plans reads them with this alone, and carries nothing of the kernel IR.
 */
import type { Lowered } from '@polygrad/compiler/codegen/lowering';
import type { KeptCode, Program } from '@polygrad/compiler/ir/ir';
import { paramOf } from '@polygrad/compiler/ir/node';
import { programOf } from '@polygrad/compiler/ir/program';
import { type DType, dtypeInfo } from '@polygrad/compiler/shape/dtype';
import { ByteReader, type ByteWriter, check } from './bytes.ts';

const dtypes = Object.keys(dtypeInfo) as readonly DType[];
const accesses = ['read', 'write', 'readwrite'] as const;

/** True for dtypes whose numbers are bigints. */
export function isLong(dtype: string): boolean {
  return dtype === 'int64' || dtype === 'uint64';
}

/** Writes the code of a program, or that there is none. */
export function writeCode(out: ByteWriter, code: KeptCode | null): void {
  out.byte(Number(code !== null));
  if (code === null) return;
  out.list(Object.entries(code), ([name, value]) => {
    out.text(name);
    out.byte(typeof value === 'string' ? 0 : value instanceof Uint8Array ? 1 : 2);
    if (typeof value === 'string') out.text(value);
    else if (value instanceof Uint8Array) out.bytes(value);
    else out.ints(value);
  });
}

/** Reads what `writeCode` has written. */
export function readCode(from: ByteReader): KeptCode | null {
  if (from.byte() === 0) return null;
  const fields = from.list((): [string, KeptCode[string]] => {
    const name = from.text();
    const kind = from.byte();
    return [name, kind === 0 ? from.text() : kind === 1 ? from.bytes() : from.ints()];
  });
  return Object.fromEntries(fields);
}

/** Writes a program without its body. */
export function writeInterface(out: ByteWriter, { name, params, scalars, grid, group, cost }: Program): void {
  out.text(name);
  for (const size of [...grid, ...group]) out.uint(size);
  out.list(scalars, (dtype) => out.uint(dtypes.indexOf(dtype)));
  out.float(cost.flops);
  out.float(cost.bytes);
  out.list(params, ({ dtype, arg: { access, length, fewer } }) => {
    out.uint(dtypes.indexOf(dtype as DType));
    out.uint(accesses.indexOf(access));
    out.uint(length);
    out.uint(fewer ?? 0);
  });
}

/** Reads what `writeInterface` has written, and code: a kernel whose programs have no body. */
export function readBodiless(bytes: Uint8Array): Lowered {
  const from = new ByteReader(bytes);
  const dispatches = from.list(() => {
    const name = from.text();
    const [x, y, z, gx, gy, gz] = [0, 0, 0, 0, 0, 0].map(() => from.uint()) as [
      number,
      number,
      number,
      number,
      number,
      number,
    ];
    const scalars = from.list(() => from.among(dtypes));
    const cost = { flops: from.float(), bytes: from.float() };
    let slot = 0;
    const params = from.list(() => {
      const dtype = from.among(dtypes);
      const arg = { slot: slot++, access: from.among(accesses), length: from.uint() };
      return paramOf(dtype, from.uint() === 1 ? { ...arg, fewer: 1 } : arg);
    });
    const kept = readCode(from);
    check(kept !== null, 'the code of a kernel');
    const program = programOf({ name, params, scalars, grid: [x, y, z], group: [gx, gy, gz], body: [], cost, kept });
    return { program, bindings: [] };
  });
  check(from.done, 'the end of a kernel');
  return { dispatches, temps: [] };
}
