/** The harness without any peer: sampling, tables, inputs, expected values, and the processes' protocol. */
import { fileURLToPath } from 'node:url';
// Named here, so that later files of the process find the backend that runners load while tests run.
import '@polygrad/backend-cpu';
import { describe, expect, it } from 'vitest';
import { leastBytes } from '../networks/resnet-memory.ts';
import { type Command, startChild } from '../peers/child.ts';
import { jsonRequest, mark, wordRequest } from '../peers/protocol.ts';
import { formatNumber, formatTable } from '../reports/table.ts';
import { createRunner } from '../runners/polygrad.ts';
import { elementwise } from '../suites/elementwise.ts';
import { gemmCases, roundedUp } from '../suites/gemm.ts';
import { networks } from '../suites/networks.ts';
import { drawn, sizes } from '../suites/sizes.ts';
import type { BenchCase } from '../work/cases.ts';
import type { Participant } from '../peers/participants.ts';
import { difference, expectedProbe } from '../work/expected.ts';
import { element, fill, probePositions } from '../work/inputs.ts';
import { tools } from '../work/tools.ts';
import { runTrial } from '../work/trial.ts';
import { measureRound, warmUp } from './sampling.ts';
import { joined } from './measure.ts';
import { summarize } from './stats.ts';
import type { CaseResult, Entry, TrialCase } from './suite.ts';
import { isOver, runTrials, trialPace } from './trials.ts';

