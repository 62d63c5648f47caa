/**
 * The addon for an emulated arm64 processor: the engine is that of users, but dispatches run in a process of
 * `qemu-aarch64`, on memory that ends at inaccessible pages (native/emulated/run.c). For tests on other processors.
 */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Addon } from '../addon.ts';

const native = fileURLToPath(new URL('../../native', import.meta.url));
const [compiler, emulator] = ['aarch64-linux-gnu-gcc', 'qemu-aarch64'];
/** Kinds of commands, as in commands.ts. */
const [dispatch, copy, fill] = [0, 1, 2];

/** Why nothing can be emulated here, or null; if POLYGRAD_REQUIRE names arm64, an error instead. */
export function whyNotEmulated(): string | null {
  const missing = [compiler, emulator].filter(
    (name) => spawnSync(name, ['--version'], { stdio: 'ignore' }).status !== 0,
  );
  if (missing.length === 0) return null;
  const reason = `${missing.join(' and ')} not installed (tooling/devices/install.sh arm64)`;
  if ((process.env.POLYGRAD_REQUIRE ?? '').split(',').includes('arm64'))
    throw new Error(`POLYGRAD_REQUIRE names arm64, but ${reason}`);
  console.warn(`machine code of arm64 is not run: ${reason}`);
  return reason;
}

/** A program for arm64 and its arguments, as a command of this machine: Node as installed by install.sh. Null without it. */
export function emulatedNode(): readonly [command: string, ...args: string[]] | null {
  const devices = process.env.POLYGRAD_DEVICES ?? join(homedir(), '.cache/polygrad/devices');
  const node = join(devices, 'node-arm64/bin/node');
  if (existsSync(node)) return [emulator, '-L', '/usr/aarch64-linux-gnu', node];
  const reason = `${node} is not there (tooling/devices/install.sh arm64)`;
  if ((process.env.POLYGRAD_REQUIRE ?? '').split(',').includes('arm64'))
    throw new Error(`POLYGRAD_REQUIRE names arm64, but ${reason}`);
  console.warn(`the addon for arm64 is not run: ${reason}`);
  return null;
}

/** The program that runs code, compiled if its sources have changed. */
function runner(): string {
  const files = ['emulated/run.c', 'memory.c', 'native.h'].map((name) => join(native, name));
  const hash = createHash('sha256');
  for (const file of files) hash.update(readFileSync(file));
  const target = join(native, 'build', `run-arm64-${hash.digest('hex').slice(0, 12)}`);
  if (existsSync(target)) return target;
  mkdirSync(join(native, 'build'), { recursive: true });
  const part = `${target}.${process.pid}`;
  const { status, stderr } = spawnSync(compiler, ['-std=c11', '-O2', '-static', files[0]!, files[1]!, '-o', part]);
  if (status !== 0) throw new Error(`${compiler} failed: ${stderr}`);
  renameSync(part, target);
  return target;
}

interface Code {
  readonly bytes: Uint8Array;
  readonly params: number;
  readonly scalars: number;
  readonly groups: number;
}

interface Region {
  readonly from: number;
  to: number;
}

/** Memory regions of the parameters; overlapping parameters share one. */
function regionsOf(places: readonly (readonly [offset: number, bytes: number])[]): readonly Region[] {
  const regions: Region[] = [];
  for (const [offset, bytes] of [...places].sort((a, b) => a[0] - b[0])) {
    const last = regions.at(-1);
    if (last !== undefined && offset < last.to) last.to = Math.max(last.to, offset + bytes);
    else regions.push({ from: offset, to: offset + bytes });
  }
  return regions;
}

/** A process of the emulator with synchronous calls: requests go through one named pipe, answers through another. */
class Process {
  readonly #to: number;
  readonly #from: number;

