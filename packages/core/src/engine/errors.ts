/**
 * Errors of engines and of the runtime: out of memory, refused kernels, lost or disposed devices, missing backends.
 *
 * Every message reads `[where] what is wrong: the two values; what to do`, and every class carries the values as fields.
 * Errors of shapes, dtypes and arguments live in shape/errors.ts.
 */

import { PolygradError } from '@polygrad/compiler/shape/errors';

/**
 * The engine has no room for an allocation. All figures are bytes.
 *
 * @example
 * const engine = createFaultyEngine(createReferenceEngine());
 * engine.arm({ member: 'alloc', at: 1, kind: 'memory' });
 * engine.alloc(16); // throws OutOfMemoryError
 */
export class OutOfMemoryError extends PolygradError {
  override readonly name: string = 'OutOfMemoryError';
  readonly requested: number;
  readonly live: number;
  readonly reserved: number;
  readonly limit: number;
  /** Bytes kept for reuse that were freed before the last try. */
  readonly pooled: number = 0;
  /** The block sizes that hold most memory, and how many blocks of each. */
  readonly holders: readonly { readonly bytes: number; readonly count: number }[] = [];
  readonly #where: string;
  readonly #hint: string | undefined;

  constructor(
    where: string,
    sizes: { requested: number; live: number; reserved: number; limit: number },
    hint?: string,
  ) {
    super(
      'OUT_OF_MEMORY',
      where,
      `out of memory: ${sizes.requested} bytes requested with ${sizes.live} bytes live and ${sizes.reserved} reserved of at most ` +
        `${sizes.limit}; ${hint ?? 'dispose tensors you no longer need, use a smaller batch, or wrap steps in scope()'}`,
    );
    this.requested = sizes.requested;
    this.live = sizes.live;
    this.reserved = sizes.reserved;
    this.limit = sizes.limit;
    this.#where = where;
    this.#hint = hint;
  }

