/**
 * Lowers a form of a custom kernel (a kernel for inputs of certain shapes and dtypes) to programs for a target.
 *
 * It is written twice before anything runs: for groups of one thread, and for as many threads as it asks for. The verifier checks
 * both at the call, on every engine alike. A hash of their text identifies the kernel in plan keys: kernels with equal text compute
 * the same, in this process and in the next, whatever their bodies close over.
 */
import { withLanes } from '@polygrad/compiler/codegen/lanes/lanes';
import type { CodegenCaps, Lowered } from '@polygrad/compiler/codegen/lowering';
import type { KNode } from '@polygrad/compiler/ir/ir';
import { assumeBounds } from '@polygrad/compiler/ir/node';
import { binaryOps, ternaryOps, unaryOps } from '@polygrad/compiler/ir/operations';
import { printProgram } from '@polygrad/compiler/ir/print';
import { verifyShared } from '@polygrad/compiler/ir/verify/races';
import { type Violation, verifyProgram } from '@polygrad/compiler/ir/verify/verify';
import { ProgramSet, type ProgramWriter, rowMajor, type TensorView } from '@polygrad/compiler/programs/program-set';
import type { SlotView } from '@polygrad/compiler/programs/scan/scan';
import { type DType, dtypeInfo } from '@polygrad/compiler/shape/dtype';
import { say } from '@polygrad/compiler/shape/shown';
import { type Shape, sizeOf } from '@polygrad/compiler/shape/view';
import { KernelContext, KernelRun } from './context.ts';
import { KernelError, type Site, whereOf } from './value.ts';
import { KernelInput, KernelOutput, type OutputPlace } from './memory.ts';

/** What a body is, whatever the names of inputs and outputs are. */
export type ProgramBody = (
  k: KernelContext,
  inputs: Readonly<Record<string, KernelInput>>,
  outputs: Readonly<Record<string, KernelOutput>>,
) => unknown;

/** A custom kernel for inputs of certain shapes: all that its program depends on. */
export interface Form {
  readonly name: string;
  /** Threads that its groups ask for; 1: threads work alone. */
  readonly threads: number;
  readonly grid: Shape;
  readonly inputs: readonly string[];
  readonly outputs: readonly OutputPlace[];
  /** The dtype whose outputs this program writes, and how many elements those have in one example. */
  readonly dtype: DType;
  readonly length: number;
  /** Sizes that `vmap` has put in front, and which inputs have each. */
  readonly batch: readonly { readonly size: number; readonly inputs: readonly boolean[] }[];
  readonly body: ProgramBody;
}

/** Most units that a group of one thread takes. */
const mostTurns = 256;
/** Elements of an output that a thread sets to 0. */
const zeroed = 256;

interface Written {
  readonly lowered: Lowered;
  readonly covered: boolean;
  readonly sites: ReadonlyMap<KNode, Site>;
}

/** The programs of a form: with `clear` one that sets outputs to 0, then that of the body. */
function write(form: Form, out: TensorView, inputs: readonly SlotView[], caps: CodegenCaps, clear: boolean): Written {
  const { name, threads } = form;
  const set = new ProgramSet(name, caps);
  const groups = caps.simt ? threads : 1;
  if (groups > caps.maxGroup)
    throw new KernelError(
      name,
      say`a group of ${groups} threads: this device has at most ${caps.maxGroup}; ask for fewer`,
      null,
    );
  if (clear) addClear(set, out, caps);
  const units = new Units(form, out, inputs, caps);
  if (units.count > 0 && units.line > 1 && units.turns > 1) addLines(set, units);
  else if (units.count > 0) addUnits(set, units, groups);
  return { lowered: set.result(), covered: units.covered, sites: units.sites };
}

/** Adds the program that sets all elements of the outputs to 0. */
function addClear(set: ProgramSet, out: TensorView, caps: CodegenCaps): void {
  const elements = sizeOf(out.shape);
  const each = caps.simt ? 1 : zeroed;
  set.add('_clear', Math.ceil(elements / each), ({ b, e, group, param }) => {
    const memory = param(0, out.dtype, 'write', out.span);
    b.loop(each, (i) => {
      const at = e.add(e.mul(group, each), i);
      const gate = elements % each === 0 ? undefined : e.lt(at, elements);
      b.store(memory, at, e.constant(out.dtype, 0), gate);
    });
  });
}

