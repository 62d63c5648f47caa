/**
 * An engine on which something goes wrong at a given call, around any other: for tests of recovery.
 *
 * What a device may do, by kinds: it is lost, and says so at once or only when it is read; it has no memory; it refuses a kernel; it does not
 * start a batch, or stops in the middle; it gives fewer or more bytes than it was asked for; it never answers.
 */
import type { Command, CompiledKernel, EngineLostInfo } from '@polygrad/core/engine';
import { CompileError, DeviceLostError, type IEngine, OutOfMemoryError } from '@polygrad/core/functions';
import type { Program } from '@polygrad/core/kernel';

/** Members whose calls are counted; `download` includes `downloadSync`. */
export type FaultyMember = 'alloc' | 'upload' | 'compile' | 'submit' | 'download' | 'idle';

/** What goes wrong. */
export type FaultKind = 'lost' | 'silent' | 'memory' | 'refused' | 'launch' | 'size' | 'hang';

/** Which call of an engine fails, and how. */
export interface Fault {
  readonly member: FaultyMember;
  /** The call at which it happens, from 1. */
  readonly at: number;
  /**
   * - 'lost': the call throws and so do all later ones.
   * - 'silent': the device is lost, but calls still return, as a driver's do that tells later; only reads fail.
   * - 'memory': there is no room.
   * - 'refused', of `compile`: CompileError.
   * - 'launch', of `submit`: an error of the driver's own, and the device works on.
   * - 'size', of `alloc` and `download`: another number of bytes than was asked for.
   * - 'hang', of `download` and `idle`: no answer ever comes. `downloadSync` cannot hang a test, and is as it was.
   */
  readonly kind: FaultKind;
  /** The kinds that the device survives happen so many times, one call after the other (default 1). */
  readonly times?: number;
  /**
   * Commands of a batch that were done before it failed: with 'lost', 'silent' and 'launch' of `submit` (default 0). Of 'memory' there are none: an
   * engine that has no room has started nothing.
   */
  readonly begun?: number;
  /** Bytes too many, or if negative too few: with 'size' (default -4). An allocation is always half as large. */
  readonly excess?: number;
}

/** An engine that fails where it is told to. */
export interface FaultyEngine extends IEngine {
  /** Calls of each member since `arm`. */
  readonly calls: Readonly<Record<FaultyMember, number>>;
  /** Counts anew, and fails as told. */
  arm(faults: Fault | readonly Fault[] | null): void;
  /** Loses the device now. */
  lose(): void;
}

const members: readonly FaultyMember[] = ['alloc', 'upload', 'compile', 'submit', 'download', 'idle'];

/**
 * Which kinds of fault can happen at which member.
 *
 * @example
 * faultKinds.compile; // ['lost', 'silent', 'refused']
 */
export const faultKinds: Readonly<Record<FaultyMember, readonly FaultKind[]>> = {
  alloc: ['lost', 'silent', 'memory', 'size'],
  upload: ['lost', 'silent'],
  compile: ['lost', 'silent', 'refused'],
  submit: ['lost', 'silent', 'memory', 'launch'],
  download: ['lost', 'silent', 'size', 'hang'],
  idle: ['lost', 'silent', 'hang'],
};

const reason = 'the test took it away';

/** The state of a faulty engine: calls, what is to go wrong with them, and whether the device is lost. */
class Faults {
  readonly calls: Record<FaultyMember, number> = { alloc: 0, upload: 0, compile: 0, submit: 0, download: 0, idle: 0 };
  readonly lost: Promise<EngineLostInfo>;
  readonly name: string;
  readonly #device: string;
  #tell: (info: EngineLostInfo) => void = () => undefined;
  #faults: readonly Fault[] = [];
  #dead: 'no' | 'lost' | 'silent' = 'no';
  readonly #rejects = new Set<(error: Error) => void>();

