/**
 * Tests run from sources: the condition `@polygrad/source` maps every workspace package to its `src`. With POLYGRAD_BUILT=1, as in `npm test` and
 * `npm run test:long`, which compile first, they run on the modules in `dist` (tooling/built-modules.mjs): an eighth less work.
 *
 * POLYGRAD_TESTS chooses what runs: `unit` (the default) or `long` (files named *.long.test.ts too).
 */
import { availableParallelism } from 'node:os';
import { defineConfig, type Plugin } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const tooling = (path: string): Promise<unknown> => import(new URL(`./tooling/${path}`, import.meta.url).href);
const { deviceEnvironment } = (await tooling('devices/environment.mjs')) as {
  deviceEnvironment(): Record<string, string>;
};
const { builtModule, builtModules } = (await tooling('built-modules.mjs')) as {
  builtModule: RegExp;
  builtModules(): Plugin;
};
const conditions = ['module', 'node', 'import', 'default'];
const kind = process.env.POLYGRAD_TESTS ?? 'unit';

/**
 * Milliseconds after which a test counts as hanging. Nothing else: what a test finds must not depend on how fast or how busy the machine
 * is, so no test has a limit of its own.
 */
const hangs = kind === 'long' ? 7_200_000 : 600_000;

/**
 * Packages and applications whose test files share two processes, because starting one for each and loading core there costs as much as the
 * tests do. Tooling and applications start processes anyhow.
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

/** Files that replace modules, which has to be sources then, in a process of their own. */
const replacing = [
  'packages/backend-cpu/src/{planned,setup,threads/late,dtypes/late,emit/no-listing}.test.ts',
  'packages/backend-webgpu/src/planned.test.ts',
  'packages/backend-native/src/{arm64,arm64-few,missing,provider}.test.ts',
  ...(kind === 'long' ? ['packages/backend-native/src/{arm64,arm64-suite}.long.test.ts'] : []),
  'packages/core/src/{engine/registry,planner/rare/late,tensor/beside,tensor/alone}.test.ts',
];

/** Files of packages that share which need modules or a process of their own, by why. */
const alone = [
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
  'packages/core/src/graph/young.test.ts',
  // It looks at lists that V8 has made, which depend on what ran before.
  'packages/core/src/graph/whole-sizes.test.ts',
];
const byItself = [...alone, ...replacing, '**/*.long.test.ts'];

const never = ['**/node_modules/**', '**/dist/**', ...(kind === 'unit' ? ['**/*.long.test.ts'] : [])];

/** Packages with devices of drivers. Their files share processes too, but none with those above, which find no engine that is not theirs. */
const devices = ['backend-webgpu', 'backend-opencl', 'backend-cuda', 'backend-native'];
const withDevices = devices.map((name) => `packages/${name}/src/**/*.test.ts`);

/**
 * Of these, files with a process of their own: they tell a driver which devices there are before it is loaded, or lose a device where no engine may
 * have been current before.
 */
const aloneWithDevices = [
  'packages/backend-opencl/src/two-devices.test.ts',
  'packages/backend-{opencl,cuda,webgpu}/src/recovery.test.ts',
];

/** Everything that does not run together. */
function apart(): string[] {
  const others = Object.entries(sharing).map(
    ([folder, names]) => `${folder}/!(${[...names, ...devices].join('|')})/src/**/*.test.ts`,
  );
  const long = kind === 'long' ? ['{packages,apps}/*/src/**/*.long.test.ts'] : [];
  return [...others, 'tooling/*.test.mjs', ...alone, ...aloneWithDevices, ...long];
}

/** Files that take longest or wait longest, each group's first: begun last, they would leave processors idle at the end of it. */
const longest = [
  ...['playground', 'bench-gpu', 'browser', 'manifests'].map((name) => `tooling/${name}.test.mjs`),
  'packages/backend-native/src/arm64.test.ts',
  'packages/core/src/placement/calibrate.test.ts',
  'packages/backend-opencl/src/shared.test.ts',
  'packages/backend-native/src/arm64-node.test.ts',
  ...['cudnn', 'drivers', 'shared'].map((name) => `packages/backend-cuda/src/${name}.test.ts`),
];

/** As vitest orders files, by what they took the last time or else by their size, but these first. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const i = longest.findIndex((path) => moduleId.endsWith(`/${path}`));
      return i < 0 ? longest.length : i;
    };
    return (await super.sort(files)).sort((a, b) => place(a) - place(b));
  }
}

const isShuffled = process.argv.some((arg) => arg.startsWith('--sequence.shuffle'));

/** How imports of packages are resolved: to sources, or to `dist`. */
const fromSources = {
  resolve: { conditions: ['@polygrad/source', ...conditions] },
  ssr: {
    resolve: {
      conditions: ['@polygrad/source', ...conditions],
      externalConditions: ['@polygrad/source', ...conditions],
    },
  },
};
const isBuilt = process.env.POLYGRAD_BUILT === '1';
const fromBuilt = {
  plugins: [builtModules()],
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
};
const imports = isBuilt ? fromBuilt : fromSources;
const deps = isBuilt ? { server: { deps: { external: [builtModule] } } } : {};

export default defineConfig({
  test: {
    env: deviceEnvironment(),
    pool: 'forks',
    testTimeout: hangs,
    hookTimeout: hangs,
    passWithNoTests: true,
    ...(isShuffled ? {} : { sequence: { sequencer: LongestFirst } }),
    projects: [
      {
        extends: true,
        ...imports,
        test: {
          ...deps,
          name: 'together',
          include: together,
          exclude: [...never, ...byItself],
          isolate: false,
          setupFiles: ['tooling/kept-modules.mjs', 'tooling/own-runtime.mjs'],
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
      {
        extends: true,
        ...imports,
        test: {
          ...deps,
          name: 'devices',
          include: withDevices,
          exclude: [...never, ...aloneWithDevices, ...replacing, '**/*.long.test.ts'],
          isolate: false,
          setupFiles: ['tooling/kept-modules.mjs', 'tooling/own-runtime.mjs'],
          maxWorkers: availableParallelism() + 1,
          sequence: { groupOrder: 1 },
        },
      },
      // Whatever stands in a list `alone` is here, but for what replaces modules. Three tenths of the time these wait for browsers, emulators and processes of their own.
      {
        extends: true,
        ...imports,
        test: {
          ...deps,
          name: 'alone',
          include: apart(),
          exclude: [...never, ...replacing],
          setupFiles: ['tooling/kept-modules.mjs'],
          maxWorkers: availableParallelism() + 1,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        ...fromSources,
        test: {
          name: 'replacing',
          include: replacing,
          maxWorkers: availableParallelism() + 1,
          sequence: { groupOrder: 0 },
        },
      },
    ],
  },
});
