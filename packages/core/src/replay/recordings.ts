/**
 * What a compiled function keeps: recordings by the forms of their arguments. Arguments are one flat list: tensors, other values, and
 * marks for the lists and plain objects around
 * them. Two calls share recordings if their lists match: tensors by shape and dtype, everything else by value.
 *
 * Those used longest ago are given back where all together hold too much. And
 * which calls it records: `Worth`.
 *
 * Recordings that do the same at several sizes (sizes.ts) are trusted together, and hold their kernels once.
 */
import { type Casting, graph } from '../graph/state.ts';
import { isHandle } from '../graph/scope.ts';
import { dtypeInfo } from '@polygrad/compiler/shape/dtype';
import { ArgumentError } from '@polygrad/compiler/shape/errors';
import { mapNested } from '@polygrad/compiler/shape/nested';
import { say, shown } from '@polygrad/compiler/shape/shown';
import { sameShape } from '@polygrad/compiler/shape/view';
import type { TensorHandle } from '../tensor/handle.ts';
import type { KernelEntry } from '../planner/lowering/kernel-cache.ts';
import { Runner } from './run-script.ts';
import { endScript, type Script, weightOf } from './script.ts';
import { classOf, doSame, holdWith } from './sizes.ts';

/** How far recordings are trusted that do the same, at one size or at several. */
export interface Trust {
  readonly members: Set<Recorded>;
  /** True if two calls did the same. */
  confirmed: boolean;
  /** Replays since the function ran. */
  replays: number;
  /** Replays before the next comparison. */
  until: number;
}

/** One recording. */
export interface Recorded {
  runner: Runner;
  trust: Trust;
  readonly calls: Calls;
}

/** Calls with matching arguments. */
export interface Calls {
  readonly forms: readonly unknown[];
  /** Mixed precision around the calls. */
  readonly casting: Casting | null;
  /** Newest first. */
  recorded: Recorded[];
  /** Consecutive calls that matched no recording. */
  misses: number;
}

/** This many forms of arguments are kept in any case, and this many recordings of each at most. */
const fewForms = 16;
const mostRecorded = 4;
/** Bytes that the recordings of a function may take, and kernels that they may hold. */
const mostBytes: number = 2 ** 25;
const mostKernels = 4096;
/** Bytes of a form of arguments. */
const formBytes = 512;

export class Recordings {
  /** By a number made of the arguments' form. Used longest ago first. */
  readonly #calls = new Map<number, Calls[]>();
  /** The number of the calls that were found last. */
  #last = Number.NaN;
  #forms = 0;
  #bytes = 0;
  /** Recordings that used plans for classes of sizes, by the kernels of the first one. Recorded last first. */
  readonly #classes = new Map<readonly KernelEntry[], readonly Trust[]>();
  #kernels = 0;

  /** The calls with such arguments, where they are kept. `hash`: `hashOf(flat)`. */
  find(hash: number, flat: readonly unknown[]): Calls | null {
    const found = this.#calls.get(hash);
    if (found === undefined) return null;
    if (hash !== this.#last) {
      this.#calls.delete(hash);
      this.#calls.set(hash, found);
      this.#last = hash;
    }
    for (let i = 0; i < found.length; i++) {
      const calls = found[i]!;
      if (calls.casting === graph.casting && isLike(flat, calls.forms)) return calls;
    }
    return null;
  }

  /** Keeps calls with such arguments from now on. */
  open(hash: number, flat: readonly unknown[]): Calls {
    const calls: Calls = { forms: formsOf(flat), casting: graph.casting, recorded: [], misses: 0 };
    const found = this.#calls.get(hash) ?? [];
    this.#calls.delete(hash);
    this.#calls.set(hash, found);
    this.#last = hash;
    found.unshift(calls);
    this.#forms++;
    this.#bytes += formBytes;
    for (const old of found.splice(fewForms)) this.#close(old);
    this.#trim();
    return calls;
  }

