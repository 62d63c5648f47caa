/**
 * The kernels that the cases need at their whole sizes, without a card: what NVIDIA's assembler says of each. Says before a card is at hand what it
 * would refuse.
 *
 *   node bench/gpu/kernels.mjs [--capability 90] [--isa 9.0] [--only GROUPS] [--counts] [--all-tiles]
 *
 * Prints a line for each kernel, and ends with a count of those that spill registers or are refused; exit code 1 where there are any. With `--counts` a
 * second line says what its first group does (counts.mjs). `--all-tiles`: of products and convolutions all tiles that would be measured.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import * as core from '@polygrad/core';
import { matrixLowering } from '@polygrad/core/engine/threads';
import { emitPtx, ptxCaps } from '@polygrad/emit-ptx';
import { createNullEngine } from '@polygrad/testing';
import { groups } from './cases.mjs';
import { cards, estimate, runFirstGroup, told } from './counts.mjs';
import { giveBack, kinds, pendingLimits } from './kinds.mjs';

const { values } = parseArgs({
  options: {
    capability: { type: 'string', default: '90' },
    isa: { type: 'string', default: '9.0' },
    only: { type: 'string' },
    counts: { type: 'boolean', default: false },
    'all-tiles': { type: 'boolean', default: false },
  },
});
const target = { computeCapability: Number(values.capability), isa: values.isa };
const all = groups(false);
const wanted = values.only?.split(',') ?? Object.keys(all);
const folder = mkdtempSync(join(tmpdir(), 'polygrad-kernels-'));
const seen = new Set();
let bad = 0;
/** What was counted. */
const longest = [];

const assembler =
  [process.env.CUDA_HOME, '/usr/local/cuda']
    .filter((folder) => folder !== undefined)
    .map((folder) => join(folder, 'bin/ptxas'))
    .find((path) => existsSync(path)) ?? 'ptxas';

/** What the assembler says of a kernel, and its registers. */
function assembled(name, { text, sharedBytes }) {
  const file = join(folder, 'kernel.ptx');
  writeFileSync(file, text);
  const args = [`-arch=sm_${/\.target sm_(\d+)/.exec(text)[1]}`, '-v', '-o', join(folder, 'kernel.cubin'), file];
  const { status, stderr, error } = spawnSync(assembler, args, { encoding: 'utf8' });
  if (error !== undefined) throw new Error(`ptxas is needed, which comes with the CUDA toolkit: ${error.message}`);
  const count = (pattern) => Number(pattern.exec(stderr)?.[1] ?? 0);
  const spilled = count(/(\d+) bytes spill stores/);
  if (status !== 0 || spilled > 0) bad++;
  const fate = status === 0 ? (spilled === 0 ? '' : `, ${spilled} bytes spilled`) : `: ${stderr.split('\n')[0]}`;
  const registers = count(/Used (\d+) registers/);
  return { registers, line: `${name}: ${registers} registers, ${sharedBytes} bytes of group memory${fate}` };
}

function counted(kernel, program, registers) {
  try {
    const found = estimate(runFirstGroup(kernel, program), kernel, registers, values.capability);
    longest.push({ name: program.name, ...found });
    return told(found);
  } catch (error) {
    return `not run: ${error.message}`;
  }
}

/** An engine that computes nothing. Kernels are assembled when they are compiled. */
async function listening(float32MatmulPrecision = 'highest') {
  const { multiprocessors, perGroup } = cards[values.capability];
  const limits = { multiprocessors, sharedBytes: perGroup * 1024, float32MatmulPrecision };
  const caps = ptxCaps(target.computeCapability, limits);
  const engine = createNullEngine({ ...caps, bindAlign: 16, lowering: matrixLowering, maxBufferBytes: 2 ** 36 });
  const compile = engine.compile.bind(engine);
  engine.compile = (programs) => {
    for (const program of programs) {
      const kernel = emitPtx(program, target);
      if (seen.has(kernel.text)) continue;
      seen.add(kernel.text);
      const tile = program.transforms?.find(({ name }) => name === 'tile')?.args[0];
      const { line, registers } = assembled(`${program.name}${tile === undefined ? '' : ` ${tile}`}`, kernel);
      console.log(`  ${line}`);
      if (values.counts) console.log(`    ${counted(kernel, program, registers)}`);
    }
    return compile(programs);
  };
  // What is measured makes no difference: all tiles are compiled.
  if (values['all-tiles']) engine.submitTimed = async (commands) => commands.map(() => 1000);
  await core.setEngine(engine);
  return engine;
}

core.setPendingLimits(pendingLimits);
try {
  for (const group of wanted) {
    const { cases, options = {} } = all[group];
    const engine = await listening(options.float32MatmulPrecision);
    for (const one of cases) {
      // Nothing is read from such an engine.
      if (one.kind === 'download') continue;
      console.log(one.name);
      core.setDynamicSizes(one.lengths === undefined ? 'never' : 'automatic');
      const made = kinds[one.kind](one);
      for (const use of [...(made.known ?? []), ...(made.uses ?? [made.run])]) use()?.dispose?.();
      core.flush();
      if (values['all-tiles']) await core.tune(engine, { budget: 1e6 });
      made.dispose?.();
      giveBack();
    }
    engine.dispose();
  }
} finally {
  rmSync(folder, { recursive: true });
}
if (values.counts) {
  console.log('those whose warps have most to do one after another, by fewer than one group for each multiprocessor:');
  const few = longest.filter(({ groups }) => groups < cards[values.capability].multiprocessors);
  for (const one of few.sort((x, y) => y.serial - x.serial).slice(0, 12)) console.log(`  ${one.name}: ${told(one)}`);
  console.log('those that use least of the sectors of device memory they read or write:');
  const wasteful = longest.filter(({ used, bytes }) => used < 0.5 && bytes > 4096);
  for (const one of wasteful.sort((x, y) => y.memory - x.memory).slice(0, 12))
    console.log(`  ${one.name}: ${told(one)}`);
}
console.log(`${seen.size} kernels for sm_${target.computeCapability}, ${bad} spill registers or are refused`);
process.exitCode = bad > 0 ? 1 : 0;
