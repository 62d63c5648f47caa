/**
 * profile: which kernels a function runs, their cost, time and text, and what is transferred.
 *
 * It listens where commands are handed to engines, so it sees exactly what runs. Engines with a clock measure every kernel
 * separately, which takes longer than the batch otherwise does. Profiles show figures in JSON and consoles; programs and texts
 * of kernels only on request. `writeTrace` keeps one as a file for Chrome's `about:tracing` or Perfetto, on Node.
 */
import { printTransforms } from '@polygrad/compiler/ir/print';
import type { Binding, Command, CompiledKernel, IEngine, KernelSource } from '../engine/engine.ts';
import { getEngine } from '../engine/registry.ts';
import { UnsupportedError } from '../engine/errors.ts';
import type { Program } from '@polygrad/compiler/ir/ir';
import { ArgumentError } from '@polygrad/compiler/shape/errors';
import { checkNames, checkFunction, shown } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { queue } from './queue.ts';
import { flush, stats } from './runtime.ts';
import { EngineCalls } from '../engine/pool.ts';
import { runs } from './state.ts';
import { showAs } from '@polygrad/compiler/shape/shown-as';

/** One kernel of a batch, in the order of submission. `program`, `transforms` and `source` are not enumerable. */
export interface KernelRun {
  readonly name: string;
  /** Engine that ran it. */
  readonly engine: string;
  /** Which batch it was part of, from 0. */
  readonly submit: number;
  /** Number of groups, and threads in each. */
  readonly grid: readonly [number, number, number];
  readonly group: readonly [number, number, number];
  /** Estimated arithmetic operations and bytes moved, of all groups together. */
  readonly flops: number;
  readonly bytes: number;
  /** Time on the device; null where the engine cannot tell. */
  readonly milliseconds: number | null;
  /** The loop transforms of the kernel in order, such as `split i0 64 grid vector`. */
  readonly transforms: readonly string[];
  /** The kernel; `printProgram` of `@polygrad/core/kernel` prints it. */
  readonly program: Program;
  /** The text given to the device; null unless asked for, or if the engine has none. */
  readonly source: KernelSource | null;
}

/** Bytes sent to or read from an engine: uploads, reads, and both where an engine uses another's data. */
export interface TransferRun {
  readonly engine: string;
  /** `upload`: from the host to the engine. */
  readonly direction: 'upload' | 'download';
  readonly bytes: number;
  /** Milliseconds since the profile began. */
  readonly start: number;
  /** Until the call returned, or until its promise resolved. */
  readonly milliseconds: number;
}

/** An event of Chrome's trace format; times are in microseconds. */
export interface TraceEvent {
  readonly name: string;
  readonly cat: 'kernel' | 'transfer';
  readonly ph: 'X';
  readonly ts: number;
  readonly dur: number;
  /** The engine, and whether it is a kernel or a transfer. */
  readonly pid: string;
  readonly tid: string;
  readonly args: Readonly<Record<string, number>>;
}

/** JSON for Chrome's `about:tracing` and Perfetto. */
export interface Trace {
  readonly traceEvents: readonly TraceEvent[];
}

/** What a function did. The console shows a table; JSON has the figures of the kernels and requested texts, not `value`. */
export interface Profile<T> {
  /** What the function returned. */
  readonly value: T;
  readonly kernels: readonly KernelRun[];
  /** Copies between the host and engines, and so between engines. */
  readonly transfers: readonly TransferRun[];
  /** Bytes of all transfers. */
  readonly transferredBytes: number;
  /** The fraction of the time during which a transfer was under way, from 0 to 1. */
  readonly transferShare: number;
  /** Kernels and transfers on a timeline per engine; `writeTrace` makes a file of it. Kernels of a batch follow one another. */
  readonly trace: Trace;
  /** Batches handed to engines. */
  readonly submits: number;
  /** Plans made during the profile, on the current engine. */
  readonly newPlans: number;
  /** How often a plan for a class of sizes was bound to a new size. */
  readonly binds: number;
  /** Milliseconds for making and binding plans, including compiling if the engine compiles at once. */
  readonly planning: number;
  /** Calls of functions of `compile` that replayed a recording. */
  readonly replays: number;
  /** From the start until the device was idle, including the measuring. */
  readonly milliseconds: number;
}

