/**
 * Plans as bytes; read-plan.ts reads them. Kernels are in them where they are kept in entries of their own, with the programs and the code.
 */
import type { CompiledKernel } from '../engine/engine.ts';
import type { Lowered, LoweredDispatch } from '@polygrad/compiler/codegen/lowering';
import type { KeptCode } from '@polygrad/compiler/ir/ir';
import { programOf } from '@polygrad/compiler/ir/program';
import type { KernelEntry } from '../planner/lowering/kernel-cache.ts';
import type { Plan } from '../planner/plan.ts';
import { bytesAsText, ByteReader, ByteWriter, check } from './bytes.ts';
import { readCode, writeCode } from './kernels.ts';
import { readProgram, writeProgram } from './programs.ts';
import type { KernelReader } from './read-plan.ts';

/** Waits if encoding has taken some milliseconds, so that it does not block other work. */
export type Pause = () => Promise<void> | null;

/** Writes where a kernel is, as its reader reads it. */
export type KernelWriter = (out: ByteWriter, kernel: KernelEntry) => void;

/** Kernels within a plan, with their programs, and code where the engine has some. */
export function wholeKernels(codeOf: (kernel: CompiledKernel) => KeptCode | null): KernelWriter {
  return (out, { compiled }) => {
    const kernel = new ByteWriter();
    kernel.list(compiled, (each) => {
      writeProgram(kernel, each.program);
      writeCode(kernel, codeOf(each));
    });
    out.bytes(kernel.take());
  };
}

/** Reads what `wholeKernels` has written. */
export const wholeKernel: KernelReader = (from) => {
  const bytes = from.bytes();
  return { key: `kept ${bytesAsText(bytes)}`, read: () => readKernel(bytes) };
};

function readKernel(bytes: Uint8Array): Lowered {
  const from = new ByteReader(bytes);
  // Their bindings are written with the plans.
  const dispatches = from.list((): LoweredDispatch => {
    const program = readProgram(from);
    return { program: programOf({ ...program, kept: readCode(from) }), bindings: [] };
  });
  check(from.done, 'the end of a kernel');
  return { dispatches, temps: [] };
}

/** A plan as bytes, or null if it cannot be kept. */
export async function writePlan(plan: Plan, writeKernel: KernelWriter, pause: Pause): Promise<Uint8Array | null> {
  const out = new ByteWriter();
  out.ints(plan.sizes);
  const entries = [...new Set(plan.kernels)];
  out.uint(entries.length);
  for (const entry of entries) {
    if (entry.compiled.length === 0 || entry.compiled.some(({ failure }) => failure != null)) return null;
    writeKernel(out, entry);
    await pause();
  }
  out.list(plan.kernels, (entry) => out.uint(entries.indexOf(entry)));
  for (const { bindings, scalars } of plan.dispatches) {
    out.list(bindings, ({ kind, at, unit, offset, bytes, temp }) => {
      out.uint(2 * at + Number(kind === 'leaf'));
      out.uint(unit);
      out.int(offset);
      out.uint(bytes);
      out.uint(temp + 1);
    });
    out.ints(scalars);
  }
  out.list(plan.buffers, ({ bytes, donor, sized }) => {
    out.uint(bytes);
    out.int(donor);
    out.uint(sized?.unit ?? 0);
    out.ints(sized?.shape ?? []);
  });
  out.list(plan.blocks, ({ bytes }) => out.uint(bytes));
  out.list(plan.temporaries, ({ bytes, first, last, block, offset, sized }) => {
    out.ints([bytes, first, last, block, offset, sized?.unit ?? 0]);
    if (sized === null) return;
    out.ints(sized.shape);
    out.ints(sized.strides ?? []);
  });
  out.list(plan.outputs, ({ leaf, at, view }) => {
    out.uint(2 * at + Number(leaf));
    out.ints(view.strides);
    out.int(view.offset);
  });
  return out.take();
}
