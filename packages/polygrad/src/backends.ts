/**
 * Asks one backend, or auto-detection, in a separate process: a driver that crashes or hangs ends only that process. A Node that may start no
 * processes (`--permission` without `--allow-child-process`) asks in its own.
 */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { answer } from './answer.ts';

/** What one backend says. */
export interface BackendInfo {
  readonly name: string;
  /** The package it comes from. */
  readonly package: string;
  readonly installed: boolean;
  /** True if it passed the self-test. */
  readonly works: boolean;
  readonly device: string | null;
  /** Its driver and the driver's version, if it tells. */
  readonly driver: string | null;
  readonly memoryBytes: number | null;
  /** Files of drivers and addons that it loaded. */
  readonly libraries: readonly string[];
  /** Libraries that may compute products and convolutions in place of kernels: why each is not used, or null where it may be. */
  readonly products: Readonly<Record<string, string | null>>;
  /** True for a GPU that the processor plays. */
  readonly software: boolean;
  readonly score: number;
  /** Why it does not work, or what it says about its device. */
  readonly reason: string;
}

/** What is known here of a row of auto-detection's report; `--json` prints all of it. */
export interface DetectionRow {
  readonly name: string;
  readonly verdict: string;
}

/** What `ask.ts` writes, behind `mark`. */
export type Answer =
  | (Omit<BackendInfo, 'name' | 'package' | 'installed' | 'device'> & {
      readonly kind: 'backend';
      readonly device: string;
    })
  | {
      readonly kind: 'choice';
      readonly chosen: string;
      readonly report: readonly DetectionRow[];
      readonly table: string;
    }
  | { readonly kind: 'failed'; readonly reason: string };

/** Marks the answer, because drivers print lines too. */
export const mark = 'polygrad-answer ';

/** Milliseconds that a backend has. */
const patience = 30_000;

/** Arguments of Node that decide what a backend may do: a process of its own gets them too. */
const passed = /^(--no-addons$|--jitless$|--permission$|--experimental-permission$|--allow-)/;

/** Runs `ask.ts` with arguments; never throws. */
export function ask(words: readonly string[], folder: string, limit: number = patience): Promise<Answer> {
  // There from Node 20 on, and where permissions are asked for.
  const { permission } = process as { readonly permission?: { has(scope: string): boolean } };
  if (permission?.has('child') === false) return answer(words);
  const program = fileURLToPath(new URL('./ask.js', import.meta.url));
  const options = process.execArgv.filter((option) => passed.test(option));
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [...options, program, ...words], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    let output = '';
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      child.kill('SIGKILL');
    }, limit);
    const end = (reason: string): void => {
      clearTimeout(timer);
      resolve({ kind: 'failed', reason });
    };
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    child.on('error', (error) => end(`its process does not start: ${error.message}`));
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      const line = output
        .split('\n')
        .filter((text) => text.startsWith(mark))
        .pop();
      if (line !== undefined) resolve(JSON.parse(line.slice(mark.length)) as Answer);
      else if (late) end(`no answer within ${limit / 1000} seconds`);
      else end(`its process ended with ${signal ?? `code ${code}`}`);
    });
  });
}
