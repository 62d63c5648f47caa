/** Every public function with huge numbers, in another process: a call that hangs or fills the memory ends only that. */
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { build } from 'esbuild';
import { expect, it } from 'vitest';
import type { HugeMessage } from '../fixtures/huge-calls.ts';

/** Milliseconds after which a call counts as hanging: none has anything to compute. */
const hangs = 20_000;

interface Part {
  /** Calls made in all; null if the process ended at a call. */
  readonly calls: number | null;
  /** The call after the one at which it ended. */
  readonly next: number;
}

/** Runs calls from one on, until all are made or one ends the process. What is wrong is added to `complaints`. */
function runFrom(file: string, from: number, complaints: string[]): Promise<Part> {
  const child = spawn(process.execPath, ['--max-old-space-size=1024', file, String(from)], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let current = 'start';
  let next = from;
  let calls: number | null = null;
  let why = 'ends the process';
  let timer: ReturnType<typeof setTimeout> | undefined;
  return new Promise((resolve) => {
    const watch = (limit: number): void => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        why = 'hangs';
        child.kill('SIGKILL');
      }, limit);
    };
    const lines = createInterface(child.stdout);
    lines.on('line', (line) => {
      const message = JSON.parse(line) as HugeMessage;
      if (message.kind === 'done') calls = message.calls;
      else if (message.kind === 'wrong') complaints.push(message.text);
      else {
        current = message.text;
        next = message.at;
        watch(hangs);
      }
    });
    lines.on('close', () => {
      clearTimeout(timer);
      if (calls === null) complaints.push(`${current}: ${why}`);
      resolve({ calls, next });
    });
    // The right calls are made first: examples, some of which compute.
    watch(10 * hangs);
  });
}

it('every function refuses huge numbers, or takes them, at once', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'polygrad-huge-'));
  const complaints: string[] = [];
  try {
    const outfile = join(folder, 'calls.mjs');
    const url = new URL('../../../testing/src/doc-examples.ts', import.meta.url).href;
    await build({
      entryPoints: [new URL('../fixtures/huge-calls.ts', import.meta.url).pathname],
      outfile,
      bundle: true,
      format: 'esm',
      platform: 'node',
      target: 'es2022',
      // From sources, as the tests: one copy of core.
      conditions: ['@polygrad/source'],
      define: { 'import.meta.url': JSON.stringify(url) },
    });
    let part: Part = { calls: null, next: 0 };
    while (part.calls === null && complaints.length < 50) part = await runFrom(outfile, part.next, complaints);
    expect(complaints).toEqual([]);
    expect(part.calls).toBeGreaterThan(5000);
  } finally {
    await rm(folder, { recursive: true });
  }
});
