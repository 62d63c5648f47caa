/**
 * `npm run fuzz -- [--help] [--engine NAME] [--threads N] [--kind programs|gradients|errors|trainings|faults|sizes|size-gradients|transforms|transform-gradients|histories|matrices] [--seed N] [--programs N] [--seconds N] [--path P] [--all] [--sizes always] [--trace FILE]`
 *
 * Random programs of public operations against float64 formulas, fused and op by op (packages/conformance/src/fuzz). Cases of the suite are steps of
 * them too, with their options. What fails is shrunk by fast-check and printed as TypeScript, with the seed and path that repeat it. Kinds beside programs:
 *
 * - errors: calls with one argument changed, of random programs and of every public function, whose right call is made first. They are refused in the
 *   words of the library, or come to the same on the engine and on the reference engine. Every setting is put back, `--sizes` too.
 * - trainings: random networks, optimizers and groups of parameters (fuzz/trainings.mjs), with steps that compile replays, on the engine and on the
 *   reference engine, fused and op by op.
 * - faults: trainings on engines that fail (fuzz/faults.mjs). They end with the bits they would have had.
 * - sizes: programs of which one extent changes from run to run, or two do, so that sizes share plans; size-gradients: the same of derivatives.
 * - transforms: programs as functions that compile replays, as bodies of loops and batches, on state that calls change; transform-gradients: their
 *   derivatives.
 * - histories: leaves with backward(), tapes, detach, noGrad and assignments between, on arrays of the oracle too.
 * - matrices: factors and equations of linear algebra, alone, in batches, loops and compiled.
 *
 * With --sizes always the first flush of a form is bound to a plan for a class of sizes already (setDynamicSizes). Sizes and size-gradients are
 * compared with plans of their own, and of trainings the rows change. With --all every different failure is printed as it is found, unshrunk.
 * --trace keeps the program that runs in a file, should the process end with it. The last line is `N passed, N failed, N skipped`, and
 * the exit code 1 if something failed.
 */
import { writeFileSync } from 'node:fs';
import fc from 'fast-check';
import { checkGradients } from '../packages/conformance/dist/fuzz/gradients.js';
import { check } from '../packages/conformance/dist/fuzz/check.js';
import { historyOf, HistoryFuzz, printHistory } from '../packages/conformance/dist/fuzz/histories.js';
import { matrixCallOf, MatrixFuzz } from '../packages/conformance/dist/fuzz/matrices.js';
import { Choices } from '../packages/conformance/dist/programs/choices.js';
import { CallFuzz } from '../packages/conformance/dist/fuzz/refusals.js';
import { generate, settingsFor } from '../packages/conformance/dist/fuzz/generate.js';
import { loadSharing, printSizes, programsOf, SizesFuzz } from '../packages/conformance/dist/fuzz/sizes.js';
import { printSubject, subjectOf, TransformFuzz } from '../packages/conformance/dist/fuzz/transforms.js';
import { printProgram } from '../packages/conformance/dist/programs/program.js';
import { isRequired, makeEngine } from '../packages/conformance/dist/engines.js';
import { setDynamicSizes, setEngine, setLogger } from '@polygrad/core';
import { createReferenceEngine, uncalled } from '@polygrad/testing';
import { optionsOf } from '../apps/bench/dist/commands/usage.js';
import { checkFaults } from './fuzz/faults.mjs';
import { checkTraining, checkTrainingAtSizes } from './fuzz/trainings.mjs';

const values = optionsOf(import.meta.url, {
  engine: { type: 'string', default: 'cpu' },
  threads: { type: 'string', default: '1' },
  seed: { type: 'string', default: '1' },
  programs: { type: 'string', default: '1000' },
  seconds: { type: 'string', default: '0' },
  path: { type: 'string' },
  trace: { type: 'string' },
  all: { type: 'boolean', default: false },
  kind: { type: 'string', default: 'programs' },
  sizes: { type: 'string', default: 'automatic' },
});

const made = await makeEngine(values.engine, { threads: Number(values.threads) });
if ('missing' in made) {
  console.log(`SKIPPED engine ${values.engine}: ${made.missing}`);
  const missed = isRequired(values.engine);
  console.log(missed ? '0 passed, 1 failed, 0 skipped' : '0 passed, 0 failed, 1 skipped');
  process.exit(missed ? 2 : 0);
}
await setEngine(made.engine);
// Programs of many sizes are what it is for.
setLogger(null);
const rejected = [];
process.on('unhandledRejection', (error) => rejected.push(error));

