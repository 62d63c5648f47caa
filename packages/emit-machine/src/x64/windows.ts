/** Lanes from several vectors, in x86-64. */
import type { Reg } from '../form/code.ts';
import type { Context } from '../form/machine.ts';

interface Picked {
  readonly window: number;
  readonly at: number;
}

/** Lanes of four bytes from any of some vectors. */
export function pickLanes(ctx: Context, loaded: readonly Reg[], lanes: readonly Picked[], bytes: number): Reg {
  if (bytes === 16) {
    const few = short(ctx, loaded, lanes);
    if (few !== null) return few;
  }
  return ctx.target.isa === 'x64-v4' ? moved(ctx, loaded, lanes, bytes) : blended(ctx, loaded, lanes, bytes);
}

/** Four lanes by one instruction, where there is one: of one window, or the first two lanes of one and the last two of another. */
function short({ b }: Context, loaded: readonly Reg[], lanes: readonly Picked[]): Reg | null {
  const [w, x, y, z] = lanes as [Picked, Picked, Picked, Picked];
  const how = w.at | (x.at << 2) | (y.at << 4) | (z.at << 6);
  if (loaded.length === 1) return b.op('vpshufd', 16, loaded[0]!, how);
  if (w.window !== x.window || y.window !== z.window) return null;
  return b.op('vshufps', 16, loaded[w.window]!, loaded[y.window]!, how);
}

/** AVX-512: lanes of two windows at a time; then those of each further one among what is there. */
function moved(ctx: Context, loaded: readonly Reg[], lanes: readonly Picked[], bytes: number): Reg {
  const { b } = ctx;
  const width = bytes / 4;
  if (loaded.length === 1)
    return b.op(
      'vpermps',
      bytes,
      words(
        ctx,
        lanes.map(({ at }) => at),
      ),
      loaded[0]!,
    ); // prettier-ignore
  let made = loaded[0]!;
  for (let next = 1; next < loaded.length; next++) {
    const to = b.copy(made, bytes);
    const from = lanes.map(({ window, at }, lane) =>
      window === next ? width + at : window > next ? 0 : next === 1 ? at : lane,
    );
    b.ins('vpermt2ps', bytes, to, words(ctx, from), loaded[next]!);
    made = to;
  }
  return made;
}

/** AVX2: lanes of each window moved to their places, and then taken from there. */
function blended(ctx: Context, loaded: readonly Reg[], lanes: readonly Picked[], bytes: number): Reg {
  const { b } = ctx;
  const placed = loaded.map((reg, i) => {
    const from = lanes.map(({ window, at }) => (window === i ? at : 0));
    if (bytes === 16)
      return b.op(
        'vpshufd',
        16,
        reg,
        from.reduce((sum, at, lane) => sum | (at << (2 * lane)), 0),
      );
    return b.op('vpermps', bytes, words(ctx, from), reg);
  });
  return placed.reduce((made, reg, i) =>
    b.op(
      'vblendps',
      bytes,
      made,
      reg,
      lanes.reduce((mask, { window }, lane) => mask | (Number(window === i) << lane), 0),
    ),
  );
}

/** A vector of integers that is a constant. */
function words({ b }: Context, values: readonly number[]): Reg {
  return b.vector(new Uint8Array(new Uint32Array(values).buffer));
}
