/**
 * What WGSL leaves open of a device's float arithmetic, asked once, by a kernel of one thread.
 *
 * Compilers may regroup sums and products as if they were exact, and some do: kernels of such devices keep their rounding
 * (`caps.keepRounding`). And devices may take denormal numbers for 0 (`caps.flushesDenormals`).
 */
import { host } from '#host';
import { mapRead, usage } from '../constants.ts';

/** Results of the device; absent if it does not answer. */
export interface DeviceArithmetic {
  /** Some value is not what single roundings give. */
  readonly regroups?: boolean;
  /** Denormal numbers are taken for 0. */
  readonly flushes?: boolean;
}

/** What kernels read: numbers no compiler knows. */
const numbers = {
  one: 1e-7,
  y: 3.3,
  big: 1e8,
  less: -1e8,
  inf: Number.POSITIVE_INFINITY,
  huge: 1e30,
  more: 2e30,
  n: 100,
  x: 69.4,
  tiny: 2 ** -149,
};

/** Expressions, and their values where every operation is rounded. The last two are those of denormal numbers, where they are kept. */
const cases: readonly (readonly [string, number])[] = [
  ['(one + 1.0) - 1.0', 2 ** -23],
  ['one - ((y + one) - y)', Math.fround(1e-7)],
  ['(big + 1.0) + less', 0],
  ['big + (1.0 + less)', 0],
  ['y - inf * 0.0', Number.NaN],
  ['inf - inf', Number.NaN],
  ['huge * 1e30 * 1e-30', Number.POSITIVE_INFINITY],
  ['huge / 1e-30 * 1e-30', Number.POSITIVE_INFINITY],
  ['huge * huge - huge * more', Number.NaN],
  ['(x - n * 0.693145751953125) - n * 1.42860677e-6', 0.08528347313404083],
  ['tiny + tiny', 2 ** -148],
  ['tiny * y', 3 * 2 ** -149],
];

const source = (all: typeof cases, head: string): string => `${head}
@group(0) @binding(0) var<storage, read_write> data: array<f32>;
@compute @workgroup_size(1)
fn main() {
${Object.keys(numbers)
  .map((name, i) => `  let ${name} = data[${i}];`)
  .join('\n')}
${all.map(([text], i) => `  data[${i}] = ${text};`).join('\n')}
}`;

/** Asks the device. */
export async function arithmeticOf(device: GPUDevice): Promise<DeviceArithmetic> {
  const half = device.features.has('shader-f16');
  const all = half ? [['f32(f16(y))', 3.30078125] as const, ...cases] : cases;
  const bytes = 4 * all.length;
  const data = device.createBuffer({ size: bytes, usage: usage.storage | usage.copySrc | usage.copyDst });
  const read = device.createBuffer({ size: bytes, usage: usage.mapRead | usage.copyDst });
  try {
    device.queue.writeBuffer(data, 0, Float32Array.from(Object.values(numbers)));
    const pipeline = await host.paced(() =>
      device.createComputePipelineAsync({
        layout: 'auto',
        compute: {
          module: device.createShaderModule({ code: source(all, half ? 'enable f16;' : '') }),
          entryPoint: 'main',
        },
      }),
    );
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(
      0,
      device.createBindGroup({
        layout: pipeline.getBindGroupLayout(0),
        entries: [{ binding: 0, resource: { buffer: data } }],
      }),
    );
    pass.dispatchWorkgroups(1);
    pass.end();
    encoder.copyBufferToBuffer(data, 0, read, 0, bytes);
    device.queue.submit([encoder.finish()]);
    await host.paced(() => read.mapAsync(mapRead));
    const got = new Float32Array(read.getMappedRange());
    // Zeros of either sign are equal as texts, and so is NaN.
    const wrong = all.map(([, value], i) => String(got[i]) !== String(value));
    return { flushes: wrong.splice(-2).includes(true), regroups: wrong.includes(true) };
  } catch {
    // A lost device says so itself.
    return {};
  } finally {
    data.destroy();
    read.destroy();
  }
}
