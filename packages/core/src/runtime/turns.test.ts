/** How often loops of reads give the event loop a turn. */
import { expect, it, vi } from 'vitest';
import { turn } from './reading.ts';

it('turns are due every ten milliseconds', () => {
  let now = performance.now() + 1000;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now);
  try {
    // Those that the garbage collector is owed.
    while (turn() !== null);
    now += 9;
    expect(turn()).toBeNull();
    now += 1;
    expect(turn()).toBeInstanceOf(Promise);
    expect(turn()).toBeNull();
  } finally {
    clock.mockRestore();
  }
});
