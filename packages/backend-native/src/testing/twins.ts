/** Two engines as one: every command runs on both, and both must write the same bytes. */
import type { Binding, Command, CompiledKernel, EngineBuffer, EngineMemory, IEngine } from '@polygrad/core/engine';
import type { Program } from '@polygrad/core/kernel/ir';

interface TwinBuffer extends EngineBuffer {
  readonly both: readonly [EngineBuffer, EngineBuffer];
}

interface TwinKernel extends CompiledKernel {
  readonly both: readonly [CompiledKernel, CompiledKernel];
}

/**
 * All NaNs count as equal: the sign of infinity less infinity is the processor's. Programs see 16-bit floats that the
 * engine does not hold as `uint16`, which `floatsInBits` tells.
 */
function sameBytes(a: Uint8Array, b: Uint8Array, dtype: string, floatsInBits: boolean): boolean {
  const differs = a.findIndex((x, i) => x !== b[i]);
  if (differs < 0) return true;
  if (dtype === 'uint16')
    return floatsInBits && (['float16', 'bfloat16'] as const).some((d) => sameSmallFloats(a, b, d));
  if (dtype === 'float16' || dtype === 'bfloat16') return sameSmallFloats(a, b, dtype);
  if (dtype !== 'float32' && dtype !== 'float64') return false;
  const [x, y] = [a, b].map((bytes) =>
    dtype === 'float32' ? new Float32Array(bytes.buffer) : new Float64Array(bytes.buffer),
  );
  return x!.every((v, i) => Object.is(v, y![i]));
}

function sameSmallFloats(a: Uint8Array, b: Uint8Array, dtype: 'float16' | 'bfloat16'): boolean {
  const infinity = dtype === 'float16' ? 0x7c00 : 0x7f80;
  const [x, y] = [new Uint16Array(a.buffer), new Uint16Array(b.buffer)];
  return x.every((v, i) => v === y[i] || ((v & 0x7fff) > infinity && (y[i]! & 0x7fff) > infinity));
}

/** The first engine, compared with the second after every dispatch. `differences` collects what differs. */
export class TwinEngine implements IEngine {
  readonly name: string;
  readonly device: string;
  readonly inHostMemory = true;
  readonly caps: IEngine['caps'];
  readonly lost: IEngine['lost'];
  readonly differences: string[] = [];
  /** Dispatches compared. */
  compared = 0;
  readonly #engines: readonly [IEngine, IEngine];

  constructor(first: IEngine, second: IEngine) {
    this.#engines = [first, second];
    this.name = `${first.name}-twin`;
    this.device = first.device;
    // Programs that both can run: the CPU engine has no casts of float16.
    this.caps = { ...first.caps, castsFloat16: false };
    this.lost = first.lost;
  }

  alloc(bytes: number): EngineBuffer {
    const [a, b] = this.#engines;
    const made: TwinBuffer = { bytes, both: [a.alloc(bytes), b.alloc(bytes)] };
    // Unwritten memory must be equal too.
    const zeros = new Uint8Array(bytes);
    for (const [i, engine] of this.#engines.entries())
      engine.upload({ buffer: made.both[i]!, offset: 0, bytes }, zeros);
    return made;
  }

  #binding(b: Binding, side: 0 | 1): Binding {
    return { ...b, buffer: (b.buffer as TwinBuffer).both[side] };
  }

  free(buffer: EngineBuffer): void {
    for (const [i, engine] of this.#engines.entries()) engine.free((buffer as TwinBuffer).both[i]!);
  }

  upload(to: Binding, data: ArrayBufferView): void {
    for (const [i, engine] of this.#engines.entries()) engine.upload(this.#binding(to, i as 0 | 1), data);
  }

  async download(from: Binding, into: Uint8Array): Promise<Uint8Array> {
    return this.downloadSync(from, into);
  }

  downloadSync(from: Binding, into: Uint8Array): Uint8Array {
    return this.#engines[0].downloadSync!(this.#binding(from, 0), into);
  }

  compile(programs: readonly Program[]): readonly CompiledKernel[] {
    const [a, b] = this.#engines.map((engine) => engine.compile(programs));
    return programs.map((program, i): TwinKernel => ({ program, both: [a![i]!, b![i]!] }));
  }

  release(kernels: readonly CompiledKernel[]): void {
    for (const [i, engine] of this.#engines.entries()) engine.release(kernels.map((k) => (k as TwinKernel).both[i]!));
  }

  submit(commands: readonly Command[]): void {
    for (const c of commands) {
      for (const [i, engine] of this.#engines.entries()) engine.submit([this.#command(c, i as 0 | 1)]);
      if (c.kind === 'dispatch') this.#compare(c.kernel as TwinKernel, c.bindings);
    }
  }

  #command(c: Command, side: 0 | 1): Command {
    if (c.kind === 'dispatch')
      return {
        ...c,
        kernel: (c.kernel as TwinKernel).both[side],
        bindings: c.bindings.map((b) => this.#binding(b, side)),
      };
    if (c.kind === 'copy') return { ...c, from: this.#binding(c.from, side), to: this.#binding(c.to, side) };
    return { ...c, to: this.#binding(c.to, side) };
  }

  #compare({ program }: TwinKernel, bindings: readonly Binding[]): void {
    this.compared++;
    const floatsInBits = program.body.some((n) => n.op === 'BITCAST');
    for (const p of program.params) {
      if (p.arg.access === 'read') continue;
      const binding = bindings[p.arg.slot]!;
      const [x, y] = ([0, 1] as const).map((side) =>
        this.#engines[side].downloadSync!(this.#binding(binding, side), new Uint8Array(binding.bytes)),
      );
      if (!sameBytes(x!, y!, p.dtype, floatsInBits))
        this.differences.push(`${program.name}: parameter ${p.arg.slot} of ${p.dtype}`);
    }
  }

  async idle(): Promise<void> {}

  memory(): EngineMemory {
    return this.#engines[0].memory();
  }

  dispose(): void {
    for (const engine of this.#engines) engine.dispose();
  }
}
