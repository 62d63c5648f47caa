/** One valid call of every public function: that of its example. Node only. */
// Its types only, of the methods: programs without methods use this package too.
import type {} from '@polygrad/core';
import { dispose, exp, isTensor, keep, ones, tensor } from '@polygrad/core/functions';
import { examplesOf, runExample, sourcesIn, withoutTypes } from './doc-examples.ts';

type Call = (...args: unknown[]) => unknown;

/** Public names and their values. */
export type Exported = Readonly<Record<string, unknown>>;

/** A call that is right, and of a function that it returns another one. */
export interface RightCall {
  readonly args: readonly unknown[];
  /** Arguments for the function that is returned; null if none is returned, or it is never called. */
  readonly next: readonly unknown[] | null;
}

/** They change or start the engine that everything else runs on: not called at all. Names, and what each does. */
export const withEngines: Readonly<Record<string, string>> = {
  setEngine: 'changes the engine that all other calls are made on',
  registerBackend: 'changes which engines can be made, for everything that comes after it in the process',
  to: 'moves values to an engine, on which no other call is made',
  calibrate: 'measures kernels on two engines, for some seconds',
  explainPlacement: 'asks for an ExecutionContext that is active',
  writeTrace: 'writes a file where it is told to',
  getBackend: 'gives what makes engines, which is there only where a backend was imported',
};

const folders = [
  ...[
    'ops',
    'checks',
    'autodiff',
    'control',
    'precision',
    'replay',
    'tensor',
    'graph',
    'runtime',
    'engine',
    'tuning',
  ].map((room) => `core/src/${room}`),
  'compiler/src/shape',
  'numbers/src',
];

const isClass = (value: unknown): boolean =>
  typeof value === 'function' && /^class\b/.test(Function.prototype.toString.call(value));

/** Names of the functions among them, in their order; classes are none. */
export const functionsOf = (exported: Exported): string[] =>
  Object.keys(exported).filter((name) => typeof exported[name] === 'function' && !isClass(exported[name]));

/**
 * Names of the functions that tests call: all but those of engines.
 *
 * @example
 * callable({ exp, setEngine, limit: 3 }); // ['exp']
 */
export const callable = (exported: Exported): string[] =>
  functionsOf(exported).filter((name) => !Object.hasOwn(withEngines, name));

function kept(value: unknown): unknown {
  if (isTensor(value)) return keep(value.detach());
  if (Array.isArray(value)) return value.map(kept);
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, kept(item)]));
}

/**
 * A function of the user's that adds what it throws to `errors`; other values, and classes, as they are.
 *
 * @example
 * const errors = new Set();
 * const f = noting(() => JSON.parse('{'), errors) as () => unknown;
 * f(); // throws SyntaxError
 * errors.size; // 1
 */
export function noting(value: unknown, errors: Set<unknown>): unknown {
  if (typeof value !== 'function' || value.prototype !== undefined) return value;
  return (...args: unknown[]) => {
    try {
      return value(...args);
    } catch (error) {
      errors.add(error);
      throw error;
    }
  };
}

interface Noted {
  readonly args: readonly unknown[];
  next: readonly unknown[] | null;
}

/** The function, noting the arguments of its first call, and those of the first call of what that returns. */
function noted(name: string, f: Call, calls: Map<string, Noted>): Call {
  return (...args) => {
    if (calls.has(name)) return f(...args);
    const call: Noted = { args: args.map(kept), next: null };
    calls.set(name, call);
    const result = f(...args);
    if (typeof result !== 'function') return result;
    return (...inner: unknown[]): unknown => {
      call.next ??= inner.map(kept);
      return result(...inner);
    };
  };
}

/** What `decimalType` asks of a class, on numbers of JavaScript. */
class SmallDecimal {
  readonly #value: number;

  constructor(value: number | string) {
    this.#value = Number(value);
  }

  plus(other: SmallDecimal): SmallDecimal {
    return new SmallDecimal(this.#value + other.#value);
  }

  eq(other: SmallDecimal): boolean {
    return this.#value === other.#value;
  }

  neg(): SmallDecimal {
    return new SmallDecimal(-this.#value);
  }

  toNumber(): number {
    return this.#value;
  }
}

/** Work for `profile`, which leaves nothing behind. */
const somethingRead = async (): Promise<void> => {
  const x = ones([2]);
  const y = exp(x);
  await y.data();
  dispose([x, y]);
};

/**
 * Runs the examples of public functions on the current engine and notes the first call of each. Their tensors are never released.
 *
 * @example no-run: runs all examples of the library, which takes seconds
 * const calls = await rightCalls({ exp });
 * calls.get('exp')?.args.length; // 1
 */
export async function rightCalls(exported: Exported): Promise<Map<string, RightCall>> {
  // Their examples import something, or call a global function of the same name.
  const numbers = keep(tensor([1, Number.NaN, Number.POSITIVE_INFINITY]));
  const calls = new Map<string, Noted>([
    ['isFinite', { args: [numbers], next: null }],
    ['isNaN', { args: [numbers], next: null }],
    ['browserStore', { args: [], next: null }],
    ['decimalType', { args: [SmallDecimal], next: null }],
    ['profile', { args: [somethingRead], next: null }],
  ]);
  const names = new Set(callable(exported));
  const all = Object.fromEntries(
    Object.entries(exported).map(([name, value]) => [
      name,
      names.has(name) ? noted(name, value as Call, calls) : value,
    ]),
  );
  for (const file of sourcesIn(folders))
    for (const { name, lines } of examplesOf(file))
      if (
        !Object.hasOwn(withEngines, name) &&
        !name.endsWith('Error') &&
        (name in exported || file.startsWith('core/src/tensor/'))
      )
        await runExample(lines.map(withoutTypes).join('\n'), all);
  return calls;
}
