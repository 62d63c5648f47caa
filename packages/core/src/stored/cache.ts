/**
 * Plans of earlier processes: read once, found in memory while the program runs, and written in the background.
 *
 * Nothing here fails the program: an entry that does not fit its captured graph counts as missing, and a failed write is reported once.
 */
import { checkoutStamp, usualStore } from '#plan-store';
import type { CompiledKernel, IEngine, Logger } from '../engine/engine.ts';
import type { CapturedGraph } from '../planner/capture/captured-graph.ts';
import type { SizedGraph } from '../planner/capture/plan-graph.ts';
import type { MakePlan, Plan, PlanOptions } from '../planner/plan.ts';
import { stateOf } from '../runtime/run.ts';
import { planByEngine, runs } from '../runtime/state.ts';
import { choicesOf } from '../tuning/choices.ts';
import { checkFields, numberFrom, type OptionRules } from '@polygrad/compiler/shape/options';
import { ByteWriter } from './bytes.ts';
import { fixedContext, stampOf, version } from './context.ts';
import { type Entry, placeOf, seal, sha256, type Signature, signatureOf, unseal, unsealNow } from './entries.ts';
import { type Pause, wholeKernel, wholeKernels, writePlan } from './plans.ts';
import { planAmong } from './read-plan.ts';
import { firstTold, isText, type PlanLimits, type PlanStore } from './store.ts';

/** Where plans are kept, and how many. */
export interface PlanCacheOptions {
  /** In Node: the folder; by default `polygrad/plans` in XDG_CACHE_HOME, on Windows LOCALAPPDATA, else in `.cache` of the home folder. */
  readonly folder?: string;
  /** In pages: the name of the database. Default `polygrad-plans`. */
  readonly database?: string;
  /** Another store. */
  readonly store?: PlanStore;
  /** A version of your own, besides the library's: plans are used only by the same version. */
  readonly version?: string;
  /** Most bytes kept. Default 64 MiB. */
  readonly mostBytes?: number;
  /** Most plans kept. Default 512. */
  readonly mostPlans?: number;
  /** Called with the first problem: what cannot be read, used or written. Default: the library's logger (`setLogger`); null: none. */
  readonly log?: Logger | null;
}

/** The plans in use. */
export interface PlanCache {
  /** Plans that were read and can be found. */
  readonly plans: number;
  /** Resolves when all plans made so far are written, or cannot be. Await it before a program ends. */
  saved(): Promise<void>;
  /** Stops looking up and writing plans. */
  stop(): void;
}

/** An entry in memory. */
interface Held extends Entry {
  readonly name: string;
}

/** A plan to be written. */
interface Made {
  readonly key: Omit<Entry, 'plan'>;
  readonly plan: Plan;
  readonly engine: IEngine;
}

/** Most plans waiting to be written; further ones are dropped. */
const mostWaiting = 512;
/** Milliseconds of encoding before other work gets a turn, and before encoding begins. */
const turn = 4;
const delay = 20;

/** Length of the last part of a name, which distinguishes entries of one place. */
const nameLength = 32;

