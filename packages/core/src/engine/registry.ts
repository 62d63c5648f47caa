/**
 * The registry of backends, the current engine, how the loss of one is noticed, and what may become of it. runtime/devices.ts knows which engine takes over, and
 * runtime/shadow.ts which tensors survive.
 *
 * Backend packages register a provider when they are imported. The registry is stored under a global symbol, so that several copies of
 * this package in one program share it. Nothing here imports a backend.
 */
import { lacking, told } from '#shown-as';
import type { IEngine } from './engine.ts';
import { computesIn } from '@polygrad/compiler/ir/target';
import type { DType } from '@polygrad/compiler/shape/dtype';
import { ArgumentError } from '@polygrad/compiler/shape/errors';
import { shown } from '@polygrad/compiler/shape/options';
import { DeviceLostError, EngineDisposedError, EngineMissingError, UnsupportedError } from './errors.ts';
import { poolOf } from './pool.ts';
import { isPlain, say } from '@polygrad/compiler/shape/shown';

/** What a backend found on this machine. Higher scores are chosen first; 0 or less: not usable. */
export interface Probe {
  readonly score: number;
  /** The reason for the score, as a sentence. */
  readonly reason: string;
  readonly device: string;
  /** True for a GPU emulated by the processor: it never counts as a real one. */
  readonly software?: boolean;
  /**
   * Present if the device is the processor itself, used in another way than by the CPU engine: what its speed depends on (device, driver,
   * versions, threads), as text. It is chosen before the CPU engine only if it was measured faster.
   */
  readonly processor?: string;
  /** Name and version of the driver. */
  readonly driver?: string;
  /** Bytes of the device's memory. */
  readonly memoryBytes?: number;
  /** Dtypes that its tensors may have, if they are known before an engine is made. */
  readonly dtypes?: readonly DType[];
}

/** A backend package as the registry sees it. `Options` are those of its engine (threads, device index ...). */
export interface BackendProvider {
  readonly name: string;
  /** True if `create` loads the engine's code first, so that no engine can be had at once. */
  readonly late?: boolean;
  probe(): Promise<Probe>;
  /** Loads code that `create` waits for at first: `setEngine` has it loaded beside its own for devices. */
  load?(): Promise<unknown>;
  /** Makes an engine. `known.isProven`: it passed the self-test with these options already, so it need not test itself. */
  create(
    options?: Readonly<Record<string, unknown>>,
    known?: { readonly isProven: boolean },
  ): Promise<IEngine> | IEngine;
}

/** How losses and full devices are handled. */
export interface RecoveryPolicy {
  /**
   * How often the backend of a lost engine is asked for a new one. Default 1. A new engine that is lost within a minute is
   * not replaced by the same backend again: browsers refuse adapters to a page after repeated losses.
   */
  readonly retry: number;
  /** What takes over then: the CPU engine (default), or none: every operation throws the DeviceLostError until setEngine(). */
  readonly fallback: 'cpu' | 'error';
  /**
   * When memory is full even after unused memory was freed: an OutOfMemoryError (default), or the work and the data that
   * do not fit go to the CPU engine.
   */
  readonly outOfMemory: 'error' | 'cpu';
  /** Keeps copies of all parameters, buffers and optimizer states of `@polygrad/nn`, as if they were given to protect(). Default false. */
  readonly shadow: boolean;
  /** Least milliseconds between the copies that protect() and `shadow` make. Default 1000. */
  readonly interval: number;
  /** Milliseconds that a new engine has to start. Default 10000. */
  readonly patience: number;
  /**
   * Milliseconds that a device has to answer a read, or `idle()`, for each unfinished batch of work; `Infinity`: no limit.
   * A device that does not answer counts as lost. Time during which the program itself stands still (a sleeping computer, a debugger) does not
   * count. Default: 300000, five minutes, and no limit for engines that compute in memory of the program.
   */
  readonly timeout: number | undefined;
}

/** The event of a loss, as listeners get it. */
export interface LostEvent {
  /** The engine that is lost. */
  readonly engine: IEngine;
  readonly error: DeviceLostError;
}

