/**
 * `node apps/bench/dist/commands/fork-join.js [--threads N] [--turns N]`: what it costs to have a kernel done by several threads.
 *
 * A kernel whose groups store one number each is said to be dear, so that the engine hands its groups out. One engine does that with several
 * threads, the other with one, in turns. The difference is the fork, the taking of groups and the join, less what the others have done.
 * `after a pause`: nothing was computed for a while before, so the others sleep.
 */
import { createCpuEngine } from '@polygrad/backend-cpu';
import { createNativeEngine } from '@polygrad/backend-native';
import type { Command, IEngine } from '@polygrad/core/engine';
import { type Program, ProgramBuilder } from '@polygrad/core/kernel/ir';
import { load } from '../reports/machine.ts';
import { optionsOf } from './usage.ts';

/** Each group stores its number; so little work would never go to several threads otherwise. */
function tiny(groups: number): Program {
  const b = new ProgramBuilder();
  const { e } = b;
  const group = e.special('group', 0, groups);
  b.store(e.param(0, 'int32', 'write', groups), group, group);
  const program = b.build({ name: `tiny${groups}`, grid: [groups, 1, 1] });
  return { ...program, cost: { flops: 1e9, bytes: 0 } };
}

/** Has an engine do the kernel. */
function runner(engine: IEngine, groups: number): () => void {
  const [kernel] = engine.compile([tiny(groups)]);
  const bytes = groups * 4;
  const bindings = [{ buffer: engine.alloc(bytes), offset: 0, bytes }];
  const commands: readonly Command[] = [{ kind: 'dispatch', kernel: kernel!, bindings, scalars: [] }];
  return () => engine.submit(commands);
}

const repeats = 200;

/** Microseconds of each of some runs. */
function turn(run: () => void): number {
  const start = performance.now();
  for (let i = 0; i < repeats; i++) run();
  return ((performance.now() - start) / repeats) * 1000;
}

/** Microseconds of one run after so many milliseconds without any. */
function afterPause(run: () => void): number {
  const end = performance.now() + 2;
  while (performance.now() < end);
  const start = performance.now();
  run();
  return (performance.now() - start) * 1000;
}

const least = (list: readonly number[]): number => list.reduce((a, b) => Math.min(a, b));
const middle = (list: readonly number[]): number => [...list].sort((a, b) => a - b)[list.length >> 1]!;
const shown = (list: readonly number[]): string => `${middle(list).toFixed(2)}/${least(list).toFixed(2)}`.padEnd(14);

const values = optionsOf(import.meta.url, {
  turns: { type: 'string', default: '200' },
  threads: { type: 'string', default: '2' },
});
const [turns, threads] = [Number(values.turns), Number(values.threads)];
console.log(`median/least microseconds, ${threads} threads, ${turns} turns, load ${load().toFixed(1)}`);
console.log('engine  groups  one thread    threads       fork and join  after a pause');
for (const [name, make] of [
  ['native', createNativeEngine],
  ['cpu', createCpuEngine],
] as const) {
  for (const groups of [2, 32]) {
    const engines = [make({ threads: 1 }), make({ threads })] as const;
    const [alone, together] = engines.map((engine) => runner(engine, groups)) as [() => void, () => void];
    for (let i = 0; i < 20; i++) for (const run of [alone, together]) turn(run);
    const found: { readonly one: number; readonly many: number; readonly late: number }[] = [];
    for (let i = 0; i < turns; i++) found.push({ one: turn(alone), many: turn(together), late: afterPause(together) });
    const joined = found.map(({ one, many }) => many - one);
    const columns = [found.map((f) => f.one), found.map((f) => f.many), joined, found.map((f) => f.late)];
    console.log(name.padEnd(7), String(groups).padEnd(7), columns.map(shown).join(''));
    for (const engine of engines) engine.dispose();
  }
}
