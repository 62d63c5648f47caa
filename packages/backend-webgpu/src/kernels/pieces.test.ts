import type { Program } from '@polygrad/core/kernel';
import { afterAll, describe, expect, it } from 'vitest';
import { testEngine } from '../fixtures/device.ts';
import { floatsOf, put, scaleProgram } from '../fixtures/programs.ts';
import { needsPieces, type Piece, piecesOf, secondsOf } from './pieces.ts';

const program = (grid: [number, number, number], flops: number): Program =>
  ({ grid, cost: { flops, bytes: 0 } }) as unknown as Program;

/** How often every group of a grid is in a piece. */
function visits([x, y, z]: readonly number[], pieces: readonly Piece[]): number[] {
  const seen = new Array<number>(x! * y! * z!).fill(0);
  for (const { first, count } of pieces)
    for (let k = 0; k < count[2]; k++)
      for (let j = 0; j < count[1]; j++)
        for (let i = 0; i < count[0]; i++) seen[(first[2] + k) * x! * y! + (first[1] + j) * x! + first[0] + i]!++;
  return seen;
}

describe('piecesOf', () => {
  it('leaves short kernels whole', () => {
    expect(needsPieces(program([60000, 1000, 1], 100))).toBe(false);
    expect(needsPieces(program([1000, 1, 1], 1e9))).toBe(true);
  });

  it('covers every group once, with no piece above half a second at 100 GFLOP/s', () => {
    for (const grid of [
      [1000, 1, 1],
      [7, 11, 13],
      [1, 1, 50],
      [3, 1, 2],
      [501, 2, 1],
    ] as [number, number, number][]) {
      for (const total of [6e10, 3.3e11, 2e12]) {
        const flops = total / (grid[0] * grid[1] * grid[2]);
        const p = program(grid, flops);
        const pieces = piecesOf(p);
        expect(visits(grid, pieces).every((n) => n === 1)).toBe(true);
        const longest = Math.max(...pieces.map(({ count }) => count[0] * count[1] * count[2]));
        expect(longest === 1 || (longest * flops) / 100e9 <= 0.5).toBe(true);
        expect(secondsOf(p)).toBeCloseTo(total / 100e9);
      }
    }
  });

  it('makes no piece longer than a dispatch may be', () => {
    for (const { count } of piecesOf(program([200000, 2, 1], 1e6)))
      expect(Math.max(...count)).toBeLessThanOrEqual(65535);
  });
});

const engine = await testEngine();
afterAll(() => engine?.dispose());

describe.skipIf(engine === null)('long and large kernels on the device', () => {
  const run = async (n: number, threads: number, flops: number): Promise<{ wrong: number; dispatches: number }> => {
    const e = engine!;
    const x = put(
      e,
      Float32Array.from({ length: n }, (_, i) => (i * 7) % 13),
    );
    const out = put(e, new Float32Array(n));
    const [kernel] = e.compile([scaleProgram(n, threads, flops)]);
    await e.idle();
    const before = e.traffic.dispatches;
    e.submit([{ kind: 'dispatch', kernel: kernel!, bindings: [x, out], scalars: [0.5] }]);
    const got = await floatsOf(e, out);
    e.free(x.buffer);
    e.free(out.buffer);
    return {
      wrong: got.findIndex((v, i) => v !== ((i * 7) % 13) * 0.5 + i),
      dispatches: e.traffic.dispatches - before,
    };
  };

  it('cuts by estimated time, with the same results', async () => {
    // 64 groups of 10 GFLOP: 6.4 s at 100 GFLOP/s.
    expect(await run(256, 4, 1e10)).toEqual({ wrong: -1, dispatches: 13 });
  });

  it('folds grids above 65,535 groups', async () => {
    expect(await run(131072, 1, 0)).toEqual({ wrong: -1, dispatches: 1 });
  });

  it('cuts such grids too', async () => {
    const { wrong, dispatches } = await run(131072, 1, 1e6);
    expect(wrong).toBe(-1);
    expect(dispatches).toBeGreaterThan(2);
  });
});
