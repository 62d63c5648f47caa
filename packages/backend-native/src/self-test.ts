/** A small program that is run before the first engine of a process is used: a native engine that gets it wrong is not offered. */
import type { Command } from '@polygrad/core/engine';
import { ProgramBuilder } from '@polygrad/core/kernel/ir';
import { NativeEngine } from './engine.ts';

const length = 64;

/** y[i] = x[i] > 0 ? x[i] * 3 + i : -1, in vectors, and the sum of y behind it. */
function program(): ReturnType<ProgramBuilder['build']> {
  const b = new ProgramBuilder();
  const { e } = b;
  const x = e.param(0, 'float32', 'read', length);
  const y = e.param(1, 'float32', 'readwrite', length + 1);
  const lanes = 4;
  const sum = b.reg('sum', 'float32', 1, 1);
  b.store(sum, 0, e.f32(0));
  b.loop(length / lanes, (i) => {
    const at = e.mul(i, lanes);
    const v = b.load(x, at, lanes);
    const index = e.cast(e.add(e.splat(at, lanes), e.iota(lanes)), 'float32');
    const three = e.constant('float32', 3, lanes);
    const made = e.where(
      e.lt(e.constant('float32', 0, lanes), v),
      e.ternary('MULADD', v, three, index),
      e.constant('float32', -1, lanes),
    );
    b.store(y, at, made);
  });
  b.loop(length, (i) => b.store(sum, 0, e.add(b.load(sum, 0), b.load(y, i))));
  b.store(y, e.i32(length), b.load(sum, 0));
  return b.build({ name: 'self-test', params: [x, y] });
}

let found: string | null | undefined;

/** What is wrong with native code on this machine, or null. Found once. */
export function selfTest(): string | null {
  if (found === undefined) found = run();
  return found;
}

function run(): string | null {
  const engine = new NativeEngine({ threads: 2 });
  try {
    const bytes = (length + 1) * 4;
    const [input, output] = [engine.alloc(bytes), engine.alloc(bytes)];
    const x = Float32Array.from({ length }, (_, i) => (i % 3) - 1 + i / 8);
    engine.upload({ buffer: input, offset: 0, bytes: length * 4 }, x);
    const [kernel] = engine.compile([program()]);
    const bindings = [input, output].map((buffer) => ({ buffer, offset: 0, bytes }));
    const command: Command = { kind: 'dispatch', kernel: kernel!, bindings, scalars: [] };
    engine.submit([command]);
    const got = new Float32Array(engine.downloadSync(bindings[1]!, new Uint8Array(bytes)).buffer);
    let sum = 0;
    for (let i = 0; i < length; i++) {
      const want = x[i]! > 0 ? Math.fround(x[i]! * 3 + i) : -1;
      if (got[i] !== want) return `element ${i} of the self-test is ${got[i]}, expected ${want}`;
      sum = Math.fround(sum + want);
    }
    return got[length] === sum ? null : `the sum of the self-test is ${got[length]}, expected ${sum}`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    engine.dispose();
  }
}
