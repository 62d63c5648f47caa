/**
 * The program from end to end, in this process on the CPU engine with few images, and its complaints. What is built is
 * run as a program of its own, too.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { decodeSafetensors, encodeIdx } from '@polygrad/data';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { run } from './cli.ts';
import type { Summary } from './train.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'polygrad-mnist-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function call(...args: string[]): Promise<{ code: number; out: string; error: string }> {
  let [out, error] = ['', ''];
  const code = await run(args, { out: (text) => (out += text), error: (text) => (error += text) });
  return { code, out, error };
}

/** Tiny images of three kinds: a bright row at the top, in the middle, at the bottom. */
async function tinyData(
  name: string,
  damage: (file: string, bytes: Uint8Array) => Uint8Array | null = (_, bytes) => bytes,
): Promise<string> {
  const at = join(folder, name);
  await mkdir(at);
  for (const [prefix, rows] of [
    ['train', 96],
    ['t10k', 30],
  ] as const) {
    const labels = new Uint8Array(rows).map((_, row) => row % 3);
    const pixels = new Uint8Array(rows * 64).map((_, index) => {
      const row = Math.floor(index / 64);
      return Math.floor((index % 64) / 8) === 3 * (row % 3) + 1 ? 255 - (row % 7) : (row * 13 + index) % 40;
    });
    const files = {
      [`${prefix}-images-idx3-ubyte`]: encodeIdx({ dtype: 'uint8', shape: [rows, 8, 8], data: pixels }),
      [`${prefix}-labels-idx1-ubyte`]: encodeIdx({ dtype: 'uint8', shape: [rows], data: labels }),
    };
    for (const [file, bytes] of Object.entries(files)) {
      const written = damage(file, bytes);
      if (written !== null) await writeFile(join(at, file), written);
    }
  }
  return at;
}

describe('the program', () => {
  it('learns, and writes weights, charts and a summary', async () => {
    const [data, out] = [await tinyData('good'), join(folder, 'new', 'results')];
    const args = ['--data', data, '--out', out, '--epochs', '12', '--batch', '16', '--seed', '7', '--threads', '1'];
    const { code, out: text, error } = await call(...args);
    expect([code, error]).toEqual([0, '']);
    expect(text).toMatch(
      /^96 training and 30 test images of 8 x 8, 10 classes\n1898 parameters, engine (cpu|native)\b/,
    );
    expect(text.match(/^epoch \d+\/12 {2}loss \d\.\d{4} {2}test accuracy .* % {2}\d+\.\d s$/gm)?.length).toBe(12);

    const summary = JSON.parse(await readFile(join(out, 'summary.json'), 'utf8')) as Summary;
    expect(Object.keys(summary)).toEqual(['engine', 'device', 'seed', 'parameters', 'epochs']);
    expect(['cpu', 'native']).toContain(summary.engine);
    expect([summary.seed, summary.parameters, summary.epochs.length]).toEqual([7, 1898, 12]);
    expect(Object.keys(summary.epochs[0]!)).toEqual(['loss', 'testAccuracy', 'seconds']);
    expect(summary.epochs.at(-1)!.testAccuracy).toBe(1);

    const { tensors } = decodeSafetensors(await readFile(join(out, 'weights.safetensors')));
    expect([...tensors].map(([name, { shape }]) => `${name} ${shape.join('x')}`).sort()).toEqual([
      'conv1.bias 8',
      'conv1.weight 8x1x3x3',
      'conv2.bias 16',
      'conv2.weight 16x8x3x3',
      'out.bias 10',
      'out.weight 10x64',
    ]);
    expect(await readFile(join(out, 'training.svg'), 'utf8')).toContain('test accuracy 100.00 % after 12 epochs');
    const confusion = await readFile(join(out, 'confusion.svg'), 'utf8');
    expect(confusion.match(/>10</g)?.length).toBe(3);
  });

  it('gives the same bits for the same seed, and others for another', async () => {
    const data = await tinyData('repeat');
    const results: [string, unknown][] = [];
    for (const [index, seed] of ['3', '3', '4'].entries()) {
      const out = join(folder, `repeat-${index}`);
      // Choosing an engine takes longer than this, and the test above does it.
      const engine = ['--engine', 'cpu', '--threads', '2'];
      const args = ['--data', data, '--out', out, '--epochs', '2', '--batch', '20', '--seed', seed];
      expect((await call(...args, ...engine)).code).toBe(0);
      const summary = JSON.parse(await readFile(join(out, 'summary.json'), 'utf8')) as Summary;
      const weights = (await readFile(join(out, 'weights.safetensors'))).toString('hex');
      results.push([weights, summary.epochs.map(({ loss, testAccuracy }) => [loss, testAccuracy])]);
    }
    expect(results[1]).toEqual(results[0]);
    expect(results[2]![0]).not.toBe(results[0]![0]);
  });

  it('runs on the reference engine', async () => {
    const args = [
      '--engine',
      'reference',
      '--limit',
      '4',
      '--batch',
      '2',
      '--epochs',
      '1',
      '--out',
      join(folder, 'reference'),
    ];
    const { code, out, error } = await call('--data', await tinyData('reference-data'), ...args);
    expect([code, error]).toEqual([0, '']);
    expect(out).toMatch(/^4 training and 4 test images.*\n1898 parameters, engine reference/);
  });

  it('helps', async () => {
    const { code, out } = await call('--help');
    expect(code).toBe(0);
    for (const option of ['epochs', 'batch', 'limit', 'engine', 'seed', 'threads', 'data', 'out', 'help']) {
      expect(out).toContain(`--${option}`);
    }
  });
});

