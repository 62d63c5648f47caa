/**
 * The long tests, a table of named parts. Each says how many minutes it takes about on two cores: no more than a continuous integration
 * has left when the everyday tests are done. What is in no part is not run: `long.test.mjs` finds files and engines that are in none.
 */
import { deviceEnvironment, quickPocl } from '../devices/environment.mjs';
import { conformanceCommand, conformanceName, engines, isThere, required } from '../engines.mjs';

/** Tests of vitest: files, and of one file those whose name contains a text. */
const vitest = (name, minutes, files, only) => ({ name, minutes, kind: 'vitest', files, only });

/** A program whose last line has totals; without them its exit code counts as one test. */
const program = (name, minutes, script, args, env = {}) => ({ name, minutes, kind: 'program', script, args, env });

const core = 'packages/core/src';
const compiler = 'packages/compiler/src';
const opencl = 'packages/backend-opencl/src';
const cuda = 'packages/backend-cuda/src';
const native = 'packages/backend-native/src';

/** Unit tests of random cases: new ones each time, while `npm test` has the same every day. */
const randomFiles = [
  ...['shape/shape', 'ir/simplify/simplify', 'codegen/loops/optimize.fuzz', 'codegen/linearize/extrema'].map(
    (path) => `${compiler}/${path}.test.ts`,
  ),
  ...['runtime/fuzz', 'planner/arena', 'planner/capture/captured-graph', 'planner/families/sizes'].map(
    (path) => `${core}/${path}.test.ts`,
  ),
];

/** Test files that take some of their cases every day (packages/compiler/src/fixtures/everyday.ts), and all of them here. */
const whole = {
  'of tools and pages': [
    ...['bench-gpu', 'bundles', 'manifests', 'playground'].map((name) => `tooling/${name}.test.mjs`),
  ],
  'of the compiler': [
    ...['conv', 'sizes', 'simt/sizes', 'simt/staged'].map((name) => `${compiler}/contraction/${name}.test.ts`),
    ...['rows', 'emitted', 'assembled'].map((name) => `packages/emit-ptx/src/${name}.test.ts`),
  ],
  'of core and nn': [
    ...['wrong-kinds', 'attention/attention-kernel', 'attention/attention-sizes'].map(
      (name) => `${core}/ops/${name}.test.ts`,
    ),
    `${core}/placement/calibrate.test.ts`,
    ...['several', 'counted', 'joined'].map((name) => `${core}/planner/families/${name}.test.ts`),
    ...['wrong-arguments', 'optim/failed-steps'].map((name) => `packages/nn/src/${name}.test.ts`),
  ],
  'of engines': [
    ...['bitwise', 'values', 'fuzz', 'arm64', 'arm64-node'].map((name) => `${native}/${name}.test.ts`),
    ...['drivers', 'cudnn'].map((name) => `${cuda}/${name}.test.ts`),
    'packages/backend-webgpu/src/tuning.test.ts',
  ],
};

