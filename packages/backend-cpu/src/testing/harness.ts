/**
 * Runs one emitted program on typed arrays, without engine, threads or allocator: for tests and measurements of the emitter.
 */
import type { Program } from '@polygrad/core/kernel';
import { exportName } from '../asm/module.ts';
import { emitModule } from '../emit/emit.ts';
import type { EmitTarget } from '../emit/target.ts';

type Data = Float32Array | Float64Array | Int32Array | Uint32Array | Uint8Array;

/** What a run without relaxed SIMD and threads assumes. */
export const plainTarget: EmitTarget = {
  addressBits: 32,
  shared: false,
  fusedMadd: false,
  laneSelect: false,
  sharedBytes: 65536,
  lowBytes: 65536,
  scalarOffset: 2048,
};

const argsAt = 65536 + 1024;
const scratchAt = 131072;

/**
 * Runs all groups of `program`, reading and writing `data` (one array per PARAM slot) in place. `split` runs the groups
 * in calls of that many.
 */
export function runProgram(
  program: Program,
  data: readonly Data[],
  scalars: readonly number[] = [],
  target: EmitTarget = plainTarget,
  split = 0,
): void {
  let end = scratchAt + target.sharedBytes;
  const at = data.map((d) => {
    const start = end;
    end += Math.ceil((d.byteLength + 64) / 64) * 64;
    return start;
  });
  const pages = Math.ceil(end / 65536) + 1;
  const shared = target.shared ? { maximum: pages, shared: true } : {};
  const memory = new WebAssembly.Memory({ initial: pages, ...shared });
  const bytes = emitModule([program], target, {
    minPages: 1,
    shared: target.shared,
    addressBits: 32,
    ...(target.shared ? { maxPages: pages } : {}),
  });
  if (!WebAssembly.validate(bytes)) throw explain(bytes);
  const instance = new WebAssembly.Instance(new WebAssembly.Module(bytes), { m: { m: memory } });
  const fn = instance.exports[exportName(0)] as (args: number, from: number, to: number, scratch: number) => void;
  const view = new DataView(memory.buffer);
  const all = new Uint8Array(memory.buffer);
  data.forEach((d, i) => {
    view.setUint32(argsAt + i * 8, at[i]!, true);
    all.set(new Uint8Array(d.buffer, d.byteOffset, d.byteLength), at[i]!);
  });
  scalars.forEach((s, i) => {
    const where = argsAt + target.scalarOffset + i * 8;
    const dtype = program.scalars[i]!;
    if (dtype === 'float32') view.setFloat32(where, s, true);
    else if (dtype === 'float64') view.setFloat64(where, s, true);
    else view.setInt32(where, s, true);
  });
  const groups = program.grid[0] * program.grid[1] * program.grid[2];
  for (let g = 0; g < groups; g += split || groups) fn(argsAt, g, Math.min(groups, g + (split || groups)), scratchAt);
  data.forEach((d, i) => {
    new Uint8Array(d.buffer, d.byteOffset, d.byteLength).set(all.subarray(at[i]!, at[i]! + d.byteLength));
  });
}

/** The engine's own message for an invalid module. */
function explain(bytes: Uint8Array<ArrayBuffer>): Error {
  try {
    new WebAssembly.Module(bytes);
  } catch (error) {
    return error as Error;
  }
  return new Error('invalid module');
}