function hex(bytes: Uint8Array, count: number): string {
  return Array.from(bytes.subarray(0, count), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Calls a function later, without keeping a program alive for it. */
function later(f: () => void, milliseconds: number): void {
  const timer: unknown = setTimeout(f, milliseconds);
  (timer as { unref?: () => void }).unref?.();
}

/** True if plans depend on tiles, or a library, that are measured while the program runs. */
function isMeasured({ caps, library }: IEngine): boolean {
  return caps.simt || library !== undefined;
}

/** The context as text. Null while plans should not be kept, because tiles are about to be measured. */
function contextOf(engine: IEngine): string | null {
  if (!isMeasured(engine)) return fixedContext(engine);
  const choices = choicesOf(engine);
  if (engine.tuning?.automatic && choices.wanted().size > 0) return null;
  return `${fixedContext(engine)}\n${choices.write()}`;
}

class StoredPlans implements PlanCache {
  readonly #store: PlanStore;
  readonly #limits: PlanLimits;
  /** What names of this version begin with. */
  #prefix = '';
  readonly #tell: (text: string) => void;
  /** Finds or makes plans that are not here. */
  readonly #next: MakePlan = runs.makePlan;
  /** Entries by place, and names of entries that were not read yet. */
  readonly #known = new Map<string, Held[]>();
  readonly #names = new Map<string, string[]>();
  readonly #waiting: Made[] = [];
  readonly #written = new Set<string>();
  #working: Promise<void> | null = null;
  /** True if writing is scheduled or in progress. */
  #isDue = false;
  #stopped = false;
  plans = 0;

  constructor(store: PlanStore, limits: PlanLimits, log: Logger | null | undefined) {
    this.#store = store;
    this.#limits = limits;
    this.#tell = firstTold(log);
  }

  /** Reads the existing entries. False if plans can be neither found nor kept. */
  async load(own = ''): Promise<boolean> {
    const ofCheckout = own === '' && version === '0.0.0';
    const checkout = ofCheckout ? await checkoutStamp().catch(() => `${Math.random()}`) : '';
    try {
      this.#prefix = `${hex(await sha256(new TextEncoder().encode(`${stampOf(own)}\n${checkout}`)), 6)}-`;
    } catch {
      this.#tell('plans are not kept: crypto.subtle is missing, which pages have on HTTPS and localhost');
      return false;
    }
    const { atHand } = this.#store;
    try {
      if (atHand === undefined) {
        for (const { name, bytes } of await this.#store.load(this.#prefix, this.#limits)) {
          this.plans++;
          this.#take(name, await unseal(bytes));
        }
        return true;
      }
      for (const name of await atHand.names(this.#prefix)) {
        const place = name.slice(this.#prefix.length, -nameLength);
        this.#names.set(place, [...(this.#names.get(place) ?? []), name]);
        this.plans++;
      }
    } catch (error) {
      this.#tell(`plans cannot be read: ${error instanceof Error ? error.message : error}`);
    }
    return true;
  }

  #take(name: string, entry: Entry | null): void {
    if (entry === null) {
      this.#refuse(name, 'it is damaged');
      return;
    }
    const place = placeOf(entry.context, entry.hash);
    this.#known.set(place, [...(this.#known.get(place) ?? []), { ...entry, name }]);
  }

  /** Reads the unread entries of a place. */
  #read(place: string): void {
    const names = this.#names.get(place);
    const { atHand } = this.#store;
    if (names === undefined || atHand === undefined) return;
    this.#names.delete(place);
    for (const name of names) {
      try {
        const bytes = atHand.read(name);
        if (bytes === null) this.plans--;
        else this.#take(name, unsealNow(bytes, atHand.sha256));
      } catch (error) {
        this.#refuse(name, error instanceof Error ? error.message : String(error));
      }
    }
  }

  /** Finds the plan of a captured graph, or of a class of its sizes, or makes it. */
  readonly plan: MakePlan = (captured, options, sized) => {
    const signature = signatureOf(captured, sized);
    const found = this.#find(captured, options, sized, signature);
    if (found === null) {
      const made = this.#next(captured, options, sized);
      this.#made(options.engine, signature, made);
      return made;
    }
    stateOf(options.engine).keptPlans++;
    return found;
  };

  #find(captured: CapturedGraph, options: PlanOptions, sized: SizedGraph | null, signature: Signature): Plan | null {
    const context = contextOf(options.engine);
    if (context === null) return null;
    const place = placeOf(context, signature.hash);
    this.#read(place);
    const entries = this.#known.get(place) ?? [];
    const refuse = ({ name }: Held, why: string): void => this.#refuse(name, why);
    return planAmong({ entries, kernelIn: wholeKernel, refuse }, context, signature, captured, options, sized);
  }

  #made(engine: IEngine, signature: Signature, plan: Plan): void {
    if (this.#stopped || this.#waiting.length >= mostWaiting) return;
    const context = contextOf(engine);
    if (context === null) return;
    this.#waiting.push({ key: { ...signature, context }, plan, engine });
    if (this.#isDue) return;
    this.#isDue = true;
    later(() => {
      this.#isDue = false;
      void this.#work();
    }, delay);
  }

  async saved(): Promise<void> {
    // The timers do not keep a program alive; this one does while a caller awaits them.
    const hold = setInterval(() => {}, 1000);
    try {
      while (this.#waiting.length > 0 || this.#working !== null) await this.#work();
    } finally {
      clearInterval(hold);
    }
  }

  stop(): void {
    this.#stopped = true;
    this.#waiting.length = 0;
    this.#known.clear();
    this.#names.clear();
    this.plans = 0;
    if (runs.makePlan === this.plan) runs.makePlan = this.#next;
  }

  #work(): Promise<void> {
    this.#working ??= this.#writeAll().finally(() => {
      this.#working = null;
    });
    return this.#working;
  }

  async #writeAll(): Promise<void> {
    let since = performance.now();
    const pause: Pause = () => {
      if (performance.now() - since < turn) return null;
      return new Promise((resolve) =>
        later(() => {
          since = performance.now();
          resolve();
        }, 0),
      );
    };
    for (let made = this.#waiting.shift(); made !== undefined; made = this.#waiting.shift()) {
      try {
        await this.#write(made, pause);
      } catch (error) {
        this.#tell(`plans cannot be kept: ${error instanceof Error ? error.message : error}`);
      }
    }
  }

  async #write({ key, plan, engine }: Made, pause: Pause): Promise<void> {
    const name = await this.#nameOf(key);
    if (this.#written.has(name)) return;
    this.#written.add(name);
    const isCode = engine.codeKey !== undefined && engine.codeOf !== undefined;
    const codeOf = (kernel: CompiledKernel) => (isCode ? engine.codeOf!(kernel) : null);
    const bytes = await writePlan(plan, wholeKernels(codeOf), pause);
    if (bytes !== null && !this.#stopped)
      await this.#store.save(name, await seal({ ...key, plan: bytes }), this.#limits);
  }

  async #nameOf({ context, hash, key, primitives }: Made['key']): Promise<string> {
    const out = new ByteWriter();
    out.text(context);
    out.text(primitives.join());
    out.bytes(new Uint8Array(key.buffer, key.byteOffset, key.byteLength));
    return this.#prefix + placeOf(context, hash) + hex(await sha256(out.take()), nameLength / 2);
  }

  /** Drops an entry that cannot be used. */
  #refuse(name: string, why: string): void {
    this.#tell(`a kept plan is not used, and is made anew: ${why}`);
    this.plans--;
    this.#written.delete(name);
    Promise.resolve()
      .then(() => this.#store.remove(name))
      .catch(() => {});
  }
}

