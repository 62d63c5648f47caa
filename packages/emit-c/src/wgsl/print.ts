/** Programs as WGSL. */
import { highOf, type KNode, type KNodeOf, type Program, type SpecialKind } from '@polygrad/core/kernel';
import { identifier } from '@polygrad/core/kernel/emitters';
import type { Context, Dialect, Memory } from '../dialect.ts';
import { type DType, PrintError, type PrintedKernel, type PrintedParam } from '../kernel.ts';
import { call, name, operand, type Part, type Value, vectorOf } from '../parts.ts';
import { memoryNames } from '../names.ts';
import { Printer } from '../printer.ts';
import { assemble } from '../source.ts';
import { wgslBitcast, wgslCast } from './casts.ts';
import { foldGrid, foldLines, pieceLine } from './grid.ts';
import { choose, elementType, wgslAtomic, wgslLoad, wgslStore } from './memory.ts';
import { packMemories } from './packed.ts';
import { subgroupBuiltins, subgroupLines, wgslSubgroup, wgslSubgroupSpecial } from './subgroups.ts';
import { wgslScalars } from './facts.ts';
import { shareElements } from './windows.ts';
import { typeName, type WgslOptions, checkDtypes, wgslConstant } from './types.ts';
import { wgslOperands, wgslOperation } from './values.ts';

class Wgsl implements Dialect {
  readonly name = 'wgsl';
  readonly widths: readonly number[] = [4, 3, 2, 1];
  readonly #muladd: 'fma' | 'plain';
  readonly #storage: boolean;
  readonly #order: readonly DType[];
  readonly #packed: ReadonlySet<string>;

  constructor(program: Program, options: WgslOptions, packed: ReadonlySet<string>) {
    this.#packed = packed;
    this.#muladd = options.muladd ?? 'fma';
    this.#storage = program.params.some((p) => p.arg.access === 'readwrite');
    this.#order = program.scalars;
  }

