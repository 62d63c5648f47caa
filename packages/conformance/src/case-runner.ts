/**
 * Runs cases one after the other, and looks what each leaves behind: a case that leaks fails even if its values are right.
 *
 * One that throws cannot dispose what it holds. The garbage collector gives those buffers back some time, during a later case, which is not to
 * blame. Until then a leak of a later case may be outweighed by them; but the run has failed already.
 */
import { flush, getEngine, idle, memory } from '@polygrad/core';
import { cpuEngine } from '@polygrad/core/engine';
import type { CaseResult, ConformanceCase } from './case.ts';

/** Tests an engine cannot pass, with the reason that is reported. `tests` match by substring or pattern. */
export interface Skip {
  readonly reason: string;
  readonly tests: readonly (string | RegExp)[];
}

/** Live buffers of the engine under test and of the CPU engine beside it. */
function buffers(): number {
  const cpu = cpuEngine();
  const beside = cpu === null || 'then' in cpu || cpu === getEngine() ? 0 : memory(cpu).numBuffers;
  return memory().numBuffers + beside;
}

/** Gives back what was disposed while work was pending or under way to another engine. */
async function settle(): Promise<void> {
  flush();
  await idle();
}

export class CaseRunner {
  readonly #skip: readonly Skip[];
  /** Buffers of failed cases that were not released yet. */
  #strays = 0;

  constructor(skip: readonly Skip[]) {
    this.#skip = skip;
  }

  async run(item: ConformanceCase): Promise<CaseResult> {
    const { name } = item;
    const skipped = this.#skip.find(({ tests }) =>
      tests.some((t) => (typeof t === 'string' ? name.includes(t) : t.test(name))),
    );
    if (skipped) return { name, outcome: 'skipped', detail: skipped.reason, milliseconds: 0 };
    const start = performance.now();
    const finish = (outcome: CaseResult['outcome'], detail: string): CaseResult => ({
      ...{ name, outcome, detail },
      milliseconds: performance.now() - start,
    });
    const before = buffers();
    try {
      const reason = await item.run();
      await settle();
      const left = buffers() - before;
      if (!this.#explains(left))
        return finish('failed', `${left} buffers were left behind (${before} before, ${before + left} after)`);
      return reason ? finish('skipped', reason.skip) : finish('passed', '');
    } catch (error) {
      // What is pending may fail again; it was said already.
      await settle().catch(() => undefined);
      this.#explains(buffers() - before);
      return finish('failed', error instanceof Error ? error.message : String(error));
    }
  }

  /** Takes note of buffers left behind, or fewer than before. True if there are none, or no more are gone than failed cases left. */
  #explains(left: number): boolean {
    const fits = left <= 0 && -left <= this.#strays;
    this.#strays = Math.max(0, this.#strays + left);
    return fits;
  }
}