/** The policy unless `setRecovery` sets another. */
export const usualPolicy: RecoveryPolicy = {
  retry: 1,
  fallback: 'cpu',
  outOfMemory: 'error',
  shadow: false,
  interval: 1000,
  patience: 10_000,
  timeout: undefined,
};

interface Registry {
  readonly providers: Map<string, BackendProvider>;
  current: IEngine | null;
  /** The CPU engine for data that others cannot hold: the one set last, or one made for that. */
  cpu?: IEngine | Promise<IEngine> | null;
  /** What each copy of this package loads before a device or a second engine is used. */
  loads?: Set<Load>;
}

/** Loads code that a device needs and, unless the engine is alone, code for several engines. */
export type Load = (alone: boolean) => Promise<unknown>;

const key = Symbol.for('polygrad.registry');
const globals = globalThis as { [key]?: Registry };

/** The current engine and what is known of losses: this room's part of a runtime (runtime/runtime.ts). */
export interface Engines {
  /** Backends and the engines in use; null: the program's registry, which all copies of this package share. */
  readonly registry: Registry | null;
  policy: RecoveryPolicy;
  /** Called when a device is lost. */
  readonly listeners: Set<(event: LostEvent) => void>;
  /** Devices lost so far. */
  losses: number;
  /** Set if protected tensors went back to older values after a loss (runtime/shadow.ts), until an error has reported it. */
  untold: DeviceLostError | null;
  /** A lost engine whose successor is starting. */
  underway: { readonly engine: IEngine; readonly done: Promise<void> } | null;
}

const enginesOf = (registry: Registry | null): Engines => ({
  registry,
  policy: usualPolicy,
  listeners: new Set(),
  losses: 0,
  untold: null,
  underway: null,
});

/** The part in use. */
export let engines: Engines = enginesOf(null);

/** Another part takes its place. */
export function useEngines(next: Engines): void {
  engines = next;
}

/** The loss that has not been reported yet; returns it once, and the caller throws it. */
export function takeUntold(): DeviceLostError | null {
  const { untold } = engines;
  if (untold !== null) engines.untold = null;
  return untold;
}

/** A new part without an engine. It has the same backends as the one in use. */
export function newEngines(): Engines {
  return enginesOf({ providers: new Map(registry().providers), current: null });
}

function registry(): Registry {
  return engines.registry ?? (globals[key] ??= { providers: new Map(), current: null });
}

/**
 * Makes a backend available under its name. Registering the same name again is silent and keeps the first.
 *
 * @throws ArgumentError if it is none
 * @example
 * import { listBackends, registerBackend } from '@polygrad/core/engine';
 * import { createReferenceEngine } from '@polygrad/testing';
 * registerBackend({
 *   name: 'mine',
 *   probe: async () => ({ score: 1, reason: 'always there', device: 'interpreter' }),
 *   create: () => createReferenceEngine(),
 * });
 * console.log(listBackends().includes('mine')); //=> true
 */
export function registerBackend(provider: BackendProvider): void {
  const { name, probe, create } = (provider ?? {}) as Partial<BackendProvider>;
  if (typeof name !== 'string' || name === '' || typeof probe !== 'function' || typeof create !== 'function')
    throw new ArgumentError(
      'registerBackend',
      say`not a backend: ${shown(provider)}; must be an object with a name, probe() and create()`,
    );
  const { providers } = registry();
  if (!providers.has(provider.name)) providers.set(provider.name, provider);
}

/**
 * Names of the registered backends, in order of registration.
 *
 * @example
 * Array.isArray(listBackends()); // true
 */
export function listBackends(): string[] {
  return [...registry().providers.keys()];
}

/**
 * The provider registered under a name, or undefined.
 *
 * @example
 * getBackend('cpu')?.name; // 'cpu'
 * getBackend('abacus'); // undefined
 */
export function getBackend(name: string): BackendProvider | undefined {
  return registry().providers.get(name);
}

