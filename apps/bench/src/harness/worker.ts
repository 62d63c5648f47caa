/**
 * The process of a participant written in JavaScript: loads its module, answers requests until told to quit.
 * Arguments: the module's URL; RunnerOptions without tools, as JSON; what samples are measured by.
 */
import { createInterface } from 'node:readline';
import { tools } from '../work/tools.ts';
import { runTrial } from '../work/trial.ts';
import { type ClockName, type FailureReply, mark, type Request } from '../peers/protocol.ts';
import type { Prepared, Runner, RunnerModule, RunnerOptions } from '../runners/runner.ts';
import { measureRound, warmUp } from './sampling.ts';

function say(reply: object): void {
  process.stdout.write(`${mark}${JSON.stringify(reply)}\n`);
}

function failure(error: unknown): FailureReply {
  const message = error instanceof Error ? error.message : String(error);
  return error instanceof Error && error.name === 'Unsupported' ? { unsupported: message } : { error: message };
}

/** Work whose first run takes longer is not repeated. */
const onceNs = 4e9;

const [url = '', json = '{}', clock = 'wall'] = process.argv.slice(2);

let prepared: Prepared | null = null;
let count = 1;

function finish(): void {
  prepared?.dispose();
  prepared = null;
  globalThis.gc?.(); // so that one case's garbage is not another's pause
}

async function answer(runner: Runner, request: Exclude<Request, { op: 'quit' }>): Promise<object> {
  switch (request.op) {
    case 'prepare': {
      finish();
      prepared = await runner.prepare(request.work);
      const start = performance.now();
      const probe = await prepared.probe();
      const probeNs = (performance.now() - start) * 1e6;
      const note = prepared.note === undefined ? {} : { note: prepared.note };
      // What takes seconds is not done again and again: the first run is the figure, compilation included.
      if (probeNs > onceNs && !prepared.repeats) return { probe, count: 1, opNs: probeNs, once: true, ...note };
      const warm = await warmUp(prepared, request.warmMs, clock as ClockName);
      count = warm.count;
      const peakBytes = prepared.peakBytes?.();
      const leastBytes = prepared.leastBytes?.();
      return {
        probe,
        ...warm,
        ...note,
        ...(peakBytes === undefined ? {} : { peakBytes }),
        ...(leastBytes === undefined ? {} : { leastBytes }),
      };
    }
    case 'measure':
      if (prepared === null) return { error: 'nothing is prepared' };
      return { samples: await measureRound(prepared, count, request.budgetMs, request.maxSamples, clock as ClockName) };
    case 'trial': {
      const makeSubject = runner.subject?.(request.work);
      if (makeSubject === undefined) return { unsupported: 'has no such networks' };
      return runTrial(request.work, makeSubject);
    }
    case 'finish':
      finish();
      return {};
  }
  return request satisfies never;
}

try {
  const module = (await import(url)) as RunnerModule;
  const runner = await module.createRunner({ ...(JSON.parse(json) as Omit<RunnerOptions, 'tools'>), tools });
  say({ version: runner.version, ...(runner.note === undefined ? {} : { note: runner.note }) });
  for await (const line of createInterface({ input: process.stdin })) {
    const request = JSON.parse(line) as Request;
    if (request.op === 'quit') break;
    try {
      say(await answer(runner, request));
    } catch (error) {
      say(failure(error));
    }
  }
  process.exit(0);
} catch (error) {
  say(failure(error));
  process.exit(1);
}
