/**
 * What `defineKernel` takes, as types and as checks. What a body does is checked where it is written down (lower.ts).
 */
import { type DType, dtypeInfo } from '@polygrad/compiler/shape/dtype';
import { ArgumentError } from '@polygrad/compiler/shape/errors';
import { checkFields, numberFrom, oneOf } from '@polygrad/compiler/shape/options';
import { isPlain, say, shown } from '@polygrad/compiler/shape/shown';
import type { Tensor } from '../tensor/types.ts';
import type { KernelContext, KernelMath } from './context.ts';
import type { KernelInput, KernelOutput } from './memory.ts';
import type { KernelOperand, KernelValue } from './value.ts';

/** Which dtypes an input takes: one, or one of several. */
export type KernelDTypes = DType | readonly DType[];

/** What an input takes; a rank, where it has one. */
export type KernelInputRule = KernelDTypes | { readonly dtype: KernelDTypes; readonly rank?: number };

/** Shape and dtype of an input in a call, or of an output. */
export interface KernelShape {
  readonly shape: readonly number[];
  readonly dtype: DType;
}

export type InputRules = Readonly<Record<string, KernelInputRule>>;
export type Given<I> = { readonly [N in keyof I]: KernelShape };

/** What an output is: as an input, or what a function of the shapes and dtypes of the inputs says. */
export type KernelOutputRule<I> = (keyof I & string) | ((inputs: Given<I>) => KernelShape);

/** What the gradient of a kernel is given. */
export interface KernelGradientContext<I, O extends string> {
  readonly inputs: { readonly [N in keyof I]: Tensor };
  readonly outputs: { readonly [N in O]: Tensor };
  /** The gradient of each output, in its shape; zeros where nothing depends on it. */
  readonly grads: { readonly [N in O]: Tensor };
}

/** The gradient of each floating-point input, in its shape; null for zero. */
export type KernelGradient<I, O extends string> = (context: KernelGradientContext<I, O>) => {
  readonly [N in keyof I]?: Tensor | null;
};

interface CommonOptions<I, O extends string> {
  /** A letter, then letters, digits and underscores: it is in messages, profiles and sources of kernels. */
  readonly name: string;
  readonly inputs: I;
  /**
   * The gradient in terms of tensors. Made of differentiable operations, it has derivatives of its own, of every order. Without it the kernel
   * cannot be differentiated.
   */
  readonly gradient?: KernelGradient<I, O>;
}

/** A kernel that makes an element of those of the inputs at the same place. Inputs broadcast. It shares loops with the operations around it. */
export interface ElementwiseKernelOptions<I, O extends string> extends CommonOptions<I, O> {
  readonly form: 'elementwise';
  /** The dtype of each output, or the input whose dtype it has. */
  readonly outputs: { readonly [N in O]: (keyof I & string) | DType };
  /** From the elements of the inputs to those of the outputs; of one output it need be no record. */
  readonly body: (
    k: KernelMath,
    inputs: { readonly [N in keyof I]: KernelValue },
  ) => KernelOperand | { readonly [N in NoInfer<O>]: KernelOperand };
}

interface ProgramOptions<I, O extends string> extends CommonOptions<I, O> {
  /** Shape and dtype of each output. */
  readonly outputs: { readonly [N in O]: KernelOutputRule<I> };
  /** How many threads, or groups, there are along each axis. Default: the shape of the first output; for groups without its last axis. */
  readonly grid?: (inputs: Given<I>) => readonly number[];
  /** Writes the program; see KernelContext. */
  readonly body: (
    k: KernelContext,
    inputs: { readonly [N in keyof I]: KernelInput },
    outputs: { readonly [N in O]: KernelOutput },
  ) => void;
}

/** A kernel of threads that work alone: each is for one element of the grid. */
export interface ThreadKernelOptions<I, O extends string> extends ProgramOptions<I, O> {
  readonly form: 'threads';
}

/** A kernel of groups of threads that share memory and meet at barriers: each group is for one element of the grid. */
export interface GroupKernelOptions<I, O extends string> extends ProgramOptions<I, O> {
  readonly form: 'groups';
  /** Threads of a group: a power of two from 2 to 256. On engines without groups it is one thread that does it all. Default 64. */
  readonly threads?: number;
}

/** What defineKernel takes: `form` says which of three kinds of kernel it is. */
export type KernelOptions<I, O extends string> =
  | ElementwiseKernelOptions<I, O>
  | ThreadKernelOptions<I, O>
  | GroupKernelOptions<I, O>;