/** Options of `profile`. */
export interface ProfileOptions {
  /** Fetch each kernel's text from its engine as well (default false). */
  readonly sources?: boolean;
}

interface Batch {
  readonly engine: IEngine;
  readonly commands: readonly Command[];
  readonly times: Promise<readonly number[]> | null;
  readonly start: number;
}

/** Records transfers while it replaces the runtime's own functions. */
function watchTransfers(start: number): { readonly transfers: TransferRun[]; readonly end: () => void } {
  const transfers: TransferRun[] = [];
  const note = ({ name }: IEngine, direction: TransferRun['direction'], { bytes }: Binding, from: number): void => {
    transfers.push({ engine: name, direction, bytes, start: from - start, milliseconds: performance.now() - from });
  };
  const { upload, download, downloadSync } = runs;
  runs.upload = (engine, to, data) => {
    const from = performance.now();
    upload(engine, to, data);
    note(engine, 'upload', to, from);
  };
  runs.download = async (engine, from, into) => {
    const begun = performance.now();
    const bytes = await download(engine, from, into);
    note(engine, 'download', from, begun);
    return bytes;
  };
  runs.downloadSync = (engine, from, into) => {
    const begun = performance.now();
    const bytes = downloadSync(engine, from, into);
    note(engine, 'download', from, begun);
    return bytes;
  };
  return { transfers, end: () => void Object.assign(runs, { upload, download, downloadSync }) };
}

/** Milliseconds during which some transfer was under way. */
function timeOf(transfers: readonly TransferRun[]): number {
  let [sum, until] = [0, 0];
  for (const { start, milliseconds } of [...transfers].sort((a, b) => a.start - b.start)) {
    const end = start + milliseconds;
    if (end > until) sum += end - Math.max(start, until);
    until = Math.max(until, end);
  }
  return sum;
}

/** Kernels and transfers as events; a batch begins when it was submitted, or when the one before ended. */
function traceOf(
  kernels: readonly KernelRun[],
  batches: readonly Batch[],
  transfers: readonly TransferRun[],
  start: number,
): Trace {
  const free = new Map<string, number>();
  const events = kernels.map(({ name, engine, submit, milliseconds, flops, bytes }): TraceEvent => {
    const ts = Math.max(free.get(engine) ?? 0, (batches[submit]!.start - start) * 1000);
    const dur = (milliseconds ?? 0) * 1000;
    free.set(engine, ts + dur);
    return {
      name,
      cat: 'kernel',
      ph: 'X',
      ts,
      dur,
      pid: engine,
      tid: 'kernels',
      args: { flops, bytes, batch: submit },
    };
  });
  const moved = transfers.map(
    ({ engine, direction, bytes, start, milliseconds }): TraceEvent => ({
      name: direction,
      cat: 'transfer',
      ph: 'X',
      ts: start * 1000,
      dur: milliseconds * 1000,
      pid: engine,
      tid: 'transfers',
      args: { bytes },
    }),
  );
  return { traceEvents: [...events, ...moved] };
}

/**
 * Runs a function and reports the kernels that ran meanwhile. What it leaves pending is computed, so that it is counted too.
 *
 * Kernels of other code that runs while an asynchronous function waits are listed as well.
 *
 * @param body the function to look at, for instance one training step; run it once before, so that planning and compiling are not counted
 * @returns its result, and a line per kernel
 * @throws ArgumentError inside another profile
 * @example
 * import '@polygrad/backend-cpu';
 * import { ones, profile } from '@polygrad/core';
 * const { value, kernels } = await profile(() => ones([64, 64]).matmul(ones([64, 64])));
 * console.log(value.shape, kernels.length > 0, kernels[0]!.milliseconds! >= 0); //=> [ 64, 64 ] true true
 * // console.log(await profile(step)) prints a table of the kernels, JSON.stringify its figures.
 */