  constructor(inner: IEngine, name: string) {
    this.name = name;
    this.#device = inner.device;
    this.lost = new Promise<EngineLostInfo>((resolve) => {
      this.#tell = resolve;
    });
    void inner.lost.then(this.#tell);
  }

  get alive(): boolean {
    return this.#dead === 'no';
  }

  error(): DeviceLostError {
    return new DeviceLostError(this.name, this.#device, reason);
  }

  arm(next: Fault | readonly Fault[] | null): void {
    for (const member of members) this.calls[member] = 0;
    this.#faults = next === null ? [] : 'kind' in next ? [next] : next;
  }

  lose(kind: 'lost' | 'silent'): void {
    if (!this.alive) return;
    this.#dead = kind;
    for (const reject of this.#rejects) reject(this.error());
    this.#tell({ reason: 'lost', message: reason });
  }

  /** Counts a call. What goes wrong with it; losses have happened by then. */
  #count(member: FaultyMember): Fault | undefined {
    const n = ++this.calls[member];
    const fault = this.#faults.find(
      ({ member: of, at, kind, times = 1 }) =>
        of === member && n >= at && n < at + (kind === 'lost' || kind === 'silent' ? 1 : times),
    );
    if (fault?.kind === 'lost' || fault?.kind === 'silent') this.lose(fault.kind);
    return fault;
  }

  /** Counts a call. Throws if the device is lost and says so, or has no room; else gives what goes wrong with it. */
  call(member: FaultyMember, before?: (fault: Fault) => void): Fault | undefined {
    const { alive } = this;
    const fault = this.#count(member);
    if (fault !== undefined && alive) before?.(fault);
    if (this.#dead === 'lost') throw this.error();
    if (fault?.kind === 'memory')
      throw new OutOfMemoryError(this.name, { requested: 1, live: 2, reserved: 3, limit: 4 });
    return fault;
  }

  /** A promise that a loss of the device rejects. */
  guarded<T>(promise: Promise<T>): Promise<T> {
    if (!this.alive) return Promise.reject(this.error());
    return new Promise<T>((resolve, reject) => {
      this.#rejects.add(reject);
      void promise.then(resolve, reject).finally(() => this.#rejects.delete(reject));
    });
  }

  /** A promise that only a loss of the device ends. */
  never<T>(): Promise<T> {
    return this.guarded(new Promise<T>(() => undefined));
  }
}

/** What was read, with bytes too few or too many. */
function cut(bytes: Uint8Array, { excess = -4 }: Fault): Uint8Array {
  const other = new Uint8Array(Math.max(0, bytes.length + excess));
  other.set(bytes.subarray(0, other.length));
  return other;
}

/** The members of an engine on which things go wrong. */
function faultyMembers(inner: IEngine, faults: Faults): Partial<FaultyEngine> {
  const { downloadSync } = inner;
  return {
    alloc: (bytes) => {
      const fault = faults.call('alloc');
      return inner.alloc(fault?.kind === 'size' ? bytes >> 1 : bytes);
    },
    upload: (to, data) => {
      faults.call('upload');
      inner.upload(to, data);
    },
    compile: (programs: readonly Program[]): readonly CompiledKernel[] => {
      const fault = faults.call('compile');
      if (fault?.kind === 'refused')
        throw new CompileError(faults.name, programs[0]?.name ?? 'none', 'the test refuses it', '');
      return inner.compile(programs);
    },
    submit: (commands: readonly Command[]): void => {
      const begin = ({ kind, begun = 0 }: Fault): void => {
        if (begun > 0 && kind !== 'memory') inner.submit(commands.slice(0, begun));
      };
      const fault = faults.call('submit', begin);
      if (fault?.kind === 'launch') throw new Error('the test did not launch it');
      if (faults.alive) inner.submit(commands);
    },
    download: async (from, into) => {
      const fault = faults.call('download');
      if (fault?.kind === 'hang') return faults.never();
      const bytes = await faults.guarded(inner.download(from, into));
      return fault?.kind === 'size' ? cut(bytes, fault) : bytes;
    },
    ...(downloadSync === undefined
      ? {}
      : {
          downloadSync: (from, into) => {
            const fault = faults.call('download');
            if (!faults.alive) throw faults.error();
            const bytes = downloadSync.call(inner, from, into);
            return fault?.kind === 'size' ? cut(bytes, fault) : bytes;
          },
        }),
    idle: async () => {
      const fault = faults.call('idle');
      return fault?.kind === 'hang' ? faults.never() : faults.guarded(inner.idle());
    },
  };
}

/**
 * Wraps an engine.
 *
 * @param inner what works; with its own errors and its own end
 * @param name what it is called (default: as the engine it wraps)
 * @example
 * const engine = createFaultyEngine(createReferenceEngine());
 * engine.arm({ member: 'alloc', at: 2, kind: 'memory' });
 * engine.alloc(16);
 * engine.alloc(16); // throws OutOfMemoryError
 */
export function createFaultyEngine(inner: IEngine, name: string = inner.name): FaultyEngine {
  const faults = new Faults(inner, name);
  const own: Partial<FaultyEngine> = {
    name,
    lost: faults.lost,
    calls: faults.calls,
    ...faultyMembers(inner, faults),
    arm: (next) => faults.arm(next),
    lose: () => faults.lose('lost'),
  };
  // Engines have private members, so that calls must reach the engine itself.
  return new Proxy(inner, {
    has: (target, key) => key in own || key in target,
    get(target, key) {
      if (key in own) return own[key as keyof FaultyEngine];
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
    set: (_, key, value) => Reflect.set(own, key, value),
  }) as FaultyEngine;
}
