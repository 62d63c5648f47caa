/**
 * Times the candidate tiles of one contraction or program on the device: the kernel itself, on separate memory, in turns.
 */
import type { Binding, Command, CompiledKernel, EngineBuffer, IEngine } from '../engine/engine.ts';
import { CompileError, OutOfMemoryError } from '../engine/errors.ts';
import { type DType, dtypeInfo, isFloat } from '@polygrad/compiler/shape/dtype';
import type { Lowered, Way } from '@polygrad/compiler/codegen/lowering';
import { groupsAt } from '@polygrad/compiler/ir/groups';
import { highOf, lowOf, nodesOf } from '@polygrad/compiler/ir/node';
import { legalPrograms } from '@polygrad/compiler/ir/target';
import { type Contraction, findContraction } from '@polygrad/compiler/contraction/contraction';
import { byLibrary } from '@polygrad/compiler/contraction/template';
import { questionOf } from '@polygrad/compiler/contraction/choice';
import type { Seen, SeenNest } from './choices.ts';

/** A tile, and the time it took. */
export interface Measured {
  readonly tile: string;
  readonly milliseconds: number;
  /** The tile that is taken without measuring. */
  readonly standard: boolean;
}

export interface MeasureOptions {
  /** Milliseconds after which no further candidate is begun. */
  readonly budget: number;
  /** A clock in milliseconds. */
  readonly now: () => number;
}

/** About how many milliseconds a round of a candidate takes. */
const roundTime = 4;
/** Most runs in a round. */
const mostRuns = 32;
/** Rounds of candidates that may be the fastest. */
const rounds = 3;
/** Candidates this much slower than the best are not measured again. */
const hopeless = 1.5;
/** A candidate must be this much faster than the default to replace it. */
const gain = 0.97;

interface Candidate {
  readonly tile: string;
  readonly commands: readonly Command[];
  readonly kernels: readonly CompiledKernel[];
  readonly buffers: readonly EngineBuffer[];
  best: number;
  runs: number;
}

/** Memory of so many bytes, in whole words, that goes back with `buffers`. */
function memoryOf(engine: IEngine, size: number, buffers: EngineBuffer[]): Binding {
  const bytes = Math.max(4, Math.ceil(size / 4) * 4);
  const buffer = engine.alloc(bytes);
  buffers.push(buffer);
  return { buffer, offset: 0, bytes };
}

/** Resolves when the device has confirmed the memory. Nothing may be submitted before: failures would be reported to the program's own readers. */
async function confirmed(engine: IEngine, buffers: readonly EngineBuffer[]): Promise<void> {
  await engine.confirming?.();
  for (const { refused } of buffers) if (refused != null) throw refused;
}

/** A tensor of a kernel. */
interface Parameter {
  readonly dtype: DType;
  readonly length: number;
}

/** The tensors of a contraction or a program, by slot; one that a program does not touch has length 0. */
export function parametersOf(seen: Seen): readonly Parameter[] {
  if ('kernel' in seen) return seen.kernel.params.map(({ dtype, arg: { length } }) => ({ dtype, length }));
  const found: Parameter[] = [];
  for (const { program, bindings } of seen.ways[0]![1]().dispatches)
    for (const [i, binding] of bindings.entries()) {
      if (!('param' in binding)) continue;
      const { dtype, arg } = program.params[i]!;
      found[binding.param] = { dtype, length: Math.max(found[binding.param]?.length ?? 0, arg.length) };
    }
  return Array.from(found, (p) => p ?? { dtype: 'float32', length: 0 });
}

/** Memory of the kernel's parameters, filled with ones. */
async function parameters(engine: IEngine, params: readonly Parameter[], buffers: EngineBuffer[]): Promise<Binding[]> {
  const dtypes = params.map((p) => p.dtype);
  const element = (dtype: DType): number => engine.caps.storageBytes?.[dtype] ?? dtypeInfo[dtype].bytes;
  const bindings = params.map((p, i) => memoryOf(engine, p.length * element(dtypes[i]!), buffers));
  await confirmed(engine, buffers);
  bindings.forEach((to, i) => {
    const dtype = dtypes[i]!;
    // 1 in every element of 32-bit types, something finite in the others.
    const pattern = isFloat(dtype) ? (element(dtype) === 2 ? 0x3c003c00 : 0x3f800000) : 1;
    engine.submit([{ kind: 'fill', to, pattern }]);
  });
  return bindings;
}

/** Values for the scalars of a kernel by slot: of sizes one in between (`typicalOf`), of others 1. */
function scalarsOf(seen: Seen): number[] {
  const values: number[] = [];
  if (!('kernel' in seen)) return values;
  for (const n of nodesOf(seen.kernel.stores.flatMap(({ store, ranges }) => [store, ...ranges])))
    if (n.op === 'SCALAR' && lowOf(n) > 0) values[n.arg.slot] = Math.round(Math.sqrt(lowOf(n) * highOf(n)));
  return values;
}