/** The units of a form, one for each place of its grid and of its batches: how many a group takes in turn, and the body of one. */
class Units {
  readonly #form: Form;
  readonly #out: TensorView;
  readonly #inputs: readonly SlotView[];
  readonly #caps: CodegenCaps;
  readonly #sizes: readonly number[];
  readonly count: number;
  /** Units of a group. */
  readonly turns: number;
  /** Units along the last axis, along which units without threads become vectors; 1 for groups of threads. */
  readonly line: number;
  /** True once a body is written that writes every element of its outputs. */
  covered: boolean;
  sites: ReadonlyMap<KNode, Site> = new Map();

  constructor(form: Form, out: TensorView, inputs: readonly SlotView[], caps: CodegenCaps) {
    this.#form = form;
    this.#out = out;
    this.#inputs = inputs;
    this.#caps = caps;
    this.#sizes = [...form.batch.map(({ size }) => size), ...form.grid];
    this.count = sizeOf(this.#sizes);
    this.turns = caps.simt ? 1 : Math.max(1, Math.min(mostTurns, Math.floor(this.count / (4 * caps.parallelism))));
    this.line = form.threads === 1 ? (this.#sizes.at(-1) ?? 1) : 1;
    this.covered = this.count > 0;
  }

  /** Writes the body for the unit of a number; with `column`, for that place in the line of a number. */
  write(w: ProgramWriter, unit: KNode, column: KNode | null): void {
    const form = this.#form;
    const { name, batch } = form;
    const { e } = w;
    const run = new KernelRun(name, w, this.#caps, form.threads === 1);
    this.sites = run.sites;
    const at = this.#placeOf(run, w, unit, column);
    const example = at.slice(0, batch.length);
    const slots = new Map<number, KNode>();
    const memoryOf = ({ slot, view }: SlotView): KNode => {
      const known = slots.get(slot) ?? w.param(slot, view.dtype, 'read', view.span);
      slots.set(slot, known);
      return known;
    };
    const memory = w.param(0, this.#out.dtype, 'write', this.#out.span);
    const before = example.reduce<KNode>((sum, i, axis) => e.add(e.mul(sum, this.#sizes[axis]!), i), e.i32(0));
    const views = form.inputs.map((input, i) => {
      const own = example.filter((_, axis) => batch[axis]!.inputs[i]);
      const { view } = this.#inputs[i]!;
      return [input, new KernelInput(run, input, memoryOf(this.#inputs[i]!), view, own)] as const;
    });
    const places = form.outputs.map(
      (place) => new KernelOutput(run, place, place.dtype === form.dtype ? memory : null, e.mul(before, form.length)),
    );
    const k = new KernelContext(run, at.slice(batch.length));
    form.body(k, Object.fromEntries(views), Object.fromEntries(places.map((place) => [place.name, place])));
    run.block.open = false;
    this.covered &&= places.every((place) => place.dtype !== form.dtype || place.covered);
  }

  /** The position of a unit along each axis. */
  #placeOf(run: KernelRun, { e }: ProgramWriter, unit: KNode, column: KNode | null): readonly KNode[] {
    const sizes = this.#sizes;
    const at: KNode[] = [];
    let rest = unit;
    for (let axis = sizes.length - 1; axis >= 0; axis--) {
      const n = sizes[axis]!;
      if (column !== null && axis === sizes.length - 1) {
        at.unshift(column);
        run.extents.set(column, n);
        continue;
      }
      at.unshift(n === 1 ? e.i32(0) : axis === 0 ? rest : e.irem(rest, n));
      run.extents.set(at[0]!, n);
      if (n !== 1) rest = axis === 0 ? rest : e.idiv(rest, n);
    }
    return at;
  }
}

/** Adds the program whose groups go along lines, so that units beside each other may become vectors. */
function addLines(set: ProgramSet, units: Units): void {
  const { count, line, turns } = units;
  const stretch = Math.min(line, turns < 16 ? turns : turns - (turns % 16));
  const stretches = Math.ceil(line / stretch);
  const lines = stretches > 1 ? 1 : Math.max(1, Math.floor(turns / line));
  const rows = count / line;
  set.add('', stretches * Math.ceil(rows / lines), (w) => {
    const { b, e } = w;
    const start = e.mul(e.irem(w.group, stretches), stretch);
    const group = e.idiv(w.group, stretches);
    const along = (row: KNode): void => {
      const length = line % stretch === 0 ? e.i32(stretch) : e.min(e.sub(line, start), stretch);
      b.loop(length, (i) => {
        const column = e.add(start, i);
        assumeBounds(column, 0, line - 1);
        units.write(w, row, column);
      });
    };
    b.loop(lines, (turn) => {
      const row = e.add(e.mul(group, lines), turn);
      if (rows % lines === 0) return along(row);
      b.ifThen(e.lt(row, rows), () => along(e.min(row, rows - 1)));
    });
  });
}

/** Adds the program whose groups take units in their order. */
function addUnits(set: ProgramSet, units: Units, groups: number): void {
  const { count, turns } = units;
  set.add(
    '',
    Math.ceil(count / turns),
    (w) => {
      if (turns === 1) return units.write(w, w.group, null);
      const { b, e } = w;
      b.loop(turns, (turn) => {
        const unit = e.add(e.mul(w.group, turns), turn);
        if (count % turns === 0) return units.write(w, unit, null);
        b.ifThen(e.lt(unit, count), () => units.write(w, e.min(unit, count - 1), null));
      });
    },
    groups,
  );
}

/** The programs with loops as vectors, where they allow it. */
function vectors(lowered: Lowered, caps: CodegenCaps): Lowered {
  if (caps.simt) return lowered;
  const dispatches = lowered.dispatches.map((d) => ({ ...d, program: withLanes(d.program, caps) }));
  return { ...lowered, dispatches };
}

/** Targets that have everything, to check and to know kernels by. */
function anyTarget(simt: boolean): CodegenCaps {
  const ops = [...Object.keys(unaryOps), ...Object.keys(binaryOps), ...Object.keys(ternaryOps)];
  const all = new Set(Object.keys(dtypeInfo) as DType[]);
  return {
    dtypes: all,
    computes: all,
    nativeOps: new Set(ops) as CodegenCaps['nativeOps'],
    simt,
    vectorBytes: 4,
    sharedBytes: 1 << 14,
    maxGroup: simt ? 1024 : 1,
    maxBindings: 64,
    parallelism: 1,
    atomics: new Set(),
    lowering: { shape: (kernel) => kernel },
  };
}

/** A form that has been checked. */
export interface TracedForm {
  /** Words of a hash of what it computes. */
  readonly key: readonly number[];
  lower(out: TensorView, inputs: readonly SlotView[], caps: CodegenCaps): Lowered;
}

/** Writes and verifies a form; throws KernelError with the line of the body that breaks a rule. */
export function trace(form: Form, inputs: readonly { readonly shape: Shape; readonly dtype: DType }[]): TracedForm {
  const out = rowMajor(form.dtype, [...form.batch.map(({ size }) => size), form.length]);
  const slots = inputs.map(({ shape, dtype }, i): SlotView => ({ slot: i + 1, view: rowMajor(dtype, shape) }));
  let text = '';
  let covered = true;
  for (const simt of [false, true]) {
    const written = write(form, out, slots, anyTarget(simt), false);
    covered &&= written.covered;
    for (const { program } of written.lowered.dispatches) {
      const verify = (): void => {
        verifyProgram(program);
        verifyShared(program);
      };
      verified(form.name, verify, written.sites);
      text += printProgram(program);
    }
  }
  const { dtype, length } = form;
  return {
    key: hashOf(`${text}\n${covered} ${dtype} ${length} ${JSON.stringify([form.outputs, form.grid, form.batch])}`),
    lower: (result, given, caps) => {
      const { lowered } = write(form, result, given, caps, !covered);
      for (const { program } of lowered.dispatches)
        for (const n of program.body)
          if (n.dtype !== 'void' && !caps.dtypes.has(n.dtype))
            throw new KernelError(
              form.name,
              say`uses ${n.dtype}, which this device does not have: it has ${[...caps.dtypes].join(', ')}`,
              null,
            );
      return vectors(lowered, caps);
    },
  };
}

/** Runs the verifier; what it finds becomes an error with the user's line. */
export function verified(name: string, verify: () => void, sites: ReadonlyMap<KNode, Site>): void {
  try {
    verify();
  } catch (error) {
    const { node, wrong } = ((error as Error).cause ?? {}) as Partial<Violation>;
    if (node === undefined) throw error;
    const at = sites.get(node);
    throw new KernelError(name, `${node.op} ${wrong}`, at === undefined ? null : whereOf(at));
  }
}

/** Four words of a text (MurmurHash3's finalizer over four streams): texts that differ have others, but for one case in 2^128. */
export function hashOf(text: string): number[] {
  const words = [1779033703, 3144134277, 1013904242, 2773480762];
  const factors = [597399067, 2869860233, 951274213, 2716044179];
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    for (let w = 0; w < 4; w++) words[w] = words[(w + 1) % 4]! ^ Math.imul(words[w]! ^ code, factors[w]!);
  }
  return words.map((word, i) => {
    let h = word ^ text.length ^ Math.imul(words[(i + 1) % 4]!, factors[i]!);
    h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
    h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
    return (h ^ (h >>> 16)) | 0;
  });
}
