/** How many workers are asked, on a clock of its own; and a worker that comes late, in the real thing. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { heapAt } from '../memory/layout.ts';
import { chunkBits, control } from './control.ts';
import { Crew } from './crew.ts';
import { SharedDispatch } from './dispatch.ts';

afterEach(() => {
  vi.useRealTimers();
});

const newWords = (): Int32Array => new Int32Array(new SharedArrayBuffer(heapAt));

describe('a crew', () => {
  function make(workers: number): { crew: Crew; words: Int32Array } {
    vi.useFakeTimers({ toFake: ['performance', 'Date'], now: 0 });
    const words = newWords();
    return { crew: new Crew(words, workers), words };
  }
  const share = (crew: Crew, count: number): void => {
    for (let i = 0; i < count; i++) crew.share(16, 8);
  };

  it('is all workers while none is late, and then one fewer until a while later', () => {
    const { crew, words } = make(3);
    share(crew, 1000);
    crew.look();
    expect([crew.size, words[control.crew]]).toEqual([3, 3]);
    crew.late(performance.now());
    expect([crew.size, words[control.crew]]).toEqual([2, 2]);
    vi.advanceTimersByTime(4);
    crew.look();
    expect(crew.size).toBe(2);
    vi.advanceTimersByTime(2);
    crew.look();
    expect([crew.size, words[control.crew]]).toEqual([3, 3]);
  });

  it('is tried more rarely while trying fails, and at once again when the machine is quiet', () => {
    const { crew } = make(1);
    const pauses: number[] = [];
    share(crew, 1000);
    for (let i = 0; i < 10; i++) {
      crew.late(performance.now());
      expect(crew.size).toBe(0);
      const from = performance.now();
      while (crew.size === 0) {
        vi.advanceTimersByTime(1);
        crew.look();
      }
      pauses.push(performance.now() - from);
      share(crew, 20);
    }
    expect(pauses).toEqual([5, 10, 20, 40, 80, 160, 320, 640, 640, 640]);
    // Work that went well for long is worth another try soon.
    share(crew, 1000);
    crew.late(performance.now());
    vi.advanceTimersByTime(5);
    crew.look();
    expect(crew.size).toBe(1);
  });
});

it('a crew that does next to nothing is left alone for a while', () => {
  const crew = new Crew(newWords(), 1);
  for (let i = 0; i < 100; i++) crew.share(32, 1);
  expect(crew.size).toBe(0);
});

it('a worker that is stopped in the middle of a chunk is waited for, and left alone then', () => {
  const words = newWords();
  const crew = new Crew(words, 1);
  const dispatch = new SharedDispatch(words, 1, 0, crew);
  let ran = 0;
  const fn = (_: number, from: number, to: number): void => {
    // A worker takes the last chunk, and is stopped before it has done it.
    if (ran === 0) Atomics.sub(words, control.ticket, 1 << chunkBits);
    ran += to - from;
  };
  let slept = 0;
  const spy = vi.spyOn(Atomics, 'wait').mockImplementation((() => {
    const end = performance.now() + 5;
    while (performance.now() < end);
    slept++;
    Atomics.add(words, control.done, 1);
    return 'not-equal';
  }) as typeof Atomics.wait);
  dispatch.start({ name: 'slow', fn, slot: 0, index: 0, groups: 64 }, { chunk: 1, most: 4, patience: 0.1 });
  dispatch.finish();
  spy.mockRestore();
  expect([ran, slept, crew.size]).toEqual([63, 1, 0]);
});
