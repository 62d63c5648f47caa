/**
 * Tests run from sources: the condition `@polygrad/source` maps every workspace package to its `src`.
 *
 * POLYGRAD_TESTS chooses what runs: `unit` (the default) or `long` (files named *.long.test.ts too).
 */
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

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    include: ['packages/*/src/**/*.test.ts', 'apps/*/src/**/*.test.ts', 'tooling/*.test.mjs'],
    exclude: ['**/node_modules/**', '**/dist/**', ...(kind === 'unit' ? ['**/*.long.test.ts'] : [])],
    env: deviceEnvironment(),
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: hangs,
    hookTimeout: hangs,
    passWithNoTests: true,
  },
});
