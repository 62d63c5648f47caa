/**
 * Asks one backend, or auto-detection, in a separate process: a driver that crashes or hangs ends only that process. A Node that may start no
 * processes (`--permission` without `--allow-child-process`) asks in its own.
 */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { answer } from './answer.ts';
import type { Answer } from './report.ts';

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
