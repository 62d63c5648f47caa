/** What changes while a program records and runs is in the runtime object (runtime/runtime.ts of core), not in modules. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { root } from './workspace.mjs';

/** The parts of a runtime that are in use: `useRuntime` changes them. */
const parts = ['graph', 'transactions', 'engines', 'runs', 'queue', 'copies'];

/** What a program has once, with the reason. */
const once = {
  count: 'numbers of the definitions of primitives, which are facts',
  marks: 'numbers that nothing else is marked with',
  nextId: 'numbers of buffers',
  devices: 'code that was loaded late',
  executed: 'code that comes with the first plan that is found',
  heard: 'code that comes with the first plan that is found',
  hints: 'the garbage collector is the one of the program',
  loops: 'code that comes with its first use',
  multiEngine: 'code that was loaded late',
  withOrigins: 'a switch for debugging',
};

it('no module of the rooms that record and run has state of its own', () => {
  const folder = join(root, 'packages/core/src');
  const files = ['graph', 'runtime', 'tensor', 'engine', 'autodiff', 'control'].flatMap((room) =>
    readdirSync(join(folder, room))
      .filter((name) => /^[\w-]+\.ts$/.test(name))
      .map((name) => join(folder, room, name)),
  );
  const found = files.flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/^(?:export )?let (\w+)/gm)].map(([, name]) => name),
  );
  expect(files.length).toBeGreaterThan(30);
  expect(found.sort()).toEqual([...parts, ...Object.keys(once)].sort());
});
