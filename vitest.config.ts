/**
 * Tests run from sources: the condition `@polygrad/source` maps every workspace package to its `src`.
 *
 * POLYGRAD_TESTS chooses what runs: `unit` (the default) or `long` (files named *.long.test.ts too).
 */
import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

const conditions = ['@polygrad/source', 'module', 'node', 'import', 'default'];
const devices = new URL('./tooling/devices/environment.mjs', import.meta.url).href;
const { deviceEnvironment } = (await import(devices)) as { deviceEnvironment(): Record<string, string> };
const kind = process.env.POLYGRAD_TESTS ?? 'unit';

/**
 * Milliseconds after which a test counts as hanging. Nothing else: what a test finds must not depend on how fast or how busy the machine
 * is, so no test has a limit of its own.
 */
const hangs = kind === 'long' ? 7_200_000 : 600_000;

/**
 * Packages and applications whose test files share two processes, because starting one for each and loading core there costs as much as the
 * tests do. Those with devices of drivers start afresh, and so do tooling and applications that start processes anyhow.
 */
const sharing = {
  packages: [
    ...['compiler', 'core', 'nn', 'data', 'emit-c', 'emit-machine', 'emit-ptx', 'numbers', 'testing', 'backend-cpu'],
    ...['conformance', 'micrograd', 'polygrad'],
  ],
  apps: ['playground', 'mnist', 'bench'],
} as const;
const together = Object.entries(sharing).flatMap(([folder, names]) =>
  names.map((name) => `${folder}/${name}/src/**/*.test.ts`),
);

/** Of these, files that need modules or a process of their own, by why. */
const alone = [
  // They replace modules.
  'packages/backend-cpu/src/{setup,threads/late,dtypes/late,emit/no-listing}.test.ts',
  'packages/core/src/{engine/registry,tensor/beside,tensor/alone}.test.ts',
  // They register backends, or count what is registered.
  'packages/backend-cpu/src/late.test.ts',
  'packages/core/src/tensor/{placement,placement-later,recovery,recovery-faults,late-memory-apart,device-errors}.test.ts',
  'packages/core/src/placement/calibrate.test.ts',
  'apps/mnist/src/cli.test.ts',
  // They look at what imports bring: methods, functions without methods.
  'packages/core/src/methods/*.test.ts',
  'packages/nn/src/functions-only.test.ts',
  // They count memory of the process, or its collector.
  'packages/core/src/ops/images/image-layouts.test.ts',
];
const byItself = [...alone, '**/*.long.test.ts'];

const never = ['**/node_modules/**', '**/dist/**', ...(kind === 'unit' ? ['**/*.long.test.ts'] : [])];

/** Everything that does not run together. */
function apart(): string[] {
  const others = Object.entries(sharing).map(([folder, names]) => `${folder}/!(${names.join('|')})/src/**/*.test.ts`);
  const long = kind === 'long' ? ['{packages,apps}/*/src/**/*.long.test.ts'] : [];
  return [...others, 'tooling/*.test.mjs', ...alone, ...long];
}

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    env: deviceEnvironment(),
    pool: 'forks',
    testTimeout: hangs,
    hookTimeout: hangs,
    passWithNoTests: true,
    projects: [
      {
        extends: true,
        test: {
          name: 'together',
          include: together,
          exclude: [...never, ...byItself],
          isolate: false,
          setupFiles: ['tooling/own-runtime.mjs'],
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      // What stands in both lists of `together` is here. Three tenths of the time these wait for browsers, emulators and processes of their own.
      {
        extends: true,
        test: {
          name: 'alone',
          include: apart(),
          exclude: never,
          maxWorkers: availableParallelism() + 1,
          sequence: { groupOrder: 0 },
        },
      },
    ],
  },
});
