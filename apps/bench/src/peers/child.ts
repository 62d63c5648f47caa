/**
 * The harness's side of a participant's process: starts it, asks, waits no longer than allowed, and ends it. Knows
 * nothing of what is measured.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { type FailureReply, mark, type ReadyReply, type Request } from './protocol.ts';

export interface Command {
  readonly program: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly encode: (request: Request) => string;
}

/** A running participant. */
export interface Child {
  readonly ready: ReadyReply;
  /** Sends a request and waits for the answer. Throws if none comes in time; the process has been ended then. */
  ask<Reply extends object>(request: Request, timeoutMs: number): Promise<Reply & FailureReply>;
  readonly alive: () => boolean;
  quit(): Promise<void>;
}

const startTimeoutMs = 60_000;

interface Waiter {
  readonly resolve: (reply: object) => void;
  readonly reject: (error: Error) => void;
}

/** Starts a process and waits until it can take requests. Throws with its own words if it cannot. */
export async function startChild(command: Command): Promise<Child> {
  const child: ChildProcess = spawn(command.program, command.args, {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, ...command.env },
  });
  let complaints = '';
  let ended: Error | null = null;
  let waiter: Waiter | null = null;

  const end = (error: Error): void => {
    ended ??= error;
    const waiting = waiter;
    waiter = null;
    waiting?.reject(ended);
  };
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    complaints = (complaints + text).slice(-2000);
  });
  child.stdin?.on('error', () => undefined); // its exit says why
  child.on('error', (error) => end(error));
  child.on('close', (code, signal) => {
    const last = complaints.trim().split('\n').at(-1) ?? '';
    end(new Error(`ended with ${signal ?? `exit code ${code}`}${last === '' ? '' : `: ${last}`}`));
  });
  if (child.stdout) {
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (!line.startsWith(mark)) return;
      const waiting = waiter;
      waiter = null;
      waiting?.resolve(JSON.parse(line.slice(mark.length)) as object);
    });
  }

  const wait = (timeoutMs: number): Promise<object> =>
    new Promise<object>((resolve, reject) => {
      if (ended) {
        reject(ended);
        return;
      }
      const timer = setTimeout(() => {
        child.kill('SIGKILL');
        end(new Error(`no answer within ${Math.round(timeoutMs / 1000)} s`));
      }, timeoutMs);
      waiter = {
        resolve: (reply) => {
          clearTimeout(timer);
          resolve(reply);
        },
        reject: (error) => {
          clearTimeout(timer);
          reject(error);
        },
      };
    });

  const ready = (await wait(startTimeoutMs)) as ReadyReply & FailureReply;
  const problem = ready.unsupported ?? ready.error;
  if (problem !== undefined) {
    child.kill('SIGKILL');
    throw new Error(problem);
  }
  return {
    ready,
    alive: () => ended === null,
    ask: async <Reply extends object>(request: Request, timeoutMs: number) => {
      const reply = wait(timeoutMs);
      child.stdin?.write(`${command.encode(request)}\n`);
      return (await reply) as Reply & FailureReply;
    },
    quit: async () => {
      if (ended) return;
      const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
      child.stdin?.end(`${command.encode({ op: 'quit' })}\n`);
      const timer = setTimeout(() => child.kill('SIGKILL'), 2000);
      await closed;
      clearTimeout(timer);
    },
  };
}