  /** The same error with figures of the buffer pool. */
  explained(pooled: number, holders: OutOfMemoryError['holders']): OutOfMemoryError {
    const list = holders.map(({ bytes, count }) => `${count} of ${bytes} bytes`).join(', ');
    const hint = this.#hint ?? 'dispose tensors you no longer need, use a smaller batch, or wrap steps in scope()';
    const text = `${pooled} bytes kept for reuse were given back first${list === '' ? '' : `; most is held by buffers: ${list}`}; ${hint}`;
    return Object.assign(new OutOfMemoryError(this.#where, this, text), { ...this, pooled, holders, cause: this });
  }
}

/**
 * An engine or a compiler pass refuses a kernel. `ir` is the printed program.
 *
 * @example
 * const { program } = randomProgram(1);
 * const wrong = { ...program, body: [...program.body].reverse() };
 * createReferenceEngine().compile([wrong]); // throws CompileError
 */
export class CompileError extends PolygradError {
  override readonly name: string = 'CompileError';
  readonly kernel: string;
  readonly #ir: string;

  constructor(where: string, kernel: string, reason: string, ir: string, options?: ErrorOptions) {
    super('COMPILE', where, `kernel '${kernel}' cannot be compiled: ${reason}\n${ir}`, options);
    this.kernel = kernel;
    this.#ir = ir;
  }

  /** The printed program, at the end of the message. */
  get ir(): string {
    return this.#ir;
  }
}

/**
 * The device or its driver did something wrong, and still works as far as is known: a batch that it did not start, an answer of another size.
 * The call that throws it changed nothing.
 *
 * @example
 * const engine = createFaultyEngine(createReferenceEngine());
 * await setEngine(engine);
 * engine.arm({ member: 'download', at: 1, kind: 'size' });
 * await ones([4]).data(); // throws DeviceError
 */
export class DeviceError extends PolygradError {
  override readonly name: string = 'DeviceError';
  /** Name of the engine. */
  readonly engine: string;

  constructor(engine: string, message: string, options?: ErrorOptions) {
    super('DEVICE_ERROR', engine, message, options);
    this.engine = engine;
  }

  /** The error for a device that returned another number of bytes than requested. */
  static ofSize(engine: string, what: string, asked: number, given: number): DeviceError {
    return new DeviceError(
      engine,
      `${what} of ${asked} bytes gave ${given}: the device or its driver is at fault; try once more, and choose another engine with setEngine() if that fails too`,
    );
  }
}

/**
 * An engine was used after `dispose()`. Values that only it had are gone. What was recorded for it is computed after `setEngine`, unless it needs such values.
 *
 * @example
 * const engine = createReferenceEngine();
 * engine.dispose();
 * engine.alloc(16); // throws EngineDisposedError
 */
export class EngineDisposedError extends PolygradError {
  override readonly name: string = 'EngineDisposedError';
  readonly engine: string;

  constructor(engine: string, action: string) {
    super(
      'ENGINE_DISPOSED',
      engine,
      `${action} was asked of an engine that is disposed: values that only it had are gone; call setEngine('${engine}') and compute them again`,
    );
    this.engine = engine;
  }
}

/**
 * The device stopped working; values that only it had are lost. Engines reject every pending promise with it, throw it from
 * every later call, and resolve `lost`.
 *
 * @example
 * const engine = createFaultyEngine(createReferenceEngine());
 * engine.lose();
 * engine.alloc(16); // throws DeviceLostError
 */
export class DeviceLostError extends PolygradError {
  override readonly name: string = 'DeviceLostError';
  /** Name of the engine. */
  readonly engine: string;
  /** Name of the device for reports. */
  readonly device: string;
  /** The driver's message. */
  readonly reason: string;
  declare readonly driverCode?: number;

  constructor(engine: string, device: string, reason: string, options?: ErrorOptions) {
    super(
      'DEVICE_LOST',
      engine,
      `the device is lost (${device}): ${reason}; tensors that lived only there are gone, make them again or protect() them`,
      options,
    );
    this.engine = engine;
    this.device = device;
    this.reason = reason;
    // Later errors of the same loss get the driver's number too.
    const { driverCode } = (options?.cause ?? {}) as PolygradError;
    if (driverCode !== undefined) this.driverCode = driverCode;
  }

  /** The same loss with a more detailed reason. */
  because(reason: string): DeviceLostError {
    return new DeviceLostError(this.engine, this.device, reason, { cause: this });
  }
}

/**
 * A fault of the device itself: an address out of bounds in a kernel, say. After it no engine of this process works on that device; a new
 * process can. Its values are gone, as with any lost device.
 *
 * @example
 * const error = new DeviceFaultError('cuda', 'a card', 'a kernel went out of bounds', 700);
 * error.fatal; // true
 */
export class DeviceFaultError extends DeviceLostError {
  override readonly name: string = 'DeviceFaultError';
  /** True: only a new process can use the device again. */
  readonly fatal = true;
  /** The driver's error code. `code` is the library's. */
  override readonly driverCode: number;

  constructor(engine: string, device: string, reason: string, driverCode: number, options?: ErrorOptions) {
    const told = '; no engine of this process works on it any more';
    super(engine, device, reason.includes(told) ? reason : reason + told, options);
    this.driverCode = driverCode;
  }

  override because(reason: string): DeviceFaultError {
    return new DeviceFaultError(this.engine, this.device, reason, this.driverCode, { cause: this });
  }
}

/**
 * No engine of that name is registered, or none at all.
 *
 * @example
 * await setEngine('abacus'); // throws EngineMissingError
 */
export class EngineMissingError extends PolygradError {
  override readonly name: string = 'EngineMissingError';

  constructor(where: string, message: string, options?: ErrorOptions) {
    super('ENGINE_MISSING', where, message, options);
  }
}

/**
 * The engine cannot do this; the message says what to do instead.
 *
 * @example
 * const { downloadSync: _, ...waiting } = createReferenceEngine();
 * await setEngine(waiting);
 * ones([2]).dataSync(); // throws UnsupportedError
 */
export class UnsupportedError extends PolygradError {
  override readonly name: string = 'UnsupportedError';
  /** Set if code that is being loaded is missing: resolves when a retry makes sense. */
  declare readonly until?: Promise<void>;
  /** Set if plans can do without that code: calls a function that does. */
  declare readonly without?: <R>(run: () => R) => R;

  constructor(where: string, message: string, until?: Promise<void>, without?: <R>(run: () => R) => R) {
    super('UNSUPPORTED', where, message);
    if (until !== undefined) this.until = until;
    if (without !== undefined) this.without = without;
  }
}
