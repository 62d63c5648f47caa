/** How wide vectors are, for each nest of loops: narrow ones waste less where a row is short. */

/** Vectors that leave the fewest steps along a run of elements, what is left over being taken one by one. */
export function fittingBytes(most: number): (run: number, bytes: number) => number {
  return (run, bytes) => {
    const size = Math.max(4, bytes);
    const steps = (wide: number): number => Math.floor(run / (wide / size)) + (run % (wide / size));
    let best = most;
    for (let wide = most / 2; wide >= 16; wide /= 2) if (steps(wide) < steps(best)) best = wide;
    return best;
  };
}
