/** The arguments of the command. */
import { accessSync, constants, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parseArgs } from 'node:util';

const bounds = { startMs: 90_000, runMs: 20_000 };
const full = { ...bounds, rounds: 7, turnMs: 100, warmMs: 300, maxSamples: 40 };
const paces = {
  cpu: { ...full, caseMs: 15_000 },
  // Software adapters take seconds for what engines of the processor do in tenths.
  webgpu: { ...full, caseMs: 6_000 },
  quick: { ...bounds, rounds: 3, turnMs: 50, warmMs: 150, maxSamples: 10, caseMs: 4_000 },
};
const overall = { full: 20, quick: 6 };

export const usageOf = (peerNames) => `usage: npm run bench -- --suite browser [options]

  --engine NAME      cpu (WebAssembly everywhere), webgpu, or all (default)
  --quick            fewer and smaller rows, fewer rounds
  --json FILE        write all raw figures to FILE, from the first row on
  --peers LIST       ${peerNames.join(',')}, or none (default: all)
  --filter TEXT      only rows whose name contains TEXT; several texts with commas between them
  --rounds N         rounds per row; each round measures every participant once
  --run-seconds N    a participant is too slow for a row if one run takes longer (default ${bounds.runMs / 1000})
  --minutes N        bound of the whole run of an engine (default ${overall.full}, with --quick ${overall.quick})`;

/** Options out of the command's words; throws an Error that says which one is wrong. */
export function readArguments(args, peerNames) {
  const text = { type: 'string' };
  const { values } = parseArgs({
    args,
    options: {
      ...{ suite: text, engine: text, json: text, peers: text, filter: text, rounds: text, minutes: text },
      'run-seconds': text,
      ...{ quick: { type: 'boolean', default: false }, help: { type: 'boolean', default: false } },
    },
  });
  const { engine = 'all', peers = peerNames.join(',') } = values;
  const engines = engine === 'all' ? ['cpu', 'webgpu'] : [engine];
  if (!['cpu', 'webgpu', 'all'].includes(engine))
    throw new Error(`--engine is '${engine}'; give one of cpu, webgpu, all`);
  const list = peers === 'none' ? [] : peers.split(',');
  for (const name of list)
    if (!peerNames.includes(name))
      throw new Error(`--peers names '${name}'; give some of ${peerNames.join(', ')}, or none`);
  const whole = (name) => {
    const value = values[name];
    if (value === undefined) return undefined;
    if (!/^[1-9]\d{0,2}$/.test(value)) throw new Error(`--${name} is '${value}'; give a whole number from 1 to 999`);
    return Number(value);
  };
  const [rounds, runSeconds, minutes] = ['rounds', 'run-seconds', 'minutes'].map(whole);
  const paceOf = (engine) => ({
    ...(values.quick ? paces.quick : paces[engine]),
    ...(rounds === undefined ? {} : { rounds }),
    ...(runSeconds === undefined ? {} : { runMs: runSeconds * 1000 }),
  });
  return {
    ...{ quick: values.quick, help: values.help, json: values.json, engines, peers: list, paceOf },
    minutes: minutes ?? (values.quick ? overall.quick : overall.full),
    filter: values.filter?.split(','),
  };
}

/** The file to write, or null; npm runs scripts in the root folder, and what a person typed is relative to where they are. */
export function fileOf(json) {
  if (json === undefined) return null;
  const file = resolve(process.env.INIT_CWD ?? '.', json);
  try {
    accessSync(dirname(file), constants.W_OK);
  } catch {
    throw new Error(`--json is '${json}'; its folder is not there or cannot be written to`);
  }
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory())
    throw new Error(`--json is '${json}'; that is a folder, give a file name`);
  return file;
}
