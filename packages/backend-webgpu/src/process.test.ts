/** Whole programs: they end by themselves, wait without using the processor, and compute in worker threads. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { testEngine } from './fixtures/device.ts';

const entry = new URL('../dist/index.js', import.meta.url);
const coreEntry = new URL('../../core/dist/index.js', import.meta.url).href;
const engine = await testEngine();
engine?.dispose();
// Other processes run what is built, as users do.
const there = engine !== null && existsSync(fileURLToPath(entry));

/** As on a server: no display, and what tests set so that Mesa does not complain of that. */
const { XDG_RUNTIME_DIR: _, DISPLAY: _1, WAYLAND_DISPLAY: _2, ...env } = process.env;

/** Runs a program that has `createWebGpuEngine`, or imports it itself; gives what it prints, and how it ended. */
function run(source: string, imported = true): Promise<{ code: number | null; out: string; err: string }> {
  const program = `${imported ? `import { createWebGpuEngine } from ${JSON.stringify(entry.href)};` : ''}\n${source}`;
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ['--input-type=module', '--eval', program], { timeout: 540_000, env });
    let [out, err] = ['', ''];
    child.stdout.on('data', (text) => {
      out += text;
    });
    child.stderr.on('data', (text) => {
      err += text;
    });
    child.on('close', (code) => resolve({ code, out, err }));
  });
}

const roundTrip = `
const buffer = engine.alloc(4);
const binding = { buffer, offset: 0, bytes: 4 };
engine.upload(binding, Uint32Array.of(42));
const answer = new Uint32Array((await engine.download(binding, new Uint8Array(4))).buffer)[0];`;

describe.skipIf(!there)('a program with a WebGPU engine', () => {
  it('ends by itself, without dispose', async () => {
    const { code, out, err } = await run(
      `const engine = await createWebGpuEngine(); ${roundTrip} console.log(answer);`,
    );
    expect(err.replace(/^Warning: .*\n/gm, '')).toBe('');
    expect({ code, out }).toEqual({ code: 0, out: '42\n' });
  });

  it('ends by itself with work that nobody waits for', async () => {
    const { code, out } = await run(`
const engine = await createWebGpuEngine(); ${roundTrip}
engine.submit([{ kind: 'fill', to: binding, pattern: 1 }]);
console.log(answer);`);
    expect({ code, out }).toEqual({ code: 0, out: '42\n' });
  });

  it('lets go of engines that were disposed', async () => {
    const { code, out } = await run(`
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc');
const wait = () => new Promise((resolve) => setTimeout(resolve, 20));
const use = async () => {
  const engine = await createWebGpuEngine();
  ${roundTrip}
  await engine.idle();
  engine.dispose();
  await engine.lost;
  return new WeakRef(engine);
};
const engines = [];
for (let i = 0; i < 4; i++) engines.push(await use());
// The last one may be on a stack yet. Looking at one keeps it until the next turn of the event loop.
const alive = () => engines.filter((engine) => engine.deref() !== undefined).length;
for (let i = 0; i < 100 && alive() > 1; i++) { await wait(); gc(); }
console.log(alive() <= 1);`);
    expect({ code, out }).toEqual({ code: 0, out: 'true\n' });
  });

  it('ends by itself while tiles are being measured, before the next class of products', async () => {
    const { code, out } = await run(`
const { setEngine, ones } = await import(${JSON.stringify(coreEntry)});
let kept = 0;
const store = { load: async () => null, save: async () => void kept++ };
await setEngine(await createWebGpuEngine({ tuning: { store, automatic: true } }));
for (let i = 0; i < 6; i++) console.log((await ones([40, 32 << (i % 3)]).matmul(ones([32 << (i % 3), 16 << (i >> 2)])).data())[0]);
process.on('exit', () => console.log(kept < 6));`);
    expect({ code, last: out.trim().split('\n').at(-1) }).toEqual({ code: 0, last: 'true' });
  });

  it('holds a part of what a loop uploads that never awaits', async () => {
    const { code, out } = await run(`
const { setEngine, tensor, scope, keep, flush } = await import(${JSON.stringify(coreEntry)});
await setEngine(await createWebGpuEngine());
const host = new Float32Array(1 << 18).fill(0.5);
let x = tensor(new Float32Array(1 << 18));
await x.mul(0.5).data();
const { rss } = process.memoryUsage();
let most = 0;
for (let i = 0; i < 800; i++) {
  const next = scope(() => keep(x.mul(0.5).add(tensor(host))));
  flush();
  x.dispose();
  x = next;
  if (i % 20 === 0) most = Math.max(most, process.memoryUsage().rss - rss);
}
console.log(most < 400 * 2 ** 20, (await x.data())[7]);`);
    // 800 MiB went to the device.
    expect({ code, out }).toEqual({ code: 0, out: 'true 1\n' });
  });

  it('computes in worker threads, several at a time', async () => {
    const worker = `
const { createWebGpuEngine } = await import(${JSON.stringify(entry.href)});
const { parentPort } = await import('node:worker_threads');
const engine = await createWebGpuEngine(); ${roundTrip}
engine.dispose();
parentPort.postMessage(answer);`;
    const { code, out } = await run(`
import { Worker } from 'node:worker_threads';
const answers = await Promise.all([1, 2].map(() => new Promise((resolve, reject) => {
  const url = 'data:text/javascript,' + encodeURIComponent(${JSON.stringify(worker)});
  const worker = new Worker(new URL(url));
  worker.on('message', resolve);
  worker.on('error', reject);
})));
console.log(answers.join());`);
    expect({ code, out }).toEqual({ code: 0, out: '42,42\n' });
  });

  it('leaves the event loop asleep while it waits', async () => {
    // By this clock every look for an answer is a late one, which has to wait for a timer; Dawn's own looks are immediates.
    const { code, out } = await run(
      `
const looks = { setImmediate: 0, setTimeout: 0 };
for (const name of Object.keys(looks)) {
  const real = globalThis[name];
  globalThis[name] = (...args) => (looks[name]++, real(...args));
}
let clock = 0;
Object.defineProperty(performance, 'now', { value: () => (clock += 2) });
const { createWebGpuEngine } = await import(${JSON.stringify(entry.href)});
const engine = await createWebGpuEngine();
const bytes = 1 << 24;
const buffer = engine.alloc(bytes);
const to = { buffer, offset: 0, bytes };
for (let round = 0; round < 20; round++) {
  engine.submit(Array.from({ length: 4 }, (_, i) => ({ kind: 'fill', to, pattern: i + 1 })));
  await engine.idle();
}
console.log(looks.setImmediate, looks.setTimeout > 0);
engine.dispose();`,
      false,
    );
    expect({ code, out }).toEqual({ code: 0, out: '0 true\n' });
  });
});