/**
 * Makes an engine the one that new work runs on, and returns it. The engine set before is not disposed.
 *
 * @param engine a registered name, or an engine
 * @param options passed to the backend if the engine is made by name; with an engine: the options it was made with, to make another if it is lost
 * @throws EngineMissingError if no backend of that name is registered
 * @example
 * const engine = await setEngine('cpu', { threads: 1 });
 * getEngine() === engine; // true
 */
export async function setEngine(
  engine: string | IEngine,
  options?: Readonly<Record<string, unknown>>,
): Promise<IEngine> {
  const state = registry();
  if (typeof engine !== 'string') {
    checkEngine('setEngine', engine);
    await beside(engine.name, engine);
    return replaceEngine(engine, options);
  }
  const provider = state.providers.get(engine);
  if (!provider) throw missing('setEngine', `no backend named '${engine}' is registered`, engine);
  await Promise.all([beside(engine), provider.load?.()]);
  return replaceEngine(await provider.create(options), options);
}

/** True for an engine, whoever made it. */
export const isEngine = (value: unknown): value is IEngine =>
  typeof (value as IEngine | null | undefined)?.submit === 'function';

/** Throws EngineMissingError unless a value is an engine. */
export function checkEngine(op: string, engine: IEngine): void {
  if (isEngine(engine)) return;
  const what = told && isPlain(engine) ? lacking(engine) : '';
  throw missing(op, `not an engine: ${shown(engine)}${what}; give one, or a backend's name`);
}

/** What this copy of the package loads; the registry may belong to another copy. */
const loads = new Set<Load>();

/** Registers `load` to be done before a device is set, and before an engine that needs another one beside it. */
export function beforeOthers(load: Load): void {
  loads.add(load);
  (registry().loads ??= new Set()).add(load);
}

/** Loads the code that devices need, and the code for several engines. Repeated calls load nothing. */
async function beside(name: string, engine?: IEngine): Promise<void> {
  const { current, providers, loads: shared = [] } = registry();
  const alone = (current === null || current === engine) && (name === 'cpu' || providers.get('cpu')?.late === true);
  if (!alone || name !== 'cpu') await Promise.all([...new Set([...loads, ...shared])].map((load) => load(alone)));
}

const options = new WeakMap<IEngine, Readonly<Record<string, unknown>>>();

/** The options an engine was made with, if the registry knows them. */
export function optionsOf(engine: IEngine): Readonly<Record<string, unknown>> | undefined {
  return options.get(engine);
}

/** The current engine, if one was set or made already. */
export function currentEngine(): IEngine | null {
  return registry().current;
}

/** Makes an engine the current one, at once. */
export function replaceEngine(engine: IEngine, madeWith?: Readonly<Record<string, unknown>>): IEngine {
  if (told) checkLowering(engine);
  if (madeWith !== undefined) options.set(engine, madeWith);
  return (registry().current = remembered(engine));
}

/** What engines' authors may have left out; published pages do not ask. */
function checkLowering(engine: IEngine): void {
  if (engine.caps?.lowering === undefined) {
    throw new UnsupportedError(
      engine.name,
      "caps.lowering is undefined; engines name vectorLowering of '@polygrad/core/engine/vectors', or threadLowering or anyLowering of '@polygrad/core/engine/threads'",
    );
  }
  const alien = engine.caps.lowering.legalize
    ? undefined
    : [...engine.caps.dtypes].find((d) => !computesIn(engine.caps, d));
  if (alien !== undefined) {
    throw new UnsupportedError(
      engine.name,
      say`caps.lowering is for engines that compute in every dtype they hold, and this one does not in ${alien}; name anyLowering of '@polygrad/core/engine/threads'`,
    );
  }
}

/** Remembers a CPU engine for data that other engines cannot hold, while it lives; that of the 'cpu' backend whatever its name. */
function remembered(engine: IEngine, backend: string = engine.name): IEngine {
  const state = registry();
  if (backend !== 'cpu' || state.cpu === engine) return engine;
  state.cpu = engine;
  void engine.lost.then(() => {
    if (state.cpu === engine) state.cpu = null;
  });
  return engine;
}