const unit = [
  ...Object.entries(whole).map(([name, files]) => vitest(`unit tests whole ${name}`, 6, files)),
  vitest('random unit tests', 2, randomFiles),
  vitest('accuracy over float32', 2, [`${compiler}/arithmetic/decompose/decompose.long.test.ts`]),
  vitest('changed calls', 4, [`${core}/changed-calls.long.test.ts`]),
  vitest('compiled functions at other sizes', 1, [`${core}/replay/changing-sizes.long.test.ts`]),
  vitest('huge numbers', 4, [`${core}/ops/huge-numbers.long.test.ts`]),
  vitest('files above 2 GiB', 1, ['packages/data/src/node/files.long.test.ts']),
  vitest('random programs', 2, ['packages/conformance/src/fuzz/fuzz.long.test.ts']),
  vitest('concurrency', 12, ['packages/auto-detect/src/concurrency.long.test.ts']),
  vitest('mixed precision', 6, ['packages/nn/src/precision/convergence.long.test.ts']),
  vitest('games', 3, ['apps/examples/src/dqn.long.test.ts']),
  vitest('engines in Chromium', 2, ['tooling/browser.test.mjs']),
  vitest('kept plans', 4, ['packages/conformance/src/kept-plans.long.test.ts']),
  vitest('sizes', 2, ['packages/backend-cpu/src/sizes.long.test.ts']),
  vitest('contractions with sizes', 4, [`${compiler}/contraction/sizes.long.test.ts`]),
  vitest('convolutions of libraries', 2, [`${compiler}/contraction/products/convolutions.long.test.ts`]),
  vitest('native bit for bit', 10, [`${native}/bitwise.long.test.ts`]),
  vitest('arm64', 8, [`${native}/arm64.long.test.ts`]),
  ...Array.from({ length: 8 }, (_, i) =>
    vitest(`arm64 bit for bit ${i + 1}/8`, 10, [`${native}/arm64-suite.long.test.ts`], `${i + 1} of 8`),
  ),
  vitest('native between closed pages', 5, [`${native}/guards.long.test.ts`]),
  vitest('soak native', 8, [`${native}/soak.long.test.ts`]),
  vitest('printed WGSL', 4, ['packages/backend-webgpu/src/emitted.long.test.ts']),
  vitest('printed OpenCL C', 7, [`${opencl}/emitted.long.test.ts`]),
  vitest('emitted PTX', 4, ['packages/emit-ptx/src/emitted.long.test.ts']),
  vitest('products as PTX', 4, ['packages/emit-ptx/src/products.long.test.ts']),
  vitest('attention as PTX', 2, ['packages/emit-ptx/src/attention.test.ts']),
  vitest('assembled PTX', 8, ['packages/emit-ptx/src/assembled.long.test.ts']),
  ...['sm_75', 'sm_80', 'sm_86', 'sm_89', 'sm_90', 'sm_100', 'sm_120'].map((card) =>
    vitest(`suite as PTX ${card}`, 5, ['packages/emit-ptx/src/suite.long.test.ts'], card),
  ),
  vitest('CLBlast', 2, [`${opencl}/clblast.long.test.ts`]),
  vitest('CUDA on arm64', 3, [`${cuda}/arm64.long.test.ts`]),
  vitest('OpenCL on arm64', 3, [`${opencl}/arm64.long.test.ts`]),
  vitest('CUDA on Windows', 3, [`${cuda}/windows.long.test.ts`]),
  vitest('OpenCL on Windows', 3, [`${opencl}/windows.long.test.ts`]),
  vitest('native on Windows', 2, ['packages/backend-native/src/windows.long.test.ts']),
  program('MNIST on the simulated CUDA driver', 4, 'tooling/cuda-sim/mnist.mjs', [], deviceEnvironment()),
];

/** Texts in the names of the tests of soak.long.test.ts. */
const soak = [
  ['engines', 2, '200 engines, one after the other'],
  ['allocations', 2, '10 million buffers'],
  ['workers', 4, '100 threads of Node at once'],
  ['endings', 3, '100 threads ended at any moment'],
  ['writers', 2, 'many processes that write one folder'],
  ['builders', 2, 'processes that build the same programs'],
  ['templates', 4, 'every template, in both modes'],
  ['engines sanitized', 3, '200 engines under AddressSanitizer'],
  ['endings sanitized', 3, 'threads ended at any moment under AddressSanitizer'],
  ['bad calls sanitized', 4, 'bad calls under AddressSanitizer'],
  ['Oclgrind threads', 2, 'leaves its bounds: threads'],
  ['Oclgrind simt', 5, 'leaves its bounds: simt'],
]
  .map(([name, minutes, only]) => vitest(`soak ${name}`, minutes, [`${opencl}/soak.long.test.ts`], only))
  .concat(vitest('soak CUDA', 8, [`${cuda}/soak.long.test.ts`]));

/** Everything on every engine, in parts. */
const conformance = engines.filter(isThere).flatMap((entry) => {
  const { script, args } = conformanceCommand(entry);
  const { parts, minutes } = entry.whole ?? { parts: 0 };
  const env = {
    ...(entry.browser ? {} : deviceEnvironment()),
    // What PoCL makes of a kernel by default is run by the sample of `npm test`, and by random programs.
    ...(entry.engine.startsWith('opencl') ? quickPocl() : {}),
    POLYGRAD_LONG: '1',
    POLYGRAD_REQUIRE: [...required].join(),
  };
  // As in `npm test`: what needs no more than a processor may not be left out.
  return Array.from({ length: parts }, (_, i) => {
    const slice = parts === 1 ? [] : ['--slice', `${i + 1}/${parts}`];
    const name = `${conformanceName(entry)}${parts === 1 ? '' : ` ${i + 1}/${parts}`}`;
    return program(name, minutes, script, [...args, ...slice], env);
  });
});