export async function profile<T>(body: () => T | Promise<T>, options: ProfileOptions = {}): Promise<Profile<T>> {
  checkNames('profile', options, 'sources?');
  checkFunction('profile', body);
  const { submit } = EngineCalls.prototype;
  if (runs.submit !== submit)
    throw new ArgumentError('profile', 'a profile is running already; end it before the next one: they do not nest');
  flush();
  await queue.settlePutOff();
  const engine = getEngine();
  const before = stats(engine);
  const batches: Batch[] = [];
  const start = performance.now();
  const watch = watchTransfers(start);
  let value: T;
  runs.submit = (on, commands) => {
    const timed = on.submitTimed?.(commands) ?? null;
    // A device lost meanwhile is reported below, so this promise may go unhandled.
    timed?.catch(() => {});
    if (timed === null) on.submit(commands);
    batches.push({ engine: on, commands, times: timed, start: performance.now() });
  };
  try {
    value = await body();
    flush();
    await queue.settlePutOff();
  } finally {
    runs.submit = submit;
    watch.end();
  }
  const after = stats(engine);
  const times = await Promise.all(batches.map((batch) => batch.times));
  await Promise.all([...new Set(batches.map((batch) => batch.engine))].map((used) => used.idle()));
  const milliseconds = performance.now() - start;
  const kernels: KernelRun[] = [];
  for (const [submit, batch] of batches.entries()) {
    for (const [i, command] of batch.commands.entries()) {
      if (command.kind !== 'dispatch') continue;
      const source = options.sources ? await sourceOf(batch.engine, command.kernel) : null;
      kernels.push(runOf(batch.engine, submit, command.kernel.program, times[submit]?.[i], source));
    }
  }
  const { transfers } = watch;
  return showProfile({
    value,
    kernels,
    transfers,
    transferredBytes: transfers.reduce((sum, { bytes }) => sum + bytes, 0),
    transferShare: Math.min(1, timeOf(transfers) / Math.max(1e-9, milliseconds)),
    trace: traceOf(kernels, batches, transfers, start),
    submits: batches.length,
    newPlans: after.plansMade - before.plansMade,
    binds: after.binds - before.binds,
    planning: after.planning - before.planning,
    replays: after.replays - before.replays,
    milliseconds,
  });
}

async function sourceOf(engine: IEngine, kernel: CompiledKernel): Promise<KernelSource | null> {
  return (await engine.source?.(kernel)) ?? null;
}

function runOf(
  engine: IEngine,
  submit: number,
  program: Program,
  nanoseconds: number | undefined,
  source: KernelSource | null,
): KernelRun {
  const { name, grid, group, cost } = program;
  const groups = grid[0] * grid[1] * grid[2];
  const figures = {
    name,
    engine: engine.name,
    submit,
    grid,
    group,
    flops: cost.flops * groups,
    bytes: cost.bytes * groups,
    milliseconds: nanoseconds === undefined || Number.isNaN(nanoseconds) ? null : nanoseconds / 1e6,
  };
  return kernelRun(figures, program, source);
}

/** The figures of a kernel, which are enumerable; the program and its text are behind getters. */
type Figures = Omit<KernelRun, 'program' | 'transforms' | 'source'>;

class Run {
  readonly #program: Program;
  readonly #source: KernelSource | null;

  constructor(figures: Figures, program: Program, source: KernelSource | null) {
    Object.assign(this, figures);
    this.#program = program;
    this.#source = source;
  }

  get program(): Program {
    return this.#program;
  }