describe('inputs', () => {
  it('are the same numbers as ever: C and Python make them too', () => {
    expect([...fill(1, 4, -1, 1)]).toEqual([0, 1, 2, 3].map((i) => element(1, i, -1, 1)));
    expect(element(1, 0, -1, 1)).toBe(-0.1459285020828247);
    const mean = fill(3, 10_000, 0, 1).reduce((sum, x) => sum + x, 0) / 10_000;
    expect(Math.abs(mean - 0.5)).toBeLessThan(0.01);
    expect(probePositions(8)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });
});

describe('expected values', () => {
  it('are those of a plain matrix product', () => {
    const [m, n, k] = [3, 4, 5];
    const [a, b] = [fill(1, m * k, -1, 1), fill(2, k * n, -1, 1)];
    const product = Array.from({ length: m * n }, (_, at) => {
      const [row, column] = [Math.floor(at / n), at % n];
      return Array.from({ length: k }, (_, i) => a[row * k + i]! * b[i * n + column]!).reduce((x, y) => x + y);
    });
    const expected = expectedProbe({ kind: 'gemm', m, n, k });
    expect(expected?.values).toEqual(probePositions(m * n).map((at) => expect.closeTo(product[at]!, 10)));
  });

  it('catch what differs', () => {
    expect(difference([1, 2], [1, 2.05], 0.1)).toBeNull();
    expect(difference([1, 2], [1, 2.5], 0.1)).toContain('value 1 is 2, expected 2.5');
    expect(difference([Number.NaN], [0], 1)).toContain('NaN');
    expect(difference([], [0], 1)).toContain('0 values where 1');
  });
});

describe('sampling', () => {
  const work = (
    ns: number,
  ): {
    calls: number[];
    run(count: number): void;
    timed(count: number): number;
    probe(): number[];
    dispose(): void;
  } => {
    const calls: number[] = [];
    return {
      calls,
      run: () => undefined,
      timed: (count) => {
        calls.push(count);
        return ns * count;
      },
      probe: () => [],
      dispose: () => undefined,
    };
  };

  it('makes samples long enough to be timed', async () => {
    expect(await warmUp(work(100), 5)).toEqual({ count: 2000, opNs: 100 });
    expect(await warmUp(work(1e6), 5)).toEqual({ count: 1, opNs: 1e6 });
  });

  it('does not repeat slow work, and takes at least one sample', async () => {
    const slow = work(2e9);
    expect(await warmUp(slow, 1000)).toEqual({ count: 1, opNs: 2e9 });
    expect(slow.calls).toEqual([1]);
    expect(await measureRound(work(7), 10, 0, 5)).toEqual([7]);
    expect(await measureRound(work(7), 10, 1e9, 5)).toEqual([7, 7, 7, 7, 7]);
  });
});

describe('tables', () => {
  it('align columns', () => {
    expect(
      formatTable(
        ['case', 'x'],
        [
          ['a', '1.5'],
          ['long name', ''],
        ],
      ),
    ).toBe(['case         x', '---------  ---', 'a          1.5', 'long name'].join('\n'));
    expect([1234.5, 12.345, 1.2345, 0.012345, Number.NaN].map(formatNumber)).toEqual([
      '1235',
      '12.3',
      '1.23',
      '0.012',
      '-',
    ]);
  });
});

describe('matrix sizes', () => {
  it('have round neighbours, and short sides keep their length', () => {
    expect(roundedUp([61, 65, 1000])).toEqual([64, 128, 1024]);
    expect(roundedUp([1, 64, 8])).toEqual([1, 64, 8]);
    const cases = gemmCases([[65, 65, 65]]);
    expect(cases.map(({ id }) => id)).toEqual(['128x128x128', '65x65x65']);
    expect(cases[1]?.rounded).toBe('128x128x128');
    expect(cases[0]?.rounded).toBeUndefined();
  });
});

describe('networks and sizes', () => {
  it.each(networks.cases(true).map((one) => [one.id, one] as const))('train %s', async (_, { work }) => {
    const runner = await createRunner({ threads: 1, engine: 'cpu', folder: '', tools });
    const prepared = await runner.prepare(work);
    const [first, second] = (await prepared.probe()) as [number, number];
    expect(first).toBeGreaterThan(0);
    expect(second).toBeGreaterThan(0);
    expect(second).not.toBe(first);
    await prepared.run(1);
    expect(prepared.peakBytes?.()).toBeGreaterThan(0);
    prepared.dispose();
  });

  it('stop at their limit, and then have no whole run', async () => {
    const [whole] = sizes.trials?.(true).filter(({ id }) => id === 'whole-mlp') ?? [];
    let uses = 0;
    const work = { ...(whole as TrialCase).work, limitMs: -1 };
    const reply = await runTrial(work, () => ({ use: () => ++uses }));
    expect([uses, reply.times, whole?.ns(reply)]).toEqual([0, [], null]);
  });

  it('go on without who is missing, and end when their time is over', async () => {
    const cases = sizes.trials?.(true) ?? [];
    const participants = [{ name: 'before', threads: 1, folder: 'nothing-there' }] as const;
    const lines: string[] = [];
    const told = { attendance: () => undefined, progress: (line: string) => void lines.push(line) };
    const found = await runTrials(participants, cases, trialPace(7, 2, 0), 'cpu', told);
    expect(found.attendance[0]?.missing).toContain('no built checkout');
    expect(found.cases.map(({ entries, absent }) => [entries.length, absent.length])).toEqual(cases.map(() => [0, 1]));
    expect(lines).toEqual([]);
  });

  it('have fewer rounds where figures agree, and all that were asked for', () => {
    const [usual, asked] = [trialPace(7, null, 8), trialPace(7, 4, 8)];
    const [steady, noisy] = [
      [100, 101, 140],
      [100, 120, 150],
    ];
    const over = (pace: typeof usual, ...figures: number[][]) => isOver(pace, figures[0]!.length, figures);
    expect([over(usual, steady, steady), over(usual, steady, noisy), over(usual, [100, 101])]).toEqual([
      true,
      false,
      false,
    ]);
    expect(isOver(usual, 7, [noisy])).toBe(true);
    expect([over(asked, steady), isOver(asked, 4, [steady])]).toEqual([false, true]);
  });

  it('draw the same sizes as ever', () => {
    expect(drawn(201, 5, 100, 499)).toEqual([219, 178, 249, 371, 299]);
    const all = drawn(203, 1000, 16, 112);
    expect([Math.min(...all), Math.max(...all)]).toEqual([16, 112]);
  });

  it('know the least memory of ResNet-18', () => {
    const spec = { network: 'resnet18', width: 64, side: 32 } as const;
    // Without images: parameters, two moments and gradients.
    expect(leastBytes(spec, 0)).toBe(16 * 11_173_962);
    // With many of them a further one adds its pixels and the gradients of the last convolution's result and input. It adds 5 results of
    // convolutions and 5 of ReLUs in the first stage, 5 and 4 in each other.
    const [first, others] = [64 * 32 ** 2, 128 * 16 ** 2 + 256 * 8 ** 2 + 512 * 4 ** 2];
    const image = 3 * 32 ** 2 + 10 * first + 9 * others + 2 * 512 * 4 ** 2;
    expect(leastBytes(spec, 10_001) - leastBytes(spec, 10_000)).toBe(4 * image);
  });
});

describe('a case that was measured twice', () => {
  const [one] = elementwise.cases(true) as [BenchCase];
  const polygrad = { name: 'polygrad', threads: 1 } as const;
  const before = { name: 'before', threads: 1, folder: 'elsewhere' } as const;
  const entry = (participant: Participant, rounds: number[][]): Entry => {
    const ns = summarize(rounds.flat());
    return { participant, rounds, count: 1, ns, value: { median: 1 / ns.median, best: 1 / ns.best } };
  };

  it('has the samples of both times, whoever came first', () => {
    const unit = 'GB/s';
    const first: CaseResult = {
      case: one,
      unit,
      entries: [entry(polygrad, [[2, 3]]), entry(before, [[4]])],
      absent: [],
    };
    const second: CaseResult = { case: one, unit, entries: [entry(before, [[6]]), entry(polygrad, [[1]])], absent: [] };
    const found = joined(first, second).entries.map(({ participant, rounds, ns }) => [
      participant.name,
      rounds,
      ns.median,
    ]);
    expect(found).toEqual([
      ['polygrad', [[2, 3], [1]], 2],
      ['before', [[4], [6]], 5],
    ]);
  });

  it('tells once why somebody never came, and keeps figures of who came once', () => {
    const absent = [{ participant: before, reason: 'no built checkout' }];
    const [empty, full] = [[], [entry(polygrad, [[2]])]].map((entries) => ({ case: one, unit: 'ms', entries, absent }));
    const found = joined(empty!, full!);
    expect(found.absent).toEqual(absent);
    expect(found.entries.map(({ rounds }) => rounds)).toEqual([[[2]]]);
  });
});

describe('processes of participants', () => {
  const script = (code: string): Command => ({ program: process.execPath, args: ['-e', code], encode: jsonRequest });

  it('answer in turn, whatever else they print', async () => {
    const child = await startChild(
      script(`console.log('hello'); console.log('${mark}{"version":"1"}');
        process.stdin.on('data', (line) => {
          if (JSON.parse(line).op === 'quit') process.exit(0);
          console.log('noise'); console.log('${mark}{"samples":[1]}');
        });`),
    );
    expect(child.ready).toEqual({ version: '1' });
    expect(await child.ask({ op: 'finish' }, 540_000)).toEqual({ samples: [1] });
    expect(await child.ask({ op: 'finish' }, 540_000)).toEqual({ samples: [1] });
    await child.quit();
    expect(child.alive()).toBe(false);
  });

  it('are given up when they die, refuse or say nothing', async () => {
    await expect(startChild(script("console.error('no such thing'); process.exit(3)"))).rejects.toThrow(
      'ended with exit code 3: no such thing',
    );
    await expect(startChild(script(`console.log('${mark}{"unsupported":"not here"}')`))).rejects.toThrow('not here');
    const silent = await startChild(script(`console.log('${mark}{"version":"1"}'); process.stdin.resume()`));
    await expect(silent.ask({ op: 'finish' }, 50)).rejects.toThrow('no answer within 0 s');
    expect(silent.alive()).toBe(false);
    await expect(
      startChild({ program: fileURLToPath(new URL('nothing-there', import.meta.url)), args: [], encode: jsonRequest }),
    ).rejects.toThrow('ENOENT');
  });

  it('get requests as JSON or as words', () => {
    const prepare = { op: 'prepare', work: { kind: 'add', n: 5 }, warmMs: 2 } as const;
    expect(JSON.parse(jsonRequest(prepare))).toEqual(prepare);
    expect(wordRequest(prepare)).toBe('prepare add 5 2');
    expect(wordRequest({ op: 'measure', budgetMs: 3, maxSamples: 4 })).toBe('measure 3 4');
    expect(wordRequest({ op: 'quit' })).toBe('quit');
  });
});
