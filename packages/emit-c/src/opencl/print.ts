/** Programs as OpenCL C 1.2. */
import type { KNode, Program, SpecialKind } from '@polygrad/core/kernel';
import { identifier } from '@polygrad/core/kernel/emitters';
import type { Context, Dialect, Memory } from '../dialect.ts';
import type { DType, PrintedKernel, PrintedParam, PrintedScalar } from '../kernel.ts';
import { expression, name, operand, type Part, type Value, vectorOf } from '../parts.ts';
import { Printer } from '../printer.ts';
import { assemble } from '../source.ts';
import { fencedBranches } from './barriers.ts';
import { openClBitcast, openClCast } from './casts.ts';
import { choose, openClAtomic, openClLoad, openClStore } from './memory.ts';
import { bytesOf, checkDtypes, type OpenClOptions, openClConstant, storageType, typeName } from './types.ts';
import { openClOperation } from './values.ts';

/**
 * Value operations OpenCL C prints itself besides BASE_OPS, exactly as the contract wants them: a suggestion for `caps.nativeOps`.
 * FMA belongs to it where the device computes it in hardware; the functions of the library (EXP, SIN ...) are printed too where an engine says so.
 * fmod should be exact by the standard, and is not under PoCL, where one infinity makes its neighbours in the vector wrong.
 */
export const openClNativeOps: ReadonlySet<KNode['op']> = new Set([
  'ABS',
  'CEIL',
  'TRUNC',
  'ROUND',
  'ISNAN',
  'RECIP',
  'MULADD',
  'MULHI',
]);

class OpenCl implements Dialect {
  readonly name = 'opencl';
  readonly widths: readonly number[];
  readonly #options: OpenClOptions;

  constructor(options: OpenClOptions) {
    this.#options = options;
    const widest = options.lanes ?? 16;
    this.widths = [16, 8, 4, 2, 1].filter((w) => w <= widest);
  }

