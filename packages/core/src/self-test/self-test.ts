/**
 * Entry point @polygrad/core/engine/self-test. The known-answer self-test: an engine computes small kernels with known results, and the first difference is reported.
 *
 * Drivers sometimes miscompile silently. Code that is about to use an engine with a driver for the first time runs this
 * first, and loads it for that alone. It uses nothing of the runtime: no plans, no counts, and memory and kernels are released before it ends.
 */
import { told } from '#shown-as';
import type { Binding, Command, CompiledKernel, EngineBuffer, IEngine } from '../engine/engine.ts';
import { ArgumentError } from '@polygrad/compiler/shape/errors';
import { say, shown } from '@polygrad/compiler/shape/shown';
import { UnsupportedError } from '../engine/errors.ts';
import { isEngine } from '../engine/registry.ts';
import { type Numbers, type Question, questions } from './questions.ts';

/** Result of a self-test. */
export interface SelfTestResult {
  /** The first wrong answer, or the error in place of one, in words; null if all are right. */
  readonly wrong: string | null;
  /** Names of the questions. */
  readonly questions: readonly string[];
  /** Milliseconds it took, compiling included. */
  readonly milliseconds: number;
}

/** Questions in progress: kernels, memory, and the position of each answer in the last buffer. */
interface Asked {
  readonly all: readonly Question[];
  readonly kernels: readonly CompiledKernel[];
  readonly buffers: EngineBuffer[];
  readonly answers: readonly Binding[];
  readonly results: Binding;
  readonly commands: readonly Command[];
}

/** Fills results before a kernel writes them: NaN in 32 bits and in 16. */
const unwritten = 0x7fc17fc1;

/** Whole words: a device that cannot write less would compile another kernel for the remainder. */
function inWords(data: Numbers): Uint8Array {
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  if (bytes.length % 4 === 0) return bytes;
  const whole = new Uint8Array(bytes.length + 4 - (bytes.length % 4));
  whole.set(bytes);
  return whole;
}

function prepare(engine: IEngine): Asked {
  const { caps } = engine;
  const all = questions(caps);
  const programs = all.map(({ program }) => caps.lowering.legalize?.(program, caps) ?? program);
  const buffers: EngineBuffer[] = [];
  const memory = (size: number): Binding => {
    const bytes = Math.max(4, Math.ceil(size / 4) * 4);
    const buffer = engine.alloc(bytes);
    buffers.push(buffer);
    return { buffer, offset: 0, bytes };
  };
  const kernels = engine.compile(programs);
  try {
    let end = 0;
    const places = all.map(({ answer }) => {
      const offset = end;
      end += Math.ceil(answer.byteLength / caps.bindAlign + 1) * caps.bindAlign;
      return offset;
    });
    const results = memory(end);
    const answers = all.map(({ answer }, i): Binding => {
      const bytes = Math.ceil(answer.byteLength / 4) * 4;
      return { buffer: results.buffer, offset: places[i]!, bytes };
    });
    // Uploaded, not filled: devices without a fill command would compile another kernel for it.
    engine.upload(results, new Uint32Array(results.bytes / 4).fill(unwritten));
    const commands: Command[] = [];
    for (const [i, { inputs }] of all.entries()) {
      const bindings = inputs.map((data) => {
        const to = memory(data.byteLength);
        engine.upload(to, inWords(data));
        return to;
      });
      bindings.push(answers[i]!);
      commands.push({ kind: 'dispatch', kernel: kernels[i]!, bindings, scalars: [] });
    }
    return { all, kernels, buffers, answers, results, commands };
  } catch (error) {
    for (const buffer of buffers) engine.free(buffer);
    engine.release(kernels);
    throw error;
  }
}

/** The same for an engine that may still have to load what compiles them. */
async function prepareLater(engine: IEngine): Promise<Asked> {
  try {
    return prepare(engine);
  } catch (error) {
    if (!(error instanceof UnsupportedError) || error.until === undefined) throw error;
    await error.until;
    return prepare(engine);
  }
}

function giveBack(engine: IEngine, { buffers, kernels }: Asked): void {
  for (const buffer of buffers) engine.free(buffer);
  engine.release(kernels);
}