const isStore = [
  (x: unknown): boolean => typeof (x as PlanStore | null)?.load === 'function',
  'a store of plans: { load, save, remove }',
] as const;
const rules: OptionRules<PlanCacheOptions> = {
  folder: isText,
  database: isText,
  store: isStore,
  version: isText,
  mostBytes: numberFrom(1),
  mostPlans: numberFrom(1, undefined, true),
  log: [(x) => x === null || typeof x === 'function', 'a function, or null'],
};

/**
 * True if plans are kept between processes already: `usePlanCache` was called.
 *
 * @example
 * isPlanCacheUsed(); // false
 */
export function isPlanCacheUsed(): boolean {
  return runs.makePlan !== planByEngine;
}

/**
 * Uses plans that earlier processes have made, and keeps those that this one makes: the first step of a program then takes nearly as little time as a
 * later one. Plans come from a folder that only the user can read, in pages from IndexedDB. They are verified before they run; plans that are damaged, or
 * of another version, engine, device or number of threads, are made again. Results are the same, bit for bit.
 *
 * Call it before the first computation. Writing goes on in the background, and does not keep the program alive: await
 * `saved()` before a program ends.
 *
 * @returns the plans in use, when all existing ones are read
 * @throws ArgumentError for wrong options
 * @example no-run: it would find what it wrote; docs/plan-cache.md has one that runs
 * import '@polygrad/backend-cpu';
 * import { softmax, stats, tensor } from '@polygrad/core';
 * import { usePlanCache } from '@polygrad/core/plans';
 * const plans = await usePlanCache({ folder: 'plans', version: '1.0' });
 * await softmax(tensor([1, 2, 3])).data();
 * const { plansMade, plansLoaded } = stats(); // made by the first process, loaded by the second
 * await plans.saved();
 */
export async function usePlanCache(options: PlanCacheOptions = {}): Promise<PlanCache> {
  checkFields('usePlanCache', options, rules);
  const { folder, database, mostBytes = 64 * 2 ** 20, mostPlans = 512 } = options;
  const here = runs;
  const limits = { bytes: mostBytes, plans: mostPlans };
  const cache = new StoredPlans(options.store ?? usualStore({ folder, database }), limits, options.log);
  if (await cache.load(options.version)) here.makePlan = cache.plan;
  return cache;
}
