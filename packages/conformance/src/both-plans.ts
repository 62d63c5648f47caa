/**
 * A case run twice: with plans of its own, and with plans for classes of sizes (`setDynamicSizes('always')`). What it reads must be the same bits,
 * but where the order of sums is open: then the case itself says whether it is close enough.
 */
import { clearPlans, setDynamicSizes, stats } from '@polygrad/core';
import type { Binding, IEngine } from '@polygrad/core/engine';
import type { Program } from '@polygrad/core/kernel';
import type { CaseResult, ConformanceCase } from './case.ts';

/** What a run read and compiled. */
interface Trace {
  readonly reads: Uint8Array[];
  /** A kernel keeps a value from one turn of a loop to the next: a sum, whose order is open. */
  sums: boolean;
}

/** Runs cases on an engine, each with both kinds of plans. */
export class BothPlans {
  /** The engine to be set: it listens. */
  readonly engine: IEngine;
  /** Cases of which a plan was bound, and of these the cases with other bits. */
  bound: number = 0;
  otherBits: number = 0;
  #trace: Trace = { reads: [], sums: false };

  constructor(engine: IEngine) {
    const compile = (programs: readonly Program[]) => {
      if (programs.some(carries)) this.#trace.sums = true;
      return engine.compile(programs);
    };
    const download = async (from: Binding, into: Uint8Array): Promise<Uint8Array> => {
      const { reads } = this.#trace;
      const bytes = await engine.download(from, into);
      reads.push(bytes.slice(0, from.bytes));
      return bytes;
    };
    this.engine = new Proxy(engine, {
      get(target, key) {
        if (key === 'compile') return compile;
        if (key === 'download') return download;
        const value: unknown = Reflect.get(target, key, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  }

  /** The outcome with shared plans; failed where the bits differ and nothing was summed. */
  async run(item: ConformanceCase, run: (item: ConformanceCase) => Promise<CaseResult>): Promise<CaseResult> {
    const traced = async (mode: 'always' | 'never'): Promise<{ result: CaseResult; trace: Trace; binds: number }> => {
      setDynamicSizes(mode);
      clearPlans();
      const trace: Trace = { reads: [], sums: false };
      this.#trace = trace;
      const before = stats().binds;
      const result = await run(item);
      return { result, trace, binds: stats().binds - before };
    };
    const alone = await traced('never');
    if (alone.result.outcome !== 'passed') return alone.result;
    const { result, trace, binds } = await traced('always');
    if (binds === 0 || result.outcome !== 'passed') return result;
    this.bound++;
    const other = difference(alone.trace.reads, trace.reads);
    if (other === null) return result;
    this.otherBits++;
    if (trace.sums || alone.trace.sums) return result;
    return { ...result, outcome: 'failed', detail: `${other} with plans for classes of sizes, and nothing is summed` };
  }
}

/** True for programs that keep values in registers from one turn of a loop to the next. */
const carries = ({ body }: Program): boolean => body.some((node) => node.op === 'REG');

/** Where reads of two runs differ; null where they do not. */
function difference(alone: readonly Uint8Array[], shared: readonly Uint8Array[]): string | null {
  if (alone.length !== shared.length) return `${shared.length} reads in place of ${alone.length}`;
  for (const [i, bytes] of alone.entries()) {
    const bad = bytes.findIndex((byte, at) => byte !== shared[i]![at]);
    if (bad >= 0 || bytes.length !== shared[i]!.length) return `other bits in read ${i}, byte ${bad}`;
  }
  return null;
}
