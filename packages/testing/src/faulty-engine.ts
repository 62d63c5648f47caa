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
  const calls: Record<FaultyMember, number> = { alloc: 0, upload: 0, compile: 0, submit: 0, download: 0, idle: 0 };
  let faults: readonly Fault[] = [];
  let dead: 'no' | 'lost' | 'silent' = 'no';
  let tell: (info: EngineLostInfo) => void = () => undefined;
  const lost = new Promise<EngineLostInfo>((resolve) => {
    tell = resolve;
  });
  void inner.lost.then(tell);
  const rejects = new Set<(error: Error) => void>();
  const error = (): DeviceLostError => new DeviceLostError(name, inner.device, reason);
  const lose = (kind: 'lost' | 'silent'): void => {
    if (dead !== 'no') return;
    dead = kind;
    for (const reject of rejects) reject(error());
    tell({ reason: 'lost', message: reason });
  };
  /** Counts a call. What goes wrong with it; losses have happened by then. */
  const count = (member: FaultyMember): Fault | undefined => {
    const n = ++calls[member];
    const fault = faults.find(
      ({ member: of, at, kind, times = 1 }) =>
        of === member && n >= at && n < at + (kind === 'lost' || kind === 'silent' ? 1 : times),
    );
    if (fault?.kind === 'lost' || fault?.kind === 'silent') lose(fault.kind);
    return fault;
  };
  /** The same, and throws if the device is lost and says so, or has no room. */
  const call = (member: FaultyMember, before?: (fault: Fault) => void): Fault | undefined => {
    const alive = dead === 'no';
    const fault = count(member);
    if (fault !== undefined && alive) before?.(fault);
    if (dead === 'lost') throw error();
    if (fault?.kind === 'memory') throw new OutOfMemoryError(name, { requested: 1, live: 2, reserved: 3, limit: 4 });
    return fault;
  };
  const guarded = <T>(promise: Promise<T>): Promise<T> =>
    dead !== 'no'
      ? Promise.reject(error())
      : new Promise<T>((resolve, reject) => {
          rejects.add(reject);
          void promise.then(resolve, reject).finally(() => rejects.delete(reject));
        });
  /** A promise that only a loss of the device ends. */
  const never = <T>(): Promise<T> => guarded(new Promise<T>(() => undefined));
  /** What was read, with bytes too few or too many. */
  const cut = (bytes: Uint8Array, { excess = -4 }: Fault): Uint8Array => {
    const other = new Uint8Array(Math.max(0, bytes.length + excess));
    other.set(bytes.subarray(0, other.length));
    return other;
  };
  const { downloadSync } = inner;
  const own: Partial<FaultyEngine> = {
    name,
    lost,
    calls,
    alloc: (bytes) => {
      const fault = call('alloc');
      return inner.alloc(fault?.kind === 'size' ? bytes >> 1 : bytes);
    },
    upload: (to, data) => {
      call('upload');
      inner.upload(to, data);
    },
    compile: (programs: readonly Program[]): readonly CompiledKernel[] => {
      const fault = call('compile');
      if (fault?.kind === 'refused')
        throw new CompileError(name, programs[0]?.name ?? 'none', 'the test refuses it', '');
      return inner.compile(programs);
    },
    submit: (commands: readonly Command[]): void => {
      const begin = ({ kind, begun = 0 }: Fault): void => {
        if (begun > 0 && kind !== 'memory') inner.submit(commands.slice(0, begun));
      };
      const fault = call('submit', begin);
      if (fault?.kind === 'launch') throw new Error('the test did not launch it');
      if (dead === 'no') inner.submit(commands);
    },
    download: async (from, into) => {
      const fault = call('download');
      if (fault?.kind === 'hang') return never();
      const bytes = await guarded(inner.download(from, into));
      return fault?.kind === 'size' ? cut(bytes, fault) : bytes;
    },
    ...(downloadSync === undefined
      ? {}
      : {
          downloadSync: (from, into) => {
            const fault = call('download');
            if (dead !== 'no') throw error();
            const bytes = downloadSync.call(inner, from, into);
            return fault?.kind === 'size' ? cut(bytes, fault) : bytes;
          },
        }),
    idle: async () => {
      const fault = call('idle');
      return fault?.kind === 'hang' ? never() : guarded(inner.idle());
    },
    arm: (next) => {
      for (const member of members) calls[member] = 0;
      faults = next === null ? [] : 'kind' in next ? [next] : next;
    },
    lose: () => lose('lost'),
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
