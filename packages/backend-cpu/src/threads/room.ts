/**
 * How many threads there is room for. Each thread of Node reserves addresses for its heap and its code; where a limit (`ulimit -v`) leaves
 * none, V8 ends the process, and nothing can catch that. So it is asked for beforehand, on Linux, where alone such a limit holds.
 */
import { emitWarning, nodeModule } from './host.ts';

/** What a thread of Node reserves: 0.6 GiB on Node 20, and more where more is kept free for code. */
const threadBytes = 1.25 * 2 ** 30;
/** What the main thread may still need. */
const spareBytes = 2 ** 29;
/** Milliseconds after which a thread that was started has what it needs. */
const startMs = 10_000;

/** When threads were started. */
let started: number[] = [];

/** Threads that may be started now; Infinity where there is no limit, or none that can be read. */
function roomForThreads(): number {
  const files = nodeModule('node:fs');
  if (files === undefined) return Number.POSITIVE_INFINITY;
  try {
    // 'unlimited' has no digits.
    const limit = /^Max address space +(\d+)/m.exec(files.readFileSync('/proc/self/limits', 'utf8'));
    const used = /^VmSize:\s+(\d+) kB/m.exec(files.readFileSync('/proc/self/status', 'utf8'));
    if (limit === null || used === null) return Number.POSITIVE_INFINITY;
    const free = Number(limit[1]) - 1024 * Number(used[1]) - spareBytes;
    const since = performance.now() - startMs;
    started = started.filter((time) => time > since);
    return Math.max(0, Math.floor(free / threadBytes) - started.length);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/** Threads are about to be started. */
export function noteStarted(count: number): void {
  for (let i = 0; i < count; i++) started.push(performance.now());
}

let warned = false;

/** Of the threads wished for, the calling one included, those there is room for; says so once where they are fewer. */
export function threadsWithin(wished: number): number {
  if (wished === 1) return 1;
  const threads = 1 + Math.min(wished - 1, roomForThreads());
  if (threads < wished && !warned) {
    warned = true;
    emitWarning(
      `[cpu] the limit of addresses (ulimit -v) has no room for so many threads: ${threads} instead of ${wished}; raise the limit, or ` +
        'set POLYGRAD_THREADS',
    );
  }
  return threads;
}
