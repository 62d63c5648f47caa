/** A worker's code as text: it starts in a process of its own, takes work, sleeps, and does not keep the process alive. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { assembleModule } from '../asm/module.ts';
import * as W from '../asm/plain.ts';
import * as T from '../asm/types.ts';
import type { ValType } from '../asm/types.ts';
import { argsAt, heapAt, ringAt, ringSlots, tableAt, tableSlots } from '../memory/layout.ts';
import { chunkBits, control } from './control.ts';
import { workerMain, type WorkerStart } from './worker.ts';

it('runs chunks in another process and lets it end', async () => {
  const pages = Math.ceil(heapAt / 65536) + 1;
  // fn(args, from, to, scratch): adds `to` to the word at args.
  const code = [W.localGet, 0, W.localGet, 0, W.i32Load, 2, 0, W.localGet, 2, W.i32Add, W.i32Store, 2, 0];
  const params: ValType[] = [T.i32, T.i32, T.i32, T.i32];
  const module = assembleModule({ minPages: pages, maxPages: pages, shared: true, addressBits: 32 }, [
    { name: 'add', params, results: [], locals: [], code: Uint8Array.from(code) },
  ]);
  const start: Omit<WorkerStart, 'memory'> = {
    control,
    chunkBits,
    threads: 2,
    tableAt,
    tableSlots,
    ringAt,
    ringSlots,
    argsAt,
    wide: false,
    scratch: 0,
    spins: 1000,
    index: 0,
  };
  const script = `
    const { Worker } = require('node:worker_threads');
    const memory = new WebAssembly.Memory({ initial: ${pages}, maximum: ${pages}, shared: true });
    const words = new Int32Array(memory.buffer);
    const bytes = ${JSON.stringify([...module])};
    new Uint8Array(memory.buffer).set(bytes, ${heapAt});
    words[${tableAt / 4}] = ${heapAt};
    words[${tableAt / 4 + 1}] = bytes.length;
    words[${tableAt / 4 + 2}] = 2;
    words[${control.chunkGroups}] = 10;
    words[${control.groups}] = 25;
    words[${control.crew}] = 1;
    const source = ${JSON.stringify(`(${workerMain.toString()})(require('node:worker_threads').workerData)`)};
    const worker = new Worker(source, { eval: true, workerData: { memory, ...${JSON.stringify(start)} } });
    worker.unref();
    const wait = setInterval(() => {
      if (Atomics.load(words, ${control.sleepers}) !== 1) return;
      clearInterval(wait);
      Atomics.store(words, ${control.ticket}, 3 << ${chunkBits});
      Atomics.notify(words, ${control.ticket});
      while (Atomics.load(words, ${control.done}) < 3);
      // Chunks end at 10, 20 and 25; the worker is left waiting.
      console.log(words[${argsAt / 4}], words[${control.failed}]);
    }, 5);`;
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', script], { timeout: 540_000 });
  expect(stdout.trim()).toBe('55 0');
});