/** Programs of each kind where the same are drawn every time: what takes one to three minutes on two cores. */
const programs = {
  cpu: {
    programs: 6000,
    gradients: 600,
    errors: 6000,
    trainings: 200,
    faults: 1000,
    sizes: 400,
    'size-gradients': 80,
    transforms: 400,
    'transform-gradients': 150,
    histories: 800,
    matrices: 60,
  },
  native: {
    programs: 2000,
    gradients: 300,
    errors: 4000,
    trainings: 60,
    faults: 1000,
    sizes: 300,
    'size-gradients': 60,
    transforms: 300,
    'transform-gradients': 100,
    histories: 500,
    matrices: 50,
  },
  'native-v3': { programs: 1000, gradients: 200 },
  webgpu: { programs: 300, gradients: 200, errors: 800, trainings: 30, faults: 60, transforms: 60, histories: 200 },
  opencl: { programs: 300, gradients: 100, errors: 600, trainings: 15, faults: 200, transforms: 60 },
  'opencl-simt': { programs: 300, gradients: 100, errors: 600, trainings: 15 },
  cuda: {
    programs: 300,
    gradients: 60,
    errors: 200,
    trainings: 15,
    faults: 60,
    sizes: 300,
    transforms: 60,
    histories: 100,
  },
  reference: {
    programs: 3000,
    gradients: 300,
    errors: 6000,
    trainings: 150,
    faults: 1000,
    sizes: 400,
    'size-gradients': 60,
    transforms: 300,
    'transform-gradients': 100,
    histories: 300,
    matrices: 20,
  },
  'reference-simt': { programs: 3000, gradients: 300, errors: 6000, trainings: 150, transforms: 300, histories: 300 },
  'reference-matrix': { programs: 2000, gradients: 200, trainings: 100, sizes: 200, transforms: 120 },
};

/** The same with plans for classes of sizes from the first flush on: of sizes, programs that run at six or seven of them. */
const programsAlways = {
  cpu: { programs: 2000, gradients: 200, trainings: 60, sizes: 1000, 'size-gradients': 150 },
  reference: { programs: 1000, sizes: 800, 'size-gradients': 80 },
};

/**
 * Twice as many random programs, others every day; with POLYGRAD_DRAWS=same as many as the tables say, always the same. Their number is what a part has
 * shown when it passes, so it does not depend on how busy the machine is.
 */
const same = process.env.POLYGRAD_DRAWS === 'same';
const fuzzMinutes = 5;
const seed = same ? 1 : Math.floor(Date.now() / 86_400_000);
const fuzzOf = (table, more) =>
  Object.entries(table).flatMap(([engine, kinds]) =>
    Object.entries(kinds).map(([kind, count]) => {
      const numbers = { seed, programs: same ? count : 2 * count };
      const options = Object.entries({ engine, kind, ...numbers, ...more }).flatMap(([name, value]) => [
        `--${name}`,
        String(value),
      ]);
      const name = ['fuzz', kind, engine, ...Object.entries(more).flat()].join(' ');
      return program(name, fuzzMinutes, 'tooling/fuzz.mjs', options, deviceEnvironment());
    }),
  );
const fuzz = [...fuzzOf(programs, {}), ...fuzzOf(programsAlways, { sizes: 'always' })];

/** Every part, in the order in which they take turns: kinds mixed, so that neighbours are not all of one engine. */
export const parts = mixed([unit, soak, conformance, fuzz]);

/** Lists one into the other, each evenly over the whole. */
function mixed(lists) {
  return lists
    .flatMap((list) => list.map((part, i) => ({ part, at: (i + 0.5) / list.length })))
    .sort((a, b) => a.at - b.at)
    .map(({ part }) => part);
}