/** A kernel as a function: from a record of tensors to a record of tensors. Inputs of rank 0 may be numbers. */
export type Kernel<I, O extends string> = (inputs: { readonly [N in keyof I]: Tensor | number }) => {
  readonly [N in O]: Tensor;
};

export type AnyOptions = (
  | ElementwiseKernelOptions<InputRules, string>
  | ThreadKernelOptions<InputRules, string>
  | GroupKernelOptions<InputRules, string>
) & { readonly threads?: number };

const me = 'defineKernel';

const commonRules = {
  name: [
    (value: unknown) => typeof value === 'string' && /^[A-Za-z]\w{0,60}$/.test(value),
    'a letter, then letters, digits and underscores',
  ],
  form: oneOf('elementwise', 'threads', 'groups'),
  inputs: [isPlain, 'a record of dtypes'],
  outputs: [isPlain, 'a record of rules'],
  body: [(value: unknown) => typeof value === 'function', 'a function'],
  gradient: [(value: unknown) => typeof value === 'function', 'a function'],
} as const;
const gridRule = { grid: [(value: unknown) => typeof value === 'function', 'a function of the inputs'] } as const;
const rules = {
  elementwise: commonRules,
  threads: { ...commonRules, ...gridRule },
  groups: {
    ...commonRules,
    ...gridRule,
    threads: [
      (value: unknown) => typeof value === 'number' && [2, 4, 8, 16, 32, 64, 128, 256].includes(value),
      'a power of two from 2 to 256',
    ],
  },
} as const;

/** A rule of an input as it is used. */
export interface Rule {
  readonly name: string;
  readonly dtypes: readonly DType[];
  readonly rank: number | null;
}

function inputRule(name: string, given: unknown): Rule {
  const whole = isPlain(given) ? given : { dtype: given };
  if (isPlain(given)) checkFields<unknown>(me, given, { dtype: [() => true, ''], rank: numberFrom(0, 8, true) });
  const list: readonly unknown[] = Array.isArray(whole.dtype) ? whole.dtype : [whole.dtype];
  if (list.length === 0 || !list.every((d) => typeof d === 'string' && Object.hasOwn(dtypeInfo, d)))
    throw new ArgumentError(
      me,
      say`input ${name} takes ${shown(given)}: give a dtype, a list of dtypes, or { dtype, rank }`,
    );
  return { name, dtypes: list as DType[], rank: (whole.rank as number | undefined) ?? null };
}

const goodName = (name: string): boolean => /^[A-Za-z_]\w*$/.test(name) && name !== '__proto__';

/** The rules of the inputs, once the options are known to fit. */
export function checkOptions(options: AnyOptions): Rule[] {
  if (!isPlain(options))
    throw new ArgumentError(me, say`options are ${shown(options)}: give { name, form, inputs, outputs, body }`);
  checkFields<unknown>(me, { form: options.form }, { form: commonRules.form });
  checkFields<unknown>(me, options, rules[options.form] ?? commonRules);
  for (const name of ['name', 'form', 'inputs', 'outputs', 'body'] as const)
    if (options[name] === undefined) throw new ArgumentError(me, say`${name} is left out: every kernel needs it`);
  const outputs = Object.entries(options.outputs);
  const names = [...Object.keys(options.inputs), ...outputs.map(([name]) => name)];
  const bad = names.find((name) => !goodName(name));
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (bad !== undefined || twice !== undefined)
    throw new ArgumentError(
      me,
      bad === undefined
        ? say`'${twice}' names an input and an output: give one of them another name, such as d${twice} for a gradient`
        : say`'${bad}' names no input or output: use letters, digits and underscores`,
    );
  if (outputs.length === 0) throw new ArgumentError(me, 'outputs are none: a kernel needs at least one');
  if (Object.keys(options.inputs).length === 0)
    throw new ArgumentError(me, 'inputs are none: a kernel needs at least one');
  for (const [name, rule] of outputs) {
    const fits =
      (typeof rule === 'string' &&
        (Object.hasOwn(options.inputs, rule) || (options.form === 'elementwise' && Object.hasOwn(dtypeInfo, rule)))) ||
      (typeof rule === 'function' && options.form !== 'elementwise');
    if (!fits)
      throw new ArgumentError(
        me,
        say`output ${name} is ${shown(rule)}: give the name of an input${options.form === 'elementwise' ? ' or a dtype' : ' or a function of the inputs'}`,
      );
  }
  return Object.entries(options.inputs).map(([name, rule]) => inputRule(name, rule));
}