  constructor(program: string) {
    const folder = mkdtempSync(join(tmpdir(), 'polygrad-arm64-'));
    const pipes = ['to', 'from'].map((name) => join(folder, name));
    if (spawnSync('mkfifo', pipes).status !== 0) throw new Error('mkfifo failed');
    // `timeout` ends code that does not end; the reader then finds the end of the pipe.
    const script = 'exec timeout 7000 "$0" "$1" <"$2" >"$3"';
    spawn('sh', ['-c', script, emulator, program, ...pipes], { stdio: ['ignore', 'ignore', 'inherit'] }).unref();
    this.#to = openSync(pipes[0]!, 'w');
    this.#from = openSync(pipes[1]!, 'r');
    rmSync(folder, { recursive: true });
  }

  send(bytes: Uint8Array): void {
    for (let done = 0; done < bytes.length; ) done += writeSync(this.#to, bytes, done);
  }

  receive(into: Uint8Array): void {
    for (let done = 0; done < into.length; ) {
      const n = readSync(this.#from, into, done, into.length - done, null);
      if (n === 0) throw new Error('the emulated program ended: it touched what it must not, or did not end by itself');
      done += n;
    }
  }

  end(): void {
    closeSync(this.#to);
    closeSync(this.#from);
  }
}

/** Makes an addon that emulates. */
export function emulatedAddon(): Addon {
  const program = runner();
  const memories: Uint8Array[] = [];
  const processes = new Map<number, Process>();
  const codes: Code[] = [];

  const run = (engine: number, code: Code, cells: Float64Array): number => {
    const memory = memories[engine]!;
    const places = Array.from({ length: code.params }, (_, i) => [cells[2 * i]!, cells[2 * i + 1]!] as const);
    const regions = regionsOf(places);
    const of = places.map(([offset, bytes]) =>
      regions.findIndex(({ from, to }) => offset >= from && offset + bytes <= to),
    );
    const numbers = [code.bytes.length, regions.length, ...regions.map(({ from, to }) => to - from), code.params];
    for (const [i, [offset]] of places.entries()) numbers.push(of[i]!, offset - regions[of[i]!]!.from);
    numbers.push(code.scalars);
    const scalars = new Uint8Array(cells.slice(2 * code.params, 2 * code.params + code.scalars).buffer);
    let process = processes.get(engine);
    if (process === undefined) processes.set(engine, (process = new Process(program)));
    process.send(
      Buffer.concat([
        new Uint8Array(BigUint64Array.from(numbers, BigInt).buffer),
        scalars,
        new Uint8Array(BigUint64Array.of(BigInt(code.groups)).buffer),
        code.bytes,
        ...regions.map(({ from, to }) => memory.slice(from, to)),
      ]),
    );
    const result = new BigInt64Array(1);
    process.receive(new Uint8Array(result.buffer));
    for (const { from, to } of regions) {
      const bytes = new Uint8Array(to - from);
      process.receive(bytes);
      memory.set(bytes, from);
    }
    return Number(result[0]);
  };

  const addon: Addon = {
    features: () => 4,
    create: (memory) => memories.push(memory) - 1,
    resize(engine, memory) {
      memories[engine] = memory;
    },
    compile: (_engine, bytes, params, scalars, groups) => codes.push({ bytes, params, scalars, groups }) - 1,
    release() {},
    submit(engine, cells, length) {
      const memory = memories[engine]!;
      for (let at = 0; at < length; ) {
        const kind = cells[at++];
        if (kind === dispatch) {
          const code = codes[cells[at]!]!;
          at += 2;
          const fault = run(engine, code, cells.subarray(at));
          if (fault !== 0) return fault;
          at += 2 * code.params + code.scalars;
        } else if (kind === copy) {
          const [from, to, bytes] = cells.subarray(at, at + 3) as unknown as [number, number, number];
          memory.copyWithin(to, from, from + bytes);
          at += 3;
        } else if (kind === fill) {
          const [to, bytes] = cells.subarray(at, at + 2) as unknown as [number, number];
          const pattern = new Uint8Array(cells.slice(at + 2, at + 3).buffer, 0, 4);
          for (let i = 0; i + 4 <= bytes; i += 4) memory.set(pattern, to + i);
          at += 3;
        }
      }
      return undefined;
    },
    submitter: (engine, cells) => () => addon.submit(engine, cells.subarray(1), cells[0]!),
    dispose(engine) {
      processes.get(engine)?.end();
      processes.delete(engine);
    },
  };
  return addon;
}
