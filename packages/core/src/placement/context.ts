/**
 * ExecutionContext: which engine computes what, by a policy.
 *
 * While one is active, each flush runs where the policy says. New data is held by the CPU engine, or by the device if all work is forced there.
 */
import { checkEngine, cpuEngine, getEngine, replaceEngine } from '../engine/registry.ts';
import type { IEngine } from '../engine/engine.ts';
import { EngineMissingError } from '../engine/errors.ts';
import { ArgumentError } from '@polygrad/compiler/shape/errors';
import { checkFields, checkFunction, oneOf } from '@polygrad/compiler/shape/options';
import { load } from '../runtime/queue.ts';
import { flush } from '../runtime/runtime.ts';
import { runs } from '../runtime/state.ts';
import { isPolicy, policies, type PlacementPolicy } from './decide.ts';
import type { OperationFamily } from './costs.ts';
import { type FallbackLogger, placerInUse, type PlacementRules } from './placer.ts';
import { AdaptiveThresholds } from './thresholds.ts';

/** Options of `ExecutionContext`. */
export interface ExecutionContextOptions {
  /** How engines are chosen. Default 'automatic'. */
  readonly policy?: PlacementPolicy;
  /** Results of `calibrate()`, or sizes by family; default: those of a typical processor and a typical card. */
  readonly thresholds?: AdaptiveThresholds | Partial<Readonly<Record<OperationFamily, number>>>;
  /** The engine beside the CPU engine, or several of a kind. Default: the current one, when the context becomes active. */
  readonly device?: IEngine | readonly IEngine[];
  /** Throw an error if the device cannot do something, instead of using the CPU engine. Default false. */
  readonly strict?: boolean;
  /** Called once for each reason that work goes to the CPU engine because the device cannot do it. Default: none. */
  readonly logger?: FallbackLogger | null;
}

/**
 * Chooses by a policy which of two engines computes each flush, the CPU engine or a device.
 *
 * - `automatic`: work that reaches the threshold of its family goes where it is done sooner, counting launches, arithmetic and the transfers
 *   of missing data. Recurring work adds up what it would have gained: data that stays is moved once that exceeds the cost of moving it.
 * - `costBased`: the same for each operation instead of each part of a flush, so a part may be divided. Thresholds are ignored.
 * - `minimizeTransfers`: work goes where most of its data is.
 * - `forceGpu`, `forceCpu`: all goes to the device, or to the CPU engine, as far as that can do it.
 *
 * Results have the bits of the engine that computes them, as if it were the only one. Tensors moved by `to`, and what is computed
 * from them, stay on their engine under every policy.
 *
 * @example
 * import { cpuEngine } from '@polygrad/core/engine';
 * import { ExecutionContext, getEngine, ones } from '@polygrad/core';
 * import { createReferenceEngine } from '@polygrad/testing';
 * import '@polygrad/backend-cpu';
 * const device = createReferenceEngine({ name: 'gpu' });
 * const context = new ExecutionContext({ policy: 'automatic', device, thresholds: { elementwise: 1e9 } });
 * await context.run(async () => {
 *   const y = ones([100]).add(1);
 *   console.log(y.device); //=> cpu
 * });
 */
export class ExecutionContext {
  readonly policy: PlacementPolicy;
  readonly thresholds: AdaptiveThresholds;
  readonly #devices: readonly IEngine[];
  readonly #strict: boolean;
  readonly #logger: FallbackLogger | null;
  #before: { readonly rules: PlacementRules | null; readonly engine: IEngine } | null = null;

  /** @throws ArgumentError for unknown options, and values that do not fit */
  constructor(options: ExecutionContextOptions = {}) {
    const isDevice = (value: unknown): boolean => typeof (value as IEngine | null)?.submit === 'function';
    const isThresholds = (value: unknown): boolean => typeof value === 'object' && value !== null;
    checkFields('ExecutionContext', options, {
      policy: [isPolicy, policies.map((name) => `'${name}'`).join(' or ')],
      thresholds: [isThresholds, 'AdaptiveThresholds, or sizes by family'],
      device: [
        (x) => (Array.isArray(x) ? x.length > 0 && x.every(isDevice) : isDevice(x)),
        'an engine, or a list of engines',
      ],
      strict: oneOf(true, false),
      logger: [(x) => x === null || typeof x === 'function', 'a function of a text, or null'],
    });
    const {
      policy = 'automatic',
      thresholds,
      device = [] as readonly IEngine[],
      strict = false,
      logger = null,
    } = options;
    this.policy = policy;
    this.thresholds = thresholds instanceof AdaptiveThresholds ? thresholds : new AdaptiveThresholds(thresholds ?? {});
    this.#devices = Array.isArray(device) ? [...device] : [device as IEngine];
    this.#strict = strict;
    this.#logger = logger;
  }

  /** True from `activate` to `deactivate`. */
  get isActive(): boolean {
    return this.#before !== null;
  }

  /**
   * Activates the policy. Pending work is flushed first.
   *
   * @returns the context, for `using`
   * @throws EngineMissingError without a CPU engine, or for `forceGpu` without another one; ArgumentError if it is active
   */
  async activate(): Promise<this> {
    if (this.#before !== null)
      throw new ArgumentError('ExecutionContext.activate', 'the context is active; call deactivate() first');
    const cpu = await cpuEngine();
    if (cpu === null)
      throw new EngineMissingError(
        'ExecutionContext.activate',
        'no cpu engine is there: the package @polygrad/backend-cpu brings one',
      );
    // Loads the code for several engines now, so that nothing waits for it later.
    await load();
    if (this.#before !== null)
      throw new ArgumentError(
        'ExecutionContext.activate',
        'the context became active meanwhile; await activate() once',
      );
    flush();
    const engine = getEngine();
    const listed = this.#devices.length > 0 ? this.#devices : [engine];
    for (const device of listed) checkEngine('ExecutionContext.activate', device);
    const devices = listed.filter((device) => device !== cpu);
    if (devices.length === 0 && this.policy === 'forceGpu')
      throw new EngineMissingError(
        'ExecutionContext.activate',
        "policy 'forceGpu', and the current engine is the cpu engine; give the context a device, or call setEngine() first",
      );
    const placer = placerInUse();
    this.#before = { rules: placer.rules, engine };
    const { policy, thresholds } = this;
    placer.use({ policy, thresholds, cpu, devices, strict: this.#strict, logger: this.#logger });
    replaceEngine(policy === 'forceGpu' ? devices[0]! : cpu);
    return this;
  }

  /** Restores the engine and the policy before, after flushing pending work. Nested contexts end from the inside. */
  deactivate(): void {
    const before = this.#before;
    if (before === null) return;
    try {
      flush();
    } finally {
      this.#before = null;
      const placer = placerInUse();
      placer.use(before.rules);
      if (placer.isIdle && runs.placer === placer) runs.placer = null;
      replaceEngine(before.engine);
    }
  }

  [Symbol.dispose](): void {
    this.deactivate();
  }

  /**
   * Calls a function while the context is active, and flushes what it leaves pending.
   *
   * @returns the function's result
   */
  async run<T>(body: () => T | Promise<T>): Promise<T> {
    checkFunction('ExecutionContext.run', body);
    await this.activate();
    try {
      return await body();
    } finally {
      this.deactivate();
    }
  }
}
