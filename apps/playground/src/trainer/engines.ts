/** Which engines there are on this machine, which one runs, and why. */
import '@polygrad/backend-cpu';
import { getBackend, getEngine, type IEngine, listBackends, setEngine } from '@polygrad/core';
import type { EngineChoice, EngineReport } from '../common/protocol.ts';
import { explain } from './explain.ts';

async function probe(name: string): Promise<EngineChoice> {
  try {
    const { score, reason, device } = await getBackend(name)!.probe();
    return { name, device, score, reason, usable: score > 0 };
  } catch (error) {
    return { name, device: 'none', score: 0, reason: explain(error), usable: false };
  }
}

/** Every backend of this page, best first. */
export async function findEngines(): Promise<EngineChoice[]> {
  const found = await Promise.all(listBackends().map(probe));
  return found.sort((a, b) => b.score - a.score);
}

/** Makes the named engine, or the best that starts, the current one. The engine before is not disposed. */
export async function takeEngine(choices: readonly EngineChoice[], name?: string): Promise<IEngine> {
  const usable = choices.filter((choice) => choice.usable && (name === undefined || choice.name === name));
  let failure = new Error(
    name === undefined ? 'No engine can run here.' : `There is no engine '${name}' that can run here.`,
  );
  for (const choice of usable) {
    try {
      return await setEngine(choice.name);
    } catch (error) {
      failure = new Error(`The engine '${choice.name}' does not start: ${explain(error)}`, { cause: error });
    }
  }
  throw failure;
}

/** What the page shows of them. */
export function reportOf(choices: readonly EngineChoice[]): EngineReport {
  const { name, device } = getEngine();
  return { current: name, device, choices, notes: notes() };
}

function notes(): string[] {
  const found: string[] = [];
  if (!globalThis.crossOriginIsolated) {
    found.push(
      'This page is not cross-origin isolated, so memory cannot be shared and the CPU engine runs on one thread. A server that sends the headers Cross-Origin-Opener-Policy and Cross-Origin-Embedder-Policy changes that.',
    );
  }
  if (!('gpu' in navigator)) found.push('This browser offers no WebGPU here; the CPU engine works without it.');
  return found;
}
