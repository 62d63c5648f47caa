/**
 * Times the candidate tiles of one contraction on the device: the kernel itself, on memory of its own, in alternation.
 */
import type { Binding, Command, CompiledKernel, EngineBuffer, IEngine } from '../engine/engine.ts';
import type { KNodeOf } from '../kernel/ir.ts';
import { type DType, dtypeInfo, isFloat } from '../shape/dtype.ts';
import type { Lowered, Way } from '../templates/contract.ts';
import { type Contraction, findContraction } from '../templates/contraction.ts';
import { questionOf } from '../templates/choice.ts';
import { legalPrograms } from '../templates/legal.ts';
import { byLibrary } from '../templates/names.ts';
import type { Seen } from './choices.ts';

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

/** A round of a candidate takes about so many milliseconds; no more runs than this; rounds of those that may win. */
const roundTime = 4;
const mostRuns = 32;
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

/** Memory of the kernel's parameters, filled with ones. */
function parameters(engine: IEngine, params: readonly KNodeOf<'PARAM'>[]): Binding[] {
  return params.map((p) => {
    const dtype = p.dtype as DType;
    const element = engine.caps.storageBytes?.[dtype] ?? dtypeInfo[dtype].bytes;
    const bytes = Math.max(4, Math.ceil((p.arg.length * element) / 4) * 4);
    const binding = { buffer: engine.alloc(bytes), offset: 0, bytes };
    // 1 in every element of 32-bit types, something finite in the others.
    engine.submit([
      { kind: 'fill', to: binding, pattern: isFloat(dtype) ? (element === 2 ? 0x3c003c00 : 0x3f800000) : 1 },
    ]);
    return binding;
  });
}

function prepare(engine: IEngine, tile: string, lowered: Lowered, params: readonly Binding[]): Candidate {
  const kernels = engine.compile(legalPrograms(lowered, engine.caps));
  const temps = lowered.temps.map((size): Binding => {
    const bytes = Math.max(4, Math.ceil(size / 4) * 4);
    return { buffer: engine.alloc(bytes), offset: 0, bytes };
  });
  const commands = lowered.dispatches.map(({ bindings }, i): Command => {
    const kernel = kernels[i] as CompiledKernel;
    const bound = bindings.map((b) => ('param' in b ? params[b.param] : temps[b.temp]) as Binding);
    const scalars = kernel.program.scalars.map((dtype) => (dtype.endsWith('64') && !isFloat(dtype) ? 1n : 1));
    return { kind: 'dispatch', kernel, bindings: bound, scalars };
  });
  return { tile, commands, kernels, buffers: temps.map((t) => t.buffer), best: Number.POSITIVE_INFINITY, runs: 1 };
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
async function waysOf(engine: IEngine, c: Contraction, { kernel, e }: Seen): Promise<Way[]> {
  const { caps, library } = engine;
  const ways = caps.lowering.ways(c, kernel, e, caps);
  const found = questionOf(c, caps, library)?.product ?? null;
  if (found === null || library === undefined || !(await library.prepare(found.product))) return ways;
  // Behind the default: it comes to be measured whatever the budget is.
  return [...ways.slice(0, 1), [byLibrary, () => library.programs.lower(c, e, caps, found)], ...ways.slice(1)];
}

/** All candidates that were measured, the fastest first; none where the kernel is no contraction of theirs. */
export async function measureTiles(engine: IEngine, seen: Seen, { budget, now }: MeasureOptions): Promise<Measured[]> {
  const c = findContraction(seen.kernel, seen.e);
  if (c === null) return [];
  const ways = await waysOf(engine, c, seen);
  const params = parameters(engine, seen.kernel.params);
  const candidates: Candidate[] = [];
  const drop = ({ kernels, buffers }: Candidate): void => {
    for (const buffer of buffers) engine.free(buffer);
    engine.release(kernels);
  };
  try {
    await engine.idle();
    const start = now();
    let best = Number.POSITIVE_INFINITY;
    for (const [name, lower] of ways) {
      if (candidates.length > 0 && name !== byLibrary && now() - start > budget) break;
      const candidate = prepare(engine, name, lower(), params);
      candidates.push(candidate);
      await engine.ready?.();
      await round(engine, candidate, now); // compiles, fills caches
      candidate.best = Number.POSITIVE_INFINITY;
      await round(engine, candidate, now);
      candidate.runs = Math.max(1, Math.min(mostRuns, Math.round(roundTime / Math.max(1e-3, candidate.best))));
      best = Math.min(best, candidate.best);
    }
    for (let i = 0; i < rounds; i++) {
      for (const candidate of candidates) if (candidate.best <= best * hopeless) await round(engine, candidate, now);
      best = candidates.reduce((least, x) => Math.min(least, x.best), best);
    }
  } finally {
    candidates.forEach(drop);
    for (const { buffer } of params) engine.free(buffer);
  }
  const measured = candidates.map(({ tile, best }, i): Measured => ({ tile, milliseconds: best, standard: i === 0 }));
  const [standard] = measured;
  if (standard === undefined) return [];
  const worth = (x: Measured): number => (x === standard ? x.milliseconds * gain : x.milliseconds);
  return measured.sort((x, y) => worth(x) - worth(y));
}