  #close(calls: Calls): void {
    for (const recorded of calls.recorded.splice(0)) this.#forget(recorded);
    this.#forms--;
    this.#bytes -= formBytes;
  }

  /** Gives back what was used longest ago. */
  #trim(): void {
    while (this.#forms > fewForms && (this.#bytes > mostBytes || this.#kernels > mostKernels)) {
      const [[hash, oldest]] = this.#calls as unknown as [[number, Calls[]]];
      this.#close(oldest.pop()!);
      if (oldest.length === 0) this.#calls.delete(hash);
    }
  }

  /** A recording of these calls. It shares the trust of recordings that do the same at other sizes, or else is not confirmed. */
  add(calls: Calls, script: Script): Recorded {
    const trust = this.#trustOf(script) ?? { members: new Set(), confirmed: false, replays: 0, until: 1 };
    const [like] = trust.members;
    if (like !== undefined) holdWith(script, like.runner.script);
    const recorded: Recorded = { runner: new Runner(script), trust, calls };
    calls.recorded.unshift(recorded);
    this.#join(recorded, trust);
    this.#weigh(script, 1);
    for (const old of calls.recorded.splice(mostRecorded)) this.#forget(old);
    this.#trim();
    return recorded;
  }

  /**
   * The trust of recordings that do the same at other sizes; null if there are none. Only those recorded last count: where calls do
   * now this and now that, some are
   * alike by chance.
   */
  #trustOf(script: Script): Trust | null {
    const kernels = classOf(script);
    const newest = kernels === null ? undefined : this.#classes.get(kernels)?.[0];
    if (newest === undefined) return null;
    const [member] = newest.members;
    return doSame(member!.runner.script, script) ? newest : null;
  }

  /** Puts the script of a later call in the place of a recording's. */
  replace(recorded: Recorded, script: Script): void {
    const before = recorded.runner.script;
    const { trust } = recorded;
    this.#leave(recorded);
    this.#weigh(before, -1);
    recorded.runner = new Runner(script);
    this.#weigh(script, 1);
    // Of another plan for its class, the recording is no longer like those of the other sizes.
    this.#join(recorded, classOf(before) === classOf(script) ? trust : { ...trust, members: new Set() });
    endScript(before);
  }

  /** Forgets all recordings that are trusted together: one of them is no longer what the function does. */
  distrust({ members }: Trust): void {
    for (const recorded of [...members]) {
      const { recorded: list } = recorded.calls;
      list.splice(list.indexOf(recorded), 1);
      this.#forget(recorded);
    }
  }

  /** Forgets all recordings. */
  clear(): void {
    for (const found of this.#calls.values()) for (const calls of found) this.#close(calls);
    this.#calls.clear();
    this.#last = Number.NaN;
  }

  #forget(recorded: Recorded): void {
    const { script } = recorded.runner;
    this.#leave(recorded);
    this.#weigh(script, -1);
    endScript(script);
  }

  #weigh(script: Script, sign: 1 | -1): void {
    this.#bytes += sign * weightOf(script);
    this.#kernels += sign * (script.hold.users > 1 ? 0 : script.hold.entries.length);
  }

  #join(recorded: Recorded, trust: Trust): void {
    recorded.trust = trust;
    trust.members.add(recorded);
    const kernels = classOf(recorded.runner.script);
    if (kernels === null) return;
    const trusts = this.#classes.get(kernels) ?? [];
    this.#classes.set(kernels, [trust, ...trusts.filter((other) => other !== trust)]);
  }

  #leave(recorded: Recorded): void {
    const { trust, runner } = recorded;
    trust.members.delete(recorded);
    if (trust.members.size > 0) return;
    const kernels = classOf(runner.script);
    const trusts = kernels === null ? undefined : this.#classes.get(kernels);
    if (trusts === undefined) return;
    const others = trusts.filter((other) => other !== trust);
    if (others.length > 0) this.#classes.set(kernels!, others);
    else this.#classes.delete(kernels!);
  }
}

/** New forms that are recorded at once, beyond one for each form that comes again. */
const mostNovel = 16;
/** Calls that may be recorded without a replay, and what a replay earns. */
const mostCredit = 256;
const perReplay = 2;
/** Without credit one call in so many is recorded. */
const seldom = 32;
/** Forms that are remembered without a recording. */
const mostSeen = 4096;
/** More calls than replays, from which on compiling is said to be in vain. */
const inVain = 256;

/**
 * Whether recording pays. Recording a call takes longer than the call, and pays only where calls with arguments of the same form
 * follow. So calls are recorded
 * on credit: recordings cost, replays earn.
 *
 * A form of arguments that is new is recorded at once while forms come again, otherwise when it comes for the second time. Without
 * credit only a few calls are recorded, to
 * find out whether that pays again.
 */
export class Worth {
  #novel = mostNovel;
  #credit = mostCredit;
  #left = 0;
  #unreplayed = 0;
  /** Numbers of forms that came without being recorded. */
  readonly #seen = new Set<number>();

  /** A call was replayed. */
  replayed(): void {
    this.#credit = Math.min(this.#credit + perReplay, mostCredit);
    this.#repeats();
    if (this.#unreplayed > 0) this.#unreplayed--;
  }

  #repeats(): void {
    this.#novel = Math.min(this.#novel + 1, mostNovel);
  }

