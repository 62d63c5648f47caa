/** Runs a program on the library and reads its outputs. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { elementsOf } from '../host.ts';
import { type Arg, endings, type Program, Ref, type Step } from '../programs/program.ts';

/** An output as it was read. */
export interface Outcome {
  readonly shape: readonly number[];
  readonly dtype: DType;
  readonly values: readonly number[];
}

/** The default limit of pending nodes (core/src/graph/recorder.ts). */
const usualLimit = 4096;

export type Handles = Map<number, Tensor>;

/** The input of a step as a tensor. */
export function inputTensor(data: readonly number[], dtype: DType, shape: readonly number[]): Tensor {
  if (dtype === 'bool')
    return pg.tensor(
      data.map((x) => x !== 0),
      { dtype, shape },
    );
  return pg.tensor(dtype.endsWith('int64') ? data.map(BigInt) : (data as number[]), { dtype, shape });
}

/** An argument with tensors in the place of the values that it names. */
export function bound(arg: Arg, handles: Handles): unknown {
  if (arg instanceof Ref) return handles.get(arg.id);
  if (Array.isArray(arg)) return arg.map((a: Arg) => bound(a, handles));
  if (typeof arg === 'object' && arg !== null)
    return Object.fromEntries(Object.entries(arg).map(([k, v]: [string, Arg]) => [k, bound(v, handles)]));
  return arg;
}

/** The public function of a name, called with arguments. */
export function call(op: string, args: readonly Arg[], handles: Handles): unknown {
  const f = (pg as unknown as Record<string, (...xs: unknown[]) => unknown>)[op];
  if (f === undefined) throw new Error(`there is no operation ${op}`);
  return f(...args.map((a) => bound(a, handles)));
}

/** Records one step. */
export function record(step: Step, handles: Handles): void {
  if (step.kind === 'input') handles.set(step.id, inputTensor(step.data, step.dtype, step.shape));
  else if (step.kind === 'assign') {
    const target = handles.get(step.target) as Tensor;
    handles.set(step.id, target.assign(handles.get(step.value) as Tensor));
    handles.delete(step.target);
  } else if (step.kind === 'call') {
    const result =
      step.run === undefined
        ? call(step.op, step.args, handles)
        : pg.scope(() => step.run!.f(step.args.map((arg) => bound(arg, handles) as Tensor)));
    if (step.part === undefined) handles.set(step.id, result as Tensor);
    else {
      const parts = result as Tensor[];
      parts.forEach((t, i) => {
        if (i === step.part) handles.set(step.id, t);
        else t.dispose();
      });
    }
  }
}

/** A tensor as it is read; it is not disposed. */
export async function readTensor(t: Tensor): Promise<Outcome> {
  const [shape, dtype] = [[...t.shape], t.dtype];
  return { shape, dtype, values: Array.from((await elementsOf(t)) as ArrayLike<number>, Number) };
}

/** What a program gives, in the order of `observed`. Whatever happens, no handle is left. */
export async function execute(program: Program): Promise<Outcome[]> {
  const handles: Handles = new Map();
  const begun: Promise<Outcome>[] = [];
  const peek = (id: number): void => {
    const reading = readTensor(handles.get(id) as Tensor);
    reading.catch(() => undefined);
    begun.push(reading);
  };
  if (program.limit !== undefined) pg.setPendingLimits({ nodes: program.limit });
  try {
    if (program.scoped) {
      pg.scope(() => {
        for (const step of program.steps) {
          if (step.kind === 'peek') peek(step.of as number);
          else record(step, handles);
        }
        return program.outputs.map((id) => handles.get(id));
      });
    } else {
      const ends = endings(program);
      for (const [i, step] of program.steps.entries()) {
        if (step.kind === 'flush') pg.flush();
        else if (step.kind === 'idle') await pg.idle();
        else if (step.kind === 'read') await handles.get(step.of as number)?.data();
        else if (step.kind === 'peek') peek(step.of as number);
        else record(step, handles);
        for (const id of ends.get(i) ?? []) {
          handles.get(id)?.dispose();
          handles.delete(id);
        }
      }
    }
    const outcomes = await Promise.all(begun);
    for (const id of program.outputs) outcomes.push(await readTensor(handles.get(id) as Tensor));
    return outcomes;
  } finally {
    for (const t of handles.values()) t.dispose();
    await Promise.allSettled(begun);
    if (program.limit !== undefined) pg.setPendingLimits({ nodes: usualLimit });
  }
}