describe('complaints are one line and exit code 2', () => {
  const cut = (bytes: Uint8Array): Uint8Array => bytes.subarray(0, bytes.length - 1);
  const cases: [string, () => Promise<string[]>, RegExp][] = [
    ['a bad argument', async () => ['--epochs', 'many'], /--epochs is 'many'/],
    ['an unknown option', async () => ['--speed', '9'], /--speed/],
    [
      'a missing engine',
      async () => ['--engine', 'abacus'],
      /there is no engine 'abacus'; choose one of auto, cpu, cuda, native, opencl, reference, webgpu/,
    ],
    [
      'an engine without a device here',
      async () => {
        vi.stubEnv('POLYGRAD_OPENCL_DEVICE', 'a card that nobody has');
        return ['--engine', 'opencl'];
      },
      /the engine 'opencl' is not there: (not installed|no device|failed to start), /,
    ],
    [
      'threads without the CPU engine',
      async () => ['--engine', 'reference', '--threads', '2'],
      /--threads is for the engines cpu and native.*'reference' has none/,
    ],
    ['too many threads', async () => ['--threads', '65'], /--threads is '65'; it must be an integer from 1 to 64/],
    [
      'a wrong number of threads in the environment',
      async () => {
        vi.stubEnv('POLYGRAD_THREADS', '100');
        return ['--engine', 'cpu', '--data', await tinyData('environment')];
      },
      /bad POLYGRAD_THREADS: '100'; must be a whole number from 1 to 64/,
    ],
    [
      'a folder that is a file',
      async () => ['--out', join(await tinyData('file'), 'train-images-idx3-ubyte')],
      /cannot write/,
    ],
    ['a folder without data', async () => ['--data', join(folder, 'nowhere')], /nowhere.*there is no such file/],
    [
      'a missing file',
      async () => ['--data', await tinyData('missing', (file, bytes) => (file.startsWith('t10k-l') ? null : bytes))],
      /t10k-labels-idx1-ubyte: there is no such file/,
    ],
    [
      'a truncated file',
      async () => ['--data', await tinyData('cut', (file, bytes) => (file.startsWith('train-i') ? cut(bytes) : bytes))],
      /train-images-idx3-ubyte is truncated/,
    ],
    [
      'a file of another kind',
      async () => [
        '--data',
        await tinyData('kind', (file, bytes) => (file.startsWith('train-i') ? new Uint8Array(99).fill(65) : bytes)),
      ],
      /train-images-idx3-ubyte is not an IDX file/,
    ],
  ];
  for (const [what, args, text] of cases) {
    it(what, async () => {
      const given = await args();
      const { code, out, error } = await call(
        ...given,
        ...(given.includes('--out') ? [] : ['--out', join(folder, 'out')]),
      );
      expect([code, out]).toEqual([2, '']);
      expect(error).toMatch(text);
      expect(error).toMatch(/^mnist: [^\n]+\n$/);
      vi.unstubAllEnvs();
    });
  }
});

const built = fileURLToPath(new URL('../dist/main.js', import.meta.url));

describe.runIf(existsSync(built))('as a program of its own', () => {
  it('ends with the exit code and keeps to its streams', async () => {
    const bad = spawnSync(process.execPath, [built, '--batch', '-3'], { encoding: 'utf8' });
    expect([bad.status, bad.stdout]).toEqual([2, '']);
    expect(bad.stderr).toMatch(/^mnist: [^\n]+\n$/);
    const args = ['--data', await tinyData('spawned'), '--out', join(folder, 'spawned-out'), '--epochs', '1'];
    // The driver of another engine may have something to say when it is asked.
    const good = spawnSync(process.execPath, [built, ...args, '--engine', 'cpu'], { encoding: 'utf8' });
    expect([good.status, good.stderr]).toEqual([0, '']);
    expect(good.stdout).toMatch(/epoch 1\/1 .*\nwrote .*summary.json\n$/);
    // Two processes load everything anew, which takes long beside other work.
  });
});
