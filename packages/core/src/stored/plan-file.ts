/**
 * Plans that a program brings along in a file: found without planning, lowering or emitting. recording.ts writes the file.
 *
 * The file has the interfaces and the code of kernels, not their programs (kernels.ts), so reading it takes nothing of the compiler. What it does not
 * have is made as without it.
 */
import { loadFamilies } from '#families';
import type { Logger } from '../engine/engine.ts';
import { stateOf } from '../runtime/run.ts';
import { runs } from '../runtime/state.ts';
import { checkFields, type OptionRules } from '@polygrad/compiler/shape/options';
import { ByteReader, Damaged } from './bytes.ts';
import { portableContext, stampOf } from './context.ts';
import { bodyOf, type Entry, planFileMagic, sha256, signatureOf } from './entries.ts';
import { readBodiless } from './kernels.ts';
import { type KeptEntries, type KernelReader, planAmong } from './read-plan.ts';
import { beforeMaking, firstTold, isText } from './store.ts';

/** Where a file of plans comes from: its bytes, or what has them, as the answer of `fetch` and files of pages do. */
export type PlanFileSource = ArrayBuffer | Uint8Array<ArrayBuffer> | { arrayBuffer(): Promise<ArrayBuffer> };

/** How a file of plans is used. */
export interface PlanFileOptions {
  /** The version of your own that the file was recorded with. */
  readonly version?: string;
  /** Called with the first problem: a file that cannot be used, or a plan that is not in it. Default: the library's logger (`setLogger`); null: none. */
  readonly log?: Logger | null;
}

/** A file of plans in use. */
export interface PlanFile {
  /** Plans in it; 0 for a file that cannot be used. */
  readonly plans: number;
  /** Stops looking for plans in it. */
  stop(): void;
}

/** Files read so far: kernels of several have keys of their own. */
let files = 0;

/** What a file holds. Kernels are read when a plan needs them. */
interface Contents {
  readonly contexts: string[];
  readonly entries: Entry[];
  readonly kernelIn: KernelReader;
}

/** The contents of a file whose hash is right. Throws Damaged for another version. */
function contentsOf(body: Uint8Array, stamp: string): Contents {
  const from = new ByteReader(body);
  const found = from.text();
  if (found !== stamp) throw new Damaged('it was recorded with another version');
  const contexts = from.list(() => from.text());
  const kernels = from.list(() => from.bytes());
  const file = ++files;
  const entries = from.list((): Entry => {
    const context = from.among(contexts);
    const hash = from.int();
    const key = Int32Array.from(from.ints());
    const primitives = from.list(() => from.text());
    return { context, hash, key, primitives, plan: from.bytes() };
  });
  const kernelIn: KernelReader = (plan) => {
    const at = plan.uint();
    const bytes = kernels[at];
    if (bytes === undefined) throw new Damaged('a kernel');
    return { key: `brought ${file} ${at}`, read: () => readBodiless(bytes) };
  };
  return { contexts, entries, kernelIn };
}

async function readFile(source: PlanFileSource | Promise<PlanFileSource>, stamp: string): Promise<Contents> {
  const given = await source;
  const bytes = 'arrayBuffer' in given ? new Uint8Array(await given.arrayBuffer()) : new Uint8Array(given);
  const body = bodyOf(bytes, planFileMagic);
  if (body === null) throw new Damaged('it is no file of plans');
  const hash = await sha256(body);
  if (hash.some((byte, i) => bytes[planFileMagic.length + i] !== byte)) throw new Damaged('it is damaged');
  return contentsOf(body, stamp);
}

const rules: OptionRules<PlanFileOptions> = {
  version: isText,
  log: [(x) => x === null || typeof x === 'function', 'a function, or null'],
};

/**
 * Uses the plans of a file that `recordPlans` has written, for pages that bring their plans: the first step then neither plans nor compiles, and with
 * `@polygrad/backend-cpu/planned` or `@polygrad/backend-webgpu/planned` the page carries no compiler. What the file lacks is planned as without it. Results are the
 * same, bit for bit; on WebGPU those of an engine of the same profile.
 *
 * Call it before the first computation, and before a WebGPU engine is made, and await it. A file that is damaged, of another version, or cannot be loaded counts as empty.
 *
 * @param file bytes, or an answer of `fetch`, or a promise of either
 * @returns the file in use
 * @throws ArgumentError for wrong options
 * @example
 * import { createCpuEngine } from '@polygrad/backend-cpu';
 * import { clearPlans, setEngine, stats, tensor } from '@polygrad/core';
 * import { recordPlans, usePlanFile } from '@polygrad/core/plans';
 * await setEngine(createCpuEngine({ threads: 1 }));
 * const recording = recordPlans();
 * await tensor([1, 2]).add(1).data();
 * const bytes = await recording.file(); // a build writes it beside the page
 * recording.stop();
 * clearPlans();
 * const file = await usePlanFile(bytes); // the page: await usePlanFile(fetch('plans.bin'))
 * await tensor([3, 4]).add(1).data();
 * console.log(file.plans, stats().plansLoaded); //=> 1 1
 * file.stop();
 */
export async function usePlanFile(
  file: PlanFileSource | Promise<PlanFileSource>,
  options: PlanFileOptions = {},
): Promise<PlanFile> {
  checkFields('usePlanFile', options, rules);
  const tell = firstTold(options.log);
  const here = runs;
  let contents: Contents | null = null;
  try {
    // Sizes share plans from the first one on, as they did when the file was recorded.
    [contents] = await Promise.all([readFile(file, stampOf(options.version)), loadFamilies()]);
  } catch (error) {
    tell(`the file of plans is not used: ${error instanceof Error ? error.message : error}`);
  }
  if (contents === null) return { plans: 0, stop() {} };
  const { entries, contexts } = contents;
  const kept: KeptEntries<Entry> = {
    ...contents,
    refuse: (_, why) => tell(`a plan of the file is not used, and is made anew: ${why}`),
  };
  (here.brought ??= []).push(contexts);
  const stopFinding = beforeMaking((next) => (captured, planOptions, sized) => {
    const { engine } = planOptions;
    const context = portableContext(engine);
    const found =
      context === null ? null : planAmong(kept, context, signatureOf(captured, sized), captured, planOptions, sized);
    if (found !== null) {
      stateOf(engine).keptPlans++;
      return found;
    }
    const why = contexts.includes(context ?? '')
      ? 'this computation was not recorded'
      : `it has none for ${engine.name} with these threads, memory, code or profile`;
    tell(`a plan is not in the file, and is made: ${why}`);
    return next(captured, planOptions, sized);
  });
  return {
    plans: entries.length,
    stop() {
      contexts.length = 0;
      stopFinding();
    },
  };
}
