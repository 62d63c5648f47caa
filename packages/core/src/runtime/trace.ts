/** Writes a profile as a file for Chrome's `about:tracing` or Perfetto, on Node. */
import { UnsupportedError } from '../engine/errors.ts';
import { ArgumentError } from '@polygrad/compiler/shape/errors';
import { shown } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import type { Profile } from './profile.ts';

/** The part of Node that is needed. It comes from `process`, so that bundlers for browsers see no import. */
interface Host {
  getBuiltinModule?(name: 'node:fs/promises'): { writeFile(path: string, text: string): Promise<void> } | undefined;
}

/**
 * Writes a profile's trace to a file that `about:tracing` and ui.perfetto.dev open. Outside of Node, `JSON.stringify(profile.trace)` is
 * the text of that file.
 *
 * Format: "Trace Event Format" of the Chromium project, complete events.
 *
 * @param profile what `profile()` returned
 * @param path the file; overwritten if it exists
 * @throws UnsupportedError without a file system; ArgumentError for a wrong profile or path; and errors of Node
 * @example no-run: it writes a file
 * import '@polygrad/backend-cpu';
 * import { ones, profile, writeTrace } from '@polygrad/core';
 * await writeTrace(await profile(() => ones([64, 64]).matmul(ones([64, 64]))), 'trace.json');
 */
export async function writeTrace(profile: Pick<Profile<unknown>, 'trace'>, path: string): Promise<void> {
  if (!Array.isArray(profile?.trace?.traceEvents))
    throw new ArgumentError('writeTrace', say`not a profile: ${shown(profile)}; give what profile() returned`);
  if (typeof path !== 'string' || path === '')
    throw new ArgumentError('writeTrace', say`not a path: ${shown(path)}; give the name of a file`);
  const host = (globalThis as { process?: Host }).process;
  const files = host?.getBuiltinModule?.('node:fs/promises');
  if (files === undefined)
    throw new UnsupportedError(
      'writeTrace',
      'there are no files here (Node has them from 20.16 on); save JSON.stringify(profile.trace) yourself',
    );
  await files.writeFile(path, JSON.stringify(profile.trace));
}
