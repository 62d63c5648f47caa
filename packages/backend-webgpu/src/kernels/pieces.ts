/**
 * Cutting a grid into several dispatches, where one would run so long that the system takes the device for hung (Windows
 * waits two seconds). Grids that are only too long for one axis are folded by the printer.
 */
import type { Program } from '@polygrad/core/engine/planned';
import { mostGroups } from '../constants.ts';

/** A part of a grid: `count` groups from `first` on, along each axis. */
export interface Piece {
  readonly first: readonly [number, number, number];
  readonly count: readonly [number, number, number];
}

/** One dispatch should stay under this time on a device that does so much in a second. */
const longestSeconds = 0.5;
const flopsPerSecond = 100e9;
const bytesPerSecond = 25e9;

/** Seconds that one group takes on a slow GPU, if nothing else runs. */
export function secondsOf({ cost, grid }: Program): number {
  return Math.max(cost.flops / flopsPerSecond, cost.bytes / bytesPerSecond) * grid[0] * grid[1] * grid[2];
}

/** True if one dispatch should not do the whole grid. */
export function needsPieces(program: Program): boolean {
  const [x, y, z] = program.grid;
  return secondsOf(program) > longestSeconds || x * y * z >= 2 ** 31;
}

/** The dispatches of a program whose grid is cut. */
export function piecesOf(program: Program): readonly Piece[] {
  const { grid } = program;
  const groups = grid[0] * grid[1] * grid[2];
  // So many groups make a piece. The slowest axis is cut first, so that they are neighbours.
  let most = Math.max(1, Math.floor(groups * Math.min(1, longestSeconds / secondsOf(program))));
  const steps: [number, number, number] = [...grid];
  for (let axis = 2; axis >= 0; axis--) {
    const inner = grid.slice(0, axis).reduce((n, extent) => n * extent, 1);
    steps[axis] = Math.min(grid[axis]!, Math.max(1, Math.floor(most / inner)), mostGroups);
    most = Math.min(most, inner);
  }
  const pieces: Piece[] = [];
  for (let z = 0; z < grid[2]; z += steps[2]) {
    for (let y = 0; y < grid[1]; y += steps[1]) {
      for (let x = 0; x < grid[0]; x += steps[0]) {
        const count = [x, y, z].map((at, axis) => Math.min(steps[axis]!, grid[axis]! - at));
        pieces.push({ first: [x, y, z], count: count as [number, number, number] });
      }
    }
  }
  return pieces;
}