/** Units in the last place between two numbers. */
function distance(a: number, b: number): number {
  if (Object.is(a, b) || a === b) return 0;
  if (Number.isNaN(a) || Number.isNaN(b)) return Infinity;
  const [x, y] = new Int32Array(Float32Array.of(a, b).buffer) as unknown as [number, number];
  const [m, n] = [x, y].map((bits) => (bits < 0 ? -(bits & 0x7fffffff) : bits)) as [number, number];
  return Math.abs(m - n);
}

/** The first wrong answer, in words. */
function wrongIn({ all, answers }: Asked, results: Uint8Array): string | null {
  for (const [i, { name, answer, ulp }] of all.entries()) {
    const bytes = results.slice(answers[i]!.offset, answers[i]!.offset + answer.byteLength).buffer;
    const got: Numbers = answer instanceof Float32Array ? new Float32Array(bytes) : new Uint16Array(bytes);
    const at = answer.findIndex((want, n) =>
      answer instanceof Float32Array ? distance(want, got[n]!) > ulp : want !== got[n],
    );
    if (at >= 0) return `element ${at} of ${name} is ${got[at]}, expected ${answer[at]}`;
  }
  return null;
}

function failureIn({ kernels }: Asked): Error | null {
  for (const { failure } of kernels) if (failure != null) return failure;
  return null;
}

/** Throws where it is no engine at all, but a backend's name or nothing: that says nothing about a driver. */
function checkIsEngine(op: string, engine: unknown): void {
  if (told && !isEngine(engine))
    throw new ArgumentError(
      op,
      say`not an engine: ${shown(engine)}; give an engine, such as await setEngine('cpu') returns`,
    );
}

const words = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/**
 * Has an engine compute known answers: products, plain and through group memory with its barriers; reductions, `exp` and `log1p` by units in
 * the last place, 16-bit floats, all at sizes that fit no vector and no group. An error of the engine is a wrong answer. The engine may be in
 * use; the caller must watch for a hang.
 *
 * @returns what is wrong with the engine, if anything
 * @throws ArgumentError for what is no engine, as a backend's name
 * @example
 * import { selfTest } from '@polygrad/core/engine/self-test';
 * import { createReferenceEngine } from '@polygrad/testing';
 * const { wrong } = await selfTest(createReferenceEngine());
 * console.log(wrong); //=> null
 */
export async function selfTest(engine: IEngine): Promise<SelfTestResult> {
  checkIsEngine('selfTest', engine);
  const start = performance.now();
  let asked: Asked | null = null;
  let wrong: string | null;
  try {
    asked = await prepareLater(engine);
    await engine.ready?.();
    await engine.confirming?.();
    const failure = failureIn(asked);
    if (failure !== null) throw failure;
    engine.submit(asked.commands);
    wrong = wrongIn(asked, await engine.download(asked.results, new Uint8Array(asked.results.bytes)));
  } catch (error) {
    wrong = words(error);
  }
  return finished(engine, asked, wrong, start);
}

/**
 * `selfTest` for engines that compile and read at once (`downloadSync`): it returns without awaiting.
 *
 * @returns what is wrong with the engine, if anything
 * @throws ArgumentError for what is no engine, as a backend's name
 * @example
 * import { selfTestSync } from '@polygrad/core/engine/self-test';
 * import { createReferenceEngine } from '@polygrad/testing';
 * console.log(selfTestSync(createReferenceEngine()).wrong); //=> null
 */
export function selfTestSync(engine: IEngine): SelfTestResult {
  checkIsEngine('selfTestSync', engine);
  const start = performance.now();
  let asked: Asked | null = null;
  let wrong: string | null;
  try {
    asked = prepare(engine);
    engine.submit(asked.commands);
    const { results } = asked;
    const bytes = engine.downloadSync?.(results, new Uint8Array(results.bytes));
    wrong = bytes === undefined ? 'it cannot be read at once' : wrongIn(asked, bytes);
  } catch (error) {
    wrong = words(error);
  }
  return finished(engine, asked, wrong, start);
}

function finished(engine: IEngine, asked: Asked | null, wrong: string | null, start: number): SelfTestResult {
  try {
    if (asked !== null) giveBack(engine, asked);
  } catch (error) {
    wrong ??= words(error);
  }
  const names = asked?.all.map(({ name }) => name) ?? [];
  return { wrong, questions: names, milliseconds: performance.now() - start };
}
