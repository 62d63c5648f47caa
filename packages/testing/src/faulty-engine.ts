/** An engine that loses its device, or finds no memory, at a given call: for tests of recovery. */
import { type EngineLostInfo, showEngine } from '@polygrad/core/engine';
import { DeviceLostError, type IEngine, OutOfMemoryError } from '@polygrad/core/functions';

/** Members whose calls are counted. */
export type FaultyMember = 'alloc' | 'upload' | 'compile' | 'submit' | 'download';

export interface Fault {
  readonly member: FaultyMember;
  /** The call at which it happens, from 1. */
  readonly at: number;
  /**
   * 'lost': the call throws and so do all later ones. 'silent': calls still return, as a driver's do that tells later; only reads fail.
   * 'memory': the call and `times - 1` after it find no room.
   */
  readonly kind: 'lost' | 'silent' | 'memory';
  readonly times?: number;
}

export interface FaultyEngine extends IEngine {
  /** Calls of each member since `arm`. */
  readonly calls: Readonly<Record<FaultyMember, number>>;
  /** Counts anew, and fails as told. */
  arm(fault: Fault | null): void;
  /** Loses the device now. */
  lose(): void;
}

/**
 * Wraps an engine.
 *
 * @example
 * const engine = createFaultyEngine(createReferenceEngine());
 * engine.arm({ member: 'alloc', at: 2, kind: 'memory' });
 * engine.alloc(16);
 * engine.alloc(16); // throws OutOfMemoryError
 */
export function createFaultyEngine(inner: IEngine): FaultyEngine {
  const calls: Record<FaultyMember, number> = { alloc: 0, upload: 0, compile: 0, submit: 0, download: 0 };
  let fault: Fault | null = null;
  let dead: 'no' | 'lost' | 'silent' = 'no';
  let tell: (info: EngineLostInfo) => void = () => undefined;
  const lost = new Promise<EngineLostInfo>((resolve) => {
    tell = resolve;
  });
  const rejects = new Set<(error: Error) => void>();
  const error = (): DeviceLostError => new DeviceLostError(inner.name, inner.device, 'the test took it away');
  const lose = (kind: 'lost' | 'silent'): void => {
    if (dead !== 'no') return;
    dead = kind;
    for (const reject of rejects) reject(error());
    tell({ reason: 'lost', message: 'the test took it away' });
  };
  /** Counts a call; throws where it fails. */
  const count = (member: FaultyMember): void => {
    const n = ++calls[member];
    if (fault?.member === member && n >= fault.at) {
      if (fault.kind !== 'memory') {
        if (n === fault.at) lose(fault.kind);
      } else if (n < fault.at + (fault.times ?? 1)) {
        throw new OutOfMemoryError(inner.name, { requested: 1, live: 2, reserved: 3, limit: 4 });
      }
    }
    if (dead === 'lost') throw error();
  };
  const guarded = <T>(promise: Promise<T>): Promise<T> =>
    dead !== 'no'
      ? Promise.reject(error())
      : new Promise<T>((resolve, reject) => {
          rejects.add(reject);
          void promise.then(resolve, reject).finally(() => rejects.delete(reject));
        });
  const { downloadSync } = inner;
  return showEngine({
    ...inner,
    alloc: (bytes) => {
      count('alloc');
      return inner.alloc(bytes);
    },
    upload: (to, data) => {
      count('upload');
      inner.upload(to, data);
    },
    compile: (programs) => {
      count('compile');
      return inner.compile(programs);
    },
    submit: (commands) => {
      count('submit');
      if (dead === 'no') inner.submit(commands);
    },
    download: async (from, into) => {
      count('download');
      return guarded(inner.download(from, into));
    },
    ...(downloadSync === undefined
      ? {}
      : {
          downloadSync: (from: Parameters<typeof downloadSync>[0], into: Uint8Array) => {
            count('download');
            if (dead !== 'no') throw error();
            return downloadSync(from, into);
          },
        }),
    idle: () => guarded(inner.idle()),
    lost,
    calls,
    arm: (next) => {
      for (const member of Object.keys(calls) as FaultyMember[]) calls[member] = 0;
      fault = next;
    },
    lose: () => lose('lost'),
  });
}
