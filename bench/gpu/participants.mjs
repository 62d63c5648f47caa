/**
 * Programs that measure: each gets requests as lines of JSON and answers with lines of JSON. One that hangs or dies in a case loses that case
 * only, and is started again for those behind it.
 */
import { spawn } from 'node:child_process';

const oneLine = (text) => text.split('\n').find((line) => /^\w*Error\b/.test(line)) ?? text.trim().split('\n').at(-1);

/** Starts a program. Lines of what it says go to `onLine`; `ended` resolves to null, or why it did not end well. */
export function start(program, args, { cwd, onLine }) {
  const child = spawn(program, args, { cwd, stdio: ['pipe', 'pipe', 'pipe'] });
  let rest = '';
  let errors = '';
  let killed = null;
  child.stdout.setEncoding('utf8').on('data', (text) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop();
    for (const line of lines) onLine(line);
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    errors = (errors + text).slice(-4000);
  });
  // Whoever died takes no requests.
  child.stdin.on('error', () => {});
  const ended = new Promise((resolve) => {
    child.on('error', (error) => resolve(error.message));
    child.on('close', (code, signal) => {
      if (rest !== '') onLine(rest);
      if (killed !== null) resolve(killed);
      else resolve(code === 0 ? null : `it ended with ${signal ?? code}: ${oneLine(errors)}`);
    });
  });
  return {
    ended,
    tell: (request) => child.stdin.write(`${JSON.stringify(request)}\n`),
    close: () => child.stdin.end(),
    kill: (why) => {
      killed ??= why;
      child.kill('SIGKILL');
    },
  };
}

/** Runs a program to its end, or for so many seconds. Null, or why it did not end well. */
export async function follow(program, args, seconds, { cwd, onLine }) {
  const running = start(program, args, { cwd, onLine });
  running.close();
  const timer = setTimeout(() => running.kill(`it did not end within ${seconds.toFixed(0)} s`), seconds * 1000);
  const failed = await running.ended;
  clearTimeout(timer);
  return failed;
}

/** Seconds in which a case must say something. */
const patience = 75;

/**
 * Has a program measure cases within so many seconds. `onSaid` gets what it says of a case; a case that was begun and never answered, and those
 * there was no time for, are told of as failed.
 */
export async function measure(program, args, { cases, seconds, cwd, onSaid, ...request }) {
  const end = Date.now() + seconds * 1000;
  let open = cases;
  let why = null;
  // What cannot start at all does not start for the next case either.
  for (let begun = true; open.length > 0 && begun && Date.now() < end; ) {
    begun = false;
    let current = null;
    let timer;
    const answered = new Set();
    const running = start(program, args, {
      cwd,
      onLine: (line) => {
        let said;
        try {
          said = JSON.parse(line);
        } catch {
          return;
        }
        wait();
        if (said.begins !== undefined) {
          begun = true;
          current = said.begins;
        }
        if (said.name !== undefined) answered.add(said.name);
        onSaid(said);
      },
    });
    const wait = () => {
      clearTimeout(timer);
      const left = end - Date.now();
      const [after, reason] =
        left < patience * 1000 ? [left, 'the time was over'] : [patience * 1000, `nothing was heard for ${patience} s`];
      timer = setTimeout(() => running.kill(reason), Math.max(0, after));
    };
    wait();
    running.tell({ ...request, cases: open });
    running.close();
    why = await running.ended;
    clearTimeout(timer);
    if (current !== null && !answered.has(current)) {
      answered.add(current);
      onSaid({ name: current, failed: why ?? 'it ended' });
    }
    open = open.filter(({ name }) => !answered.has(name));
  }
  const reason = Date.now() >= end ? 'the time was over' : (why ?? 'it ended');
  for (const { name } of open) onSaid({ name, failed: reason });
}