  /** True if a call is to be recorded whose form is not kept. */
  isNew(hash: number): boolean {
    const again = this.#seen.delete(hash);
    if (again) this.#repeats();
    if ((again || this.#novel > 0) && this.records()) {
      if (!again) this.#novel--;
      return true;
    }
    this.#seen.add(hash);
    if (this.#seen.size > mostSeen) for (const oldest of this.#seen) if (this.#seen.delete(oldest)) break;
    return false;
  }

  /** True if a call is to be recorded that no earlier one vouches for. */
  records(): boolean {
    if (this.#credit === 0 && ++this.#left % seldom !== 0) return false;
    if (this.#credit > 0) this.#credit--;
    return true;
  }

  /** A call of such a form ran without being recorded. True when so many did that compiling is in vain. */
  ran(): boolean {
    return ++this.#unreplayed >= inVain;
  }
}

/** A mark for structure in a flat list. */
class Mark {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** The form of a tensor argument. */
class Form {
  readonly shape: readonly number[];
  readonly dtype: string;

  constructor({ shape, dtype }: TensorHandle) {
    this.shape = shape;
    this.dtype = dtype;
  }
}

/** Arguments of a call, flat. */
export function flatten(args: readonly unknown[]): readonly unknown[] {
  for (let i = 0; i < args.length; i++) {
    const arg = args[i];
    if (typeof arg === 'object' && arg !== null && !isHandle(arg)) return flattenNested(args);
  }
  return args;
}

function flattenNested(args: readonly unknown[]): unknown[] {
  const flat: unknown[] = [];
  const structure = mapNested(
    'compile',
    args,
    null,
    (value) => {
      if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer)
        throw new ArgumentError(
          'compile',
          say`an argument is ${shown(value)}, whose contents may change without a call seeing it; pass a tensor of it`,
        );
      flat.push(value);
      return 0;
    },
    () => null,
  );
  flat.push(new Mark(JSON.stringify(structure)));
  return flat;
}

/** A number made of the form of a call's arguments: the same for calls that match. */
export function hashOf(flat: readonly unknown[]): number {
  let hash = flat.length;
  for (let i = 0; i < flat.length; i++) {
    const value = flat[i];
    if (isHandle(value)) {
      const { shape, dtype } = value as unknown as TensorHandle;
      hash = mixed(hash, dtypeInfo[dtype].id);
      for (let axis = 0; axis < shape.length; axis++) hash = mixed(hash, shape[axis]!);
    } else if (typeof value === 'number') hash = mixed(mixed(hash, value | 0), Math.fround(value % 1) * 2 ** 32);
    else {
      const text = value instanceof Mark ? value.text : String(typeof value === 'string' ? value : typeof value);
      for (let at = 0; at < text.length; at++) hash = mixed(hash, text.charCodeAt(at));
    }
  }
  // A small integer for V8.
  return hash & 0x3fffffff;
}

function mixed(hash: number, x: number): number {
  const mixed = Math.imul(hash ^ x, 0x9e3779b1);
  return mixed ^ (mixed >>> 15);
}

/** The forms of a call's arguments, for comparison with later calls. */
export function formsOf(flat: readonly unknown[]): readonly unknown[] {
  return flat.map((value) => (isHandle(value) ? new Form(value as unknown as TensorHandle) : value));
}

/** True if the arguments of a call match the forms of an earlier one. */
function isLike(flat: readonly unknown[], forms: readonly unknown[]): boolean {
  if (flat.length !== forms.length) return false;
  for (let i = 0; i < flat.length; i++) {
    const value = flat[i];
    const form = forms[i];
    if (form instanceof Form) {
      if (!isHandle(value)) return false;
      const { shape, dtype } = value as unknown as TensorHandle;
      if (dtype !== form.dtype || !sameShape(shape, form.shape)) return false;
    } else if (form instanceof Mark) {
      if (!(value instanceof Mark) || value.text !== form.text) return false;
    } else if (!Object.is(value, form)) return false;
  }
  return true;
}

/** What in the arguments of a call does not match the forms of an earlier one, as a phrase for messages. */
export function whatDiffers(flat: readonly unknown[], forms: readonly unknown[]): string {
  for (let i = 0; i < Math.min(flat.length, forms.length); i++) {
    const value = flat[i];
    const form = forms[i];
    if (form instanceof Form && isHandle(value)) {
      const { shape, dtype } = value as unknown as TensorHandle;
      if (dtype !== form.dtype) return `the dtypes of its arguments change (${form.dtype}, then ${dtype})`;
      if (!sameShape(shape, form.shape))
        return `the shapes of its arguments change ([${form.shape.join(', ')}], then [${shape.join(', ')}])`;
    } else if (!(value instanceof Mark) && !Object.is(value, form))
      return say`values among its arguments change (${shown(form)}, then ${shown(value)})`;
  }
  return 'its arguments change';
}
