/**
 * What WGSL leaves open of a device's float arithmetic, asked once, by a kernel of one thread.
 *
 * Compilers may regroup sums and products as if they were exact, and some do: kernels of such devices keep their rounding
 * (`caps.keepRounding`). And devices may take denormal numbers for 0 (`caps.flushesDenormals`).
 */
import { host } from '#host';
import { mapRead, usage } from '../constants.ts';

/** What a device does. */
export interface DeviceArithmetic {
  /** Some value is not what single roundings give. */
  readonly regroups: boolean;
  /** Some denormal number is taken for 0, as an operand, as a result or where it is compared. */
  readonly flushes: boolean;
}

const { NaN: nan, POSITIVE_INFINITY: inf } = Number;
const f = Math.fround;

/** What kernels read: numbers no compiler knows. */
const numbers = {
  ...{ one: 1e-7, y: 3.3, big: 1e8, less: -1e8, inf, huge: 1e30, more: 2e30, n: 100, x: 69.4 },
  ...{ unit: 1, tiny: 2 ** -130, tinier: 2 ** -131, small: 2 ** -70 },
};
const v = Object.fromEntries(Object.entries(numbers).map(([name, value]) => [name, f(value)])) as typeof numbers;
const [high, low] = [f(0.693145751953125), f(1.42860677e-6)];

type Cases = readonly (readonly [string, number])[];

/** Expressions, and their values where every operation is rounded. */
const rounding: Cases = [
  ['(one + 1.0) - 1.0', f(f(v.one + 1) - 1)],
  ['one - ((y + one) - y)', f(v.one - f(f(v.y + v.one) - v.y))],
  ['(big + 1.0) + less', 0],
  ['big + (1.0 + less)', 0],
  ['y - inf * 0.0', nan],
  ['inf - inf', nan],
  ['huge * 1e30 * 1e-30', inf],
  ['huge / 1e-30 * 1e-30', inf],
  ['huge * huge - huge * more', nan],
  [`(x - n * ${high}) - n * ${low}`, f(f(v.x - f(v.n * high)) - f(v.n * low))],
];

/** Expressions, and their values where denormal numbers are kept. */
const denormals: Cases = [
  ['tiny * unit', v.tiny],
  ['tiny + tinier', v.tiny + v.tinier],
  ['small * small', v.small * v.small],
  ['select(0.0, 1.0, tiny > tinier)', 1],
];

const cases = [...rounding, ...denormals];

const source = `
@group(0) @binding(0) var<storage, read_write> data: array<f32>;
@compute @workgroup_size(1)
fn main() {
${Object.keys(numbers)
  .map((name, i) => `  let ${name} = data[${i}];`)
  .join('\n')}
${cases.map(([text], i) => `  data[${i}] = ${text};`).join('\n')}
}`;

/** Asks the device. One that does not answer is taken to do both. */
export async function arithmeticOf(device: GPUDevice): Promise<DeviceArithmetic> {
  const bytes = 4 * Math.max(cases.length, Object.keys(numbers).length);
  const make = (flags: number): GPUBuffer => device.createBuffer({ label: 'arithmetic', size: bytes, usage: flags });
  const [data, read] = [make(usage.storage | usage.copySrc | usage.copyDst), make(usage.mapRead | usage.copyDst)];
  try {
    device.queue.writeBuffer(data, 0, Float32Array.from(Object.values(numbers)));
    const module = device.createShaderModule({ label: 'arithmetic', code: source });
    const pipeline = await host.paced(() =>
      device.createComputePipelineAsync({
        label: 'arithmetic',
        layout: 'auto',
        compute: { module, entryPoint: 'main' },
      }),
    );
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    const entries = [{ binding: 0, resource: { buffer: data } }];
    pass.setBindGroup(0, device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries }));
    pass.dispatchWorkgroups(1);
    pass.end();
    encoder.copyBufferToBuffer(data, 0, read, 0, bytes);
    device.queue.submit([encoder.finish()]);
    await host.paced(() => read.mapAsync(mapRead));
    const got = new Float32Array(read.getMappedRange());
    const differs = cases.map(([, value], i) => !Object.is(got[i], value) && got[i] !== value);
    const denormal = differs.splice(rounding.length);
    return { regroups: differs.includes(true), flushes: denormal.includes(true) };
  } catch {
    // A lost device says so itself.
    return { regroups: true, flushes: true };
  } finally {
    data.destroy();
    read.destroy();
  }
}
