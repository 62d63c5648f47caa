/**
 * The reference engine: an IEngine over the IR interpreter. Slow, checked, and the definition of what every other engine
 * must compute.
 */
import {
  type Binding,
  checkAttached,
  type Command,
  type CompiledKernel,
  type EngineBuffer,
  showCaps,
  showEngine,
  showKernel,
} from '@polygrad/core/engine';
import { CompileError, type DType, type EngineCaps, type IEngine, type TypedArray } from '@polygrad/core/functions';
import { interpret, type KOp, type MatrixForm, printProgram, type Program } from '@polygrad/core/kernel';
import {
  anyLowering,
  BASE_OPS,
  binaryOps,
  compileProgram,
  dtypeInfo,
  hostArrays,
  ternaryOps,
  unaryOps,
} from '@polygrad/core/internals';
import { matrixLowering } from '@polygrad/core/engine/threads';
import { HostMemory, liveBuffer } from './host-memory.ts';

/** Options of `createReferenceEngine`. */
export interface ReferenceEngineOptions {
  /** Lower kernels for groups of several threads with barriers, as for a GPU. Default false. */
  readonly simt?: boolean;
  /** Most threads in a group, with `simt`. Default 256. */
  readonly maxGroup?: number;
  /** Threads of a subgroup, with `simt`: a power of two. Default: it has none. */
  readonly subgroup?: number;
  /** With `simt`: tiles of matrices that 32 threads multiply as one. Default: none. */
  readonly matrix?: readonly MatrixForm[] | undefined;
  /** With `simt`: threads copy to group memory beside other work. Default: they do where there are tiles of matrices. */
  readonly copies?: boolean | undefined;
  /** Evaluate functions (exp, sin ...) directly instead of through their decompositions. Default false. */
  readonly nativeFunctions?: boolean;
  /** Dtypes it holds. Default: all. */
  readonly dtypes?: readonly DType[];
  /** Dtypes it computes in, of those it holds: programs reach it with the others as memory alone (arithmetic/legalize.ts). Default: all. */
  readonly computes?: readonly DType[];
  /** False: it cannot read at once, and answers in a later turn of the event loop, as GPUs in browsers do. Default true. */
  readonly synchronous?: boolean;
  /** Most tensors a kernel may bind. Default 4096. */
  readonly maxBindings?: number;
  /** The name it goes by. Default 'reference'. */
  readonly name?: string;
}

const everyDType = Object.keys(dtypeInfo) as DType[];
const functions = (Object.keys({ ...unaryOps, ...binaryOps, ...ternaryOps }) as KOp[]).filter(
  (op) => !BASE_OPS.has(op) && op !== 'ROUNDED',
);

/** The program with those of its groups that run. */
function atGroups(program: Program, groups: Program['grid'] | null | undefined): Program {
  return groups == null ? program : { ...program, grid: groups };
}

/** The program with parameters as long as what is bound: loops that end at a size touch less than the greatest size would. */
function atSize(program: Program, arrays: readonly TypedArray[]): Program {
  const isShorter = ({ arg }: Program['params'][number]): boolean => arrays[arg.slot]!.length < arg.length;
  if (!program.params.some(isShorter)) return program;
  const params = program.params.map((p) =>
    isShorter(p) ? { ...p, arg: { ...p.arg, length: arrays[p.arg.slot]!.length } } : p,
  );
  return { ...program, params };
}

/** What the engine says of itself. */
function capsOf({
  simt = false,
  maxGroup = 256,
  subgroup,
  matrix,
  copies = matrix !== undefined,
  nativeFunctions = false,
  dtypes = everyDType,
  computes = everyDType,
  maxBindings = 4096,
}: ReferenceEngineOptions): EngineCaps {
  return showCaps({
    dtypes: new Set(dtypes),
    computes: new Set(computes),
    nativeOps: new Set(nativeFunctions ? functions : []),
    simt,
    lowering: matrix === undefined ? anyLowering : matrixLowering,
    vectorBytes: 16,
    sharedBytes: matrix !== undefined ? 49152 : simt ? 16384 : 1 << 20,
    matrix,
    copies,
    subgroups: subgroup === undefined ? undefined : { least: subgroup, most: subgroup, numbered: true },
    maxGroup: simt ? maxGroup : 1,
    maxBindings,
    maxBufferBytes: 2 ** 31,
    bindAlign: matrix === undefined ? 8 : 16,
    arena: true,
    parallelism: 1,
    atomics: new Set(['add', 'max', 'min', 'or'] as const),
  });
}