/**
 * The engine for data that the current one cannot hold: the CPU engine set last, or one made now by the registered 'cpu' backend. A promise
 * while it starts, null if no such backend is registered.
 *
 * @example
 * const engine = await cpuEngine();
 * engine?.name; // 'cpu'
 */
export function cpuEngine(): IEngine | Promise<IEngine> | null {
  const state = registry();
  if (state.cpu) return state.cpu;
  const provider = state.providers.get('cpu');
  if (!provider) return null;
  const made = provider.create();
  if (!('then' in made)) return remembered(made, 'cpu');
  return (state.cpu = made
    .then(async (engine) => {
      await beside('cpu', engine);
      return remembered(engine, 'cpu');
    })
    .catch((error: unknown) => {
      state.cpu = null;
      throw error;
    }));
}

/**
 * The engine that work runs on. If none was set, the CPU backend is made if it is registered.
 *
 * @throws EngineMissingError where no engine was set and no CPU backend is registered
 *
 * @example
 * typeof getEngine().name; // "string"
 */
export function getEngine(): IEngine {
  const state = registry();
  if (state.current) return state.current;
  const provider = state.providers.get('cpu');
  if (!provider) throw missing('getEngine', 'no engine is set');
  const made = provider.create();
  if ('then' in made) {
    // The engine that is being made will not be used.
    made.then(
      (engine) => engine.dispose(),
      () => {},
    );
    throw new EngineMissingError(
      'getEngine',
      "the cpu backend starts asynchronously here; call await setEngine('cpu') first",
    );
  }
  return (state.current = remembered(made));
}

function missing(where: string, what: string, wanted = ''): EngineMissingError {
  const names = listBackends();
  const example = /^(webgpu|opencl|cuda|native)$/.test(wanted) ? wanted : 'cpu';
  const [first] = names;
  const remedy =
    first !== undefined && wanted === ''
      ? `call await setEngine('${first}') first`
      : `import a backend package first, for example '@polygrad/backend-${example}'`;
  return new EngineMissingError(where, say`${what}: registered are ${names.join(', ') || 'none'}; ${remedy}`);
}

/**
 * Calls a function whenever a device is lost, before another engine takes over. Returns a function that ends this.
 *
 * @example
 * const stop = onLost(({ error }) => console.error(error.message));
 * stop();
 */
export function onLost(listener: (event: LostEvent) => void): () => void {
  const { listeners } = engines;
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Marks an engine as lost, the first time, and calls the listeners of a runtime. */
function declareLost(engine: IEngine, error: DeviceLostError, state: Engines): void {
  const pool = poolOf(engine);
  if (pool.lost !== null) return;
  pool.lose(error);
  state.losses++;
  for (const listener of [...state.listeners]) {
    try {
      listener({ engine, error });
    } catch (mistake) {
      // A listener's error must neither stop the recovery nor go unseen.
      queueMicrotask(() => {
        throw mistake;
      });
    }
  }
}

/** Declares the engine lost, or disposed, if the error says so; returns the error. */
export function noticed(engine: IEngine, error: unknown): unknown {
  if (error instanceof DeviceLostError) declareLost(engine, error, engines);
  if (error instanceof EngineDisposedError) declareDisposed(engine, engines);
  return error;
}

/** Notes that copies on the engine are gone. Values that an earlier loss left only there must be looked for again. */
function declareDisposed(engine: IEngine, state: Engines): void {
  const pool = poolOf(engine);
  if (pool.disposed) return;
  pool.disposed = true;
  if (state.losses > 0) state.losses++;
}

/** Watches for the loss of an engine that the runtime has begun to use. */
export function watchEngine(engine: IEngine): void {
  const state = engines;
  void engine.lost.then(({ reason, message, error }) => {
    if (reason === 'disposed') declareDisposed(engine, state);
    else declareLost(engine, error ?? new DeviceLostError(engine.name, engine.device, message), state);
  });
}
