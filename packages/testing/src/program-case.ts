/**
 * A program with inputs, to run on an engine and compare with the interpreter: how the emitters of all engines are tested.
 */
import type { CompiledKernel } from '@polygrad/core/engine';
import type { DType, IEngine, TypedArray } from '@polygrad/core/functions';
import { legalize, type Program } from '@polygrad/core/kernel';
import { dtypeInfo, fromDevice, hostArrays, storageBytes, toDevice } from '@polygrad/core/internals';

/** A program of any dtypes, and what each of its parameters holds before it runs. */
export interface ProgramCase {
  readonly name: string;
  readonly program: Program;
  /** By slot. Parameters that are written are compared afterwards. */
  readonly data: readonly TypedArray[];
  readonly scalars: readonly (number | bigint)[];
  /** Contents after the run by slot, where the interpreter is not asked. */
  readonly expected?: readonly TypedArray[];
}

/** What an engine may do differently from the interpreter. Nothing unless said. */
export interface ProgramTolerance {
  /** The sign of zero is not promised. */
  readonly zeroSign?: boolean;
  /** Denormal numbers may be read or written as zero. */
  readonly denormals?: boolean;
  /** Floats may differ by so many units in the last place. */
  readonly ulps?: number;
}

/**
 * The parameters' contents after running each case on an engine; programs are made legal for it first and compiled together.
 *
 * @example
 * const [result] = await runProgramCases(createReferenceEngine(), [randomProgram(1)]);
 * result?.length === randomProgram(1).data.length; // true
 */
export async function runProgramCases(
  engine: IEngine,
  cases: readonly ProgramCase[],
): Promise<readonly (readonly TypedArray[])[]> {
  const kernels = engine.compile(cases.map((c) => legalize(c.program, engine.caps)));
  const results: (readonly TypedArray[])[] = [];
  for (const [i, c] of cases.entries()) results.push(await runOne(engine, c, kernels[i]!));
  engine.release(kernels);
  return results;
}

async function runOne(
  engine: IEngine,
  { program, data, scalars }: ProgramCase,
  kernel: CompiledKernel,
): Promise<readonly TypedArray[]> {
  const dtypes = program.params.map((p) => p.dtype);
  const bindings = data.map((array, i) => {
    const dtype = dtypes[i]!;
    const bytes = Math.max(16, Math.ceil((array.length * storageBytes(engine, dtype)) / 16) * 16);
    const binding = { buffer: engine.alloc(bytes), offset: 0, bytes };
    const padded = new hostArrays[dtype](bytes / storageBytes(engine, dtype)) as Int32Array;
    padded.set(array as Int32Array);
    engine.upload(binding, toDevice(engine, dtype, padded));
    return binding;
  });
  engine.submit([{ kind: 'dispatch', kernel, bindings, scalars }]);
  const after: TypedArray[] = [];
  for (const [i, binding] of bindings.entries()) {
    const { length } = data[i]!;
    if (program.params[i]?.arg.access === 'read') after.push(data[i]!);
    else {
      const bytes = await engine.download(binding, new Uint8Array(binding.bytes));
      after.push(fromDevice(engine, dtypes[i]!, bytes, length));
    }
  }
  for (const { buffer } of bindings) engine.free(buffer);
  return after;
}

/**
 * The case without denormal float32 numbers in its data, for devices that read them as zero.
 *
 * @example
 * withoutDenormals(randomProgram(1)).program.name === randomProgram(1).program.name; // true
 */
export function withoutDenormals(c: ProgramCase): ProgramCase {
  const data = c.data.map((array) =>
    array instanceof Float32Array ? array.map((x) => (Math.abs(x) < 2 ** -126 ? 0 : x)) : array,
  );
  return { ...c, data };
}

/**
 * Where two results of a case differ, as a line of text, or null. NaN equals NaN.
 *
 * @example
 * const one = randomProgram(1);
 * const [result = []] = await runProgramCases(createReferenceEngine(), [one]);
 * programDifference(one, result, result); // null
 */
export function programDifference(
  { program }: ProgramCase,
  got: readonly TypedArray[],
  want: readonly TypedArray[],
  tolerance: ProgramTolerance = {},
): string | null {
  for (const [slot, { dtype }] of program.params.entries()) {
    const [a, b] = [got[slot]!, want[slot]!];
    for (let i = 0; i < b.length; i++) {
      if (a[i] === b[i] && !dtypeInfo[dtype].kind.startsWith('float')) continue;
      const [x, y] = [keyOf(dtype, a, i, tolerance), keyOf(dtype, b, i, tolerance)];
      const apart = x > y ? x - y : y - x;
      if (apart > BigInt(tolerance.ulps ?? 0)) return `parameter ${slot}, element ${i}: ${a[i]}, expected ${b[i]}`;
    }
  }
  return null;
}

const exponents: Readonly<Partial<Record<DType, readonly [bits: bigint, digits: bigint]>>> = {
  float16: [16n, 10n],
  bfloat16: [16n, 7n],
  float32: [32n, 23n],
  float64: [64n, 52n],
};

/** An integer that grows with the number: neighbours in the format differ by one. All NaN are one number. */
function keyOf(dtype: DType, array: TypedArray, i: number, { zeroSign, denormals }: ProgramTolerance): bigint {
  const format = exponents[dtype];
  if (format === undefined) return BigInt(array[i]!);
  const [bits, digits] = format;
  const size = Number(bits) / 8;
  const view = new DataView(array.buffer, array.byteOffset + i * size, size);
  const pattern =
    size === 2
      ? BigInt(view.getUint16(0, true))
      : size === 4
        ? BigInt(view.getUint32(0, true))
        : view.getBigUint64(0, true);
  const top = 1n << (bits - 1n);
  const magnitude = pattern & (top - 1n);
  const infinity = ((1n << (bits - 1n - digits)) - 1n) << digits;
  if (magnitude > infinity) return top << 1n;
  const zero = magnitude === 0n || (denormals === true && magnitude < 1n << digits);
  if (zero) return zeroSign === true || denormals === true || pattern < top ? 0n : -1n;
  return pattern < top ? magnitude : -magnitude - 1n;
}