function bytesOf(engine: string, binding: Binding): Uint8Array {
  return new Uint8Array(liveBuffer(engine, binding).data, binding.offset, binding.bytes);
}

function runCommand(engine: string, command: Command, subgroup: number): void {
  switch (command.kind) {
    case 'copy':
      bytesOf(engine, command.to).set(bytesOf(engine, command.from));
      return;
    case 'fill': {
      const { data } = liveBuffer(engine, command.to);
      new Uint32Array(data, command.to.offset, command.to.bytes / 4).fill(command.pattern);
      return;
    }
    case 'dispatch': {
      const program = atGroups(command.kernel.program, command.groups);
      const arrays = arraysOf(engine, program, command.bindings);
      // Not neighbours: nothing may rest on which threads form a subgroup.
      interpret(atSize(program, arrays), arrays, command.scalars, { size: subgroup, dealt: true });
      return;
    }
    default:
      command satisfies never;
  }
}

/** What is bound to a program's parameters, by slot. */
function arraysOf(engine: string, program: Program, bindings: readonly Binding[]): readonly TypedArray[] {
  const arrays = new Array<TypedArray>(Math.max(0, ...program.params.map((p) => p.arg.slot + 1)));
  for (const { arg, dtype } of program.params) {
    const binding = bindings[arg.slot];
    if (!binding) throw new Error(`[${engine}] kernel ${program.name} has no binding for parameter ${arg.slot}`);
    const { data } = liveBuffer(engine, binding);
    const Host = hostArrays[dtype];
    arrays[arg.slot] = new Host(data, binding.offset, Math.floor(binding.bytes / Host.prototype.BYTES_PER_ELEMENT));
  }
  return arrays;
}

/**
 * An engine that interprets kernels with every access checked.
 *
 * @example
 * import { setEngine, tensor } from '@polygrad/core';
 * import { createReferenceEngine } from '@polygrad/testing';
 * await setEngine(createReferenceEngine());
 * console.log(await tensor([1, 2]).add(1).array()); //=> [ 2, 3 ]
 */
export function createReferenceEngine(options: ReferenceEngineOptions = {}): IEngine {
  const { name = 'reference', simt = false, synchronous = true, subgroup = 1 } = options;
  const memory = new HostMemory(name, true);
  let setLost: (info: { reason: 'disposed'; message: string }) => void = () => {};
  const lost = new Promise<{ reason: 'disposed'; message: string }>((resolve) => {
    setLost = resolve;
  });
  const read = (from: Binding, into: Uint8Array): Uint8Array => {
    memory.check('download');
    into.set(bytesOf(name, from));
    return into;
  };

  return showEngine({
    name,
    inHostMemory: synchronous,
    device: simt ? 'IR interpreter with thread groups' : 'IR interpreter',
    caps: capsOf(options),
    alloc: (bytes: number): EngineBuffer => memory.alloc(bytes),
    free: (buffer: EngineBuffer) => memory.free(buffer),
    upload: (to: Binding, data: ArrayBufferView) => {
      memory.check('upload');
      checkAttached('upload', 'data', data);
      bytesOf(name, to).set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
    },
    download: async (from: Binding, into: Uint8Array) => {
      read(from, into);
      if (!synchronous) await new Promise((resolve) => setTimeout(resolve, 0));
      return into;
    },
    ...(synchronous ? { downloadSync: read } : {}),
    compile: (programs: readonly Program[]): readonly CompiledKernel[] => {
      memory.check('compile');
      return programs.map((program) => {
        try {
          compileProgram(program);
        } catch (error) {
          const reason = error instanceof Error ? error.message : String(error);
          throw new CompileError(name, program.name, reason, printProgram(program), { cause: error });
        }
        return showKernel({ program });
      });
    },
    release: () => {},
    submit: (commands: readonly Command[]) => {
      memory.check('submit');
      for (const command of commands) runCommand(name, command, subgroup);
    },
    idle: async () => {},
    memory: () => ({ bytes: memory.bytes, buffers: memory.buffers, reservedBytes: memory.bytes }),
    lost,
    dispose: () => {
      if (memory.disposed) return;
      memory.disposed = true;
      setLost({ reason: 'disposed', message: 'the reference engine was disposed' });
    },
  });
}
