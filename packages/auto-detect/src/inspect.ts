/** Asks a backend what it found: one that is registered or loaded here, or native code in a separate process. The answer is kept. */
import { type BackendProvider, getBackend, type Probe } from '@polygrad/core/engine';
import type { Apart, Processes } from './apart.ts';
import { oneLine, whyNotLoaded, within, withinProcess } from './limit.ts';
import { type BackendPackage, inNode, isMissing } from './packages.ts';
import { installText, type Row, rowOf } from './rows.ts';
import { fallback, limit, refuse, type Search } from './search.ts';

/** Loads a backend unless it is registered, and asks it what it found. */
export async function inspect(search: Search, name: string, source: BackendPackage | undefined): Promise<Row> {
  const begun = performance.now();
  if (source?.apart === true && search.processes !== null && (await isOwn(name, source))) {
    const found = await inspectApart(search, search.processes, name, source);
    if (found !== null) return found;
  }
  const timeout = limit(search, name);
  if (getBackend(name) === undefined && source !== undefined) {
    const loaded = await within(timeout, source.load);
    if (loaded.kind === 'late')
      return rowOf(name, 'timed out', `${source.specifier} was not loaded within ${timeout} ms`);
    if (loaded.kind === 'error') return notLoaded(name, source, loaded.error);
  }
  const provider = getBackend(name);
  if (provider === undefined)
    return rowOf(name, 'failed to start', `${source?.specifier} registers no backend '${name}'`);
  const left = Math.max(1, timeout - (performance.now() - begun));
  const probed = await within(left, () => provider.probe());
  if (probed.kind === 'late') return rowOf(name, 'timed out', `its probe did not answer within ${timeout} ms`);
  if (probed.kind === 'error') return rowOf(name, 'failed to start', oneLine(probed.error));
  return answered(name, probed.value, async (...given) => provider.create(...given), {
    ...(name === fallback && inNode && search.processes !== null && { memoryBytes: search.processes.memoryBytes }),
  });
}

function notLoaded(name: string, source: BackendPackage, error: unknown): Row {
  const { specifier } = source;
  return isMissing(error, specifier)
    ? rowOf(name, 'not installed', `add the package ${specifier}`, { install: installText(source) })
    : rowOf(name, 'failed to start', `${specifier} cannot be loaded: ${whyNotLoaded(error)}`);
}

/** The row of a backend that said what it found. */
function answered(name: string, probe: Probe, create: NonNullable<Row['create']>, known: Partial<Row>): Row {
  if (typeof probe?.score !== 'number' || typeof probe.reason !== 'string')
    return rowOf(name, 'failed to start', 'its probe answered without a score and a reason');
  if (!(probe.score > 0)) return rowOf(name, 'no device', probe.reason);
  const row = rowOf(name, 'slower', probe.reason, { ...known, create }, probe);
  return known.memoryBytes === undefined ? row : { ...row, memoryBytes: known.memoryBytes };
}

/** True unless the program registered another backend under the package's name. */
async function isOwn(name: string, { load }: BackendPackage): Promise<boolean> {
  const registered = getBackend(name);
  if (registered === undefined) return true;
  // It is loaded already.
  const names = ((await load().catch(() => null)) ?? {}) as Readonly<Record<string, unknown>>;
  return Object.values(names).includes(registered);
}

/** What a backend with native code said in an earlier run, or says in a separate process. Null if there can be none. */
async function inspectApart(
  search: Search,
  processes: Processes,
  name: string,
  source: BackendPackage,
): Promise<Row | null> {
  const { specifier, load } = source;
  if (!processes.has(specifier))
    return rowOf(name, 'not installed', `add the package ${specifier}`, { install: installText(source) });
  const { failureText, keyOf, loadKept, saveKept } = await import('./kept.ts');
  const key = keyOf(await processes.fingerprint({ specifier, name }));
  const found = await loadKept(search.store, key);
  let kept = search.anew || found?.old !== false ? null : found.kept;
  let opened: Apart | null = null;
  const apart = (): Apart | null => (opened ??= processes.open({ specifier, name }));
  const close = (): void => opened?.close();
  const create: NonNullable<Row['create']> = async (...given) => {
    if (getBackend(name) === undefined) await load();
    return (getBackend(name) as BackendProvider).create(...given);
  };
  if (kept === null) {
    const asked = apart();
    if (asked === null) return null;
    const { timeout } = search;
    const probed = await withinProcess(timeout, asked, () => asked.probe());
    const times = found?.kept.failed?.times ?? 0;
    if (probed.kind === 'value') {
      kept = { probe: probed.value, failed: null, proofs: {} };
      const row = answered(name, kept.probe!, create, { apart, close, kept, key, failures: times });
      if (row.verdict !== 'failed to start') await saveKept(search.store, key, kept);
      // Nothing more is asked of what has no device.
      if (row.verdict !== 'slower') close();
      return row;
    }
    close();
    const row = rowOf(name, 'failed to start', '', { key, failures: times });
    refuse(row, probed, `its probe did not answer within ${timeout} ms`);
    if (probed.kind === 'error' && isMissing(probed.error, specifier)) return notLoaded(name, source, probed.error);
    await keepFailure(search, row);
    return row;
  }
  const { probe, failed } = kept;
  if (failed !== null)
    return rowOf(name, failed.verdict, failureText(failed.reason, found!.left), {}, probe ?? undefined);
  return answered(name, probe as Probe, create, { apart, close, kept, key });
}

/** Keeps that a backend crashed or was too slow, so that later searches do not wait for it. */
export async function keepFailure({ store }: Search, r: Row): Promise<void> {
  const { verdict, reason, kept, failures, key } = r;
  if (verdict !== 'crashed' && verdict !== 'timed out') return;
  const { saveKept } = await import('./kept.ts');
  await saveKept(store, key, {
    probe: kept?.probe ?? null,
    failed: { verdict, reason, times: failures + 1 },
    proofs: {},
  });
}
