/** Has engines run the self-test before their first use with a device and driver, in a separate process or here; the result is kept. */
import { ArgumentError, type IEngine } from '@polygrad/core/engine';
import type { Proof } from './apart.ts';
import { keepFailure } from './inspect.ts';
import { isMistake, within, withinProcess } from './limit.ts';
import { inNode } from './packages.ts';
import type { Row } from './rows.ts';
import { fallback, limit, op, type Options, optionsOf, refuse, type Search } from './search.ts';

/** Has a backend run the self-test in its process, once. False if it fails. */
export async function proveApart(search: Search, r: Row): Promise<boolean> {
  if (r.apart === null || r.kept === null || search.options.selfTest === false) return true;
  const { optionsKey, saveKept } = await import('./kept.ts');
  const options = sent(optionsOf(search, r.name));
  const at = optionsKey(options);
  let proof = r.kept.proofs[at];
  if (proof === undefined) {
    const asked = r.apart();
    if (asked === null) return true;
    const { timeout } = search;
    const outcome = await withinProcess(timeout, asked, () => asked.prove(options));
    if (outcome.kind !== 'value') {
      r.close();
      if (outcome.kind === 'error' && isMistake(outcome.error)) throw mistake(outcome.error as Error);
      refuse(r, outcome, `its self-test did not end within ${timeout} ms`);
      if (r.verdict === 'crashed') r.reason = `${r.reason} in its self-test`;
      await keepFailure(search, r);
      return false;
    }
    proof = outcome.value;
    r.kept = { ...r.kept, proofs: { ...r.kept.proofs, [at]: proof } };
    await saveKept(search.store, r.key, r.kept);
  }
  return judgeProof(search, r, proof);
}

/** True if an engine need not test itself: it did in a separate process, or the self-test is turned off. */
export async function isProven(search: Search, { name, apart, kept }: Row): Promise<boolean> {
  if (search.options.selfTest === false) return true;
  if (apart === null || kept === null) return false;
  const { optionsKey } = await import('./kept.ts');
  return kept.proofs[optionsKey(sent(optionsOf(search, name)))] !== undefined;
}

/** The same for an engine of this process, before anything else is done with it. */
export async function proveHere(search: Search, r: Row, engine: IEngine): Promise<boolean> {
  if (r.apart !== null || search.options.selfTest === false || (r.name === fallback && !inNode)) return true;
  const { keyOf, loadKept, optionsKey, saveKept, surroundings } = await import('./kept.ts');
  const given = optionsKey(sent(optionsOf(search, r.name)));
  const key = keyOf([r.name, r.device, r.driver, engine.device, given, surroundings()].join('\n'));
  const found = search.anew ? null : await loadKept(search.store, key);
  let proof = found?.old === false ? found.kept.proofs[given] : undefined;
  if (proof === undefined) {
    const outcome = await within(limit(search, r.name), async () => {
      const { selfTest } = await import('@polygrad/core/engine/self-test');
      return selfTest(engine);
    });
    if (outcome.kind !== 'value') {
      refuse(r, outcome, `its self-test did not end within ${search.timeout} ms`);
      return false;
    }
    const { wrong, milliseconds } = outcome.value;
    proof = { wrong, milliseconds, dtypes: [...engine.caps.dtypes] };
    const probe = { score: r.score, reason: r.reason, device: r.device ?? '' };
    await saveKept(search.store, key, { probe, failed: null, proofs: { [given]: proof } });
  }
  return judgeProof(search, r, proof);
}

function judgeProof({ options: { log } }: Search, r: Row, { wrong, dtypes }: Proof): boolean {
  r.dtypes = dtypes;
  if (wrong === null) return true;
  r.create = null;
  [r.verdict, r.reason] = ['wrong answers', wrong];
  const driver = r.driver === null ? '' : `, driver ${r.driver}`;
  // What an error says may end in a program of a hundred lines, which the report has.
  const [first, ...more] = wrong.split('\n');
  const what = wrong.startsWith('[') ? 'failed its self-test' : 'computes wrongly';
  const said = more.length === 0 ? first : `${first} (and ${more.length} more lines, in the report)`;
  const text = `[${op}] the engine '${r.name}' ${what} and is not used (${r.device}${driver}): ${said}; install another version of its driver`;
  if (log === undefined) console.warn(text);
  else log?.(text);
  return false;
}

/** What can be sent to another process: callbacks and stores stay here. */
export function sent(options: Options): Options {
  const plain = Object.entries(options ?? {}).filter(([, v]) => Object(v) !== v || Array.isArray(v));
  return plain.length === 0 ? undefined : Object.fromEntries(plain);
}

/** An engine's refusal of its options, as the error that it was in the other process. */
function mistake({ message }: Error): ArgumentError {
  const [, from = op, text = message] = /^\[([^\]]*)\] ([\s\S]*)$/.exec(message) ?? [];
  return new ArgumentError(from, text);
}