function prepare(
  engine: IEngine,
  tile: string,
  lowered: Lowered,
  params: readonly Binding[],
  sizes: readonly number[],
): Candidate {
  const buffers: EngineBuffer[] = [];
  const kernels = engine.compile(legalPrograms(lowered.dispatches, engine.caps));
  try {
    const temps = lowered.temps.map((size) => memoryOf(engine, size, buffers));
    const commands = lowered.dispatches.map(({ bindings }, i): Command => {
      const kernel = kernels[i]!;
      const bound = bindings.map((b) => ('param' in b ? params[b.param] : temps[b.temp])!);
      const scalars = kernel.program.scalars.map((dtype, slot) =>
        dtype.endsWith('64') && !isFloat(dtype) ? 1n : (sizes[slot] ?? 1),
      );
      const groups = engine.caps.simt ? groupsAt(kernel.program, sizes) : null;
      return { kind: 'dispatch', kernel, bindings: bound, scalars, groups };
    });
    return { tile, commands, kernels, buffers, best: Number.POSITIVE_INFINITY, runs: 1 };
  } catch (error) {
    giveBack(engine, { kernels, buffers });
    throw error;
  }
}

function giveBack(engine: IEngine, { kernels, buffers }: Pick<Candidate, 'kernels' | 'buffers'>): void {
  for (const buffer of buffers) engine.free(buffer);
  engine.release(kernels);
}

/** Runs a candidate for the first time, which compiles it and fills caches, and then for its time. */
async function begin(engine: IEngine, candidate: Candidate, now: () => number): Promise<void> {
  await engine.ready?.();
  // A kernel that cannot be made takes no time at all.
  for (const { failure } of candidate.kernels) if (failure != null) throw failure;
  await confirmed(engine, candidate.buffers);
  await round(engine, candidate, now);
  candidate.best = Number.POSITIVE_INFINITY;
  await round(engine, candidate, now);
  candidate.runs = Math.max(1, Math.min(mostRuns, Math.round(roundTime / Math.max(1e-3, candidate.best))));
}

/** Runs a candidate. The device's own clock is taken where there is one: it does not count what else is waiting there. */
async function round(engine: IEngine, candidate: Candidate, now: () => number): Promise<void> {
  const commands = Array.from({ length: candidate.runs }, () => candidate.commands).flat();
  const start = now();
  let nanoseconds = 0;
  if (engine.submitTimed !== undefined) nanoseconds = (await engine.submitTimed(commands)).reduce((n, x) => n + x, 0);
  else {
    engine.submit(commands);
    await engine.idle();
  }
  const milliseconds = nanoseconds > 0 ? nanoseconds / 1e6 : now() - start;
  candidate.best = Math.min(candidate.best, milliseconds / candidate.runs);
}

/** What to measure, the default first. */
async function waysOf(
  engine: IEngine,
  c: Contraction,
  { kernel, e }: SeenNest,
  sizes: readonly number[],
): Promise<Way[]> {
  const { caps, library } = engine;
  const ways = caps.lowering.ways?.(c, kernel, e, caps) ?? [];
  const found = questionOf(c, caps, library)?.product ?? null;
  if (found === null || library === undefined) return ways;
  if (!(await library.prepare(library.programs.at(found.product, sizes)))) return ways;
  // Second, after the default, so that it is measured whatever the budget is.
  return [...ways.slice(0, 1), [byLibrary, () => library.programs.lower(c, e, caps, found)], ...ways.slice(1)];
}

/** What to measure, the default first; nothing for a nest that is no contraction. */
async function candidatesOf(engine: IEngine, seen: Seen, sizes: readonly number[]): Promise<readonly Way[]> {
  if ('ways' in seen) return seen.ways;
  const c = findContraction(seen.kernel, seen.e);
  return c === null ? [] : waysOf(engine, c, seen, sizes);
}

/**
 * All candidates that were measured, the fastest first; none where the kernel is no contraction of theirs. One that the device cannot
 * compile, or has no memory for, is left out.
 */
export async function measureTiles(engine: IEngine, seen: Seen, { budget, now }: MeasureOptions): Promise<Measured[]> {
  const sizes = scalarsOf(seen);
  const ways = await candidatesOf(engine, seen, sizes);
  if (ways.length === 0) return [];
  const buffers: EngineBuffer[] = [];
  const candidates: Candidate[] = [];
  try {
    const params = await parameters(engine, parametersOf(seen), buffers);
    await engine.idle();
    const start = now();
    let best = Number.POSITIVE_INFINITY;
    for (const [name, lower] of ways) {
      if (candidates.length > 0 && name !== byLibrary && now() - start > budget) break;
      let candidate: Candidate | null = null;
      try {
        candidate = prepare(engine, name, lower(), params, sizes);
        await begin(engine, candidate, now);
      } catch (error) {
        if (candidate !== null) giveBack(engine, candidate);
        if (error instanceof CompileError || error instanceof OutOfMemoryError) continue;
        throw error;
      }
      candidates.push(candidate);
      best = Math.min(best, candidate.best);
    }
    for (let i = 0; i < rounds; i++) {
      for (const candidate of candidates) if (candidate.best <= best * hopeless) await round(engine, candidate, now);
      best = candidates.reduce((least, x) => Math.min(least, x.best), best);
    }
  } finally {
    for (const candidate of candidates) giveBack(engine, candidate);
    giveBack(engine, { kernels: [], buffers });
  }
  const standard = ways[0]?.[0];
  const measured = candidates.map(
    ({ tile, best }): Measured => ({ tile, milliseconds: best, standard: tile === standard }),
  );
  const worth = (x: Measured): number => (x.standard ? x.milliseconds * gain : x.milliseconds);
  return measured.sort((x, y) => worth(x) - worth(y));
}