  operands(n: KNode): readonly KNode[] {
    return n.src;
  }
  constantLine(title: string, value: Part): string {
    return `const ${typeName(value.dtype, value.lanes)} ${title} = ${value.text};`;
  }
  variableLine(title: string, dtype: DType, lanes: number): string {
    return `${typeName(dtype, lanes)} ${title};`;
  }
  constant(_: Context, dtype: DType, value: number | bigint, lanes: number): Part {
    return openClConstant(dtype, value, lanes);
  }
  special(c: Context, kind: SpecialKind, axis: 0 | 1 | 2): Part {
    if (kind !== 'group' && kind !== 'local') return this.subgroup(c);
    const title = `${kind}_${'xyz'[axis]}`;
    const line = `const int ${title} = (int)get_${kind}_id(${axis});`;
    return name(
      c.prologue(title, () => line),
      'int32',
    );
  }
  subgroup(c: Context): never {
    return c.refuse('OpenCL C 1.2 has no subgroups: leave out caps.subgroups');
  }
  scalar(c: Context, slot: number, dtype: DType): Part {
    const title = `scalar_${slot}`;
    if (dtype !== 'bool' && dtype !== 'float16') return name(`s${slot}`, dtype);
    const text = dtype === 'bool' ? `s${slot} != 0` : `(half)s${slot}`;
    return name(
      c.prologue(title, () => `const ${typeName(dtype, 1)} ${title} = ${text};`),
      dtype,
    );
  }
  operation(c: Context, n: KNode, args: readonly Part[]): Part {
    return openClOperation(c, n, args, this.#options.fastFma === true);
  }
  cast(c: Context, _: KNode, x: Part, to: DType): Part {
    return openClCast(c, x, to);
  }
  bitcast(c: Context, x: Part, to: DType): Part {
    return openClBitcast(c, x, to);
  }
  vector(_: Context, dtype: DType, lanes: number, scalars: readonly Part[]): Part {
    const texts = scalars.map((s) => (dtype === 'bool' ? `-(int)${operand(s)}` : s.text));
    return vectorOf(`(${typeName(dtype, lanes)})(${texts.join(', ')})`, dtype, lanes, scalars);
  }
  lane(c: Context, given: Part, lane: number): Part {
    const x = c.runtime(given);
    const text = `${x.text}.s${lane.toString(16)}`;
    return x.dtype === 'bool' ? expression(`${text} != 0`, 'bool') : name(text, x.dtype);
  }
  load(c: Context, mem: Memory, index: Part, sizes: readonly number[], gate: Part | null, alt: Value | null): Value {
    return openClLoad(c, mem, index, sizes, gate, alt);
  }
  choose(condition: Part, yes: Part, no: Part): Part {
    return choose(condition, yes, no);
  }
  store(c: Context, mem: Memory, index: Part, value: Value): readonly string[] {
    const { wholeBytes = false, shared } = this.#options;
    const space = mem.node.op === 'PARAM' ? '__global' : shared === 'private' ? '__private' : '__local';
    return openClStore(c, mem, index, value, wholeBytes ? space : null);
  }
  atomic(c: Context, op: 'add' | 'max' | 'min' | 'or', mem: Memory, index: Part, value: Part): string {
    const node = { op: op.toUpperCase(), src: [] } as unknown as KNode;
    return openClAtomic(c, op, mem, index, value, this.#options.int64Atomics === true, (a, b) =>
      openClOperation(c, node, [a, b], false),
    );
  }
  loopLines(counter: string, limit: Part, unroll: boolean): readonly string[] {
    const line = `for (int ${counter} = 0; ${counter} < ${operand(limit)}; ++${counter}) {`;
    const how = this.#options.unroll ?? 'pragma';
    if (!unroll || how === 'none') return [line];
    return [how === 'pragma' ? '#pragma unroll' : '__attribute__((opencl_unroll_hint))', line];
  }
  ifLine(condition: Part): string {
    return `if (${condition.text}) {`;
  }
  barrierLines(): readonly string[] {
    return ['barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);'];
  }
}

/**
 * The program as an OpenCL C kernel with one work-item per thread.
 *
 * Arguments: the buffers in the order of the program's parameters (each followed by its offset with `offsets`), then the scalars.
 *
 * @throws PrintError for dtypes and operations the device cannot express
 * @example
 * const p = new ProgramBuilder();
 * const y = p.e.param(0, 'float32', 'write', 1);
 * p.store(y, 0, p.e.f32(1));
 * printOpenCl(p.build({ name: 'one' })).source.includes('__kernel'); // true
 */
export function printOpenCl(given: Program, options: OpenClOptions = {}): PrintedKernel {
  const program = options.fenceBranches === true ? fencedBranches(given) : given;
  checkDtypes(program, options);
  const titles = new Map(program.params.map((p) => [p.arg.slot, `p${p.arg.slot}`]));
  const printer = new Printer(program, new OpenCl(options), titles);
  printer.run();

  const head: string[] = ['#pragma OPENCL FP_CONTRACT OFF'];
  const has = (dtype: DType): boolean => program.body.some((n) => n.dtype === dtype) || program.scalars.includes(dtype);
  const enable = (title: string): number => head.push(`#pragma OPENCL EXTENSION ${title} : enable`);
  if (has('float64')) enable('cl_khr_fp64');
  if (has('float16')) enable('cl_khr_fp16');
  if (program.body.some((n) => n.op === 'ATOMIC' && bytesOf(n.src[0].dtype as DType) === 8)) {
    enable('cl_khr_int64_base_atomics');
    enable('cl_khr_int64_extended_atomics');
  }
  head.push(...printer.page.helpers);

  const declared: string[] = [];
  const first: string[] = [];
  const params: PrintedParam[] = [];
  for (const p of program.params) {
    const { slot, access } = p.arg;
    const dtype = p.dtype as DType;
    const title = titles.get(slot) as string;
    const binding = declared.length;
    const restrict = options.restrict === true ? 'restrict ' : '';
    declared.push(`__global ${access === 'read' ? 'const ' : ''}${storageType(dtype)}* ${restrict}${title}`);
    if (options.offsets === true) {
      declared.push(`const ulong o${slot}`);
      first.push(`${title} += o${slot};`);
    }
    const offsetArgument = options.offsets === true ? binding + 1 : -1;
    params.push({ slot, access, dtype, bytes: bytesOf(dtype), binding, offsetArgument });
  }
  const scalars: PrintedScalar[] = program.scalars.map((own, slot) => {
    const dtype = own === 'bool' ? 'uint8' : own === 'float16' ? 'float32' : own;
    declared.push(`const ${typeName(dtype, 1)} s${slot}`);
    return { slot, dtype, at: declared.length - 1 };
  });

  const entry = `kernel_${identifier(program.name)}`;
  const [x, y, z] = program.group;
  head.push(
    `__kernel __attribute__((reqd_work_group_size(${x}, ${y}, ${z})))`,
    `void ${entry}(${declared.join(', ')}) {`,
  );
  let sharedBytes = 0;
  for (const mem of printer.memories.shared) {
    const dtype = mem.node.dtype as DType;
    sharedBytes += mem.node.arg.length * bytesOf(dtype);
    const space = options.shared === 'private' ? '' : '__local ';
    first.push(`${space}${storageType(dtype)} ${mem.name}[${mem.node.arg.length}];`);
  }
  first.push(...printer.page.prologues);
  return {
    ...assemble(head, first, printer.page.body),
    entry,
    params,
    scalars,
    scalarBytes: 0,
    groupAt: -1,
    dispatch: program.grid,
    group: program.group,
    sharedBytes,
  };
}
