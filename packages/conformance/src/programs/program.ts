/**
 * A program of public operations: its steps, each with the float64 formula of what it computes, and its text in TypeScript.
 *
 * How it runs on the library is execute.ts, what it must give evaluate.ts.
 */
import type { DType, Tensor } from '@polygrad/core';
import type { NDArray } from '../oracle/ndarray.ts';

/**
 * How the library's result may differ from the formula. `none`: not at all; `out`: by its own rounding; `all`: as if its operands
 * had been rounded too (sums, compositions); `steps`: as if every step of a long line had rounded (running sums).
 */
export type Noise = 'none' | 'out' | 'all' | 'steps';

/** A value of a program: its number, and what it is by the formulas. */
export interface Value extends NDArray {
  readonly id: number;
  readonly dtype: DType;
}

/** An argument that is a value of the program. */
export class Ref {
  readonly id: number;

  constructor(id: number) {
    this.id = id;
  }

  toString(): string {
    return `t${this.id}`;
  }
}

export type Arg = Ref | number | boolean | string | null | readonly Arg[] | { readonly [key: string]: Arg };

export interface InputStep {
  readonly kind: 'input';
  readonly id: number;
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly data: readonly number[];
}

/** A call that is more than that of one public function: what it does with the values that its arguments name, and where that is written down. */
export interface OwnCall {
  readonly text: string;
  readonly f: (tensors: readonly Tensor[]) => Tensor;
}

export interface CallStep {
  readonly kind: 'call';
  readonly id: number;
  readonly op: string;
  readonly args: readonly Arg[];
  /** What is called in place of the public function. */
  readonly run?: OwnCall;
  /** Which of several results. */
  readonly part?: number;
  readonly dtype: DType;
  /** The result from the values that the arguments name, in their order. */
  readonly formula: (...inputs: NDArray[]) => NDArray;
  readonly noise: Noise;
  /** How large the terms are that it adds, where they cancel: each has its own rounding. Left out: as large as the result. */
  readonly terms?: (...inputs: NDArray[]) => NDArray;
  /** False where the order of sums is open, so that bits may depend on what is fused. */
  readonly ordered: boolean;
}

/** The handle of `target` names `value` from now on; the program calls it `id`. */
export interface AssignStep {
  readonly kind: 'assign';
  readonly id: number;
  readonly target: number;
  readonly value: number;
}

/** Something between operations: all is flushed, the engine is waited for, a value is read, or its reading begun and not waited for. */
export interface PauseStep {
  readonly kind: 'flush' | 'idle' | 'read' | 'peek';
  readonly of?: number;
}

export type Step = InputStep | CallStep | AssignStep | PauseStep;

export interface Program {
  readonly steps: readonly Step[];
  /** Values that are looked at in the end. */
  readonly outputs: readonly number[];
  /** All in one scope, or handles disposed after their last use one by one. */
  readonly scoped: boolean;
  /** Nodes that are recorded before the library flushes by itself. */
  readonly limit?: number;
}

/** Values that are looked at: those whose reading begins on the way, then the outputs. */
export const observed = ({ steps, outputs }: Program): number[] => [
  ...steps.flatMap((s) => (s.kind === 'peek' ? [s.of as number] : [])),
  ...outputs,
];

/** Numbers of the values that an argument names, in their order. */
export function refsOf(arg: Arg): number[] {
  if (arg instanceof Ref) return [arg.id];
  if (Array.isArray(arg)) return arg.flatMap((a: Arg) => refsOf(a));
  if (typeof arg === 'object' && arg !== null) return Object.values(arg).flatMap((a: Arg) => refsOf(a));
  return [];
}

/** Values that a step uses. */
export function uses(step: Step): number[] {
  if (step.kind === 'call') return step.args.flatMap(refsOf);
  if (step.kind === 'assign') return [step.target, step.value];
  return 'of' in step && step.of !== undefined ? [step.of] : [];
}

/** Dead values after each step, by the step's position. */
export function endings({ steps, outputs }: Program): ReadonlyMap<number, readonly number[]> {
  const last = new Map<number, number>();
  const gone = new Set(steps.flatMap((s) => (s.kind === 'assign' ? [s.target] : [])));
  steps.forEach((step, i) => {
    if ('id' in step) last.set(step.id, i);
    for (const id of uses(step)) last.set(id, i);
  });
  const ends = new Map<number, number[]>();
  for (const [id, i] of last) if (!outputs.includes(id) && !gone.has(id)) ends.set(i, [...(ends.get(i) ?? []), id]);
  return ends;
}

const number = (x: number): string => (Object.is(x, -0) ? '-0' : String(x));

function printArg(arg: Arg): string {
  if (arg instanceof Ref) return `t${arg.id}`;
  if (typeof arg === 'number') return number(arg);
  if (typeof arg === 'string') return `'${arg}'`;
  if (Array.isArray(arg)) return `[${arg.map((a: Arg) => printArg(a)).join(', ')}]`;
  if (typeof arg === 'object' && arg !== null)
    return `{ ${Object.entries(arg)
      .map(([k, v]: [string, Arg]) => `${k}: ${printArg(v)}`)
      .join(', ')} }`;
  return String(arg);
}

function printStep(step: Step): string {
  switch (step.kind) {
    case 'input': {
      const big = step.dtype.endsWith('int64');
      const data = step.data.map((x) => (step.dtype === 'bool' ? String(x !== 0) : `${number(x)}${big ? 'n' : ''}`));
      return `const t${step.id} = pg.tensor([${data.join(', ')}], { dtype: '${step.dtype}', shape: [${step.shape.join(', ')}] });`;
    }
    case 'call':
      if (step.run !== undefined)
        return `const t${step.id} = suite(${JSON.stringify(step.run.text)})([${step.args.map(printArg).join(', ')}]);`;
      return `const t${step.id} = pg.${step.op}(${step.args.map(printArg).join(', ')})${step.part === undefined ? '' : `[${step.part}]`};`;
    case 'assign':
      return `const t${step.id} = t${step.target}.assign(t${step.value});`;
    case 'flush':
      return 'pg.flush();';
    case 'idle':
      return 'await pg.idle();';
    case 'read':
      return `await t${step.of}.data();`;
    case 'peek':
      return `t${step.of}.data().then(console.log);`;
    default:
      return step satisfies never;
  }
}

/** The program as TypeScript. */
export function printProgram(program: Program): string {
  const ends = program.scoped ? new Map<number, readonly number[]>() : endings(program);
  const lines = program.steps.flatMap((step, i) => [
    printStep(step),
    ...(ends.get(i) ?? []).map((id) => `t${id}.dispose();`),
  ]);
  const names = program.outputs.map((id) => `t${id}`).join(', ');
  const body = program.scoped
    ? [`const [${names}] = pg.scope(() => {`, ...lines.map((l) => `  ${l}`), `  return [${names}];`, '});']
    : lines;
  const limit = program.limit === undefined ? [] : [`pg.setPendingLimits({ nodes: ${program.limit} });`];
  return [
    "import * as pg from '@polygrad/core';",
    ...limit,
    ...body,
    `for (const t of [${names}]) await t.print();`,
    '',
  ].join('\n');
}