const gpu = values.engine === 'webgpu';
const options = { exact: !gpu, scale: gpu ? 8 : 1 };
const smooth = values.kind.endsWith('gradients');
const transforms = values.kind.startsWith('transform');
const sizes = values.kind === 'sizes' || values.kind === 'size-gradients';
// Programs that run at several sizes are short: more of them are met.
const rows = fc.array(fc.array(fc.nat(0xffff), { minLength: 4, maxLength: 24 }), {
  minLength: 4,
  maxLength: sizes ? 10 : 20,
});
const settings = settingsFor(made.engine.caps, smooth);
const ops = new Map();
let ran = 0;
let compared = 0;
let replayed = 0;
const traced = (text) => {
  if (values.trace !== undefined) writeFileSync(values.trace, text);
};
const calls = values.kind === 'errors' ? await CallFuzz.create(made.engine, { ...options, told: traced }) : null;
const sized = sizes ? new SizesFuzz(settings, options, values.sizes) : null;
const functions = transforms ? new TransformFuzz(settings, options) : null;
const histories = values.kind === 'histories' ? new HistoryFuzz() : null;
const matrices = values.kind === 'matrices' ? new MatrixFuzz(settings.dtypes) : null;
if (sizes) await loadSharing();
setDynamicSizes(values.sizes);
let unreached = null;
// A path repeats one draw.
if (calls !== null && values.path === undefined)
  await calls.checkRightCalls().catch((error) => {
    unreached = error;
    console.log(error.message);
  });
// The last row of numbers says what is changed for a call that may be refused.
const programOf = (raw) => generate(values.kind === 'errors' ? raw.slice(0, -1) : raw, settings);
const training = values.kind === 'trainings';
const faults = values.kind === 'faults';
/** Errors of all schedules, and engines that they took. */
const met = { thrown: 0, engines: 0 };
const another = async () => (await makeEngine(values.engine, { threads: Number(values.threads) })).engine;
const engines = training ? [made.engine, createReferenceEngine()] : [];
const seen = new Map();
/** Settled when what runs has ended: a time limit does not wait for it. */
let running = Promise.resolve();
const property = fc.asyncProperty(rows, async (raw) => {
  try {
    running = one(raw);
    await running;
  } catch (error) {
    if (!values.all) throw error;
    const key = String(error)
      .split('\n')[0]
      .replace(/[-\d.]+/g, '#');
    if (!seen.has(key)) console.log(String(error.stack).slice(0, 1500));
    seen.set(key, (seen.get(key) ?? 0) + 1);
  }
});
async function one(raw) {
  if (faults) {
    ran++;
    const { thrown, engines: made } = await checkFaults(another, raw.flat());
    met.thrown += thrown;
    met.engines += made;
    await new Promise((resolve) => setImmediate(resolve));
    if (rejected.length > 0) throw new Error(`unhandled rejection: ${rejected.splice(0)[0]}`);
    return;
  }
  if (training) {
    ran++;
    if (values.sizes === 'always') compared += await checkTrainingAtSizes(made.engine, raw.flat());
    else replayed += await checkTraining(engines, raw.flat());
    return;
  }
  if (histories !== null) {
    traced(printHistory(historyOf(raw)));
    ran++;
    await histories.check(raw, ({ kind }) => ops.set(kind, (ops.get(kind) ?? 0) + 1));
    return;
  }
  if (matrices !== null) {
    traced(JSON.stringify(matrixCallOf(raw, settings.dtypes)));
    ran++;
    await matrices.check(raw, ({ name }) => ops.set(name, (ops.get(name) ?? 0) + 1));
    return;
  }
  if (sizes) {
    if (values.trace !== undefined) traced(printSizes(programsOf(raw, settings)));
    ran++;
    await sized.check(raw, ({ steps }) => {
      for (const s of steps) if (s.kind === 'call') ops.set(s.op, (ops.get(s.op) ?? 0) + 1);
    });
    await new Promise((resolve) => setImmediate(resolve));
    if (rejected.length > 0) throw new Error(`unhandled rejection: ${rejected.splice(0)[0]}`);
    return;
  }
  if (functions !== null) {
    traced(printSubject(subjectOf(raw, settings)));
    ran++;
    await functions.check(raw, ({ program }) => {
      for (const s of program.steps) if (s.kind === 'call') ops.set(s.op, (ops.get(s.op) ?? 0) + 1);
    });
    await new Promise((resolve) => setImmediate(resolve));
    if (rejected.length > 0) throw new Error(`unhandled rejection: ${rejected.splice(0)[0]}`);
    return;
  }
  const program = programOf(raw);
  if (calls === null) traced(printProgram(program));
  ran++;
  if (calls === null) for (const s of program.steps) if (s.kind === 'call') ops.set(s.op, (ops.get(s.op) ?? 0) + 1);
  if (smooth) compared += Number(await checkGradients(program));
  else if (calls !== null) await calls.check(program, new Choices(raw[raw.length - 1]));
  else await check(program, options);
  await new Promise((resolve) => setImmediate(resolve));
  if (rejected.length > 0) throw new Error(`unhandled rejection: ${rejected.splice(0)[0]}`);
}
const seconds = Number(values.seconds);
const started = performance.now();
const result = await fc.check(property, {
  seed: Number(values.seed),
  numRuns: Number(values.programs),
  unbiased: true,
  ...(values.path === undefined ? {} : { path: values.path, endOnFailure: true }),
  ...(seconds > 0 ? { interruptAfterTimeLimit: seconds * 1000, markInterruptAsFailure: false } : {}),
});
// Where the time was over before the end of the first, fast-check says failed, without a counterexample.
const broken = result.failed && result.counterexample !== null;
let late = null;
await running.catch((error) => {
  late = error;
});
if (late !== null && !broken && !values.all) console.log(`the last one: ${String(late.stack).slice(0, 3000)}`);
if (broken) {
  if (sizes) console.log(printSizes(programsOf(result.counterexample[0], settings)));
  else if (transforms) console.log(printSubject(subjectOf(result.counterexample[0], settings)));
  else if (matrices !== null) console.log(matrixCallOf(result.counterexample[0], settings.dtypes));
  else if (histories !== null) console.log(printHistory(historyOf(result.counterexample[0])));
  else if (calls === null && !training && !faults) console.log(printProgram(programOf(result.counterexample[0])));
  console.log(String(result.errorInstance?.stack ?? result.errorInstance).slice(0, 3000));
  console.log(`seed ${result.seed}, path '${result.counterexamplePath}', ${result.numShrinks} shrinks`);
}
const told =
  calls === null
    ? ''
    : ` (${calls.refused} refusals; ${calls.valid.size} of ${calls.table.size} functions with a valid call, ${Object.keys(uncalled).length} left out, ${calls.compared} accepted calls compared with the reference engine)`;
