/**
 * Records the plans that a program uses, for a file that it can bring along (plan-file.ts): in a build, or in a test in a browser.
 */
import type { IEngine } from '../engine/engine.ts';
import type { KernelEntry } from '../planner/lowering/kernel-cache.ts';
import type { Plan } from '../planner/plan.ts';
import { runs } from '../runtime/state.ts';
import { Choices, choicesOf } from '../tuning/choices.ts';
import { ArgumentError } from '@polygrad/compiler/shape/errors';
import { checkFields } from '@polygrad/compiler/shape/options';
import { bytesAsText, ByteWriter } from './bytes.ts';
import { portableContext, stampOf } from './context.ts';
import { type Entry, isFor, planFileMagic, sealed, signatureOf } from './entries.ts';
import { writeCode, writeInterface } from './kernels.ts';
import { writePlan } from './plans.ts';
import { beforeMaking, isText } from './store.ts';

/** How plans are recorded. */
export interface RecordPlansOptions {
  /** A version of your own, besides the library's: the file is used only with the same. */
  readonly version?: string;
}

/** Plans that are recorded. */
export interface PlanRecording {
  /** Plans recorded so far. */
  readonly plans: number;
  /**
   * The file with all of them.
   *
   * @throws ArgumentError if there is none, or tiles were measured on an engine (`tune`): plans with those fit its device alone
   */
  file(): Promise<Uint8Array<ArrayBuffer>>;
  /** Stops recording. */
  stop(): void;
}

interface Recorded {
  readonly entry: Omit<Entry, 'plan'>;
  readonly plan: Plan;
  readonly engine: IEngine;
}

/** The bytes of kernels, each once. */
class KernelTable {
  readonly all: Uint8Array[] = [];
  readonly #known = new Map<string, number>();

  /** The position of a kernel. */
  take({ compiled }: KernelEntry, engine: IEngine): number {
    const out = new ByteWriter();
    out.list(compiled, (kernel) => {
      writeInterface(out, kernel.program);
      writeCode(out, engine.codeOf!(kernel));
    });
    const bytes = out.take();
    const text = bytesAsText(bytes);
    let at = this.#known.get(text);
    if (at === undefined) {
      at = this.all.push(bytes) - 1;
      this.#known.set(text, at);
    }
    return at;
  }
}

async function fileOf(recorded: readonly Recorded[], stamp: string): Promise<Uint8Array<ArrayBuffer>> {
  const kernels = new KernelTable();
  const entries: Entry[] = [];
  for (const { entry, plan, engine } of recorded) {
    const bytes = await writePlan(
      plan,
      (out, kernel) => out.uint(kernels.take(kernel, engine)),
      () => null,
    );
    if (bytes !== null) entries.push({ ...entry, plan: bytes });
  }
  const out = new ByteWriter();
  const contexts = [...new Set(entries.map(({ context }) => context))];
  out.text(stamp);
  out.list(contexts, (context) => out.text(context));
  out.list(kernels.all, (bytes) => out.bytes(bytes));
  out.list(entries, ({ context, hash, key, primitives, plan }) => {
    out.uint(contexts.indexOf(context));
    out.int(hash);
    out.ints([...key]);
    out.list(primitives, (name) => out.text(name));
    out.bytes(plan);
  });
  return sealed(planFileMagic, out.take());
}

/** True if plans of an engine depend on tiles that were measured on its device. */
function isMeasured({ engine }: Recorded): boolean {
  return engine.caps.simt && choicesOf(engine).write() !== new Choices().write();
}

/**
 * Records the plans that a program uses from now on, made or found, on engines whose plans fit other machines: the CPU engine, and those of
 * `@polygrad/backend-webgpu/planned` with a profile. A page that brings the file (`usePlanFile`) needs no compiler for them.
 *
 * Run all that the page will compute, with its shapes: initialising, two steps of a training, a prediction. Plans differ by number of threads and by
 * instructions of WebAssembly, on WebGPU by profile. So run it on an engine for each that visitors shall find; kernels that are alike stand in the
 * file once.
 *
 * @throws ArgumentError for wrong options
 * @example
 * import { createCpuEngine } from '@polygrad/backend-cpu';
 * import { setEngine, tensor } from '@polygrad/core';
 * import { recordPlans } from '@polygrad/core/plans';
 * const recording = recordPlans({ version: '1.0' });
 * for (const relaxedSimd of [true, false]) {
 *   await setEngine(createCpuEngine({ threads: 1, relaxedSimd }));
 *   await tensor([1, 2]).mul(3).add(1).data();
 * }
 * const bytes = await recording.file(); // writeFileSync('public/plans.bin', bytes)
 * recording.stop();
 */
export function recordPlans(options: RecordPlansOptions = {}): PlanRecording {
  checkFields('recordPlans', options, { version: isText });
  const stamp = stampOf(options.version);
  const recorded: Recorded[] = [];
  const here = runs;
  const { forPages = false } = here;
  here.forPages = true;
  const put = beforeMaking((next) => (captured, planOptions, sized) => {
    const { engine } = planOptions;
    const signature = signatureOf(captured, sized);
    const made = next(captured, planOptions, sized);
    const context = portableContext(engine);
    const isNew = !recorded.some(({ entry }) => isFor(entry, context ?? '', signature));
    if (context !== null && isNew) recorded.push({ entry: { ...signature, context }, plan: made, engine });
    return made;
  });
  return {
    get plans() {
      return recorded.length;
    },
    async file() {
      if (recorded.length === 0)
        throw new ArgumentError(
          'recordPlans',
          'no plan was recorded: no flush on the CPU engine, or on a WebGPU engine with a profile, since the call needed one; call it before the first computation',
        );
      const measured = recorded.find(isMeasured);
      if (measured === undefined) return fileOf(recorded, stamp);
      throw new ArgumentError(
        'recordPlans',
        `tiles were measured on ${measured.engine.device}, and plans with them fit no other: record on an engine that tune() was not called with`,
      );
    },
    stop() {
      put();
      here.forPages = forPages;
    },
  };
}
