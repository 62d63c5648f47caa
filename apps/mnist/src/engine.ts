/** Which engine computes: the best one found, or made by name, with the names there are told where one is not. */
import { autoDetectAndConfigureGpu, type DetectionReport, knownBackends } from '@polygrad/auto-detect';
import { ArgumentError, setEngine } from '@polygrad/core';
import type { IEngine } from '@polygrad/core/engine';
import { createReferenceEngine } from '@polygrad/testing';
import { oneLine, UsageError } from './errors.ts';

/**
 * Makes an engine the current one: 'auto' the best that auto-detection finds, another name the one of that name.
 *
 * @throws UsageError if it is not there, does not start, or does not take the number of threads (also that of POLYGRAD_THREADS)
 */
export async function chooseEngine(name: string, threads: number | undefined): Promise<IEngine> {
  if (threads !== undefined && !['auto', 'cpu', 'native'].includes(name))
    throw new UsageError(
      `--threads is for the engines cpu and native, which may be what 'auto' finds; '${name}' has none: leave it out`,
    );
  if (name === 'reference') return setEngine(createReferenceEngine());
  if (name !== 'auto' && !knownBackends().includes(name)) {
    const names = ['auto', ...knownBackends(), 'reference'].sort().join(', ');
    throw new UsageError(`there is no engine '${name}'; choose one of ${names}`);
  }
  const engineOptions = threads === undefined ? {} : { cpu: { threads }, native: { threads } };
  let report: DetectionReport = [];
  const onReport = (rows: DetectionReport): void => {
    report = rows;
  };
  try {
    const only = name === 'auto' ? {} : { only: [name] };
    return (await autoDetectAndConfigureGpu({ ...only, engineOptions, onReport })).engine;
  } catch (error) {
    if (error instanceof ArgumentError) throw new UsageError(oneLine(error), { cause: error });
    const row = report.find((r) => r.name === name);
    if (row === undefined) throw error;
    throw new UsageError(`the engine '${name}' is not there: ${row.verdict}, ${oneLine(row.reason)}`, { cause: error });
  }
}
