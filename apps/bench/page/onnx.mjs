/**
 * onnxruntime-web in the page, for inference: each case is a model of one node, written here in ONNX's protobuf format
 * (github.com/onnx/onnx, onnx.proto3: the numbers of the fields).
 */

class Unsupported extends Error {
  name = 'Unsupported';
}

// Protobuf: bytes as nested lists.
const varint = (n) => (n < 128 ? [n] : [(n & 127) | 128, ...varint(Math.floor(n / 128))]);
const number = (field, n) => [...varint(field * 8), ...varint(n)];
const message = (field, bytes) => [...varint(field * 8 + 2), ...varint(bytes.length), ...bytes];
const text = (field, value) => message(field, [...new TextEncoder().encode(value)]);

const tensorType = (shape) =>
  message(1, [
    ...number(1, 1),
    ...message(
      2,
      shape.flatMap((extent) => message(1, number(1, extent))),
    ),
  ]);
const value = (field, name, shape) => message(field, [...text(1, name), ...message(2, tensorType(shape))]);
const ints = (name, list) => message(5, [...text(1, name), ...list.flatMap((i) => number(8, i)), ...number(20, 7)]);
const int = (name, i) => message(5, [...text(1, name), ...number(3, i), ...number(20, 2)]);

/** A model of one node. `inputs` are shapes by name. */
function model(op, inputs, output, attributes = []) {
  const names = Object.keys(inputs);
  const node = [...names.flatMap((name) => text(1, name)), ...text(2, 'y'), ...text(4, op), ...attributes];
  const graph = [
    ...message(1, node),
    ...text(2, 'case'),
    ...names.flatMap((name) => value(11, name, inputs[name])),
    ...value(12, 'y', output),
  ];
  const operators = [...text(1, ''), ...number(2, 17)];
  return Uint8Array.from([...number(1, 8), ...message(7, graph), ...message(8, operators)]);
}

/** Model and input values of a case. */
function describe(tools, work) {
  const { fill } = tools;
  switch (work.kind) {
    case 'gemm': {
      const { m, n, k } = work;
      return {
        bytes: model('MatMul', { a: [m, k], b: [k, n] }, [m, n]),
        a: [fill(1, m * k, -1, 1), [m, k]],
        b: [fill(2, k * n, -1, 1), [k, n]],
      };
    }
    case 'softmax': {
      const side = Math.round(Math.sqrt(work.n));
      const shape = [side, side];
      return { bytes: model('Softmax', { a: shape }, shape, int('axis', 1)), a: [fill(1, work.n, -1, 1), shape] };
    }
    case 'layer-norm': {
      const side = Math.round(Math.sqrt(work.n));
      const shape = [side, side];
      return {
        bytes: model('LayerNormalization', { a: shape, b: [side] }, shape, int('axis', 1)),
        a: [fill(1, work.n, -1, 1), shape],
        b: [new Float32Array(side).fill(1), [side]],
      };
    }
    case 'conv': {
      const { batch, channels, side, filters } = work;
      const [x, kernel] = [
        [batch, channels, side, side],
        [filters, channels, 3, 3],
      ];
      const attributes = [...ints('kernel_shape', [3, 3]), ...ints('pads', [1, 1, 1, 1])];
      return {
        bytes: model('Conv', { a: x, b: kernel }, [batch, filters, side, side], attributes),
        a: [fill(1, batch * channels * side * side, -1, 1), x],
        b: [fill(2, filters * channels * 9, -1, 1), kernel],
      };
    }
    default:
      throw new Unsupported('for inference only');
  }
}

export async function createRunner({ engine, threads, tools }) {
  const gpu = engine === 'webgpu';
  const ort = gpu ? await import('onnxruntime-web/webgpu') : await import('onnxruntime-web/wasm');
  ort.env.wasm.wasmPaths = `${location.origin}/ort/`;
  ort.env.wasm.numThreads = threads;
  ort.env.logLevel = 'error';

  /** A tensor where the provider works: in its device's memory, or in ours, which it copies at each run. */
  const place = async ([data, dims]) => {
    if (!gpu) return new ort.Tensor('float32', data, dims);
    const device = await ort.env.webgpu.device;
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC;
    const buffer = device.createBuffer({ size: Math.ceil(data.byteLength / 16) * 16, usage });
    device.queue.writeBuffer(buffer, 0, data);
    return ort.Tensor.fromGpuBuffer(buffer, { dataType: 'float32', dims, dispose: () => buffer.destroy() });
  };
  return {
    version: globalThis.benchVersions['onnxruntime-web'],
    note: gpu ? 'operands and results stay on the device' : `${threads} threads`,
    async prepare(work) {
      const { bytes, ...operands } = describe(tools, work);
      const session = await ort.InferenceSession.create(bytes, {
        executionProviders: [gpu ? 'webgpu' : 'wasm'],
        ...(gpu ? { preferredOutputLocation: 'gpu-buffer' } : {}),
      });
      const feeds = {};
      for (const [name, operand] of Object.entries(operands)) feeds[name] = await place(operand);
      return {
        async run(count) {
          for (let i = 0; i < count; i++) (await session.run(feeds)).y.dispose();
          if (gpu) await (await ort.env.webgpu.device).queue.onSubmittedWorkDone();
        },
        async probe() {
          const { y } = await session.run(feeds);
          const values = await y.getData();
          y.dispose();
          return tools.probePositions(values.length).map((p) => values[p]);
        },
        dispose() {
          for (const tensor of Object.values(feeds)) tensor.dispose();
          void session.release();
        },
      };
    },
  };
}
