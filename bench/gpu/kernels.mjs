/**
 * The kernels that the cases need at their whole sizes, without a card: what NVIDIA's assembler says of each. Says before a card is at hand what it
 * would refuse.
 *
 *   node bench/gpu/kernels.mjs [--capability 90] [--isa 9.0] [--only GROUPS]
 *
 * Prints a line for each kernel, and ends with a count of those that spill registers or are refused; exit code 1 where there are any.
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
import { giveBack, kinds, pendingLimits } from './kinds.mjs';

const { values } = parseArgs({
  options: {
    capability: { type: 'string', default: '90' },
    isa: { type: 'string', default: '9.0' },
    only: { type: 'string' },
  },
});
const target = { computeCapability: Number(values.capability), isa: values.isa };
const all = groups(false);
const wanted = values.only?.split(',') ?? Object.keys(all);
const folder = mkdtempSync(join(tmpdir(), 'polygrad-kernels-'));
const seen = new Set();
let bad = 0;

const assembler =
  [process.env.CUDA_HOME, '/usr/local/cuda']
    .filter((folder) => folder !== undefined)
    .map((folder) => join(folder, 'bin/ptxas'))
    .find((path) => existsSync(path)) ?? 'ptxas';

/** What the assembler says of a kernel, in a line. */
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
  return `${name}: ${count(/Used (\d+) registers/)} registers, ${sharedBytes} bytes of group memory${fate}`;
}

/** An engine that computes nothing. Kernels are assembled when they are compiled. */
async function listening(float32MatmulPrecision = 'highest') {
  const limits = { multiprocessors: 132, sharedBytes: 99 * 1024, float32MatmulPrecision };
  const caps = ptxCaps(target.computeCapability, limits);
  const engine = createNullEngine({ ...caps, bindAlign: 16, lowering: matrixLowering, maxBufferBytes: 2 ** 36 });
  const compile = engine.compile.bind(engine);
  engine.compile = (programs) => {
    for (const program of programs) {
      const kernel = emitPtx(program, target);
      if (seen.has(kernel.text)) continue;
      seen.add(kernel.text);
      console.log(`  ${assembled(program.name, kernel)}`);
    }
    return compile(programs);
  };
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
      core.setDynamicSizes(one.kind === 'sizes' ? 'automatic' : 'never');
      const made = kinds[one.kind](one);
      for (const use of made.uses ?? [made.run]) use()?.dispose?.();
      core.flush();
      made.dispose?.();
      giveBack();
    }
    engine.dispose();
  }
} finally {
  rmSync(folder, { recursive: true });
}
console.log(`${seen.size} kernels for sm_${target.computeCapability}, ${bad} spill registers or are refused`);
process.exitCode = bad > 0 ? 1 : 0;
