/** Which engine computes: made by name, with the names there are told where one is not. */
import { setEngine } from '@polygrad/core';
import type { IEngine } from '@polygrad/core/engine';
import { getBackend, listBackends } from '@polygrad/core/engine';
import { createReferenceEngine } from '@polygrad/core/testing';
import '@polygrad/backend-cpu';
import { oneLine, UsageError } from './errors.ts';

/**
 * Makes the engine of a name the current one.
 *
 * @throws UsageError if there is none, or it does not start
 */
export async function chooseEngine(name: string, threads: number | undefined): Promise<IEngine> {
  if (name === 'reference') return setEngine(createReferenceEngine());
  if (getBackend(name) === undefined) {
    const names = [...new Set([...listBackends(), 'reference'])].join(', ');
    throw new UsageError(`there is no engine '${name}'; choose one of ${names}`);
  }
  try {
    return await setEngine(name, threads === undefined ? {} : { threads });
  } catch (error) {
    throw new UsageError(`the engine '${name}' does not start: ${oneLine(error)}`);
  }
}