  get transforms(): readonly string[] {
    return printTransforms(this.#program.transforms ?? []);
  }

  get source(): KernelSource | null {
    return this.#source;
  }
}

/** A kernel of a profile. */
function kernelRun(figures: Figures, program: Program, source: KernelSource | null): KernelRun {
  return new Run(figures, program, source) as unknown as KernelRun;
}

/** Most kernels that the console shows. */
const mostRows = 40;

/** Few digits, because times and sizes are compared by eye. */
function short(value: number): string {
  return value >= 1000 ? value.toFixed(0) : value.toPrecision(3);
}

function plural(count: number, word: string, end: string): string {
  return `${count} ${word}${count === 1 ? '' : end}`;
}

/** A profile as lines of text: totals, and a row for each kernel. */
function tableOf(profile: Profile<unknown>): string {
  const { kernels, submits, newPlans, binds, planning, milliseconds, transfers, transferredBytes } = profile;
  const made = [plural(newPlans, 'new plan', 's'), ...(binds > 0 ? [plural(binds, 'bind', 's')] : [])].join(', ');
  const cost = newPlans + binds > 0 ? ` (${short(planning)} ms)` : '';
  const share = `${(100 * profile.transferShare).toFixed(0)} % of the time`;
  const moved =
    transfers.length === 0
      ? ''
      : `, ${plural(transfers.length, 'transfer', 's')} of ${short(transferredBytes / 1e6)} MB (${share})`;
  const head = `Profile: ${plural(kernels.length, 'kernel', 's')} in ${plural(submits, 'batch', 'es')}, ${made}${cost}, ${short(milliseconds)} ms${moved}`;
  if (kernels.length === 0) return head;
  const rows = kernels
    .slice(0, mostRows)
    .map((k) => [
      k.milliseconds === null ? '-' : short(k.milliseconds),
      short(k.flops / 1e6),
      short(k.bytes / 1e6),
      String(k.submit),
      k.engine,
      k.name,
    ]);
  const table = [['ms', 'Mflop', 'MB', 'batch', 'engine', 'kernel'], ...rows];
  const widths = table[0]!.map((_, i) => Math.max(...table.map((row) => row[i]!.length)));
  const lines = table.map((row) =>
    row.map((text, i) => (i < 4 ? text.padStart(widths[i]!) : text.padEnd(widths[i]!))).join('  '),
  );
  const left = kernels.length - rows.length;
  return [head, ...lines, ...(left > 0 ? [`... and ${left} more in .kernels`] : [])]
    .map((line) => line.trimEnd())
    .join('\n  ');
}

/** A profile whose JSON has the figures and the requested texts, without the function's result and the trace. */
function showProfile<T>(profile: Profile<T>): Profile<T> {
  const outline = ({ value: _value, trace: _trace, kernels, ...figures }: Profile<T>): object => ({
    kernels: kernels.map((run) => (run.source === null ? run : { ...run, source: run.source })),
    ...figures,
  });
  return showAs(profile, outline, tableOf);
}

/** The part of Node that is needed. It comes from `process`, so that bundlers for browsers see no import. */
interface TraceHost {
  getBuiltinModule?(name: 'node:fs/promises'): { writeFile(path: string, text: string): Promise<void> } | undefined;
}

/**
 * Writes a profile's trace to a file that `about:tracing` and ui.perfetto.dev open. Outside of Node, `JSON.stringify(profile.trace)` is
 * the text of that file.
 *
 * Format: "Trace Event Format" of the Chromium project, complete events.
 *
 * @param profile what `profile()` returned
 * @param path the file; overwritten if it exists
 * @throws UnsupportedError without a file system; ArgumentError for a wrong profile or path; and errors of Node
 * @example no-run: it writes a file
 * import '@polygrad/backend-cpu';
 * import { ones, profile, writeTrace } from '@polygrad/core';
 * await writeTrace(await profile(() => ones([64, 64]).matmul(ones([64, 64]))), 'trace.json');
 */
export async function writeTrace(profile: Pick<Profile<unknown>, 'trace'>, path: string): Promise<void> {
  if (!Array.isArray(profile?.trace?.traceEvents))
    throw new ArgumentError('writeTrace', say`not a profile: ${shown(profile)}; give what profile() returned`);
  if (typeof path !== 'string' || path === '')
    throw new ArgumentError('writeTrace', say`not a path: ${shown(path)}; give the name of a file`);
  const host = (globalThis as { process?: TraceHost }).process;
  const files = host?.getBuiltinModule?.('node:fs/promises');
  if (files === undefined)
    throw new UnsupportedError(
      'writeTrace',
      'there are no files here (Node has them from 20.16 on); save JSON.stringify(profile.trace) yourself',
    );
  await files.writeFile(path, JSON.stringify(profile.trace));
}
