/** Grids with more groups in a dimension than the device dispatches: the same groups in another shape, counted off. */

export interface Folded {
  readonly dispatch: readonly [number, number, number];
  /** The dispatch is the grid itself. */
  readonly plain: boolean;
}

/**
 * The smallest box of at least as many groups with no side longer than `most`, or null if there is none.
 *
 * @example
 * import { foldGrid } from '@polygrad/emit-c/wgsl-facts';
 * console.log(foldGrid([100000, 1, 1], 65535)!.dispatch); //=> [ 50000, 2, 1 ]
 */
export function foldGrid(grid: readonly [number, number, number], most: number): Folded | null {
  if (grid.every((size) => size <= most)) return { dispatch: grid, plain: true };
  const total = grid[0] * grid[1] * grid[2];
  if (total >= 2 ** 31) return null;
  const z = Math.ceil(total / (most * most));
  const y = Math.ceil(total / (most * z));
  const x = Math.ceil(total / (y * z));
  return z > most ? null : { dispatch: [x, y, z], plain: false };
}

/** The lines that find the running group's place in the grid: `group` from the dispatched place `at`. */
export function foldLines(grid: readonly [number, number, number], { dispatch, plain }: Folded): readonly string[] {
  if (plain) return ['let group = vec3<i32>(at);'];
  const [x, y] = dispatch;
  const total = grid[0] * grid[1] * grid[2];
  const all = dispatch[0] * dispatch[1] * dispatch[2];
  const lines = [`let number = at.x + ${x}u * (at.y + ${y}u * at.z);`];
  // All threads of a group have the same place, so barriers below stay in uniform control flow.
  if (all > total) lines.push(`if (number >= ${total}u) { return; }`);
  lines.push(
    `let group = vec3<i32>(vec3<u32>(number % ${grid[0]}u, (number / ${grid[0]}u) % ${grid[1]}u, number / ${grid[0] * grid[1]}u));`,
  );
  return lines;
}

/** The same for a kernel that runs in pieces: the uniform block says where the piece begins. */
export const pieceLine = 'let group = vec3<i32>(at) + vec3<i32>(scalars.first_x, scalars.first_y, scalars.first_z);';
