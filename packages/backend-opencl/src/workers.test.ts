/** The addon in many threads of Node at once, and in threads that are ended in the middle of a kernel. */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { hasDevice } from './fixtures/device.ts';

const binary = fileURLToPath(new URL('../native/build/opencl.node', import.meta.url));

/** Runs kernels on a buffer of its own: `loops` turns of a long inner loop, `rounds` times. */
const script = `
  const { parentPort, workerData } = require('node:worker_threads');
  const addon = require(workerData.binary);
  addon.open('');
  const driver = new addon.Driver(0, true);
  const program = driver.build(
    '__kernel void turn(__global uint* x, uint by, uint loops) {' +
    '  uint i = get_global_id(0), v = x[i];' +
    '  for (uint k = 0; k < loops; k++) v = v * 1664525u + by;' +
    '  x[i] = v; }', '-w');
  const n = 256;
  const kernel = driver.kernel(program, 'turn', Float64Array.of(n, 1, 1, 1, 1, 1, 0, 4, 4));
  const x = driver.alloc(4 * n);
  driver.upload(x, 0, new Uint8Array(Uint32Array.from({ length: n }, (_, i) => i).buffer));
  const cells = new Float64Array(9), words = new Uint32Array(cells.buffer);
  const { by, loops, rounds } = workerData;
  for (let round = 0; round < rounds; round++) {
    cells.set([1, 9, kernel, 0, 0, 0, x]);
    words[14] = by;
    words[16] = loops;
    driver.submit(new Uint8Array(cells.buffer), 9);
  }
  parentPort.postMessage('submitted');
  const bytes = new Uint8Array(4 * n);
  driver.read(x, 0, bytes).then(() => {
    const got = new Uint32Array(bytes.buffer);
    const right = got.every((value, i) => {
      let v = i;
      for (let k = 0; k < loops * rounds; k++) v = (Math.imul(v, 1664525) + by) >>> 0;
      return v === value;
    });
    parentPort.postMessage(right ? 'right' : 'wrong');
  });
`;

interface Work {
  readonly by: number;
  readonly loops: number;
  readonly rounds: number;
}

/** Starts a worker; resolves its promises when the work is submitted, and with how it ended. */
function start(work: Work): { worker: Worker; submitted: Promise<void>; answer: Promise<string> } {
  const worker = new Worker(script, { eval: true, workerData: { binary, ...work } });
  let onSubmitted = (): void => {};
  const submitted = new Promise<void>((resolve) => (onSubmitted = resolve));
  const answer = new Promise<string>((resolve) => {
    let last = 'nothing';
    worker.on('message', (text: string) => {
      if (text === 'submitted') onSubmitted();
      else last = text;
    });
    worker.on('error', (error) => resolve(String(error)));
    worker.on('exit', () => resolve(last));
  });
  return { worker, submitted, answer };
}

describe.skipIf(!hasDevice())('the addon in worker threads', () => {
  it('gives right results to eight at once', async () => {
    const workers = Array.from({ length: 8 }, (_, by) => start({ by, loops: 50, rounds: 20 }));
    expect(await Promise.all(workers.map((w) => w.answer))).toEqual(workers.map(() => 'right'));
  });

  it('leaves the others unharmed when one is ended in the middle of a kernel', async () => {
    // Some hundred milliseconds of work for the device.
    const long = start({ by: 1, loops: 400_000, rounds: 4 });
    const others = [2, 3].map((by) => start({ by, loops: 50, rounds: 50 }));
    await long.submitted;
    await long.worker.terminate();
    expect(await long.answer).toBe('nothing');
    expect(await Promise.all(others.map((w) => w.answer))).toEqual(['right', 'right']);
    const after = start({ by: 5, loops: 10, rounds: 2 });
    expect(await after.answer).toBe('right');
  });

  it('finds the device in all threads that are the first to ask, at one moment', () => {
    // In processes of their own: only the first question of a process makes the driver look for devices.
    const program = `
      const { Worker } = require('node:worker_threads');
      const go = new Int32Array(new SharedArrayBuffer(4));
      const code = \`
        const { parentPort, workerData } = require('node:worker_threads');
        const addon = require(workerData.binary);
        parentPort.postMessage('here');
        Atomics.wait(workerData.go, 0, 0);
        addon.open('');
        parentPort.postMessage(addon.devices().length);\`;
      let waiting = 6;
      for (let i = 0; i < 6; i++) {
        const worker = new Worker(code, { eval: true, workerData: { binary: ${JSON.stringify(binary)}, go } });
        worker.on('message', (message) => {
          if (message !== 'here') console.log(message);
          else if (--waiting === 0) {
            Atomics.store(go, 0, 1);
            Atomics.notify(go, 0);
          }
        });
      }`;
    for (let turn = 0; turn < 3; turn++) {
      const counts = execFileSync(process.execPath, ['-e', program], { encoding: 'utf8' }).trim().split('\n');
      expect(counts.length).toBe(6);
      expect(new Set(counts).size).toBe(1);
      expect(Number(counts[0])).toBeGreaterThan(0);
    }
  });
});
