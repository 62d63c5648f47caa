/**
 * What may be taken against the CPU engine: measured once, kept, and what follows from it.
 *
 * Both engines are made for the measurement, in a separate process where possible, and disposed after it. The current engine is not touched.
 */
import { compareEngines, type EngineComparison, type IEngine, type TuningStore } from '@polygrad/core/engine';
import type { Row } from './rows.ts';
import { isMistake, oneLine, within, withinProcess } from './limit.ts';

/** 'load': only what earlier runs measured counts; 'automatic': what is new is measured, too; 'anew': everything; false: nothing. */
export type Measuring = 'automatic' | 'load' | 'anew' | false;

/** One of the two. */
export interface Side {
  readonly name: string;
  readonly options: Readonly<Record<string, unknown>> | undefined;
  /** What its speed depends on besides the options: device, driver, versions, threads. */
  readonly facts: string;
  /** Makes an engine here. */
  readonly create: () => Promise<IEngine>;
  /** Measures in a separate process. Absent if the backend is asked in this one. */
  readonly apart?: { started(): Promise<unknown>; compare(defender: Side): Promise<EngineComparison> };
}

export type Compare = typeof compareEngines;

export interface ContestOptions {
  readonly measure: Measuring;
  /** Most milliseconds for a new measurement, with making both engines and compiling. */
  readonly timeout: number;
  readonly store: TuningStore;
  /** For tests. */
  readonly compare?: Compare | undefined;
}

/** Why nothing was measured, and whether there was too little time for it. */
interface Unmeasured {
  readonly why: string;
  readonly late: boolean;
}

/** What was measured, or why nothing was. */
export type Result = EngineComparison | Unmeasured;

const unmeasured = (why: string, late = false): Unmeasured => ({ why, late });

/** Changes when what is measured does: older measurements are not found any more. */
const version = 2;
const words = { products: 'products', elementwise: 'element by element', small: 'small kernels' } as const;
const works = Object.keys(words) as (keyof typeof words)[];

/** To be taken first, it must be so many times as fast over all, and nowhere fall below this part of the CPU engine's speed. */
const margin = { overall: 1.25, each: 0.8 };

/** True if the measured engine should come before the CPU engine. A separate device needs no margin: it leaves the processor free. */
export function wins(found: EngineComparison, isProcessor: boolean): boolean {
  if (!isProcessor) return found.ratio > 1;
  return found.ratio >= margin.overall && works.every((work) => found.works[work] >= margin.each);
}

/** Of two measurements the one whose slowest kind of work is faster. */
function better(one: EngineComparison, other: EngineComparison): EngineComparison {
  const least = (found: EngineComparison): number => Math.min(...works.map((work) => found.works[work]));
  return least(other) > least(one) ? other : one;
}

/** True where one kind of work alone speaks against an engine: other programs may have slowed it down just then, and what is measured is kept. */
const isDoubtful = (found: EngineComparison): boolean => found.ratio >= margin.overall && !wins(found, true);

/** A measurement in words, against the CPU engine unless told. */
export function describe(found: EngineComparison, other = 'the CPU engine'): string {
  const of = (x: number): string => x.toFixed(x < 10 ? 1 : 0);
  const each = works.map((work) => `${words[work]} ${of(found.works[work])}`).join(', ');
  // 0.96 is no '1.0 of'.
  const ratio = found.ratio < 1 ? `${Math.floor(found.ratio * 100) / 100} of` : `${of(found.ratio)} times`;
  return `measured ${ratio} ${other} (${each})`;
}

function keyOf(challenger: Side, defender: Side): string {
  const side = ({ name, options = {}, facts }: Side): string => {
    const given = Object.entries(options).map(([k, v]) => (Object(v) === v ? k : `${k}=${String(v)}`));
    return [name, facts, ...given].join(' ');
  };
  const { versions } = (globalThis as { process?: { versions?: { v8?: string } } }).process ?? {};
  return `speed-${version} ${side(challenger)} against ${side(defender)} v8 ${versions?.v8 ?? ''}`;
}

