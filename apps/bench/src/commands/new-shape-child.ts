/**
 * `node apps/bench/dist/commands/new-shape-child.js CHECKOUT USE cpu|native [rooms | bytes | own]`: what new sizes cost in a process of its own, as a line of JSON.
 *
 * A size is met twice: the first time a plan is made, the second time it is there. With `rooms`, the processor is sampled while
 * sizes are new. Samples are counted by the folder of the code, and by the step that it ran for. With `bytes`, modules of WebAssembly are hashed instead. With
 * `own`, sizes do not share plans.
 */
import { createHash } from 'node:crypto';
import { Session } from 'node:inspector/promises';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type * as Cpu from '@polygrad/backend-cpu';
import type * as Native from '@polygrad/backend-native';
import { type Packages, uses } from './new-shape-uses.ts';

/** Milliseconds: of processor time, all threads of the process together, unless it says otherwise. */
export interface Measured {
  /** What passes from the first call, which makes the network, to the first result. */
  readonly wait: number;
  /** The very first use, with cold code. */
  readonly cold: number;
  /** A use at a size never met, with warm code, on average; without what the use costs at a known size. */
  readonly fresh: number;
  /** A use at a known size, on average. */
  readonly known: number;
  /** Percent of samples, by folder and by step. */
  readonly rooms?: Readonly<Record<string, number>>;
  readonly steps?: Readonly<Record<string, number>>;
  /** Hash of all modules, in their order. */
  readonly bytes?: string;
}

/** Steps of making a plan, each known by where it begins. A sample belongs to the innermost one. */
const places: readonly (readonly [step: string, file: RegExp])[] = [
  ['signature', /\/planner\/capture\/(captured|cache|encode|copies|extent)\.js/],
  ['capture', /\/planner\/capture\//],
  ['fusion', /\/planner\/fusion\//],
  ['kernel keys', /\/planner\/lowering\/kernel-cache\.js|\/ir\/print\.js/],
  ['loop nests', /\/planner\/lowering\//],
  ['memory', /\/planner\/(memory|donate|plan)\.js/],
  ['tiles', /\/contraction\//],
  ['shaped loops', /\/codegen\/loops\//],
  ['linearize', /\/codegen\/linearize\//],
  ['legalize', /\/arithmetic\/legalize\.js/],
  ['programs', /\/(core|compiler)\/dist\/programs\//],
  ['emit', /\/(backend-cpu|backend-native|emit-machine)\/dist\//],
];

const [, , checkout = '.', name = '', engine = 'cpu', mode] = process.argv;
const use = uses[name];
if (use === undefined) throw new Error(`no such use: ${name}`);
const load = (path: string): Promise<unknown> =>
  import(pathToFileURL(join(resolve(checkout), 'packages', path, 'dist/index.js')).href);

const hash = createHash('sha256');
if (mode === 'bytes') {
  const { Module } = WebAssembly;
  WebAssembly.Module = class extends Module {
    constructor(bytes: BufferSource) {
      super(bytes);
      hash.update(
        ArrayBuffer.isView(bytes)
          ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
          : new Uint8Array(bytes),
      );
    }
  } as typeof WebAssembly.Module;
}

const packages = { core: await load('core'), nn: await load('nn') } as Packages;
if (mode === 'bytes' && engine !== 'cpu')
  throw new Error(`--bytes hashes modules of WebAssembly, which ${engine} has not: use --engine cpu`);
const threads = { threads: 1 };
await packages.core.setEngine(
  engine === 'native'
    ? ((await load('backend-native')) as typeof Native).createNativeEngine(threads)
    : ((await load('backend-cpu')) as typeof Cpu).createCpuEngine(threads),
);
packages.core.seed(1);

async function spent(run: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage();
  await run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

if (mode === 'own') packages.core.setDynamicSizes('never');
const begin = performance.now();
const run = use.make(packages);
const cold = await spent(() => run(use.warm[0]!));
const wait = performance.now() - begin;
for (const size of use.warm) await run(size);
const session = mode === 'rooms' ? new Session() : null;
if (session !== null) {
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.setSamplingInterval', { interval: 200 });
  await session.post('Profiler.start');
}
const first = await spent(async () => {
  for (const size of use.sizes) await run(size);
});
const parts = session === null ? {} : partsOf((await session.post('Profiler.stop')).profile);
const again = await spent(async () => {
  for (const size of use.sizes) await run(size);
});
const count = use.sizes.length;
const measured: Measured = {
  wait,
  cold,
  fresh: (first - again) / count,
  known: again / count,
  ...parts,
  ...(mode === 'bytes' ? { bytes: hash.digest('hex') } : {}),
};
process.stdout.write(`${JSON.stringify(measured)}\n`, () => process.exit(0));

function partsOf(profile: import('node:inspector').Profiler.Profile): Required<Pick<Measured, 'rooms' | 'steps'>> {
  const parents = new Map<number, number>();
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  for (const { id, children } of profile.nodes) for (const child of children ?? []) parents.set(child, id);
  const rooms = new Map<string, number>();
  const steps = new Map<string, number>();
  const samples = profile.samples ?? [];
  const count = (into: Map<string, number>, key: string): Map<string, number> =>
    into.set(key, (into.get(key) ?? 0) + 100 / samples.length);
  const roomOf = (url: string, functionName: string): string => {
    const [, pack, path] = /\/packages\/([^/]+)\/dist\/(.*)/.exec(url) ?? [];
    if (pack === undefined || path === undefined) return functionName.startsWith('(') ? functionName : 'node';
    const folders = path.split('/').slice(0, -1);
    return pack === 'core' || pack === 'compiler' ? folders.slice(0, 2).join('/') : pack;
  };
  for (const sample of samples) {
    const { url, functionName } = (nodes.get(sample) as NonNullable<ReturnType<typeof nodes.get>>).callFrame;
    count(rooms, roomOf(url, functionName));
    let step = functionName.startsWith('(') && functionName !== '(program)' ? functionName : 'recording and running';
    for (let at: number | undefined = sample; at !== undefined; at = parents.get(at)) {
      const file = nodes.get(at)?.callFrame.url ?? '';
      const place = places.find(([, pattern]) => pattern.test(file));
      if (place === undefined) continue;
      step = place[0];
      break;
    }
    count(steps, step);
  }
  const sorted = (of: Map<string, number>): Record<string, number> =>
    Object.fromEntries([...of].sort((a, b) => b[1] - a[1]).map(([key, part]) => [key, Math.round(part * 10) / 10]));
  return { rooms: sorted(rooms), steps: sorted(steps) };
}
