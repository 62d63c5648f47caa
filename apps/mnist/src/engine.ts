/** Which engine computes: the best one found, or made by name, with the names there are told where one is not. */
import { autoDetectAndConfigureGpu, type DetectionReport } from '@polygrad/auto-detect';
import { setEngine } from '@polygrad/core';
import type { IEngine } from '@polygrad/core/engine';
import { createReferenceEngine } from '@polygrad/core/testing';
import { oneLine, UsageError } from './errors.ts';

/**
 * Makes an engine the current one: 'auto' the best that auto-detection finds, another name the one of that name.
 *
 * @throws UsageError if it is not there, or does not start
 */
export async function chooseEngine(name: string, threads: number | undefined): Promise<IEngine> {
  if (name === 'reference') return setEngine(createReferenceEngine());
  const engineOptions = threads === undefined ? {} : { cpu: { threads } };
  let report: DetectionReport = [];
  const onReport = (rows: DetectionReport): void => {
    report = rows;
  };
  try {
    const only = name === 'auto' ? {} : { only: [name] };
    return (await autoDetectAndConfigureGpu({ ...only, engineOptions, onReport })).engine;
  } catch (error) {
    const row = report.find((r) => r.name === name);
    if (row === undefined) {
      const names = [...new Set(['auto', ...report.map((r) => r.name), 'reference'])].sort().join(', ');
      throw new UsageError(`there is no engine '${name}'; choose one of ${names}`, { cause: error });
    }
    throw new UsageError(`the engine '${name}' is not there: ${row.verdict}, ${oneLine(row.reason)}`, { cause: error });
  }
}