/** A measurement from the store; what is damaged is as if it were not there. */
function read(text: string | null, key: string): EngineComparison | null {
  try {
    const found = JSON.parse(text ?? 'null') as (EngineComparison & { key: unknown }) | null;
    // The store names files by a hash.
    if (found === null || found.key !== key) return null;
    const numbers = [found.ratio, ...works.map((work) => found.works[work])];
    if (!numbers.every((x) => typeof x === 'number' && x > 0 && x < 1e9)) return null;
    return { ratio: found.ratio, works: found.works };
  } catch {
    return null;
  }
}

/**
 * The measurement of an earlier run, or a new one. Throws only where an engine refuses its options.
 *
 * @param isProcessor true where both compute on the processor, so that one kind of work may speak against the challenger (`wins`)
 */
export async function contest(
  challenger: Side,
  defender: Side,
  { measure: how, timeout, store, compare = compareEngines }: ContestOptions,
  isProcessor = false,
): Promise<Result> {
  if (how === false) return unmeasured('the option measure is false');
  const key = keyOf(challenger, defender);
  if (how !== 'anew') {
    const known = read(await store.load(key).catch(() => null), key);
    if (known !== null) return known;
    if (how === 'load') return unmeasured('no earlier run has, and this one was not to');
  }
  const stop = new AbortController();
  const { apart } = challenger;
  const once = async () => {
    const outcome =
      apart === undefined
        ? await within(timeout, () => measure(challenger, defender, compare, stop.signal))
        : await withinProcess(timeout, apart, () => apart.compare(defender));
    if (outcome.kind === 'late') stop.abort(new Error('too late'));
    return outcome;
  };
  const outcome = await once();
  if (outcome.kind === 'late') return unmeasured(outcome.reason ?? `it took longer than ${timeout} ms`, true);
  if (outcome.kind === 'error' && isMistake(outcome.error)) throw outcome.error;
  if (outcome.kind === 'error') return unmeasured(oneLine(outcome.error));
  const again = isProcessor && isDoubtful(outcome.value) ? await once() : null;
  const found = again?.kind === 'value' ? better(outcome.value, again.value) : outcome.value;
  await store.save(key, JSON.stringify({ key, ...found })).catch(() => undefined);
  return found;
}

async function measure(
  challenger: Side,
  defender: Side,
  compare: Compare,
  signal: AbortSignal,
): Promise<EngineComparison> {
  const made: IEngine[] = [];
  try {
    for (const { create } of [challenger, defender]) {
      made.push(await create());
      signal.throwIfAborted();
    }
    const [engine, other] = made as [IEngine, IEngine];
    return await compare(engine, other, { signal });
  } finally {
    for (const engine of made) engine.dispose();
  }
}

/** The score of what is so many times as fast as another one. */
function scoreOf({ score }: Row, ratio: number): number {
  return Math.round(100 * Math.max(score, 1) * ratio) / 100;
}

/**
 * Measures what may be taken against the CPU engine, or the first where that one is not among them. The two fastest processors are measured against
 * each other. Gives scores, and what is told of each.
 */
export async function judgeRows(
  yardstick: Row,
  others: readonly Row[],
  how: ContestOptions,
  side: (r: Row) => Side,
): Promise<void> {
  const defender = side(yardstick);
  const named = yardstick.name === 'cpu' ? undefined : yardstick.name;
  for (const r of others) {
    const found = await contest(side(r), defender, how, r.processor !== null);
    if ('why' in found) {
      if (how.measure !== false || r.processor !== null) explain(r, `not measured: ${found.why}`);
      // It is taken only where it was measured.
      if (found.late && r.processor !== null) r.verdict = 'timed out';
      continue;
    }
    explain(r, describe(found, named));
    r.measured = found;
    r.faster = wins(found, r.processor !== null);
    r.score = scoreOf(yardstick, found.ratio);
  }
  // Each had its own moment, and the machine may have been busier then: the two best take turns with each other.
  const [best, second] = others.filter((r) => r.faster && r.processor !== null).sort((a, b) => b.score - a.score);
  if (best === undefined || second === undefined) return;
  const found = await contest(side(second), side(best), how);
  if ('why' in found) return;
  explain(second, describe(found, best.name));
  if (found.ratio > 1) second.score = Math.max(best.score + 0.01, scoreOf(best, found.ratio));
}

function explain(r: Row, what: string): void {
  r.reason = r.reason === '' ? what : `${r.reason}, ${what}`;
}
