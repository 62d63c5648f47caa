/**
 * What backends said in earlier runs, kept in the store of measurements: their probes, whether their process ended, and their proofs. Each is
 * kept under all that it depends on, so that a new driver, card or version is asked anew.
 */
import type { Probe, TuningStore } from '@polygrad/core/engine';
import type { Proof } from './apart.ts';

/** What is known of one backend. */
export interface Kept {
  /** What it found; null if it never answered. */
  readonly probe: Probe | null;
  /** How it failed to answer: its process ended, or time ran out; null if it answered. */
  readonly failed: {
    readonly verdict: 'crashed' | 'timed out';
    readonly reason: string;
    readonly times: number;
  } | null;
  /** The self-test by the options of the engine. */
  readonly proofs: Readonly<Record<string, Proof>>;
}

const version = 1;
const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const month = 30 * day;

/** How long failures count: the first time, and at most. What was too slow may have met a busy machine, and a slower engine takes its place. */
const failures = { crashed: [day, month], 'timed out': [5 * minute, hour] } as const;

/** Milliseconds for which it counts. Devices that were not there are looked for every day. What fails again and again is asked less often each time. */
function lifeOf({ probe, failed, proofs }: Kept): number {
  if (failed !== null) {
    const [first, most] = failures[failed.verdict];
    return Math.min(most, first * 4 ** (failed.times - 1));
  }
  const works = probe !== null && probe.score > 0 && Object.values(proofs).every(({ wrong }) => wrong === null);
  return works ? month : day;
}

const isText = (value: unknown): value is string => typeof value === 'string';
const isProof = (value: Proof | undefined): boolean =>
  value !== undefined &&
  (value.wrong === null || isText(value.wrong)) &&
  Array.isArray(value.dtypes) &&
  value.dtypes.every(isText);
const isProbe = ({ score, reason, device }: Probe): boolean =>
  typeof score === 'number' && isText(reason) && isText(device);

/** The key of what is kept under these facts. */
export function keyOf(facts: string): string {
  return `backend-${version} ${facts}`;
}

/** Options by which a proof is kept. */
export function optionsKey(options: Readonly<Record<string, unknown>> = {}): string {
  return Object.entries(options)
    .map(([name, value]) => `${name}=${JSON.stringify(value) ?? ''}`)
    .join(' ');
}

/** The version of the packages: kernels of another one are others. A test compares. */
export const packageVersion = '0.0.0';

/** What the answers of an engine of this process depend on besides its device. */
export function surroundings(): string {
  const { process: host, navigator } = globalThis as {
    process?: { version?: string; versions?: { v8?: string } };
    navigator?: { userAgent?: string };
  };
  return [packageVersion, host?.version, host?.versions?.v8, navigator?.userAgent].join(' ');
}

const isFailure = (failed: Kept['failed']): boolean =>
  failed === null || (isText(failed.reason) && failed.times >= 1 && /^(crashed|timed out)$/.test(failed.verdict));

/** A time in words. */
function timeText(milliseconds: number): string {
  const minutes = Math.ceil(milliseconds / minute);
  if (minutes <= 90) return minutes === 1 ? '1 minute' : `${minutes} minutes`;
  return `${Math.round(minutes / 60)} hours`;
}

/** Why a backend is not asked now: how it failed in an earlier run, and when it is asked again. */
export function failureText(reason: string, left: number): string {
  return `${reason} (in an earlier run; it is asked again in ${timeText(left)})`;
}

/** What is kept under a key, whether it is too old to count, and for how many milliseconds more it counts; null where nothing is, or something damaged. */
export async function loadKept(
  store: TuningStore,
  key: string,
  now: number = Date.now(),
): Promise<{ readonly kept: Kept; readonly old: boolean; readonly left: number } | null> {
  try {
    const found = JSON.parse((await store.load(key)) ?? 'null') as (Kept & { key: unknown; at: number }) | null;
    if (found === null || found.key !== key || typeof found.at !== 'number') return null;
    const { probe, failed, proofs } = found;
    if (probe === null ? failed === null : !isProbe(probe)) return null;
    if (!isFailure(failed) || !Object.values(proofs).every(isProof)) return null;
    const kept = { probe, failed, proofs };
    const age = now - found.at;
    const left = lifeOf(kept) - age;
    return { kept, old: age < 0 || left <= 0, left };
  } catch {
    return null;
  }
}

/** Keeps it; if that fails, the next run asks again. */
export async function saveKept(store: TuningStore, key: string, kept: Kept | null): Promise<void> {
  const text = kept === null ? 'null' : JSON.stringify({ key, at: Date.now(), ...kept });
  await store.save(key, text).catch(() => undefined);
}