  operands(n: KNode): readonly KNode[] {
    return wgslOperands(n);
  }
  constantLine(title: string, value: Part): string {
    return `let ${title} = ${value.text};`;
  }
  variableLine(title: string, dtype: DType, lanes: number): string {
    return `var ${title}: ${typeName(dtype, lanes)};`;
  }
  constant(c: Context, dtype: DType, value: number | bigint, lanes: number): Part {
    return wgslConstant(c, dtype, value, lanes);
  }
  special(c: Context, kind: SpecialKind, axis: 0 | 1 | 2): Part {
    if (kind !== 'group' && kind !== 'local') return wgslSubgroupSpecial(c, kind);
    const title = `${kind}_${'xyz'[axis]}`;
    const from = kind === 'group' ? `group[${axis}]` : `i32(local[${axis}])`;
    return name(
      c.prologue(title, () => `let ${title} = ${from};`),
      'int32',
    );
  }
  subgroup(_: Context, op: KNodeOf<'SUBGROUP'>['arg']['op'], x: Part): Part {
    return wgslSubgroup(op, x);
  }
  scalar(c: Context, slot: number, dtype: DType): Part {
    const title = `scalar_${slot}`;
    const from = `scalars.s${slot}`;
    const text = dtype === 'bool' ? `${from} != 0u` : dtype === 'float16' ? `f16(${from})` : from;
    return name(
      c.prologue(title, () => `let ${title} = ${text};`),
      this.#order[slot]!,
    );
  }
  operation(c: Context, n: KNode, args: readonly Part[]): Part {
    return wgslOperation(c, n, args, this.#muladd);
  }
  cast(c: Context, n: KNode, x: Part, to: DType): Part {
    return wgslCast(c, x, to, highOf(n.src[0]!));
  }
  bitcast(c: Context, x: Part, to: DType): Part {
    return wgslBitcast(c, x, to);
  }
  vector(_: Context, dtype: DType, lanes: number, scalars: readonly Part[]): Part {
    return vectorOf(`${typeName(dtype, lanes)}(${scalars.map((s) => s.text).join(', ')})`, dtype, lanes, scalars);
  }
  lane(c: Context, x: Part, lane: number): Part {
    const { text, stable, dtype } = x.constant ? c.runtime(x) : x;
    return { ...call(`${operand({ ...x, text })}.${'xyzw'[lane]}`, dtype), stable };
  }
  load(c: Context, mem: Memory, index: Part, sizes: readonly number[], gate: Part | null, alt: Value | null): Value {
    return wgslLoad(c, mem, index, sizes, gate, alt, this.#packed.has(mem.name));
  }
  choose(condition: Part, yes: Part, no: Part): Part {
    return choose(condition, yes, no);
  }
  store(c: Context, mem: Memory, index: Part, value: Value): readonly string[] {
    return wgslStore(c, mem, index, value, this.#packed.has(mem.name));
  }
  atomic(c: Context, op: 'add' | 'max' | 'min' | 'or', mem: Memory, index: Part, value: Part): string {
    const node = { op: op.toUpperCase(), src: [] } as unknown as KNode;
    return wgslAtomic(c, op, mem, index, value, (a, b) => wgslOperation(c, node, [a, b], this.#muladd));
  }
  loopLines(counter: string, limit: Part): readonly string[] {
    return [`for (var ${counter} = 0i; ${counter} < ${operand(limit)}; ${counter}++) {`];
  }
  ifLine(condition: Part): string {
    return `if (${condition.text}) {`;
  }
  barrierLines(): readonly string[] {
    return this.#storage ? ['storageBarrier();', 'workgroupBarrier();'] : ['workgroupBarrier();'];
  }
}

/**
 * The program as a WGSL compute shader.
 *
 * Buffers are `@group(0) @binding(i)`, in the order of the program's parameters; scalars, if there are any, one uniform block of words
 * at `@group(scalarGroup) @binding(0)`, which the driver may bind with a dynamic offset.
 *
 * @throws PrintError for dtypes and operations WGSL cannot express
 * @example
 * const p = new ProgramBuilder();
 * const y = p.e.param(0, 'float32', 'write', 1);
 * p.store(y, 0, p.e.f32(1));
 * printWgsl(p.build({ name: 'one' })).source.includes('@compute'); // true
 */
export function printWgsl(given: Program, options: WgslOptions = {}): PrintedKernel {
  checkDtypes(given, options.f16 === true);
  const same = options.same ?? new Map<number, number>();
  const titles = new Map(given.params.map((p) => [p.arg.slot, `p${same.get(p.arg.slot) ?? p.arg.slot}`]));
  const pieces = options.pieces === true;
  const most = pieces ? Number.POSITIVE_INFINITY : (options.maxGroups ?? 65535);
  const folded = foldGrid(given.grid, most);
  if (folded === null)
    throw new PrintError('wgsl', `a grid of ${given.grid.join(' x ')} groups does not fit one dispatch`);
  const titleOf = memoryNames(given, titles);
  const { program: quartered, names: packed } = packMemories(given, titleOf);
  const program = shareElements(quartered, titleOf, packed);
  const printer = new Printer(program, new Wgsl(program, options, packed), titles);
  printer.run();

  const head: string[] = [];
  if (options.f16 === true && usesHalf(program)) head.push('enable f16;');
  head.push(...subgroupLines(program));
  const params: PrintedParam[] = [];
  const atomic = new Set(
    program.body.flatMap((n) => (n.op === 'ATOMIC' && n.src[0]?.op === 'PARAM' ? [titles.get(n.src[0].arg.slot)] : [])),
  );
  for (const p of program.params) {
    const { slot, access } = p.arg;
    const dtype = p.dtype as DType;
    const alias = same.has(slot);
    const binding = alias ? -1 : params.filter((x) => x.binding >= 0).length;
    const bytes = dtype === 'float16' ? 2 : 4;
    params.push({ slot, access, dtype, bytes, binding, offsetArgument: -1 });
    if (alias) continue;
    const title = titles.get(slot) as string;
    const element = elementType({ node: p, name: title, atomic: atomic.has(title) }, packed.has(title));
    const mode = access === 'read' ? 'read' : 'read_write';
    const count = packed.has(title) ? p.arg.length / 4 : p.arg.length;
    const sized = options.sized === true && p.arg.fewer === undefined && count >= 1 && Number.isInteger(count);
    const type = sized ? `array<${element}, ${count}>` : `array<${element}>`;
    head.push(`@group(0) @binding(${binding}) var<storage, ${mode}> ${title}: ${type};`);
  }
  const scalars = wgslScalars(program.scalars);
  const fields = scalars.map((s) => `s${s.slot}: ${typeName(s.dtype, 1)}`);
  if (pieces) fields.push('first_x: i32', 'first_y: i32', 'first_z: i32');
  // Blocks are passed as zeros, and not written here.
  if (printer.page.prologues.some((line) => line.includes('scalars.zero'))) fields.push('zero: u32');
  if (fields.length > 0) {
    head.push(`struct Scalars { ${fields.join(', ')} }`);
    head.push(`@group(${options.scalarGroup ?? 1}) @binding(0) var<uniform> scalars: Scalars;`);
  }
  let sharedBytes = 0;
  for (const mem of printer.memories.shared) {
    const dtype = mem.node.dtype as DType;
    sharedBytes += mem.node.arg.length * (dtype === 'float16' ? 2 : 4);
    const whole = packed.has(mem.name);
    const count = whole ? Math.ceil(mem.node.arg.length / 4) : mem.node.arg.length;
    head.push(`var<workgroup> ${mem.name}: array<${elementType(mem, whole)}, ${count}>;`);
  }
  const entry = `kernel_${identifier(program.name)}`;
  head.push(...printer.page.helpers);
  head.push(
    `@compute @workgroup_size(${program.group.join(', ')})`,
    `fn ${entry}(${['@builtin(workgroup_id) at: vec3<u32>', '@builtin(local_invocation_id) local: vec3<u32>', ...subgroupBuiltins(program)].join(', ')}) {`,
  );
  const groups = pieces ? [pieceLine] : foldLines(program.grid, folded);
  const first = [...groups, ...printer.page.prologues];
  return {
    ...assemble(head, first, printer.page.body),
    entry,
    params,
    scalars,
    scalarBytes: 4 * fields.length,
    groupAt: pieces ? 4 * scalars.length : -1,
    dispatch: folded.dispatch,
    group: program.group,
    sharedBytes,
  };
}

function usesHalf(program: Program): boolean {
  return [...program.params, ...program.body].some((n) => n.dtype === 'float16') || program.scalars.includes('float16');
}
