/** In pages an error says how long a refused program is, and where it is listed. */
import { ProgramBuilder } from '@polygrad/core/kernel';
import { expect, it, vi } from 'vitest';
import { createCpuEngine } from '../engine.ts';

vi.mock('#listing', () => import('./no-listing.ts'));

it('tells of a program that is refused', () => {
  const engine = createCpuEngine({ threads: 1 });
  const b = new ProgramBuilder();
  b.store(b.e.param(0, 'float16', 'write', 4), 0, b.e.constant('float16', 1));
  const program = b.build({ name: 'bad' });
  expect(() => engine.compile([program])).toThrow(
    /kernel 'bad' cannot be compiled: dtype float16 .*\nits 4 statements are listed in Node, and in pages bundled with the condition 'development'$/,
  );
  engine.dispose();
});