const used = calls?.made ?? ops;
const least = [...used].sort((a, b) => a[1] - b[1]);
console.log(
  `${ran} programs${smooth && !transforms && !sizes ? ` (${compared} with derivatives)` : told} on ${values.engine} in ${((performance.now() - started) / 1000).toFixed(0)} s; ${used.size} operations, the rarest ${least
    .slice(0, 6)
    .map(([k, n]) => `${k} ${n}`)
    .join(', ')}`,
);
if (faults) console.log(`${met.thrown} errors of the library on ${met.engines} engines`);
if (training && values.sizes === 'always')
  console.log(`${compared} trainings at a size compared with plans of their own`);
if (training && values.sizes !== 'always') console.log(`${replayed} steps replayed`);
if (sizes)
  console.log(
    `${sized.bound} programs with shared plans (${sized.boundOpByOp} ${smooth ? 'in checks of derivatives' : 'op by op'}), bound ${sized.binds} times; ${sized.compared} programs at a size compared with plans of their own`,
  );
if (histories !== null) console.log(`${histories.compared} calls compared, ${histories.replays} replayed`);
if (matrices !== null) console.log(`${matrices.compared} results compared`);
if (transforms)
  console.log(
    `${functions.compared} results compared, ${functions.replays} calls replayed, ${functions.unsure} inputs without formulas`,
  );
// A generator whose programs share no plans shows nothing.
const few = sizes && values.path === undefined && sized.ran >= 50 && sized.bound * 5 < sized.ran;
if (few) console.log('fewer than a fifth of the programs have shared plans');
const failed =
  Number(few) +
  Number(unreached !== null) +
  (values.all ? [...seen.values()].reduce((sum, n) => sum + n, 0) : Number(broken || late !== null));
if (failed > 0) {
  // The long tests repeat this line at their end: it is what to run.
  const { engine, kind, threads, sizes } = values;
  // What time cut off was the last one that ran.
  const path = broken ? result.counterexamplePath : late === null ? undefined : ran - 1;
  const at = { engine, kind, threads, sizes, seed: result.seed, ...(path === undefined ? {} : { path }) };
  const again = Object.entries(at).map(([name, value]) => `--${name} ${value}`);
  console.log(`FAILED ${kind} on ${engine}: npm run fuzz -- ${again.join(' ')}`);
}
console.log(`${failed > 0 ? Math.max(0, result.numRuns - failed) : ran} passed, ${failed} failed, 0 skipped`);
process.exitCode = failed > 0 ? 1 : 0;
made.engine.dispose();
